/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the `system` schema comes into a connection.
 *
 * A virtual table belongs to a schema. In the host's own schema, creating one would be a write, and reading
 * one would take the schema's lock. An eponymous table belongs to the host's `main`, too. So the connection
 * gets an additional schema: an attached in-memory database, filled by sqlite3_deserialize() with an image of
 * one page that contains CREATE VIRTUAL TABLE for each table. Unlike these statements, the image also works
 * inside a transaction, and remains after a rollback.
 *
 * The image is made when the library is built, by system_image.c.
 *
 * The schema's file object also makes `PRAGMA system.NAME` work, because SQLite passes an unknown PRAGMA to
 * the file. The object gets a copy of its methods, in which a PRAGMA goes to the settings first.
 */
#include "sql/schema.h"

#include <stdlib.h>
#include <string.h>

#include "system_image.h" /* made by the build */
#include "base/text.h"
#include "sqlite/library/calling.h"
#include "sqlite/runs/own_statements.h"
#include "sql/pragma.h"
#include "sql/tables.h"
#include "sqlite/session/setting_change.h"

#define NAME "system"

/* --- PRAGMA system.NAME ---------------------------------------------------- */

/* The methods of one file object; goes with it. */
struct file_methods {
	sqlite3_io_methods methods;
	const sqlite3_io_methods *original;
	struct session *session;
};

struct search {
	const char *name;
	bool is_any, is_found; /* a PRAGMA was listed at all; that name */
};

static int inspect_pragma(void *context, int argc, char **values, char **names)
{
	struct search *search = context;

	(void)names;
	search->is_any = true;
	search->is_found |= argc > 0 && values[0] && !sqlite3_stricmp(values[0], search->name);
	return 0;
}

/* Whether SQLite has a PRAGMA of that name; true if it does not list them. */
static bool is_sqlites(sqlite3 *db, const char *name)
{
	struct search search = { .name = name };
	struct call quiet;

	own_statements_begin_quiet(&quiet, __builtin_frame_address(0));
	sqlite3_exec(db, "PRAGMA pragma_list", inspect_pragma, &search, NULL);
	own_statements_end_quiet(&quiet);
	return search.is_found || !search.is_any;
}

static int on_pragma(struct session *session, char **arguments)
{
	const char *name = arguments[1], *value = arguments[2];
	char *error = NULL, *text;
	int rc;

	if (!name)
		return SQLITE_NOTFOUND;
	if (!settings_find(name)) {
		if (is_sqlites(session->db, name))
			return SQLITE_NOTFOUND;
		arguments[0] =
			sqlite3_mprintf("PRAGMA " NAME ".%s: neither a setting nor a PRAGMA of SQLite; "
		                        "SELECT name FROM " NAME ".settings lists the settings",
		                        name);
		return SQLITE_ERROR;
	}
	rc = value ? session_set(session, name, value, SETTING_FROM_SQL, &error) : 0;
	if (rc) {
		arguments[0] = sqlite3_mprintf("%s", error ? error : "out of memory");
		free(error);
		return SQLITE_ERROR;
	}
	text = settings_get(&session->settings, name);
	arguments[0] = text ? sqlite3_mprintf("%s", text) : NULL;
	free(text);
	return SQLITE_OK;
}

bool schema_run_pragma(struct session *session, const char *sql)
{
	struct pragma pragma;
	char *error = NULL;

	if (!pragma_parse(sql, -1, &pragma))
		return false;
	if (pragma.value)
		session_set(session, pragma.name, pragma.value, SETTING_FROM_SQL, &error);
	free(error);
	free(pragma.value);
	return true;
}

static int file_control(sqlite3_file *file, int op, void *argument)
{
	const struct file_methods *ours = (const struct file_methods *)file->pMethods;

	if (op == SQLITE_FCNTL_PRAGMA) {
		int rc = on_pragma(ours->session, argument);

		if (rc != SQLITE_NOTFOUND)
			return rc;
	}
	return ours->original->xFileControl(file, op, argument);
}

static int file_close(sqlite3_file *file)
{
	struct file_methods *ours = (struct file_methods *)file->pMethods;
	int rc;

	file->pMethods = ours->original;
	rc = file->pMethods->xClose(file);
	free(ours);
	return rc;
}

