/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof push: sends new rows of trace files to a server.
 *
 * A round reads one piece of one file in one read transaction, ends the transaction, writes down
 * what is about to be sent, sends it, and writes down that it was sent. So the file's writers never
 * wait for the network, and whenever this process is killed, the next one repeats the same piece,
 * which the target counts once. The rows wait in the file while a target is away.
 */
#include "command.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "file_limit.h"
#include "progress.h"
#include "push_http.h"
#include "push_stacks.h"
#include "push_state.h"
#include "push_target.h"
#include "sql_push_news.h"
#include "sql_span_texts.h"
#include "store/file/database.h"
#include "trace_file.h"

#define SAMPLES_A_ROUND 50000
#define STACKS_MAX 200000
#define SHOWN_EVERY_S 60
#define LAST_PATIENCE_S 5

static const char *follow, *once, *dry_run, *state_path, *service, *credentials, *authorities, *timeout,
	*retry_for, *bytes_per_second, *with_zstd, *format_name, *every;

static const struct command_option options[] = {
	{ .name = "format",
	  .value = "FORMAT",
	  .to = &format_name,
	  .kind = OPTION_WORD,
	  .word_at = push_target_name,
	  .help = "the kind of URL: clickhouse (default), otlp or pyroscope" },
	{ .name = "follow",
	  .to = &follow,
	  .help = "goes on while the files grow; SIGTERM or Ctrl+C: sends what is there and ends" },
	{ .name = "every",
	  .value = "SECONDS",
	  .to = &every,
	  .kind = OPTION_NUMBER,
	  .help = "with --follow, how often it looks for more; 1 otherwise" },
	{ .name = "once", .to = &once, .help = "sends what is there and ends, as without --follow" },
	{ .name = "dry-run",
	  .to = &dry_run,
	  .help = "says what would be sent, without a request to a server" },
	{ .name = "state",
	  .value = "STATE",
	  .to = &state_path,
	  .kind = OPTION_FILE,
	  .help = "the file for push's position in FILE; FILE-push-… otherwise" },
	{ .name = "service",
	  .value = "NAME",
	  .to = &service,
	  .help = "the rows' service; OTEL_SERVICE_NAME or the program's name otherwise" },
	{ .name = "credentials",
	  .value = "SECRETS",
	  .to = &credentials,
	  .kind = OPTION_FILE,
	  .help = "a file of mode 600 with lines: user NAME, password TEXT, header NAME: VALUE" },
	{ .name = "ca",
	  .value = "PEM",
	  .to = &authorities,
	  .kind = OPTION_FILE,
	  .help = "the certificates that https servers are checked by; the system's otherwise" },
	{ .name = "timeout",
	  .value = "SECONDS",
	  .to = &timeout,
	  .kind = OPTION_NUMBER,
	  .help = "how long one request may take; 60 otherwise" },
	{ .name = "retry-for",
	  .value = "SECONDS",
	  .to = &retry_for,
	  .kind = OPTION_NUMBER,
	  .help = "how long push tries a request again; 60 otherwise, without end with --follow" },
	{ .name = "max-bytes-per-second",
	  .value = "BYTES",
	  .to = &bytes_per_second,
	  .kind = OPTION_NUMBER,
	  .help = "sends no faster" },
	{ .name = "zstd",
	  .to = &with_zstd,
	  .help = "compresses by zstd: fewer bytes and more CPU time than LZ4" },
	{ 0 },
};

struct push_file {
	char *path;
	struct push_state state;
	bool has_state;
	sqlite3 *db; /* NULL: not open */
	struct push_stacks stacks;
	int64_t removals; /* of rows, when the stacks were read */
	struct stat seen; /* when it was opened as one that no process writes to */
};

static struct {
	const struct push_target *target;
	const char *url;
	char *named; /* the target, part of the state file's name */
	VECTOR(struct push_file) files;
	VECTOR(char *) folders;
	int64_t rows[PUSH_TABLES], missed;
	time_t shown;
} push;

static int64_t number(const char *text, int64_t otherwise)
{
	return text ? strtoll(text, NULL, 10) : otherwise;
}

