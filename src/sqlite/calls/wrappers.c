/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers: each follows what the host does (statements.h, operations.h, recording.h), and
 * calls the real function in between.
 *
 * The body of a wrapper is written once, inlined into its form for each library: on a
 * stack there is one frame, named so that a person who meets it knows whose it is, and the
 * profiler finds the frame gone when it was left by a long jump.
 */
#include "sqlite/calls/wrappers.h"

#include <stdlib.h>
#include <string.h>

#include "base/hot_path.h"
#include "sqlite/calls/workers.h"
#include "sqlite/library/auto_extensions.h"
#include "sqlite/plan/bytecode.h"
#include "sqlite/runs/operations.h"
#include "sqlite/runs/statements.h"
#include "sqlite/runs/session_life.h"
#include "sqlite/session/watch_sql.h"

typedef int exec_callback(void *, int, char **, char **);

/* Each function of the interface that is followed: FUNCTION(since, path, result, name, parameters,
 * arguments). since: the table of routines of an older library does not reach that far. */
#define INTERFACE(FUNCTION)                                                                                  \
	FUNCTION(0, HOT_PATH, int, step, (sqlite3_stmt * a), a)                                              \
	FUNCTION(0, HOT_PATH, int, reset, (sqlite3_stmt * a), a)                                             \
	FUNCTION(0, HOT_PATH, int, finalize, (sqlite3_stmt * a), a)                                          \
	FUNCTION(0, , int, exec, (sqlite3 * a, const char *b, exec_callback *c, void *d, char **e), a, b, c, \
	         d, e)                                                                                       \
	FUNCTION(0, , int, prepare, (sqlite3 * a, const char *b, int c, sqlite3_stmt **d, const char **e),   \
	         a, b, c, d, e)                                                                              \
	FUNCTION(0, , int, prepare_v2,                                                                       \
	         (sqlite3 * a, const char *b, int c, sqlite3_stmt **d, const char **e), a, b, c, d, e)       \
	FUNCTION(3020000, , int, prepare_v3,                                                                 \
	         (sqlite3 * a, const char *b, int c, unsigned d, sqlite3_stmt **e, const char **f), a, b, c, \
	         d, e, f)                                                                                    \
	FUNCTION(0, , int, prepare16, (sqlite3 * a, const void *b, int c, sqlite3_stmt **d, const void **e), \
	         a, b, c, d, e)                                                                              \
	FUNCTION(0, , int, prepare16_v2,                                                                     \
	         (sqlite3 * a, const void *b, int c, sqlite3_stmt **d, const void **e), a, b, c, d, e)       \
	FUNCTION(3020000, , int, prepare16_v3,                                                               \
	         (sqlite3 * a, const void *b, int c, unsigned d, sqlite3_stmt **e, const void **f), a, b, c, \
	         d, e, f)                                                                                    \
	FUNCTION(0, , int, close, (sqlite3 * a), a)                                                          \
	FUNCTION(0, , int, close_v2, (sqlite3 * a), a)                                                       \
	FUNCTION(0, , sqlite3_backup *, backup_init,                                                         \
	         (sqlite3 * a, const char *b, sqlite3 *c, const char *d), a, b, c, d)                        \
	FUNCTION(0, , int, backup_step, (sqlite3_backup * a, int b), a, b)                                   \
	FUNCTION(0, , int, backup_finish, (sqlite3_backup * a), a)                                           \
	FUNCTION(0, , int, blob_open,                                                                        \
	         (sqlite3 * a, const char *b, const char *c, const char *d, sqlite3_int64 e, int f,          \
	          sqlite3_blob **g),                                                                         \
	         a, b, c, d, e, f, g)                                                                        \
	FUNCTION(0, , int, blob_reopen, (sqlite3_blob * a, sqlite3_int64 b), a, b)                           \
	FUNCTION(0, , int, blob_read, (sqlite3_blob * a, void *b, int c, int d), a, b, c, d)                 \
	FUNCTION(0, , int, blob_write, (sqlite3_blob * a, const void *b, int c, int d), a, b, c, d)          \
	FUNCTION(0, , int, blob_close, (sqlite3_blob * a), a)                                                \
	FUNCTION(0, , int, wal_checkpoint, (sqlite3 * a, const char *b), a, b)                               \
	FUNCTION(0, , int, wal_checkpoint_v2, (sqlite3 * a, const char *b, int c, int *d, int *e), a, b, c,  \
	         d, e)                                                                                       \
	FUNCTION(3039000, , unsigned char *, serialize,                                                      \
	         (sqlite3 * a, const char *b, sqlite3_int64 *c, unsigned d), a, b, c, d)                     \
	FUNCTION(3039000, , int, deserialize,                                                                \
	         (sqlite3 * a, const char *b, unsigned char *c, sqlite3_int64 d, sqlite3_int64 e,            \
	          unsigned f),                                                                               \
	         a, b, c, d, e, f)                                                                           \
	FUNCTION(0, , int, auto_extension, (void (*extension)(void)), extension) /* the last one */

