/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof push: sends new rows of trace files to a server.
 *
 * A round reads one piece of one file in one read transaction, and ends the transaction. It records what it
 * is about to send, sends it, and records that it was sent. So the file's writers never wait for the network.
 * If this process is killed at any moment, the next one repeats the same piece, which the target counts once.
 * Rows wait in the file while a target is unavailable. If one file has an error, push continues with the
 * others, and fails at its end.
 */
#include "cmd/line/command.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/ui/limits.h"
#include "cmd/file/trace_file.h"
#include "cmd/http/http.h"
#include "cmd/push/files.h"
#include "cmd/push/clickhouse.h"
#include "cmd/push/profiles.h"
#include "cmd/ui/progress.h"
#include "sql_push_news.h"
#include "store/file/database.h"

#define SAMPLES_A_ROUND 50000
#define STACKS_MAX 50000 /* kept per file; about 2 KiB each */
#define SHOWN_EVERY_S 60
#define LAST_PATIENCE_S 5

/* A kind of server, by --format. The functions are described in clickhouse.h. */
struct push_target {
	const char *name;
	int (*begin)(const char *url, bool is_zstd);
	int (*read)(sqlite3 *db, const char *path, const struct push_position *since,
	            const struct push_position *until, const char *service, bool is_counted,
	            struct push_stacks *stacks, struct push_batch *batch);
	int (*send)(void);
	void (*end)(void);
	const char *(*table_name)(enum push_table table); /* for people */
};

static const struct push_target targets[] = {
	{ "clickhouse", push_clickhouse_begin, push_clickhouse_read, push_clickhouse_send,
	  push_clickhouse_end, push_table_name },
	{ "otlp", push_otlp_begin, push_profiles_read, push_profiles_send, push_profiles_end,
	  push_profiles_name },
	{ "pyroscope", push_pyroscope_begin, push_profiles_read, push_profiles_send, push_profiles_end,
	  push_profiles_name },
};

static const char *target_name(size_t index)
{
	return index < sizeof(targets) / sizeof(targets[0]) ? targets[index].name : NULL;
}