/* --- files ------------------------------------------------------------------------ */

static void close_file(struct push_file *file)
{
	if (!file->db)
		return;
	push_stacks_end(&file->stacks);
	trace_file_close(file->db);
	file->db = NULL;
}

static bool is_immutable(sqlite3 *db)
{
	return sqlite3_uri_boolean(sqlite3_db_filename(db, "main"), "immutable", 0);
}

/* If no process wrote to a file when it was opened, SQLite does not look at it again; another file may
 * have its name now. */
static bool must_reopen(const struct push_file *file)
{
	struct stat now;
	char *log = text_format("%s-wal", file->path);
	bool has_log = log && access(log, F_OK) == 0;

	free(log);
	if (stat(file->path, &now) != 0)
		return false;
	if (now.st_ino != file->seen.st_ino || now.st_dev != file->seen.st_dev)
		return true;
	return is_immutable(file->db) && (has_log || now.st_size != file->seen.st_size ||
	                                  now.st_mtim.tv_sec != file->seen.st_mtim.tv_sec ||
	                                  now.st_mtim.tv_nsec != file->seen.st_mtim.tv_nsec);
}

/* A command_result. */
static int open_file(struct push_file *file)
{
	if (file->db && must_reopen(file))
		close_file(file);
	if (file->db)
		return COMMAND_FINE;
	if (stat(file->path, &file->seen) != 0)
		return complain("%s: %s", file->path, strerror(errno));
	file->db = trace_file_open(file->path);
	if (!file->db)
		return COMMAND_FAILED;
	if (sqlite3_exec(file->db, sql_span_texts, NULL, NULL, NULL) != SQLITE_OK)
		complain("%s: %s", file->path, sqlite3_errmsg(file->db));
	else if (push_stacks_begin(&file->stacks, file->db, trace_file_space()))
		return COMMAND_FINE;
	trace_file_close(file->db);
	file->db = NULL;
	return COMMAND_FAILED;
}

/* Not of files that are open here: closing one would drop SQLite's locks. */
static bool is_trace_file(const char *path)
{
	char head[16] = "", *uri = NULL;
	FILE *file = fopen(path, "re");
	bool is_one = file && fread(head, 1, sizeof(head), file) == sizeof(head) &&
	              !memcmp(head, "SQLite format 3", sizeof(head));
	sqlite3 *db = NULL;

	if (file)
		fclose(file);
	if (is_one && (uri = trace_file_uri(path)) != NULL)
		is_one = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, "unix") ==
		                 SQLITE_OK &&
		         database_number(db, "PRAGMA application_id", 0) == STORE_APPLICATION_ID;
	sqlite3_free(uri);
	sqlite3_close(db);
	return is_one;
}

static bool is_known(const char *path)
{
	for (size_t i = 0; i < push.files.count; i++)
		if (!strcmp(push.files.items[i].path, path))
			return true;
	return false;
}

/* False: no memory. */
static bool add_path(const char *path)
{
	struct push_file *file;

	if (is_known(path))
		return true;
	file = vector_add(&push.files);
	if (!file)
		return false;
	file->state.fd = -1;
	return (file->path = strdup(path)) != NULL;
}

/* The trace files in a folder; those that come later are found later. */
static bool add_folder(const char *folder)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	bool fine = true;

	while (fine && entries && (entry = readdir(entries))) {
		char *path = text_format("%s/%s", folder, entry->d_name);

		fine = path && (is_known(path) || !is_trace_file(path) || add_path(path));
		free(path);
	}
	if (entries)
		closedir(entries);
	return fine;
}

/* A command_result. */
static int take_paths(int count, char **paths)
{
	struct stat status;

	for (int i = 0; i < count; i++) {
		if (stat(paths[i], &status) != 0)
			return complain("%s: %s", paths[i], strerror(errno));
		if (S_ISDIR(status.st_mode) ? !vector_push(&push.folders, paths[i]) : !add_path(paths[i]))
			return complain("out of memory");
	}
	return COMMAND_FINE;
}

/* --- a round ---------------------------------------------------------------------- */