/* SQLite's own, of copies that are patched: the interface's functions only call them, so link-time
 * optimisation lets the host call them directly. Within a wrapper of the interface's function, theirs do
 * nothing a second time. */
#define INTERNAL(FUNCTION)                                                                                   \
	FUNCTION(0, , int, lock_and_prepare,                                                                 \
	         (sqlite3 * a, const char *b, int c, unsigned d, void *e, sqlite3_stmt **f, const char **g), \
	         a, b, c, d, e, f, g)                                                                        \
	FUNCTION(0, , int, close_any, (sqlite3 * a, int b), a, b)

static struct real {
	const struct host_library *library; /* whose functions they are */
#define MEMBER(since, path, result, name, parameters, ...) result(*name) parameters;
	INTERFACE(MEMBER)
	INTERNAL(MEMBER)
} real[HOST_LIBRARIES_MAX] = {
	{ .library = &host_libraries[0] },
	{ .library = &host_libraries[1] },
	{ .library = &host_libraries[2] },
	{ .library = &host_libraries[3] },
};

/* A wrapper's body. `number` is a constant wherever it is inlined. */
#define WRAPPER static inline __attribute__((always_inline))

/* If a body is inlined, this is the wrapper's own frame. */
#define FRAME __builtin_frame_address(0)
#define CALLER __builtin_return_address(0)
#define OF(number) (&host_libraries[number])

/* --- statements ------------------------------------------------------------- */

/* The rare part of the most frequent calls is a separate function, so that the usual case saves no
 * registers for it. */
#define WATCHED HOT_PATH static __attribute__((noinline))

WATCHED int queryprof_step_watched(const struct real *functions, sqlite3_stmt *stmt, const void *caller)
{
	struct run_call step;
	struct hot_call hot = statement_step_begin(&step, functions->library, stmt, FRAME, caller);
	struct calling *calling = calling_current;
	int rc = functions->step(stmt);

	statement_step_end(hot, calling, &step, rc, functions->library, FRAME);
	return rc;
}

WRAPPER int wrap_step(int number, sqlite3_stmt *stmt)
{
	return sessions_idle() ? real[number].step(stmt)
	                       : queryprof_step_watched(&real[number], stmt, CALLER);
}

/* After a call that has the frame, so it is not a tail call, which would discard the frame. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

WATCHED int queryprof_reset_watched(const struct real *functions, sqlite3_stmt *stmt)
{
	int rc = statement_reset(functions->library, stmt, functions->reset, FRAME);

	if (rc == SQLITE_OK)
		bytecode_read(stmt, FRAME);
	return rc;
}

WRAPPER int wrap_reset(int number, sqlite3_stmt *stmt)
{
	return sessions_idle() ? real[number].reset(stmt) : queryprof_reset_watched(&real[number], stmt);
}

WATCHED int queryprof_finalize_watched(const struct real *functions, sqlite3_stmt *stmt)
{
	int rc = statement_finalize(functions->library, stmt, functions->reset, functions->finalize, FRAME);

	KEEP_FRAME();
	return rc;
}

WRAPPER int wrap_finalize(int number, sqlite3_stmt *stmt)
{
	return sessions_idle() ? real[number].finalize(stmt)
	                       : queryprof_finalize_watched(&real[number], stmt);
}

/* sqlite3_exec() frees its statements without sqlite3_finalize(). One that is done
 * has ended at its last step; one that the callback gave up ends here. */
