/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each query is one request, whose response goes row by row into a temporary table of the same
 * columns. The server finds the rows by host, service, statement and time, as its tables are ordered;
 * what else was selected is looked for here, as in any trace file.
 */
#include "cmd/pull/fleet.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/vector.h"
#include "cmd/file/trace_file.h"
#include "cmd/http/http.h"
#include "cmd/line/command.h"
#include "cmd/ui/progress.h"
#include "sql_pull_load.h"
#include "sql_pull_losses.h"
#include "sql_pull_modules.h"
#include "sql_pull_queries.h"
#include "sql_pull_samples.h"
#include "sql_pull_series.h"
#include "sql_pull_stacks.h"
#include "sql_pull_statements.h"
#include "store/file/database.h"

#define SAMPLES_MAX INT64_C(5000000) /* near a gigabyte, and a minute */
/* A stack of 512 frames, each with its longest name, is shorter. */
#define ROW_MAX ((size_t)64 << 20)
#define REQUEST_TIMEOUT_S 600

struct fleet_settings fleet_settings;

/* One response on its way into a table. */
struct fetch {
	const char *table;
	sqlite3 *db;
	sqlite3_stmt *insert; /* NULL: the types have not come yet */
	char *names;          /* the first line; NULL: it has not come yet */
	VECTOR(char) line;    /* as much of one as there is */
	int64_t count;
	bool is_too_long;
};

static struct {
	char *url; /* ends with ? or & */
	bool is_old;
} server;

bool fleet_is_url(const char *path)
{
	return strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0;
}

int fleet_check(const char *command, int argc, char **argv)
{
	const char *option = fleet_settings.credentials   ? "credentials"
	                     : fleet_settings.authorities ? "ca"
	                                                  : NULL;

	for (int i = 0; option && i < argc; i++)
		if (fleet_is_url(argv[i]))
			option = NULL;
	if (!option)
		return COMMAND_FINE;
	complain("%s: --%s is for --clickhouse, which is not given", command, option);
	return COMMAND_MISUSED;
}

/* --- rows ------------------------------------------------------------------------- */

/* The next field of a line in TabSeparated, in its place; NULL: there is none. */
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
	char *create_sql = sqlite3_str_finish(create), *insert_sql = sqlite3_str_finish(insert),
	     *whole = NULL;
	if (create_sql && insert_sql && (whole = sqlite3_mprintf("%s)", create_sql)) != NULL)
		code = sqlite3_exec(fetch->db, whole, NULL, NULL, NULL);
	sqlite3_free(whole);
	if (code == SQLITE_OK && (whole = sqlite3_mprintf("%s)", insert_sql)) != NULL) {
		code = sqlite3_prepare_v2(fetch->db, whole, -1, &fetch->insert, NULL);
		sqlite3_free(whole);
	}
	sqlite3_free(create_sql);
	sqlite3_free(insert_sql);
	return code;
}

/* False: SQLite's error, or no memory. */
static bool take_line(struct fetch *fetch, char *line)
{
	const char *field;

	if (!fetch->names)
		return (fetch->names = strdup(line)) != NULL;
	if (!fetch->insert)
		return make_table(fetch, line) == SQLITE_OK;
	for (int i = 1; (field = next_field(&line)) != NULL; i++)
		if (sqlite3_bind_text(fetch->insert, i, field, -1, SQLITE_STATIC) != SQLITE_OK)
			return false;
	bool fine = sqlite3_step(fetch->insert) == SQLITE_DONE;
	sqlite3_reset(fetch->insert);
	progress_count(++fetch->count, "rows");
	return fine;
}

static bool take(void *context, const char *data, size_t size)
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
		if (!take_line(fetch, fetch->line.items))
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

/* --- questions -------------------------------------------------------------------- */

/* malloc'ed; NULL: no memory. */
static char *replace(const char *text, const char *what, const char *with)
{
	char *made = NULL;
	size_t size;
	FILE *to = open_memstream(&made, &size);
	const char *at;

	for (; to && (at = strstr(text, what)) != NULL; text = at + strlen(what))
		fprintf(to, "%.*s%s", (int)(at - text), text, with);
	if (to)
		fputs(text, to);
	return to && fclose(to) == 0 ? made : NULL;
}

/* The responses are final: the reader can repeat its command. */
static bool is_final(const struct http_response *response)
{
	(void)response;
	return true;
}

/* A command_result. */
static int fetch_rows(sqlite3 *db, const char *table, const char *sql, const char *where)
{
	struct fetch fetch = { .table = table, .db = db };
	struct http_response response;
	char *labelled = server.is_old ? replace(sql, "toJSONString(labels)", "labels") : strdup(sql);
	char *chosen = labelled ? replace(labelled, "/* and */", where) : NULL;
	char *whole = chosen ? text_format("%s FORMAT TabSeparatedWithNamesAndTypes", chosen) : NULL;
	const struct http_taker taker = { take, error_of, &fetch };
	int result = COMMAND_FAILED;

	if (!whole)
		complain("out of memory");
	else if (http_fetch(server.url, whole, strlen(whole), is_final, &taker, &response) == HTTP_FINE)
		result = fetch.insert ? COMMAND_FINE
		                      : complain("%s: %s", table,
		                                 fetch.names ? sqlite3_errmsg(db) : "no response");
	sqlite3_finalize(fetch.insert);
	vector_free(&fetch.line);
	free(fetch.names);
	free(labelled);
	free(chosen);
	free(whole);
	return result;
}