/* Finds the rows before the file's own end, and not too many of them. A command_result. */
static int look(struct push_file *file, struct push_position *since, struct push_position *until)
{
	static const struct {
		const char *name;
		enum push_place place;
	} parameters[] = { { ":batch", PUSH_BATCH }, { ":samples", PUSH_SAMPLES }, { ":spans", PUSH_SPANS } };
	static const enum push_place columns[] = { PUSH_FILE,  PUSH_BATCH, PUSH_SAMPLES, PUSH_MODULES,
		                                   PUSH_SPANS, PUSH_WAITS, PUSH_STATS };
	sqlite3_stmt *row = NULL;
	int64_t identity = database_number(file->db, "SELECT identity FROM state", 0);

	if (file->state.sent.at[PUSH_FILE] != identity) {
		file->state.sent = (struct push_position){ { identity } };
		file->state.next = file->state.sent;
	}
	*since = file->state.sent;
	*until = file->state.next;
	if (memcmp(since, until, sizeof(*since)) != 0)
		return COMMAND_FINE; /* it was on its way */
	if (sqlite3_prepare_v2(file->db, sql_push_news, -1, &row, NULL) != SQLITE_OK)
		return complain("%s: %s", file->path, sqlite3_errmsg(file->db));
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, parameters[i].name),
		                   since->at[parameters[i].place]);
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":most"), SAMPLES_A_ROUND);
	int code = sqlite3_step(row);
	for (size_t i = 0; code == SQLITE_ROW && i < sizeof(columns) / sizeof(columns[0]); i++)
		until->at[columns[i]] = sqlite3_column_int64(row, (int)i);
	sqlite3_finalize(row);
	return code == SQLITE_ROW ? COMMAND_FINE : complain("%s: %s", file->path, sqlite3_errmsg(file->db));
}

/* Rows that were removed may have left their numbers to others; and there may be too many. A
 * command_result. */
static int refresh_stacks(struct push_file *file)
{
	int64_t removals = database_number(file->db, "SELECT removals FROM state", 0);

	if (removals != file->removals || file->stacks.list.count > STACKS_MAX) {
		push_stacks_end(&file->stacks);
		if (!push_stacks_begin(&file->stacks, file->db, trace_file_space()))
			return COMMAND_FAILED;
	}
	file->removals = removals;
	return COMMAND_FINE;
}

static int read_piece(struct push_file *file, struct push_position *since, struct push_position *until,
                      struct push_batch *batch)
{
	int result;