struct exec_call {
	exec_callback *callback;
	void *context;
	struct call call;
};

static int on_exec_row(void *context, int count, char **values, char **names)
{
	const struct exec_call *exec = context;
	sqlite3_stmt *stmt = statement_exec_row(&exec->call);
	int rc = exec->callback(exec->context, count, values, names);

	if (rc)
		statement_exec_abandon(&exec->call, stmt);
	return rc;
}

WRAPPER int wrap_exec(int number, sqlite3 *db, const char *sql, exec_callback *callback, void *context,
                      char **error)
{
	struct exec_call exec = { callback, context, { 0 } };
	struct run_call operation = { .run = NULL };
	int rc;

	/* Never without, because the script may turn the sampling on. */
	statement_exec_begin(&exec.call, OF(number), FRAME, CALLER);
	if (!__atomic_load_n(&host_libraries[number].calls_are_seen, __ATOMIC_RELAXED))
		operation_begin_exec(&operation, &exec.call, db, sql);
	rc = callback ? real[number].exec(db, sql, on_exec_row, &exec, error)
	              : real[number].exec(db, sql, NULL, context, error);
	operation_end_exec(&operation, rc);
	statement_exec_end(&exec.call);
	if (rc == SQLITE_OK)
		bytecode_read(db, FRAME);
	return rc;
}

/* --- preparing ---------------------------------------------------------------- */

struct prepare_call {
	const struct real *real;
	sqlite3 *db;
	const void *sql;
	int bytes;
	unsigned flags;
	sqlite3_stmt **stmt;
	const void **tail;
	const char *text; /* `sql` if it is UTF-8 and ends in a zero */
	const struct host_library *library;
	const void *frame;
	void *old; /* of lock_and_prepare */
};

/* The statement's text when it ends in a zero, as it mostly does. */
static const char *text_of(const char *sql, int bytes)
{
	return bytes < 0 || (bytes > 0 && sql && !sql[bytes - 1]) ? sql : NULL;
}

typedef int prepare_function(const struct prepare_call *);

static int prepare_v1(const struct prepare_call *call)
{
	return call->real->prepare(call->db, call->sql, call->bytes, call->stmt, (const char **)call->tail);
}

static int prepare_v2(const struct prepare_call *call)
{
	return call->real->prepare_v2(call->db, call->sql, call->bytes, call->stmt,
	                              (const char **)call->tail);
}

static int prepare_v3(const struct prepare_call *call)
{
	return call->real->prepare_v3(call->db, call->sql, call->bytes, call->flags, call->stmt,
	                              (const char **)call->tail);
}

static int prepare16_v1(const struct prepare_call *call)
{
	return call->real->prepare16(call->db, call->sql, call->bytes, call->stmt, call->tail);
}

static int prepare16_v2(const struct prepare_call *call)
{
	return call->real->prepare16_v2(call->db, call->sql, call->bytes, call->stmt, call->tail);
}

static int prepare16_v3(const struct prepare_call *call)
{
	return call->real->prepare16_v3(call->db, call->sql, call->bytes, call->flags, call->stmt,
	                                call->tail);
}

/* A recorded connection knows none of queryprof's words. */
static struct session *session_with_tables(sqlite3 *db)
{
	struct session *session = session_of(db);

	return session && !session->recorded ? session : NULL;
}

/* Not part of the query that is prepared. */
static void bring_tables(const struct prepare_call *prepare, const struct watch_sql *ours,
                         struct session *session)
{
	struct call call;

	call_enter(&call, prepare->library, __builtin_frame_address(0));
	ours->before_prepare(session, prepare->text);
	call_leave(&call);
}