/* The schema's file, NULL when there is none. */
static sqlite3_file *file_of(sqlite3 *db)
{
	sqlite3_file *file = NULL;

	if (sqlite3_file_control(db, NAME, SQLITE_FCNTL_FILE_POINTER, &file) || !file || !file->pMethods)
		return NULL;
	return file;
}

static bool is_ours(const sqlite3_file *file)
{
	return file && file->pMethods->xFileControl == file_control;
}

/* Without it PRAGMA system.NAME does nothing, as any unknown PRAGMA; no reason to
 * fail. */
static void let_pragmas_through(struct session *session)
{
	sqlite3_file *file = file_of(session->db);
	struct file_methods *ours = file ? malloc(sizeof(*ours)) : NULL;

	if (!ours)
		return;
	ours->original = file->pMethods;
	ours->session = session;
	ours->methods = *ours->original;
	ours->methods.xFileControl = file_control;
	ours->methods.xClose = file_close;
	file->pMethods = &ours->methods;
}

/* --------------------------------------------------------------------------- */

struct image {
	const char *encoding;
	const unsigned char *bytes;
	size_t size;
};

static const struct image images[] = {
	{ "UTF-8", image_utf8, sizeof(image_utf8) },
	{ "UTF-16le", image_utf16le, sizeof(image_utf16le) },
	{ "UTF-16be", image_utf16be, sizeof(image_utf16be) },
};

static int find_image(void *context, int argc, char **values, char **names)
{
	const struct image **image = context;

	(void)names;
	for (size_t i = 0; argc > 0 && values[0] && i < sizeof(images) / sizeof(*images); i++)
		if (!strcmp(values[0], images[i].encoding))
			*image = &images[i];
	return 0;
}

/* An attached database must have the encoding of `main`. When `main` is still empty
 * that is open until a schema has been read: read `system` at once, or a later PRAGMA
 * encoding would be carried out and leave a connection that can prepare nothing. */
static int fill(sqlite3 *db)
{
	const struct image *image = images;
	unsigned char *copy;
	int rc = sqlite3_exec(db, "PRAGMA main.encoding", find_image, &image, NULL);

	if (rc)
		return rc;
	copy = sqlite3_malloc((int)image->size);
	if (!copy)
		return SQLITE_NOMEM;
	memcpy(copy, image->bytes, image->size);
	/* Frees the copy, whether it succeeds or not. It can grow, for a bare ANALYZE writes a
	 * table of its own into every schema. */
	rc = sqlite3_deserialize(db, NAME, copy, (sqlite3_int64)image->size, (sqlite3_int64)image->size,
	                         SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
	return rc ? rc : sqlite3_exec(db, "SELECT 1 FROM " NAME ".sqlite_master", NULL, NULL, NULL);
}

static int attach_and_fill(struct session *session)
{
	sqlite3 *db = session->db;
	int rc = sqlite3_exec(db, "ATTACH ':memory:' AS " NAME, NULL, NULL, NULL);

	if (rc)
		return rc;
	rc = fill(db);
	if (rc)
		sqlite3_exec(db, "DETACH " NAME, NULL, NULL, NULL);
	else
		let_pragmas_through(session);
	return rc;
}

static int read_number(void *context, int argc, char **values, char **names)
{
	(void)names;
	*(int *)context = argc > 0 && values[0] ? atoi(values[0]) : 0;
	return 0;
}

/* On failure the connection is as it was before. */
static int attach(struct session *session)
{
	sqlite3 *db = session->db;
	int timeout_ms = 0, rc;

	/* Newer routines lie behind the end of an older SQLite's table. */
	if (sqlite3_libversion_number() < 3039000 || !sqlite3_deserialize)
		return SQLITE_ERROR;
	if (sqlite3_db_filename(db, NAME))
		return SQLITE_ERROR; /* the name is taken */
	/* A locked `main` is not waited for: the host's own statement has waited already, or
	 * did not mean to read `main` at all. */
	sqlite3_exec(db, "PRAGMA busy_timeout", read_number, &timeout_ms, NULL);
	if (timeout_ms > 0)
		sqlite3_busy_timeout(db, 0);
	rc = attach_and_fill(session);
	if (timeout_ms > 0)
		sqlite3_busy_timeout(db, timeout_ms);
	return rc;
}

bool schema_is_locked(int rc)
{
	return (rc & 0xFF) == SQLITE_BUSY || (rc & 0xFF) == SQLITE_LOCKED;
}

int schema_make_eponymous(struct session *session, char **error)
{
	return tables_register(session, TABLES_EPONYMOUS, error);
}

int schema_attach(struct session *session, char **error)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(session->db);
	int rc;

	/* Other threads of the connection must not meet this busy_timeout. */
	sqlite3_mutex_enter(mutex);
	rc = is_ours(file_of(session->db)) ? SQLITE_OK : tables_register(session, TABLES_IN_SCHEMA, error);
	if (!rc && !is_ours(file_of(session->db)) && (rc = attach(session))) {
		if (schema_is_locked(rc))
			*error = sqlite3_mprintf("%s", sqlite3_errmsg(session->db));
		else
			rc = schema_make_eponymous(session, error);
	}
	session->has_tables |= rc == SQLITE_OK;
	sqlite3_mutex_leave(mutex);
	return rc;
}