	*batch = (struct push_batch){ .missed = 0 };
	if (sqlite3_exec(file->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return complain("%s: %s", file->path, sqlite3_errmsg(file->db));
	result = look(file, since, until);
	if (result == COMMAND_FINE && memcmp(since, until, sizeof(*since)) != 0)
		result = refresh_stacks(file);
	if (result == COMMAND_FINE && memcmp(since, until, sizeof(*since)) != 0)
		result = push.target->read(file->db, file->path, since, until, service,
		                           since->at[PUSH_BATCH] > 0, &file->stacks, batch);
	sqlite3_exec(file->db, "COMMIT", NULL, NULL, NULL);
	return result;
}

/* *is_new: there was something, and there may be more. A command_result. */
static int push_piece(struct push_file *file, bool *is_new)
{
	struct push_position since, until;
	struct push_batch batch;
	int result = open_file(file);

	*is_new = false;
	if (result == COMMAND_FINE && !file->has_state) {
		file->has_state = push_state_open(&file->state, file->path, push.named, state_path);
		if (!file->has_state)
			return COMMAND_FAILED;
	}
	if (result == COMMAND_FINE)
		result = read_piece(file, &since, &until, &batch);
	if (result != COMMAND_FINE || !memcmp(&since, &until, sizeof(since)))
		return result;
	file->state.next = until;
	if (!push_state_write(&file->state) || push.target->send() != COMMAND_FINE)
		return COMMAND_FAILED;
	file->state.sent = until;
	if (!push_state_write(&file->state))
		return COMMAND_FAILED;
	for (int i = 0; i < PUSH_TABLES; i++)
		push.rows[i] += batch.rows[i];
	push.missed += batch.missed;
	progress_count(push.rows[PUSH_TRACE_LOG], "samples sent");
	*is_new = true;
	return COMMAND_FINE;
}

/* --- all of them ------------------------------------------------------------------ */

static void show_progress(FILE *to)
{
	const char *between = "";

	fprintf(to, "queryprof: ");
	for (int i = 0; i < PUSH_TABLES; i++)
		if (push.rows[i] || i == PUSH_TRACE_LOG) {
			fprintf(to, "%s%" PRId64 " %s", between, push.rows[i], push.target->table_name(i));
			between = ", ";
		}
	fprintf(to, "; %" PRIu64 " bytes in %" PRIu64 " requests, %" PRIu64 " of them again",
	        http_counts.bytes, http_counts.requests, http_counts.repeated);
	if (push.missed)
		fprintf(to, "; %" PRId64 " samples were removed before they could be sent", push.missed);
	fputc('\n', to);
	fflush(to);
}

static void tell_each_minute(void)
{
	time_t now = time(NULL);

	if (isatty(STDERR_FILENO) || now - push.shown < SHOWN_EVERY_S)
		return;
	push.shown = now;
	show_progress(stderr);
}

/* Sends all that there is. A command_result. */
static int push_all(void)
{
	bool is_any = true;
	int result = COMMAND_FINE;

	for (size_t i = 0; i < push.folders.count; i++)
		if (!add_folder(push.folders.items[i]))
			return complain("out of memory");
	while (is_any && !http_is_stopped()) {
		is_any = false;
		for (size_t i = 0; i < push.files.count; i++) {
			bool is_new;
			int one = push_piece(&push.files.items[i], &is_new);

			if (one != COMMAND_FINE)
				result = one;
			is_any |= is_new;
			tell_each_minute();
		}
		if (result != COMMAND_FINE)
			break;
	}
	return result;
}

static void stop(int signal)
{
	(void)signal;
	http_stop();
}

static int push_on(void)
{
	int result;

	do {
		result = push_all();
		if (result == COMMAND_FINE && follow)
			http_sleep(number(every, 1) * 1000);
	} while (result == COMMAND_FINE && follow && !http_is_stopped());
	if (result != COMMAND_FINE || !http_is_stopped())
		return result;
	/* Rows that came since then are sent, too; another signal ends it at once. */
	http_resume(LAST_PATIENCE_S);
	return push_all();
}

/* --- without a server ------------------------------------------------------------- */

static int dry_run_file(struct push_file *file)
{
	struct push_position since, until;
	int result = open_file(file);

	if (result != COMMAND_FINE)
		return result;
	if (!push_state_open(&file->state, file->path, push.named, state_path))
		return COMMAND_FAILED;
	file->has_state = true;
	result = look(file, &since, &until);
	if (result != COMMAND_FINE)
		return result;
	char *sql = text_format("SELECT coalesce(max(total), 0) - %" PRId64 " FROM batches",
	                        since.at[PUSH_SAMPLES]);
	int64_t samples = sql ? database_number(file->db, sql, 0) : 0;
	free(sql);
	sql = text_format("SELECT count(*) FROM queries WHERE id > 0 AND batch > %" PRId64,
	                  since.at[PUSH_BATCH]);
	printf("%s: %" PRId64 " samples and %" PRId64 " queries would be sent to %.*s\n", file->path, samples,
	       sql ? database_number(file->db, sql, 0) : 0, (int)strcspn(push.url, "?"), push.url);
	free(sql);
	return COMMAND_FINE;
}

static int dry_run_all(void)
{
	int result = COMMAND_FINE;

	for (size_t i = 0; i < push.folders.count; i++)
		add_folder(push.folders.items[i]);
	for (size_t i = 0; result == COMMAND_FINE && i < push.files.count; i++)
		result = dry_run_file(&push.files.items[i]);
	return result;
}

/* --- the command line ------------------------------------------------------------- */

static int check_command_line(int count)
{
	if (follow && (once || dry_run))
		complain("push: --follow goes with neither --once nor --dry-run");
	else if (every && !number(every, 1))
		complain("push: --every 0; expected 1 second or more");
	else if (state_path && count > 1)
		complain("push: --state is for one file");
	else
		return http_check_url(push.url);
	return COMMAND_MISUSED;
}

static int run_with_server(void)
{
	const struct http_settings settings = {
		.credentials = credentials,
		.authorities = authorities,
		.bytes_per_second = number(bytes_per_second, 0),
		.timeout_s = number(timeout, 60),
		.patience_s = number(retry_for, follow ? INT64_MAX : 60),
		.gave_up = " (nothing is lost: push goes on there when it is started again)",
	};
	int result = http_begin(&settings);

	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = stop }, NULL);
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = stop }, NULL);
	progress_begin("pushing");
	push.shown = time(NULL);
	if (result == COMMAND_FINE)
		result = push.target->begin(push.url, with_zstd != NULL);
	if (result == COMMAND_FINE)
		result = push_on();
	progress_end();
	if (result == COMMAND_FINE)
		show_progress(stdout);
	push.target->end();
	http_end();
	return result;
}