/* Prepares; if that fails because a table of the schema is missing, prepares again once it exists. */
static int prepare_followed(prepare_function *prepare, const struct prepare_call *call)
{
	const struct watch_sql *ours = watch_sql();
	struct session *session = ours ? session_with_tables(call->db) : NULL;
	struct run_call followed;
	int rc;

	if (session && session->wants_tables && !session->has_tables && call->text)
		bring_tables(call, ours, session);
	statement_prepare_begin(&followed, call->library, call->db, call->text, call->frame);
	rc = prepare(call);
	if (rc == SQLITE_ERROR && session) {
		int missing = ours->missing_table(session);

		if (missing != SQLITE_NOTFOUND)
			rc = missing ? missing : prepare(call);
	}
	statement_prepare_end(&followed, rc, rc ? NULL : *call->stmt);
	return rc;
}

/* The same for UTF-8 text, in which a SELECT replaces a PRAGMA of queryprof. */
static int prepare_text(prepare_function *prepare, struct prepare_call *call)
{
	const struct watch_sql *ours = watch_sql();
	const char *end, **tail = (const char **)call->tail;
	char *text = call->sql && ours ? ours->rewrite(call->sql, call->bytes, &end) : NULL;
	int rc;

	if (__builtin_expect(!text, 1))
		return prepare_followed(prepare, call);
	if (session_with_tables(call->db)) {
		call->sql = call->text = text;
		call->bytes = -1;
		call->tail = NULL;
	}
	rc = prepare_followed(prepare, call);
	if (tail && !call->tail)
		*tail = end;
	free(text);
	return rc;
}

/* A statement of UTF-8, `is_text`, or of UTF-16. */
WRAPPER int prepare_any(int number, prepare_function *prepare, bool is_text, sqlite3 *db, const void *sql,
                        int bytes, unsigned flags, sqlite3_stmt **stmt, const void **tail)
{
	struct prepare_call call = { &real[number], db,    sql,  bytes,
		                     flags,         stmt,  tail, is_text ? text_of(sql, bytes) : NULL,
		                     OF(number),    FRAME, NULL };
	int rc = is_text ? prepare_text(prepare, &call) : prepare_followed(prepare, &call);

	KEEP_FRAME();
	return rc;
}

WRAPPER int wrap_prepare(int number, sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **stmt,
                         const char **tail)
{
	return prepare_any(number, prepare_v1, true, db, sql, bytes, 0, stmt, (const void **)tail);
}

WRAPPER int wrap_prepare_v2(int number, sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **stmt,
                            const char **tail)
{
	return prepare_any(number, prepare_v2, true, db, sql, bytes, 0, stmt, (const void **)tail);
}

WRAPPER int wrap_prepare_v3(int number, sqlite3 *db, const char *sql, int bytes, unsigned flags,
                            sqlite3_stmt **stmt, const char **tail)
{
	return prepare_any(number, prepare_v3, true, db, sql, bytes, flags, stmt, (const void **)tail);
}

WRAPPER int wrap_prepare16(int number, sqlite3 *db, const void *sql, int bytes, sqlite3_stmt **stmt,
                           const void **tail)
{
	return prepare_any(number, prepare16_v1, false, db, sql, bytes, 0, stmt, tail);
}

WRAPPER int wrap_prepare16_v2(int number, sqlite3 *db, const void *sql, int bytes, sqlite3_stmt **stmt,
                              const void **tail)
{
	return prepare_any(number, prepare16_v2, false, db, sql, bytes, 0, stmt, tail);
}

WRAPPER int wrap_prepare16_v3(int number, sqlite3 *db, const void *sql, int bytes, unsigned flags,
                              sqlite3_stmt **stmt, const void **tail)
{
	return prepare_any(number, prepare16_v3, false, db, sql, bytes, flags, stmt, tail);
}

static int lock_and_prepare(const struct prepare_call *call)
{
	return call->real->lock_and_prepare(call->db, call->sql, call->bytes, call->flags, call->old,
	                                    call->stmt, (const char **)call->tail);
}

