/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof pull: writes a trace file from data that `queryprof push` sent to ClickHouse.
 * Each table is one request (sql/pull). Its rows go into a temporary table of the same name, and
 * sql/pull/load.sql makes a trace file of these tables. The server selects by host, service, statement, id
 * and time, because its tables are ordered by them.
 */
#include "cmd/line/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cmd/file/out_file.h"
#include "cmd/file/selection.h"
#include "cmd/http/http.h"
#include "cmd/line/moment.h"
#include "cmd/pull/rows.h"
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
#include "store/file/schema.h"

#define SAMPLES_MAX INT64_C(5000000) /* about a gigabyte and a minute */
#define REQUEST_TIMEOUT_S 600

static const char *out_path = TRACE_FILE_DEFAULT, *credentials, *authorities;
static struct {
	const char *host, *service, *statement, *query, *since, *until;
} chosen;

static const struct command_option options[] = {
	COMMAND_OPTION("o", "FILE", OPTION_FILE, &out_path,
	               "the file to write (default " TRACE_FILE_DEFAULT
	               "); an existing file is not replaced"),
	COMMAND_OPTION("host", "NAME", OPTION_TEXT, &chosen.host, "data that were sent from this host"),
	COMMAND_OPTION("service", "NAME", OPTION_TEXT, &chosen.service,
	               "data that were sent for this service: push's --service, or the program's name"),
	COMMAND_OPTION("statement", "ID", OPTION_TEXT, &chosen.statement,
	               "the statement with this id (see queries); its beginning is enough"),
	COMMAND_OPTION("query", "ID", OPTION_TEXT, &chosen.query,
	               "the runs with this id; its beginning is enough"),
	COMMAND_OPTION(
		"since", "TIME", OPTION_TIME, &chosen.since,
		"the runs that began at TIME or later; start and end are those of the host and service"),
	COMMAND_OPTION("until", "TIME", OPTION_TIME, &chosen.until, "the runs that began before TIME"),
	HTTP_CREDENTIALS_OPTION(&credentials),
	HTTP_AUTHORITIES_OPTION(&authorities),
	{ 0 },
};

static struct {
	const char *url; /* as given */
	char *question;  /* ends with ? or & */
	bool is_old;
} server;

/* Arguments for "%.*s": the server without what follows the question mark, which may be anything. */
#define SERVER (int)strcspn(server.url, "?"), server.url

/* --- questions -------------------------------------------------------------------- */

/* malloc'ed; NULL: no memory. */
static char *replace(const char *text, const char *what, const char *with)
{
	char *made = NULL;
	size_t size;
	FILE *to = open_memstream(&made, &size);
	const char *at;

	for (; to && (at = strstr(text, what)); text = at + strlen(what))
		fprintf(to, "%.*s%s", (int)(at - text), text, with);
	if (to)
		fputs(text, to);
	return to && fclose(to) == 0 ? made : NULL;
}

/* A command_result. */
static int fetch_rows(sqlite3 *db, const char *table, const char *sql, const char *where)
{
	char *labelled = server.is_old ? replace(sql, "toJSONString(labels)", "labels") : strdup(sql);
	char *whole = labelled ? replace(labelled, "/* and */", where) : NULL;
	int result = whole ? pull_rows(db, table, server.question, whole) : complain("out of memory");

	free(labelled);
	free(whole);
	return result;
}