static int run(int argc, char **argv)
{
	int result;

	push.url = argv[argc - 1];
	push.target = push_target_find(format_name);
	push.named = push_target_describe(push.target, push.url);
	if (!service)
		service = getenv("OTEL_SERVICE_NAME");
	result = push.named ? check_command_line(argc - 1) : complain("out of memory");
	file_limit_raise(); /* each trace file takes four, as long as push runs */
	if (result == COMMAND_FINE)
		result = take_paths(argc - 1, argv);
	if (result == COMMAND_FINE)
		result = dry_run ? dry_run_all() : run_with_server();
	for (size_t i = 0; i < push.files.count; i++) {
		close_file(&push.files.items[i]);
		if (push.files.items[i].has_state)
			push_state_close(&push.files.items[i].state);
		free(push.files.items[i].path);
	}
	vector_free(&push.files);
	vector_free(&push.folders);
	free(push.named);
	return result;
}

const struct command command_push = {
	.name = "push",
	.arguments = "FILE... URL [OPTION]...",
	.summary = "Sends what is new in trace files to a server",
	.details =
		"URL is ClickHouse's HTTP interface, with ?database=NAME, whose tables "
		"sql/clickhouse/tables.sql has made. With --format otlp it is that of an OpenTelemetry "
		"collector: samples go to /v1development/profiles, with links to their spans where the file "
		"has these by then, spans to /v1/traces. With --format pyroscope it is that of Pyroscope or "
		"Alloy: /push.v1.PusherService/Push. FILE may be a folder: all trace files in it, also "
		"those that come later.\n\n"
		"In ClickHouse each row has a key of its own, so what is sent twice counts once: kill push "
		"at any moment and start it again. It goes on where it was, which it keeps in FILE-push-…, "
		"a small file for each target. The other two count what they are sent: nothing is left out, "
		"but what was on its way when push or the connection ended may be there twice. While the "
		"target is away, the trace file is what waits; samples that its size bound removes "
		"meanwhile are counted: in the table losses, and in what push says.\n\n"
		"The service is --service, OTEL_SERVICE_NAME or the program's name; --format otlp and "
		"pyroscope send the attributes of OTEL_RESOURCE_ATTRIBUTES, too. Pyroscope makes a series "
		"of each set of labels: of the samples' labels it gets the texts, the statement's id and "
		"the database.\n\n"
		"Name and password come from QUERYPROF_PUSH_USER and QUERYPROF_PUSH_PASSWORD, or from a "
		"file that --credentials names, which may have headers, too, as X-Scope-OrgID. Proxies come "
		"from http_proxy, https_proxy and no_proxy.",
	.examples = "  queryprof push app.trace 'http://clickhouse:8123/?database=profiles'\n"
		    "  queryprof push --follow traces https://clickhouse/?database=profiles\n"
		    "  queryprof push --format otlp app.trace http://collector:4318\n"
		    "  queryprof push --format pyroscope app.trace http://grafana:4040\n"
		    "  queryprof push --dry-run app.trace 'http://clickhouse:8123/'\n",
	.options = options,
	.arguments_min = 2,
	.arguments_max = INT_MAX,
	.run = run,
};