/* sqlite3_prepare_v2() and its kin pass on to it. */
WRAPPER int wrap_lock_and_prepare(int number, sqlite3 *db, const char *sql, int bytes, unsigned flags,
                                  void *old, sqlite3_stmt **stmt, const char **tail)
{
	struct prepare_call call = {
		&real[number],       db,         sql,   bytes, flags, stmt, (const void **)tail,
		text_of(sql, bytes), OF(number), FRAME, old,
	};
	int rc = prepare_text(lock_and_prepare, &call);

	KEEP_FRAME();
	return rc;
}

/* --- without a statement ------------------------------------------------------ */

WRAPPER void begin_close(struct run_call *call, int number, sqlite3 *db, bool even_with_statements)
{
	operation_begin_close(call, OF(number), db, FRAME);
	recording_closing(OF(number), db, even_with_statements);
}

WRAPPER int wrap_close(int number, sqlite3 *db)
{
	struct run_call call;
	int rc;

	begin_close(&call, number, db, false);
	rc = real[number].close(db);
	operation_end(&call, rc);
	return rc;
}

WRAPPER int wrap_close_v2(int number, sqlite3 *db)
{
	struct run_call call;
	int rc;

	begin_close(&call, number, db, true);
	rc = real[number].close_v2(db);
	operation_end(&call, rc);
	return rc;
}

/* sqlite3_close() and _v2() pass on to it. */
WRAPPER int wrap_close_any(int number, sqlite3 *db, int even_with_statements)
{
	struct run_call call;
	int rc;

	begin_close(&call, number, db, even_with_statements);
	rc = real[number].close_any(db, even_with_statements);
	operation_end(&call, rc);
	return rc;
}

WRAPPER sqlite3_backup *wrap_backup_init(int number, sqlite3 *to, const char *to_name, sqlite3 *from,
                                         const char *from_name)
{
	const struct operation_text text = { "sqlite3_backup_step", from_name, NULL, NULL };
	struct run_call call;
	sqlite3_backup *backup;

	if (sessions_idle())
		return real[number].backup_init(to, to_name, from, from_name);
	operation_begin(&call, OF(number), from, &text, FRAME);
	backup = real[number].backup_init(to, to_name, from, from_name);
	operation_opened(&call, backup, backup ? SQLITE_OK : sqlite3_errcode(to));
	return backup;
}

WRAPPER int wrap_blob_open(int number, sqlite3 *db, const char *schema, const char *table, const char *column,
                           sqlite3_int64 row, int flags, sqlite3_blob **blob)
{
	const struct operation_text text = { "sqlite3_blob_open", schema, table, column };
	struct run_call call;
	int rc;

	if (sessions_idle())
		return real[number].blob_open(db, schema, table, column, row, flags, blob);
	operation_begin(&call, OF(number), db, &text, FRAME);
	rc = real[number].blob_open(db, schema, table, column, row, flags, blob);
	operation_opened(&call, rc ? NULL : *blob, rc);
	return rc;
}

/* Calls that work on a backup or a blob and, if `begin` is operation_finish, those that free it. */
#define WRAP_HANDLE(begin, handle, function)                                                                 \
	struct run_call call;                                                                                \
	int rc;                                                                                              \
	if (sessions_idle())                                                                                 \
		return real[number].function;                                                                \
	begin(&call, OF(number), handle, FRAME);                                                             \
	rc = real[number].function

WRAPPER int wrap_backup_step(int number, sqlite3_backup *backup, int pages)
{
	WRAP_HANDLE(operation_use, backup, backup_step(backup, pages));
	operation_used(&call);
	return rc;
}

WRAPPER int wrap_backup_finish(int number, sqlite3_backup *backup)
{
	WRAP_HANDLE(operation_finish, backup, backup_finish(backup));
	operation_end(&call, rc);
	return rc;
}

WRAPPER int wrap_blob_reopen(int number, sqlite3_blob *blob, sqlite3_int64 row)
{
	WRAP_HANDLE(operation_use, blob, blob_reopen(blob, row));
	operation_used(&call);
	return rc;
}

WRAPPER int wrap_blob_read(int number, sqlite3_blob *blob, void *to, int bytes, int offset)
{
	WRAP_HANDLE(operation_use, blob, blob_read(blob, to, bytes, offset));
	operation_used(&call);
	return rc;
}