/* One line of numbers. A command_result. */
static int ask_numbers(const char *sql, const char *where, int64_t *numbers, int count)
{
	struct http_response response;
	char *whole = replace(sql, "/* and */", where);
	int result =
		whole && http_fetch(server.url, whole, strlen(whole), is_final, NULL, &response) == HTTP_FINE
			? COMMAND_FINE
			: COMMAND_FAILED;
	const char *at = result == COMMAND_FINE ? response.text : "";

	free(whole);
	for (int i = 0; result == COMMAND_FINE && i < count; i++) {
		char *end;

		numbers[i] = strtoll(at, &end, 10);
		if (end == at)
			result = complain("%.*s: this is no ClickHouse: it says %.40s",
			                  (int)strcspn(server.url, "?"), server.url, response.text);
		at = *end ? end + 1 : end;
	}
	return result;
}

/* A text in ClickHouse's SQL. */
static void write_text(FILE *to, const char *text)
{
	fputc('\'', to);
	for (; *text; text++)
		fprintf(to, strchr("'\\", *text) ? "\\%c" : "%c", *text);
	fputc('\'', to);
}

/* Hashes that begin with those hexadecimal digits; other text is left for a trace file's reader to complain
 * about. */
static void write_statement(FILE *to, const char *digits)
{
	size_t count = strlen(digits);
	uint64_t first;

	if (!count || count > 16 || digits[strspn(digits, "0123456789abcdef")])
		return;
	first = strtoull(digits, NULL, 16) << (4 * (16 - count));
	fprintf(to, " AND normalized_query_hash BETWEEN %" PRIu64 " AND %" PRIu64, first,
	        first | (count < 16 ? UINT64_MAX >> (4 * count) : 0));
}

/* The conditions by which the server chooses, each after " AND"; malloc'ed, NULL: no memory. */
static char *choose(const struct selection *one, bool has_ids, const char *time, int64_t since, int64_t until)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	if (one->host) {
		fputs(" AND hostname = ", to);
		write_text(to, one->host);
	}
	if (one->service) {
		fputs(" AND service = ", to);
		write_text(to, one->service);
	}
	if (has_ids && one->statement)
		write_statement(to, one->statement);
	if (has_ids && one->query && time) {
		fprintf(to, " AND substring(query_id, 1, %zu) = ", strlen(one->query));
		write_text(to, one->query);
	}
	if (time && since != INT64_MIN)
		fprintf(to, " AND %s >= %" PRId64, time, since);
	if (time && until != INT64_MAX)
		fprintf(to, " AND %s < %" PRId64, time, until);
	return fclose(to) == 0 ? text : NULL;
}

/* --- all of it -------------------------------------------------------------------- */

/* A command_result; COMMAND_FAILED also where there is no run at all. */
static int find_times(const char *url, const struct selection *one, struct moment_bases *bases,
                      int64_t *since, int64_t *until)
{
	int64_t numbers[3];
	struct timespec now;
	char *where = choose(one, false, NULL, INT64_MIN, INT64_MAX);
	int result =
		where ? ask_numbers(
				"SELECT toInt64(min(query_start_ns)), toInt64(max(query_start_ns)), count()"
				" FROM query_log_rows WHERE 1 /* and */ FORMAT TabSeparated",
				where, numbers, 3)
		      : complain("out of memory");

	free(where);
	clock_gettime(CLOCK_REALTIME, &now);
	*bases = (struct moment_bases){ .now = now.tv_sec * INT64_C(1000000000) + now.tv_nsec };
	if (result != COMMAND_FINE)
		return result;
	if (!numbers[2])
		return complain("%.*s: no runs%s%s%s%s", (int)strcspn(url, "?"), url,
		                one->host ? " of the host " : "", one->host ? one->host : "",
		                one->service ? " of the service " : "", one->service ? one->service : "");
	bases->start = numbers[0];
	bases->end = numbers[1];
	/* selection_check() has seen that they can be read. */
	if (!one->since || !moment_parse(one->since, bases, since))
		*since = INT64_MIN;
	if (!one->until || !moment_parse(one->until, bases, until))
		*until = INT64_MAX;
	return COMMAND_FINE;
}