/* One line of numbers. A command_result. */
static int ask_numbers(const char *sql, const char *where, int64_t *numbers, int count)
{
	struct http_response response;
	char *whole = replace(sql, "/* and */", where);
	int result = whole && http_fetch(server.question, whole, strlen(whole), NULL, &response) == HTTP_FINE
	                     ? COMMAND_FINE
	                     : COMMAND_FAILED;
	const char *at = result == COMMAND_FINE ? response.text : "";

	free(whole);
	for (int i = 0; result == COMMAND_FINE && i < count; i++) {
		char *end;

		numbers[i] = strtoll(at, &end, 10);
		if (end == at)
			result = complain("%.*s: not a ClickHouse server: it responded %.40s", SERVER,
			                  response.text);
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

/* Hashes that begin with these hexadecimal digits. */
static void write_statement(FILE *to, const char *digits)
{
	size_t count = strlen(digits);
	uint64_t first = strtoull(digits, NULL, 16) << (4 * (16 - count));

	fprintf(to, " AND normalized_query_hash BETWEEN %" PRIu64 " AND %" PRIu64, first,
	        first | (count < 16 ? UINT64_MAX >> (4 * count) : 0));
}

/* The conditions by which the server selects, each after " AND": the host and the service; the statement,
 * if `by_statement`; id and time, if `time` is the name of a column with the time. malloc'ed, NULL: no
 * memory. */
static char *choose(bool by_statement, const char *time, int64_t since, int64_t until)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	if (chosen.host) {
		fputs(" AND hostname = ", to);
		write_text(to, chosen.host);
	}
	if (chosen.service) {
		fputs(" AND service = ", to);
		write_text(to, chosen.service);
	}
	if (by_statement && chosen.statement)
		write_statement(to, chosen.statement);
	if (time && chosen.query) {
		fprintf(to, " AND substring(query_id, 1, %zu) = ", strlen(chosen.query));
		write_text(to, chosen.query);
	}
	if (time && since != INT64_MIN)
		fprintf(to, " AND %s >= %" PRId64, time, since);
	if (time && until != INT64_MAX)
		fprintf(to, " AND %s < %" PRId64, time, until);
	return fclose(to) == 0 ? text : NULL;
}

/* --- answers ---------------------------------------------------------------------- */

/* Whether the options select single runs, instead of all runs of a host or a statement. */
static bool selects_runs(void)
{
	return chosen.query || chosen.since || chosen.until;
}

/* Finds the times that the command line means. A command_result; COMMAND_FAILED if there are no runs at
 * all. */
static int find_times(int64_t *since, int64_t *until)
{
	int64_t numbers[3];
	struct timespec now;
	struct moment_bases bases;
	char *where = choose(false, NULL, INT64_MIN, INT64_MAX);
	int result =
		where ? ask_numbers(
				"SELECT toInt64(min(query_start_ns)), toInt64(max(query_start_ns)), count()"
				" FROM query_log_rows WHERE 1 /* and */ FORMAT TabSeparated",
				where, numbers, 3)
		      : complain("out of memory");

	free(where);
	if (result != COMMAND_FINE)
		return result;
	if (!numbers[2])
		return complain("%.*s: no runs%s%s%s%s", SERVER, chosen.host ? " of the host " : "",
		                chosen.host ? chosen.host : "", chosen.service ? " of the service " : "",
		                chosen.service ? chosen.service : "");
	clock_gettime(CLOCK_REALTIME, &now);
	bases = (struct moment_bases){ .now = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
		                       .start = numbers[0],
		                       .end = numbers[1] };
	/* check_command_line() has checked that they can be parsed. */
	if (!chosen.since || !moment_parse(chosen.since, &bases, since))
		*since = INT64_MIN;
	if (!chosen.until || !moment_parse(chosen.until, &bases, until))
		*until = INT64_MAX;
	return COMMAND_FINE;
}

/* Samples are between the beginning of the first run's preparation and the end of the last run. */
static char *choose_samples(sqlite3 *db)
{
	int64_t first = INT64_MIN, last = INT64_MAX;

	if (chosen.since || chosen.until) {
		first = database_number(db, "SELECT min(start_ns - prepare_time_ns) FROM temp.pull_queries",
		                        0);
		last = 1 + database_number(
				   db, "SELECT max(start_ns + query_duration_ns) FROM temp.pull_queries", -1);
	}
	return choose(true, "timestamp_ns", first, last);
}

/* A command_result. */
static int fetch_samples(sqlite3 *db)
{
	int64_t count;
	char *where = choose_samples(db);
	int result =
		where ? ask_numbers(
				"SELECT count() FROM trace_log_rows WHERE 1 /* and */ FORMAT TabSeparated",
				where, &count, 1)
		      : complain("out of memory");

	if (result == COMMAND_FINE && count > SAMPLES_MAX)
		result = complain(
			"%.*s: the options select %" PRId64 " samples, but at most %" PRId64
			" can be pulled at once: use --since, --until, --host, --service, --statement",
			SERVER, count, SAMPLES_MAX);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "pull_series", sql_pull_series, where);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "pull_stacks", sql_pull_stacks, where);
	if (result == COMMAND_FINE)
		result = fetch_rows(db, "pull_samples", sql_pull_samples, where);
	free(where);
	return result;
}