/* NULL: ClickHouse. */
static const struct push_target *target_find(const char *name)
{
	for (size_t i = 0; name && target_name(i); i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return name ? NULL : targets;
}

/* The server as state files name it; malloc'ed, NULL: no memory. */
static char *target_describe(const struct push_target *target, const char *url)
{
	return target == targets ? strdup(url) : text_format("%s %s", target->name, url);
}

static const char *follow, *once, *dry_run, *state_path, *service, *credentials, *authorities, *timeout,
	*retry_for, *bytes_per_second, *with_zstd, *format_name, *every;

static const struct command_option options[] = {
	COMMAND_WORD("format", "FORMAT", &format_name,
	             "the kind of URL: clickhouse (default), otlp or pyroscope", target_name),
	COMMAND_FLAG("follow", &follow,
	             "continue while the files grow; SIGTERM or Ctrl+C sends the rest and ends"),
	COMMAND_OPTION("every", "SECONDS", OPTION_NUMBER, &every,
	               "with --follow, how often to look for new data (default 1)"),
	COMMAND_FLAG("once", &once, "send the present data and end, as without --follow"),
	COMMAND_FLAG("dry-run", &dry_run, "print what would be sent, without a request to a server"),
	COMMAND_OPTION("state", "STATE", OPTION_FILE, &state_path,
	               "the file for push's position in FILE (default FILE-push-…)"),
	COMMAND_OPTION("service", "NAME", OPTION_TEXT, &service,
	               "the rows' service (default OTEL_SERVICE_NAME or the program's name)"),
	HTTP_CREDENTIALS_OPTION(&credentials),
	HTTP_AUTHORITIES_OPTION(&authorities),
	COMMAND_OPTION("timeout", "SECONDS", OPTION_NUMBER, &timeout,
	               "how long one request may take (default 60), without what --max-bytes-per-second "
	               "makes it wait"),
	COMMAND_OPTION("retry-for", "SECONDS", OPTION_NUMBER, &retry_for,
	               "how long to retry a request (default 60; with --follow without end)"),
	COMMAND_OPTION("max-bytes-per-second", "BYTES", OPTION_NUMBER, &bytes_per_second, "send no faster"),
	COMMAND_FLAG("zstd", &with_zstd, "compress with zstd: fewer bytes and more CPU time than LZ4"),
	{ 0 },
};

static struct {
	const struct push_target *target;
	const char *url;
	char *named; /* the target, part of the state file's name */
	int64_t rows[PUSH_TABLES], missed;
	time_t shown;
} push;

static int64_t number(const char *text, int64_t otherwise)
{
	return text ? strtoll(text, NULL, 10) : otherwise;
}

/* --- a round ---------------------------------------------------------------------- */

/* Another file is sent from its beginning, so an error must not look like another file. A command_result. */
static int read_identity(const struct push_file *file, int64_t *identity)
{
	*identity = database_number(file->db, "SELECT identity FROM state", 0);
	return *identity ? COMMAND_FINE : complain("%s: %s", file->path, sqlite3_errmsg(file->db));
}

/* Finds the end of the new rows, limited to a piece. A command_result. */
static int find_new_rows(struct push_file *file, struct push_position *since, struct push_position *until)
{
	static const struct {
		const char *name;
		enum push_position_part part;
	} parameters[] = { { ":batch", PUSH_BATCH }, { ":samples", PUSH_SAMPLES }, { ":spans", PUSH_SPANS } };
	static const enum push_position_part columns[] = { PUSH_FILE,  PUSH_BATCH, PUSH_SAMPLES, PUSH_MODULES,
		                                           PUSH_SPANS, PUSH_WAITS, PUSH_STATS };
	sqlite3_stmt *row = NULL;
	int64_t identity;

	if (read_identity(file, &identity) != COMMAND_FINE)
		return COMMAND_FAILED;
	if (file->state.sent.at[PUSH_FILE] != identity) {
		file->state.sent = (struct push_position){ { identity } };
		file->state.next = file->state.sent;
	}
	*since = file->state.sent;
	*until = file->state.next;
	if (memcmp(since, until, sizeof(*since)) != 0)
		return COMMAND_FINE; /* the piece was in flight */
	if (sqlite3_prepare_v2(file->db, sql_push_news, -1, &row, NULL) != SQLITE_OK)
		return complain("%s: %s", file->path, sqlite3_errmsg(file->db));
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, parameters[i].name),
		                   since->at[parameters[i].part]);
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":most"), SAMPLES_A_ROUND);
	int code = sqlite3_step(row);
	for (size_t i = 0; code == SQLITE_ROW && i < sizeof(columns) / sizeof(columns[0]); i++)
		until->at[columns[i]] = sqlite3_column_int64(row, (int)i);
	sqlite3_finalize(row);
	return code == SQLITE_ROW ? COMMAND_FINE : complain("%s: %s", file->path, sqlite3_errmsg(file->db));
}

/* Removed rows may have left their numbers to other rows, and the cache must not grow without limit. A
 * command_result. */