WRAPPER int wrap_blob_write(int number, sqlite3_blob *blob, const void *from, int bytes, int offset)
{
	WRAP_HANDLE(operation_use, blob, blob_write(blob, from, bytes, offset));
	operation_used(&call);
	return rc;
}

WRAPPER int wrap_blob_close(int number, sqlite3_blob *blob)
{
	WRAP_HANDLE(operation_finish, blob, blob_close(blob));
	operation_end(&call, rc);
	return rc;
}

/* Calls that do all of the work at once. */
#define WRAP_ONE(name, db, schema, function)                                                                 \
	const struct operation_text text = { "sqlite3_" name, schema, NULL, NULL };                          \
	struct run_call call;                                                                                \
	if (sessions_idle())                                                                                 \
		return real[number].function;                                                                \
	operation_begin(&call, OF(number), db, &text, FRAME)

/* For locks/wal.c. A longjmp() leaves it until the thread's next call of the kind. */
static void set_checkpoint_mode(uint32_t mode)
{
	if (calling_current)
		calling_current->checkpoint_mode = mode;
}

WRAPPER int wrap_wal_checkpoint(int number, sqlite3 *db, const char *schema)
{
	int rc;
	WRAP_ONE("wal_checkpoint", db, schema, wal_checkpoint(db, schema));

	set_checkpoint_mode(SQLITE_CHECKPOINT_PASSIVE + 1);
	rc = real[number].wal_checkpoint(db, schema);
	set_checkpoint_mode(0);
	operation_end(&call, rc);
	return rc;
}

WRAPPER int wrap_wal_checkpoint_v2(int number, sqlite3 *db, const char *schema, int mode, int *log, int *done)
{
	int rc;
	WRAP_ONE("wal_checkpoint_v2", db, schema, wal_checkpoint_v2(db, schema, mode, log, done));

	set_checkpoint_mode((uint32_t)mode + 1);
	rc = real[number].wal_checkpoint_v2(db, schema, mode, log, done);
	set_checkpoint_mode(0);
	operation_end(&call, rc);
	return rc;
}

WRAPPER unsigned char *wrap_serialize(int number, sqlite3 *db, const char *schema, sqlite3_int64 *size,
                                      unsigned int flags)
{
	unsigned char *image;
	WRAP_ONE("serialize", db, schema, serialize(db, schema, size, flags));

	image = real[number].serialize(db, schema, size, flags);
	operation_end(&call, SQLITE_OK); /* NULL is an empty database, too */
	return image;
}

WRAPPER int wrap_deserialize(int number, sqlite3 *db, const char *schema, unsigned char *image,
                             sqlite3_int64 size, sqlite3_int64 room, unsigned flags)
{
	int rc;
	WRAP_ONE("deserialize", db, schema, deserialize(db, schema, image, size, room, flags));

	rc = real[number].deserialize(db, schema, image, size, room, flags);
	operation_end(&call, rc);
	return rc;
}

/* From the host's first automatic extension on, SQLite calls the host's code for each connection
 * that is opened, so this is the last moment at which queryprof can open one. */
WRAPPER int wrap_auto_extension(int number, void (*extension)(void))
{
	if (!auto_extensions_has_own(extension))
		recording_learn(OF(number), FRAME);
	return real[number].auto_extension(extension);
}

/* --- for each library --------------------------------------------------------- */

#define WRAP(since, path, result, name, parameters, ...)                                                     \
	path static result OURS(name) parameters                                                             \
	{                                                                                                    \
		return wrap_##name(LIBRARY, __VA_ARGS__);                                                    \
	}

#define LIBRARY 0
#define OURS(name) queryprof_##name
INTERFACE(WRAP)
INTERNAL(WRAP)
#undef LIBRARY
#undef OURS

#define LIBRARY 1
#define OURS(name) queryprof_##name##_2
INTERFACE(WRAP)
INTERNAL(WRAP)
#undef LIBRARY
#undef OURS