/* --- on demand --------------------------------------------------------------- */

#define NO_TABLE "no such table: "

/* Which of queryprof's tables may be missed by its name alone. Other names than those of the
 * logs are words that a host may look for itself, unless it has attached the schema. */
static bool is_name_of_ours(const struct session *session, const char *name)
{
	if (!session->wants_tables)
		return !sqlite3_stricmp(name, "trace_log") || !sqlite3_stricmp(name, "query_log");
	for (int i = 0; i < tables_count(); i++)
		if (!sqlite3_stricmp(name, tables_name(i)))
			return true;
	return false;
}

/* Whether the connection's newest error says that a table of the schema is missing. A schema
 * `system` of the host's own is not searched for queryprof's tables. */
static bool is_missed(const struct session *session)
{
	const char *said = sqlite3_errmsg(session->db);

	if (!sqlite3_stricmp(said, "unknown database " NAME) ||
	    !sqlite3_strnicmp(said, NO_TABLE NAME ".", (int)strlen(NO_TABLE NAME ".")))
		return !sqlite3_db_filename(session->db, NAME);
	return !sqlite3_strnicmp(said, NO_TABLE, (int)strlen(NO_TABLE)) &&
	       is_name_of_ours(session, said + strlen(NO_TABLE));
}

static int attach_unseen(struct session *session)
{
	struct call quiet;
	char *error = NULL;
	int rc;

	/* queryprof's statements are no queries of the host's. */
	own_statements_begin_quiet(&quiet, __builtin_frame_address(0));
	rc = schema_attach(session, &error);
	own_statements_end_quiet(&quiet);
	sqlite3_free(error);
	return rc;
}

static bool is_table_of_ours(const char *word, size_t size)
{
	for (int i = 0; i < tables_count(); i++)
		if (strlen(tables_name(i)) == size && !sqlite3_strnicmp(word, tables_name(i), (int)size))
			return true;
	return false;
}

/* A name with an underscore is hardly a word of the host's; `settings` may be. Most texts have few of the two
 * characters, and each preparation passes here. */
static bool may_name_ours(const char *sql)
{
	const char *start, *end = sql;

	for (const char *at = sql; (at = strpbrk(at, "_.")); at = end) {
		for (start = at; start > sql && text_is_word(start[-1]);)
			start--;
		for (end = at; text_is_word(*end);)
			end++;
		if (*at == '.' ? at - start == sizeof(NAME) - 1 &&
		                         !sqlite3_strnicmp(start, NAME, sizeof(NAME) - 1)
		               : is_table_of_ours(start, (size_t)(end - start)))
			return true;
		end += *at == '.';
	}
	return false;
}

/* A text that has such a word and means something else brings the schema as well: the host
 * has attached it. */
void schema_expect(struct session *session, const char *sql)
{
	if (may_name_ours(sql))
		attach_unseen(session);
}

int schema_follow(struct session *session)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(session->db);
	int rc = SQLITE_NOTFOUND;

	/* The message is another thread's to replace as soon as the mutex is free. */
	sqlite3_mutex_enter(mutex);
	if (is_missed(session) && !is_ours(file_of(session->db)))
		rc = attach_unseen(session);
	if (rc && !schema_is_locked(rc))
		rc = SQLITE_NOTFOUND;
	sqlite3_mutex_leave(mutex);
	return rc;
}