static int refresh_stacks(struct push_file *file)
{
	int64_t removals = database_number(file->db, "SELECT removals FROM state", 0);

	if (removals != file->removals || file->stacks.list.count > STACKS_MAX) {
		push_stacks_end(&file->stacks);
		if (!push_stacks_begin(&file->stacks, file->db, trace_file_space(file->db)))
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
	result = find_new_rows(file, since, until);
	if (result == COMMAND_FINE && memcmp(since, until, sizeof(*since)) != 0)
		result = refresh_stacks(file);
	if (result == COMMAND_FINE && memcmp(since, until, sizeof(*since)) != 0)
		result = push.target->read(file->db, file->path, since, until, service,
		                           since->at[PUSH_BATCH] > 0, &file->stacks, batch);
	sqlite3_exec(file->db, "COMMIT", NULL, NULL, NULL);
	return result;
}

/* The result of a piece of a file. */
enum piece {
	PIECE_NONE, /* nothing is new, or the file is skipped */
	PIECE_SENT, /* there may be more */
	PIECE_KEPT, /* the server did not accept it; after a complaint */
};

/* Finds the end of the piece; if it equals `since`, nothing is new. A command_result. */
static int prepare_piece(struct push_file *file, struct push_position *since, struct push_position *until,
                         struct push_batch *batch)
{
	int result = push_files_open(file);

	*since = *until = (struct push_position){ { 0 } };
	if (result != COMMAND_FINE || !file->db)
		return result;
	if (!file->has_state)
		file->has_state = push_state_open(&file->state, file->path, push.named, state_path);
	return file->has_state ? read_piece(file, since, until, batch) : COMMAND_FAILED;
}

/* A failure of a file is printed once, even if push tries again and again. */
static enum piece skip_file(struct push_file *file)
{
	push_files_skip(file, complain_detach(), follow != NULL);
	return PIECE_NONE;
}

static void print_held(void)
{
	char *held = complain_detach();

	if (held)
		complain("%s", held);
	free(held);
}

static enum piece push_piece(struct push_file *file)
{
	struct push_position since, until;
	struct push_batch batch;

	if (push_files_is_skipped(file))
		return PIECE_NONE;
	complain_hold();
	if (prepare_piece(file, &since, &until, &batch) != COMMAND_FINE)
		return skip_file(file);
	if (!memcmp(&since, &until, sizeof(since))) {
		print_held();
		push_files_close_removed(file);
		return PIECE_NONE;
	}
	file->state.next = until;
	if (!push_state_write(&file->state))
		return skip_file(file);
	print_held();
	push_files_is_read(file);
	if (push.target->send() != COMMAND_FINE)
		return PIECE_KEPT;
	for (int i = 0; i < PUSH_TABLES; i++)
		push.rows[i] += batch.rows[i];
	push.missed += batch.missed;
	progress_count(push.rows[PUSH_TRACE_LOG], "samples sent");
	file->state.sent = until;
	complain_hold();
	if (!push_state_write(&file->state))
		return skip_file(file);
	print_held();
	return PIECE_SENT;
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
	fprintf(to, "; %" PRIu64 " bytes in %" PRIu64 " requests, %" PRIu64 " of them retries",
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

/* Sends all present data of files that can be read. A command_result. */
static int push_all(void)
{
	bool is_any = true;

	if (!push_files_scan())
		return complain("out of memory");
	while (is_any && !http_is_stopped()) {
		is_any = false;
		for (size_t i = 0; i < push_files.list.count; i++) {
			enum piece piece = push_piece(&push_files.list.items[i]);

			if (piece == PIECE_KEPT)
				return COMMAND_FAILED;
			is_any |= piece == PIECE_SENT;
			tell_each_minute();
		}
	}
	return COMMAND_FINE;
}

static void stop(int signal)
{
	(void)signal;
	http_stop();
}

/* If it is stopped, it sends the present rows; another signal ends it immediately. */
static int push_on(void)
{
	int result;

	do {
		result = push_all();
		if (result == COMMAND_FINE && follow)
			http_sleep(number(every, 1) * 1000);
	} while (result == COMMAND_FINE && follow && !http_is_stopped() && push_files_has_sound());
	if (result != COMMAND_FINE || !http_is_stopped())
		return result;
	http_resume(LAST_PATIENCE_S);
	return push_all();
}

/* --- without a server ------------------------------------------------------------- */

static int dry_run_file(struct push_file *file)
{
	struct push_position since, until;
	int result = push_files_open(file);

	if (result != COMMAND_FINE || !file->db)
		return result;
	file->has_state = push_state_open(&file->state, file->path, push.named, state_path);
	result = file->has_state ? find_new_rows(file, &since, &until) : COMMAND_FAILED;
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
	int result = push_files_scan() ? COMMAND_FINE : complain("out of memory");

	for (size_t i = 0; i < push_files.list.count; i++)
		if (dry_run_file(&push_files.list.items[i]) != COMMAND_FINE)
			result = COMMAND_FAILED;
	return result;
}

/* --- the command line ------------------------------------------------------------- */

static int check_command_line(int count)
{
	if (follow && (once || dry_run))
		complain("push: --follow excludes --once and --dry-run");
	else if (every && !follow)
		complain("push: --every %s needs --follow", every);
	else if (every && !number(every, 1))
		complain("push: --every 0; expected 1 second or more");
	else if (state_path && count > 1)
		complain("push: --state %s is for one file, and there are %d", state_path, count);
	else
		return http_check_url("push", push.url, authorities);
	return COMMAND_MISUSED;
}

/* A command_result. */
static int add_files(int count, char **paths)
{
	int result = push_files_acquire(count, paths);

	if (result != COMMAND_FINE || !state_path || !push_files.folders.count)
		return result;
	complain("push: --state %s is for one file, and %s is a folder", state_path,
	         push_files.folders.items[0]);
	return COMMAND_MISUSED;
}

/* Takes signals that waited until now (background.c). */
static void receive_signals(void)
{
	static const int numbers[] = { SIGTERM, SIGINT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		sigaction(numbers[i], &(struct sigaction){ .sa_handler = stop }, NULL);
		sigaddset(&set, numbers[i]);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int run_with_server(void)
{
	const struct http_settings settings = {
		.credentials = credentials,
		.authorities = authorities,
		.bytes_per_second = number(bytes_per_second, 0),
		.timeout_s = number(timeout, 60),
		.patience_s = number(retry_for, follow ? INT64_MAX : 60),
		.gave_up = " (nothing is lost: push continues there when you start it again)",
	};
	bool is_stopped;
	int result;

	receive_signals();
	result = http_begin(&settings);
	progress_begin("pushing");
	push.shown = time(NULL);
	is_stopped = http_is_stopped(); /* the recorded program ended before that */
	if (is_stopped)
		http_resume(LAST_PATIENCE_S);
	if (result == COMMAND_FINE)
		result = push.target->begin(push.url, with_zstd != NULL);
	if (result == COMMAND_FINE)
		result = is_stopped ? push_all() : push_on();
	progress_end();
	if (result == COMMAND_FINE)
		show_progress(stdout);
	push.target->end();
	http_end();
	return result == COMMAND_FINE && push_files_has_bad() ? COMMAND_FAILED : result;
}

static int run(int argc, char **argv)
{
	int result;

	push.url = argv[argc - 1];
	push.target = target_find(format_name);
	push.named = target_describe(push.target, push.url);
	if (!service)
		service = getenv("OTEL_SERVICE_NAME");
	result = push.named ? check_command_line(argc - 1) : complain("out of memory");
	file_limit_raise(); /* each trace file needs four while push runs */
	if (result == COMMAND_FINE)
		result = add_files(argc - 1, argv);
	if (result == COMMAND_FINE)
		result = dry_run ? dry_run_all() : run_with_server();
	push_files_free();
	free(push.named);
	return result;
}

const struct command command_push = {
	.name = "push",
	.arguments = "FILE... URL [OPTION]...",
	.summary = "Sends new data of trace files to a server",
	.details = "URL is ClickHouse's HTTP interface, with ?database=NAME. sql/clickhouse/tables.sql "
		   "makes its tables. With --format otlp, URL is an OpenTelemetry collector: samples go to "
		   "/v1development/profiles, with links to their spans if the file has them by then, and "
		   "spans to /v1/traces. With --format pyroscope, URL is Pyroscope or Alloy: "
		   "/push.v1.PusherService/Push. FILE may be a folder: push sends all trace files in it, "
		   "including those that appear later. push skips a file that it cannot read until the file "
		   "changes; the exit status is then 1.\n\n"
		   "In ClickHouse each row has a key, so a row that is sent twice counts once. You can kill "
		   "push at any moment and start it again: it continues from the position in FILE-push-…, a "
		   "small file for each target. The other two targets have no keys. Nothing is omitted, but "
		   "data that were in flight when push or the connection ended may count twice. While the "
		   "target is unavailable, data wait in the trace file. If the file reaches its size limit "
		   "and loses samples meanwhile, the table losses and push's messages count them.\n\n"
		   "The service is --service, OTEL_SERVICE_NAME or the program's name. --format otlp and "
		   "pyroscope also send the attributes of OTEL_RESOURCE_ATTRIBUTES. Pyroscope makes a "
		   "series of each set of labels. It gets the samples' labels that are texts, the "
		   "statement's id and the database.\n\n"
		   "Name and password come from QUERYPROF_PUSH_USER and QUERYPROF_PUSH_PASSWORD, or from "
		   "the file of --credentials. That file may also contain headers, such as X-Scope-OrgID. "
		   "Proxies come from http_proxy, https_proxy and no_proxy.",
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