/* Samples lie between the beginning of the first run's preparation and the end of the last run. */
static char *choose_samples(sqlite3 *db, const struct selection *one, int64_t since, int64_t until)
{
	bool is_timed = since != INT64_MIN || until != INT64_MAX;
	int64_t first = INT64_MIN, last = INT64_MAX;

	if (is_timed) {
		first = database_number(db, "SELECT min(start_ns - prepare_time_ns) FROM temp.fleet_queries",
		                        0);
		last = 1 + database_number(db,
		                           "SELECT max(start_ns + query_duration_ns) FROM temp.fleet_queries",
		                           -1);
	}
	return choose(one, true, "timestamp_ns", first, last);
}

/* A command_result. */
static int fetch_samples(sqlite3 *db, const char *url, const char *where)
{
	int64_t count;
	int result = ask_numbers("SELECT count() FROM trace_log_rows WHERE 1 /* and */ FORMAT TabSeparated",
	                         where, &count, 1);

	if (result == COMMAND_FINE && count > SAMPLES_MAX)
		return complain(
			"%.*s: it has %" PRId64 " such samples, and %" PRId64
			" can be read at once: choose by --since, --until, --host, --service, --statement",
			(int)strcspn(url, "?"), url, count, SAMPLES_MAX);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "fleet_series", sql_pull_series, where);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "fleet_stacks", sql_pull_stacks, where);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "fleet_samples", sql_pull_samples, where);
	return result;
}

static int fetch_all(sqlite3 *db, const char *url, const struct selection *one, struct moment_bases *bases)
{
	int64_t since, until, version[2];
	char *of_host, *of_queries = NULL, *of_statements = NULL, *of_samples = NULL;
	int result = ask_numbers("SELECT splitByChar('.', version())[1], splitByChar('.', version())[2]", "",
	                         version, 2);

	if (result == COMMAND_FINE)
		result = find_times(url, one, bases, &since, &until);
	if (result != COMMAND_FINE)
		return result;
	server.is_old = version[0] < 20 || (version[0] == 20 && version[1] < 8);
	of_host = choose(one, false, NULL, INT64_MIN, INT64_MAX);
	of_statements = choose(one, true, NULL, INT64_MIN, INT64_MAX);
	of_queries = choose(one, true, "query_start_ns", since, until);
	if (!of_host || !of_statements || !of_queries)
		result = complain("out of memory");
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "fleet_queries", sql_pull_queries, of_queries);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "fleet_statements", sql_pull_statements, of_statements);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "fleet_losses", sql_pull_losses, of_host);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "fleet_modules", sql_pull_modules, "");
	if (result == COMMAND_FINE && !(of_samples = choose_samples(db, one, since, until)))
		result = complain("out of memory");
	if (result == COMMAND_FINE)
		result = fetch_samples(db, url, of_samples);
	free(of_host);
	free(of_queries);
	free(of_statements);
	free(of_samples);
	return result;
}

/* A file without a name is SQLite's own to remove. NULL after a complaint. */
static sqlite3 *make_file(void)
{
	static const char as_trace_files[] = "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;"
					     "PRAGMA temp_store = FILE; BEGIN";
	sqlite3 *db = NULL;
	char identity[100];

	snprintf(identity, sizeof(identity), "PRAGMA application_id = %d; PRAGMA user_version = %d",
	         STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
	if (sqlite3_open_v2("", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix") == SQLITE_OK &&
	    sqlite3_exec(db, as_trace_files, NULL, NULL, NULL) == SQLITE_OK &&
	    database_make_tables(db) == SQLITE_OK &&
	    sqlite3_exec(db, identity, NULL, NULL, NULL) == SQLITE_OK)
		return db;
	complain("a database for what is read: %s", sqlite3_errmsg(db));
	sqlite3_close(db);
	return NULL;
}

/* A command_result. */
static int read_fleet(sqlite3 *db, const char *url, const struct selection *one, struct moment_bases *bases)
{
	const struct http_settings settings = {
		.credentials = fleet_settings.credentials,
		.authorities = fleet_settings.authorities,
		.timeout_s = REQUEST_TIMEOUT_S,
		.gave_up = "",
	};
	int result = http_begin(&settings);

	if (result == COMMAND_FINE && !(server.url = http_url_with(url, "wait_end_of_query=1")))
		result = complain("out of memory");
	progress_begin("fetching");
	if (result == COMMAND_FINE)
		result = fetch_all(db, url, one, bases);
	if (result == COMMAND_FINE) {
		progress_begin("putting together");
		progress_watch(db);
		if (sqlite3_exec(db, sql_pull_load, NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
			result = complain("%.*s: %s", (int)strcspn(url, "?"), url, sqlite3_errmsg(db));
	}
	progress_end();
	free(server.url);
	server.url = NULL;
	http_end();
	return result;
}

sqlite3 *fleet_open(const char *url, const struct selection *one, struct moment_bases *bases)
{
	sqlite3 *db = http_check_url(url) == COMMAND_FINE ? make_file() : NULL;

	if (db && (read_fleet(db, url, one, bases) != COMMAND_FINE || !trace_file_adopt(db, url))) {
		trace_file_close(db);
		return NULL;
	}
	return db;
}