/* Samples of other runs may be between those of the selected ones. A command_result. */
static int remove_other_samples(sqlite3 *db)
{
	if (!selects_runs() && !chosen.statement)
		return COMMAND_FINE;
	if (sqlite3_exec(db,
	                 "DELETE FROM temp.pull_samples"
	                 " WHERE query_key NOT IN (SELECT query_key FROM temp.pull_queries)",
	                 NULL, NULL, NULL) != SQLITE_OK)
		return complain("%.*s: %s", SERVER, sqlite3_errmsg(db));
	return COMMAND_FINE;
}

/* A command_result. */
static int require_runs(sqlite3 *db)
{
	if (database_number(db,
	                    "SELECT EXISTS (SELECT 1 FROM temp.pull_queries) OR EXISTS (SELECT 1 FROM "
	                    "temp.pull_statements)",
	                    0) != 0)
		return COMMAND_FINE;
	return complain("%.*s: no run matches the options", SERVER);
}

static int fetch_all(sqlite3 *db)
{
	int64_t since, until, version[2];
	int result = ask_numbers("SELECT splitByChar('.', version())[1], splitByChar('.', version())[2]", "",
	                         version, 2);

	if (result == COMMAND_FINE)
		result = find_times(&since, &until);
	if (result != COMMAND_FINE)
		return result;
	server.is_old = version[0] < 20 || (version[0] == 20 && version[1] < 8);
	char *of_host = choose(false, NULL, INT64_MIN, INT64_MAX),
	     *of_statements = choose(true, NULL, INT64_MIN, INT64_MAX),
	     *of_queries = choose(true, "query_start_ns", since, until);
	const struct {
		const char *table, *sql, *where;
	} tables[] = {
		{ "pull_queries", sql_pull_queries, of_queries },
		/* Statements count all of their runs. */
		{ "pull_statements", sql_pull_statements, selects_runs() ? " AND 0" : of_statements },
		{ "pull_losses", sql_pull_losses, of_host },
		{ "pull_modules", sql_pull_modules, "" },
	};
	for (size_t i = 0; result == COMMAND_FINE && i < sizeof(tables) / sizeof(tables[0]); i++)
		result = tables[i].where ? fetch_rows(db, tables[i].table, tables[i].sql, tables[i].where)
		                         : complain("out of memory");
	free(of_host);
	free(of_statements);
	free(of_queries);
	if (result == COMMAND_FINE)
		result = require_runs(db);
	if (result == COMMAND_FINE)
		result = fetch_samples(db);
	return result == COMMAND_FINE ? remove_other_samples(db) : result;
}

/* --- the file --------------------------------------------------------------------- */

/* In an empty file. NULL after a complaint. */
static sqlite3 *make_tables(const char *path)
{
	static const char as_trace_files[] =
		"PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA auto_vacuum = INCREMENTAL;"
		"PRAGMA temp_store = FILE; BEGIN";
	sqlite3 *db = NULL;
	char identity[100];

	snprintf(identity, sizeof(identity), "PRAGMA application_id = %d; PRAGMA user_version = %d",
	         STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "unix") == SQLITE_OK &&
	    sqlite3_exec(db, as_trace_files, NULL, NULL, NULL) == SQLITE_OK &&
	    schema_make_tables(db) == SQLITE_OK && sqlite3_exec(db, identity, NULL, NULL, NULL) == SQLITE_OK)
		return db;
	complain("%s: %s", out_path, sqlite3_errmsg(db));
	sqlite3_close(db);
	return NULL;
}

