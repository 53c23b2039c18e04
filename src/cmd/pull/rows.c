/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pull/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "cmd/http/http.h"
#include "cmd/ui/complain.h"
#include "cmd/ui/progress.h"

/* A stack of 512 frames, each with its longest name, is shorter. */
#define ROW_MAX ((size_t)64 << 20)

/* A response that is being inserted into a table. */
struct fetch {
	const char *table;
	sqlite3 *db;
	sqlite3_stmt *insert; /* NULL: the types have not arrived */
	char *names;          /* the first line; NULL: it has not arrived */
	VECTOR(char) line;    /* the part of the next one that has arrived */
	int64_t count;
	bool is_too_long;
};

/* The next field of a line in TabSeparated, decoded in place; NULL: there is none. */
static char *next_field(char **line)
{
	static const char codes[] = "bfrnt0", bytes[] = "\b\f\r\n\t";
	char *field = *line, *to = field, *from = field;

	if (!field)
		return NULL;
	for (; *from && *from != '\t'; from++) {
		const char *code = *from == '\\' && from[1] ? strchr(codes, *++from) : NULL;
		*to++ = code && *code ? bytes[code - codes] : *from;
	}
	*line = *from ? from + 1 : NULL;
	*to = 0;
	return field;
}

/* An SQLite result. */
static int make_table(struct fetch *fetch, char *types)
{
	char *names = fetch->names, *name, *type;
	sqlite3_str *create = sqlite3_str_new(NULL), *insert = sqlite3_str_new(NULL);
	const char *between = "";
	int code = SQLITE_NOMEM;

	sqlite3_str_appendf(create, "CREATE TEMP TABLE %s (", fetch->table);
	sqlite3_str_appendf(insert, "INSERT INTO temp.%s VALUES (", fetch->table);
	while ((name = next_field(&names)) && (type = next_field(&types))) {
		sqlite3_str_appendf(create, "%s\"%w\" %s", between, name,
		                    strstr(type, "Int")     ? "INTEGER"
		                    : strstr(type, "Float") ? "REAL"
		                                            : "TEXT");
		sqlite3_str_appendf(insert, "%s?", between);
		between = ", ";
	}
	sqlite3_str_appendchar(create, 1, ')');
	sqlite3_str_appendchar(insert, 1, ')');
	char *create_sql = sqlite3_str_finish(create), *insert_sql = sqlite3_str_finish(insert);
	if (create_sql && insert_sql)
		code = sqlite3_exec(fetch->db, create_sql, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(fetch->db, insert_sql, -1, &fetch->insert, NULL);
	sqlite3_free(create_sql);
	sqlite3_free(insert_sql);
	return code;
}

/* False: SQLite's error, or no memory. */
static bool parse_line(struct fetch *fetch, char *line)
{
	const char *field;

	if (!fetch->names)
		return (fetch->names = strdup(line)) != NULL;
	if (!fetch->insert)
		return make_table(fetch, line) == SQLITE_OK;
	for (int i = 1; (field = next_field(&line)); i++)
		if (sqlite3_bind_text(fetch->insert, i, field, -1, SQLITE_STATIC) != SQLITE_OK)
			return false;
	bool fine = sqlite3_step(fetch->insert) == SQLITE_DONE;
	sqlite3_reset(fetch->insert);
	progress_count(++fetch->count, "rows");
	return fine;
}

static bool receive(void *context, const char *data, size_t size)
{
	struct fetch *fetch = context;

	while (size) {
		const char *end = memchr(data, '\n', size);
		size_t piece = end ? (size_t)(end - data) : size;

		fetch->is_too_long = piece > ROW_MAX - fetch->line.count;
		if (fetch->is_too_long || !vector_reserve(&fetch->line, fetch->line.count + piece + 1))
			return false;
		memcpy(fetch->line.items + fetch->line.count, data, piece);
		fetch->line.count += piece;
		if (!end)
			break;
		fetch->line.items[fetch->line.count] = 0;
		fetch->line.count = 0;
		if (!parse_line(fetch, fetch->line.items))
			return false;
		data += piece + 1;
		size -= piece + 1;
	}
	return true;
}

static const char *error_of(void *context)
{
	const struct fetch *fetch = context;

	if (fetch->is_too_long)
		return "a row of the server's response has more than 64 MiB";
	return sqlite3_errcode(fetch->db) != SQLITE_OK ? sqlite3_errmsg(fetch->db) : "out of memory";
}

int pull_rows(sqlite3 *db, const char *table, const char *url, const char *sql)
{
	struct fetch fetch = { .table = table, .db = db };
	struct http_response response;
	char *whole = text_format("%s FORMAT TabSeparatedWithNamesAndTypes", sql);
	const struct http_taker taker = { receive, error_of, &fetch };
	int result = COMMAND_FAILED;

	if (!whole)
		complain("out of memory");
	else if (http_fetch(url, whole, strlen(whole), &taker, &response) == HTTP_FINE)
		result = fetch.insert ? COMMAND_FINE
		                      : complain("%s: %s", table,
		                                 fetch.names ? sqlite3_errmsg(db) : "no response");
	sqlite3_finalize(fetch.insert);
	vector_free(&fetch.line);
	free(fetch.names);
	free(whole);
	return result;
}