#define LIBRARY 2
#define OURS(name) queryprof_##name##_3
INTERFACE(WRAP)
INTERNAL(WRAP)
#undef LIBRARY
#undef OURS

#define LIBRARY 3
#define OURS(name) queryprof_##name##_4
INTERFACE(WRAP)
INTERNAL(WRAP)
#undef LIBRARY
#undef OURS

_Static_assert(HOST_LIBRARIES_MAX == 4, "a set of wrappers for each library");
#define WRAPPERS(name)                                                                                       \
	{                                                                                                    \
		(void *)queryprof_##name, (void *)queryprof_##name##_2, (void *)queryprof_##name##_3,        \
			(void *)queryprof_##name##_4                                                         \
	}

static const struct {
	const char *name;
	size_t routine; /* in the table of routines */
	size_t real;    /* in struct real */
	int since;
	void *wrappers[HOST_LIBRARIES_MAX];
} functions[] = {
#define ENTRY(since, path, result, name, ...)                                                                \
	{ "sqlite3_" #name, offsetof(sqlite3_api_routines, name), offsetof(struct real, name), since,        \
	  WRAPPERS(name) },
	INTERFACE(ENTRY)
};
#define FUNCTIONS (sizeof(functions) / sizeof(*functions))
/* A copy inside of a program is learned when it is adopted. */
#define FUNCTIONS_INSIDE (FUNCTIONS - 1)

_Static_assert(FUNCTIONS + 1 <= WRAPPERS_MAX, "and pthread_create");

int wrappers_hooks(const struct host_library *library, struct import_hook hooks[WRAPPERS_MAX])
{
	const sqlite3_api_routines *api = host_api(library);
	size_t number = (size_t)(library - host_libraries);

	for (size_t i = 0; i < FUNCTIONS; i++) {
		void *routine = NULL, *own;

		if (api->libversion_number() >= functions[i].since)
			memcpy(&routine, (const char *)api + functions[i].routine, sizeof(routine));
		own = host_function(library, functions[i].name);
		routine = own ? own : routine;
		memcpy((char *)&real[number] + functions[i].real, &routine, sizeof(routine));
		/* The table itself remains unchanged, because queryprof's own calls, and those of
		 * other extensions, reach SQLite through it. */
		hooks[i] = (struct import_hook){
			.symbol = functions[i].name,
			.real = routine,
			.replacement = functions[i].wrappers[number],
			.keep_start = library->table,
			.keep_end = library->table + 1,
		};
	}
	hooks[FUNCTIONS] = workers_hook(library);
	return (int)FUNCTIONS + 1;
}

size_t wrappers_entries(const struct host_library *library, const sqlite3_api_routines *routines,
                        struct patch_entry entries[PATCH_ENTRIES_MAX], size_t members[PATCH_ENTRIES_MAX])
{
	size_t number = (size_t)(library - host_libraries), count;

	for (count = 0; count < FUNCTIONS_INSIDE; count++) {
		uintptr_t function = 0;
		if (host_api(library)->libversion_number() >= functions[count].since)
			memcpy(&function, (const char *)routines + functions[count].routine,
			       sizeof(function));
		members[count] = functions[count].routine;
		entries[count] = (struct patch_entry){
			.name = functions[count].name,
			.function = function,
			.wrapper = functions[count].wrappers[number],
			.real = (void **)((char *)&real[number] + functions[count].real),
		};
	}
	return count;
}

#define INTERNAL_ENTRY(function_name)                                                                        \
	static void *const wrappers[] = WRAPPERS(function_name);                                             \
	return (struct patch_entry){ .name = #function_name,                                                 \
		                     .function = function,                                                   \
		                     .wrapper = wrappers[library - host_libraries],                          \
		                     .real = (void **)&real[library - host_libraries].function_name };

struct patch_entry wrappers_lock_and_prepare(const struct host_library *library, uintptr_t function)
{
	INTERNAL_ENTRY(lock_and_prepare)
}

struct patch_entry wrappers_close_any(const struct host_library *library, uintptr_t function)
{
	INTERNAL_ENTRY(close_any)
}