/* A command_result. */
static int put_together(sqlite3 *db, int64_t *runs, int64_t *samples)
{
	progress_begin("putting together");
	progress_watch(db);
	if (sqlite3_exec(db, sql_pull_load, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return complain("%s: %s", out_path, sqlite3_errmsg(db));
	*runs = database_number(db, "SELECT count(*) FROM queries WHERE id > 0", 0);
	*samples = database_number(db, "SELECT count(*) FROM samples", 0);
	return COMMAND_FINE;
}

/* A command_result. */
static int write_tables(const char *path, int64_t *runs, int64_t *samples)
{
	sqlite3 *db = make_tables(path);
	int result = db ? COMMAND_FINE : COMMAND_FAILED;

	progress_begin("fetching");
	if (result == COMMAND_FINE)
		result = fetch_all(db);
	if (result == COMMAND_FINE)
		result = put_together(db, runs, samples);
	progress_end();
	sqlite3_close(db);
	return result;
}

static int write_file(void)
{
	struct out_file out;
	int64_t runs = 0, samples = 0;

	if (out_file_open(&out, out_path, (const char *const[]){ NULL }) != COMMAND_FINE)
		return COMMAND_FAILED;
	int result = write_tables(out.partial, &runs, &samples);
	int closed = out_file_close(&out, result == COMMAND_FINE);
	if (result != COMMAND_FINE || closed != COMMAND_FINE)
		return COMMAND_FAILED;
	printf("%s: %" PRId64 " runs and %" PRId64 " samples\n", out_path, runs, samples);
	return COMMAND_FINE;
}

/* --- the command line ------------------------------------------------------------- */

static int check_command_line(void)
{
	size_t digits = chosen.statement ? strspn(chosen.statement, "0123456789abcdef") : 1;

	if (!digits || digits > 16 || (chosen.statement && chosen.statement[digits]))
		complain("pull: --statement %s; expected 1 to 16 hexadecimal digits", chosen.statement);
	else if (selection_check_time("pull", "since", chosen.since) == COMMAND_FINE &&
	         selection_check_time("pull", "until", chosen.until) == COMMAND_FINE)
		return http_check_url("pull", server.url, authorities);
	return COMMAND_MISUSED;
}

static int run(int argc, char **argv)
{
	const struct http_settings settings = {
		.credentials = credentials,
		.authorities = authorities,
		.timeout_s = REQUEST_TIMEOUT_S,
		.gave_up = "",
	};
	struct stat status;
	int result;

	(void)argc;
	server.url = argv[0];
	if (check_command_line() != COMMAND_FINE)
		return COMMAND_MISUSED;
	if (strcmp(out_path, "-") == 0)
		return complain("pull: -o -; expected the name of a file");
	if (lstat(out_path, &status) == 0)
		return complain("%s: already exists, and pull does not replace files: remove it, or name "
		                "another with -o",
		                out_path);
	result = http_begin(&settings);
	if (result == COMMAND_FINE && !(server.question = http_url_with(server.url, "wait_end_of_query=1")))
		result = complain("out of memory");
	if (result == COMMAND_FINE)
		result = write_file();
	free(server.question);
	http_end();
	return result;
}

const struct command command_pull = {
	.name = "pull",
	.arguments = "URL [OPTION]...",
	.summary = "Writes a trace file from data that push sent to ClickHouse",
	.details = "All commands read that file. With --host they print the same as for the host's own "
		   "file, except for data that ClickHouse does not have (plans, inlined functions, units of "
		   "labels, stretched intervals) and data that pull does not fetch (spans, lock waits). The "
		   "server selects by the options; commands that read the file select further. A file has "
		   "at most five million samples.\n\n"
		   "If --query, --since or --until selects single runs, the file has only the logged ones, "
		   "and no counters of all runs.",
	.examples = "  queryprof pull http://clickhouse:8123/ --since yesterday -o fleet.trace\n"
		    "  queryprof queries fleet.trace\n"
		    "  queryprof pull 'http://clickhouse:8123/?database=profiles' --host web3\n",
	.options = options,
	.arguments_min = 1,
	.arguments_max = 1,
	.run = run,
};
