/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings: one table, and one way to change and to show what it lists, whichever
 * way a value comes. value.c checks values.
 *
 * Values live in two structures, one a session and one for the process, and a line
 * of the table says where in which. A session's exists three times: as the environment left
 * it (`base_…`, what DEFAULT means for the process), for new sessions, and in force. The
 * process's has no new ones, and exists twice.
 */
#include "settings/settings.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/lock.h"
#include "base/text.h"
#include "handler/ring.h"
#include "query/statement_stats.h"
#include "queryprof.h"
#include "settings/value.h"
#include "span/chunk.h"
#include "span/keep.h"
#include "span/run.h"
#include "store/store.h"
#include "store/write/labels.h"
#include "symbol/symbol.h"
#include "timers/budget.h"
#include "timers/timers.h"
#include "trace/embed.h"

#define MIB (1024 * 1024ll)
#define WORDS_BYTES 60

/* The path is absolute, or "". */
struct process_settings {
	char trace_log_path[PATH_BYTES + 1];
	int64_t trace_log_max_bytes;
	int64_t trace_log_flush_interval_ms;
	int64_t trace_log_ring_bytes;
	bool trace_log_symbolize;
	bool query_comment_labels;
	int64_t query_profiler_max_threads, query_profiler_max_overhead_percent;
	int64_t log_statements_max;
	char debug_path[PATH_BYTES + 1];
	char trace_keep[WORDS_BYTES + 1];
	int64_t trace_keep_min_duration_ns;
	int64_t trace_keep_one_of;
	int64_t trace_wait_ms;
	char trace_statements[WORDS_BYTES + 1];
};

static int apply_to_store(const struct process_settings *wanted, char **reason);
static int refuse_for_ring(const struct process_settings *wanted, char **reason);
static int apply_statements_max(const struct process_settings *wanted, char **reason);
static int apply_debug_path(const struct process_settings *wanted, char **reason);
static int apply_comment_labels(const struct process_settings *wanted, char **reason);
static int apply_budget(const struct process_settings *wanted, char **reason);
static int apply_traces(const struct process_settings *wanted, char **reason);
static bool is_keep(const char *text);
static bool is_statements(const char *text);

/* A setting of a session, or of the process, and its member there. */
#define SESSION_AT(setting, member) .info.name = #setting, .offset = offsetof(struct session_settings, member)
#define SESSION(setting) SESSION_AT(setting, setting)
#define PROCESS(setting)                                                                                     \
	.info.name = #setting, .info.is_process_wide = true,                                                 \
	.offset = offsetof(struct process_settings, setting)

/* Its form. Numbers have a unit, and 0 may mean something else than the range does. */
#define IS_NUMBER(of, from, to) .form = NUMBER, .info.unit = of, .info.min = (from), .info.max = (to)
#define IS_SWITCH .form = SWITCH, .info.unit = "", .info.max = 1
#define IS_TEXT(kind, bytes) .form = kind, .info.unit = "", .info.is_text = true, .info.max = (bytes)
#define IS_WORDS(check, text) IS_TEXT(WORDS, WORDS_BYTES), .is_words = (check), .words = (text)

static const struct setting settings[] = {
	{ SESSION_AT(query_profiler_cpu_time_period_ns, period_ns[TIMER_CPU]),
	  IS_NUMBER("ns", PERIOD_MIN_NS, PERIOD_MAX_NS), .info.zero = "off", .info.default_value = 10000000,
	  .info.description =
	          "CPU time of a query's thread from one sample to the next; 0: no such samples" },
	{ SESSION_AT(query_profiler_real_time_period_ns, period_ns[TIMER_REAL]),
	  IS_NUMBER("ns", PERIOD_MIN_NS, PERIOD_MAX_NS), .info.zero = "off",
	  .info.description = "Wall time of a query from one sample to the next; 0: no such samples" },
	{ SESSION_AT(query_profiler_off_cpu_period_ns, off_cpu_period_ns),
	  IS_NUMBER("ns", PERIOD_MIN_NS, PERIOD_MAX_NS), .info.zero = "off",
	  .info.description = "Time that a query's thread waits from one sample of its waits to the next; 0: "
	                      "no such samples" },
	/* On by default, unlike in a server: code that could load the extension can run any
	 * code in this process already. A host that lets strangers write SQL turns it
	 * off and calls qp_lock_settings(). */
	{ SESSION(allow_introspection_functions), IS_SWITCH, .info.default_value = 1,
	  .info.description =
	          "addressToSymbol, addressToLine, traceToText and the columns symbols and lines, "
	          "which say something about the program's code, may be used" },
	{ SESSION(log_queries), IS_SWITCH, .info.default_value = 1,
	  .info.description = "Queries that have samples or take long enough get a row in query_log" },
	{ SESSION(log_queries_min_query_duration_ns), IS_NUMBER("ns", 0, PERIOD_MAX_NS),
	  .info.default_value = 10000000,
	  .info.description = "Queries without samples are logged from this duration on; 0: all of them" },
	{ SESSION(log_query_parameters), IS_SWITCH,
	  .info.description = "query_log.expanded_query holds the values that were bound to the statement" },
	{ SESSION(stack_trace_timeout_ms), IS_NUMBER("ms", 1, 60000), .info.default_value = 100,
	  .info.description =
	          "Longest time that reading system.stack_trace waits for the threads' responses" },
	/* On by default, for a person who looks for what is slow in a program. A host whose
	 * connections belong to different people turns it off, and their SQL cannot turn it
	 * on. */
	{ SESSION(show_queries_of_other_sessions), IS_SWITCH, .info.default_value = 1, .is_hosts = true,
	  .info.description =
	          "query_log, statement_stats, trace_log, processes and stack_trace show what all "
	          "connections run, not only this one; only the host program can change it" },
	{ SESSION(query_id), IS_TEXT(TEXT, QUERY_ID_MAX),
	  .info.description = "Your own query_id for the next statement; empty: one is made" },
	{ SESSION_AT(query_profiler_labels, labels), IS_TEXT(LABELS, SESSION_LABELS_MAX),
	  .info.description = "Labels of the connection's queries, a JSON object; set_label() changes one" },
	{ PROCESS(query_comment_labels), IS_SWITCH, .info.default_value = 1, .apply = apply_comment_labels,
	  .info.description =
	          "Comments that frameworks write into SQL (sqlcommenter, Rails, Marginalia) are labels" },
	{ PROCESS(query_profiler_max_threads), IS_NUMBER("", 1, 100000), .info.zero = "no limit",
	  .info.default_value = BUDGET_THREADS, .apply = apply_budget,
	  .info.description = "Threads that are sampled at the full rate at once on the wall clock; with "
	                      "more in queries each has as many times fewer samples, of more weight" },
	{ PROCESS(query_profiler_max_overhead_percent), IS_NUMBER("%", 1, 100), .info.zero = "no limit",
	  .info.default_value = BUDGET_PERCENT, .apply = apply_budget,
	  .info.description =
	          "The cost that samples may have, of the queries' CPU time or of one processor's; above "
	          "it there are fewer, of more weight" },
	{ PROCESS(trace_log_path), IS_TEXT(PATH, PATH_BYTES), .apply = apply_to_store,
	  .info.description = "The trace file; empty: a private temporary file that goes with the process" },
	{ PROCESS(trace_log_max_bytes), IS_NUMBER("bytes", MIB, INT64_MAX), .info.zero = "no bound",
	  .info.default_value = 1024 * MIB, .apply = apply_to_store,
	  .info.description = "Size of the trace file at which its oldest samples go; 0: no bound" },
	{ PROCESS(trace_log_flush_interval_ms), IS_NUMBER("ms", 1, 3600000), .info.default_value = 1000,
	  .apply = apply_to_store,
	  .info.description = "Longest time that a sample waits to be written to the trace file" },
	{ PROCESS(trace_log_ring_bytes), IS_NUMBER("bytes", RING_MIN_BYTES, RING_MAX_BYTES),
	  .info.default_value = 8 * MIB, .apply = refuse_for_ring,
	  .info.description = "Memory for samples on their way to the trace file; rounded up to a power "
	                      "of two, fixed once the library has started" },
	{ PROCESS(trace_log_symbolize), IS_SWITCH, .apply = apply_to_store,
	  .info.description = "1: the flusher puts names and lines into the trace file after flushes" },
	{ PROCESS(log_statements_max), IS_NUMBER("", 16, STATEMENTS_MAX_MOST),
	  .info.zero = "nothing is counted", .info.default_value = STATEMENTS_MAX_DEFAULT,
	  .apply = apply_statements_max,
	  .info.description =
	          "Statements that statement_stats counts apart; the least used are \"(other)\"" },
	{ PROCESS(debug_path), IS_TEXT(PATHS, PATH_BYTES), .info.default_text = SYMBOL_DEBUG_PATH,
	  .apply = apply_debug_path,
	  .info.description = "Folders with separate debug files, for names and lines; separated by colons" },
	{ PROCESS(trace_keep),
	  IS_WORDS(is_keep, "all, or of slow, sampled and random one or more, separated by commas"),
	  .info.default_text = "all", .apply = apply_traces,
	  .info.description =
	          "Which traces of requests are kept, decided at their end: all; slow: from "
	          "trace_keep_min_duration_ns on; sampled: a sample fell into a span; random: one of "
	          "trace_keep_one_of" },
	{ PROCESS(trace_keep_min_duration_ns), IS_NUMBER("ns", 0, PERIOD_MAX_NS),
	  .info.default_value = 10000000, .apply = apply_traces,
	  .info.description = "With slow in trace_keep: least duration of a trace that is kept" },
	{ PROCESS(trace_keep_one_of), IS_NUMBER("", 1, INT64_MAX), .info.default_value = 1000,
	  .apply = apply_traces,
	  .info.description = "With random in trace_keep: one of so many traces is kept" },
	{ PROCESS(trace_wait_ms), IS_NUMBER("ms", 0, 60000), .apply = apply_traces,
	  .info.description = "Longest time that a thread waits for room when it hands over spans; 0: spans "
	                      "without room are dropped and counted" },
	{ PROCESS(trace_statements), IS_WORDS(is_statements, "off, inside and all"),
	  .info.default_text = "inside", .apply = apply_traces,
	  .info.description = "Runs of statements that are spans: off: none; inside: those inside a "
	                      "trace; all: a run outside of one is a trace by itself" },
};
#define SETTINGS ((int)(sizeof(settings) / sizeof(*settings)))

/* Lock order: `changing`, then `values`. The first is held while the store takes a
 * change over, which may last; the second only to copy. */
LOCK_DEFINE(changing, LOCK_SETTINGS_CHANGE);
LOCK_DEFINE(values, LOCK_SETTINGS_VALUES);
static struct session_settings base_session, new_session;
static struct process_settings base_process, process;
static bool running;    /* there is a store to notify; under `changing` */
static bool ring_fixed; /* the ring outlives the store; under `changing` */
static bool locked;
static char *environment_error;
static char *newest_error; /* under `values`; NULL: none */
static struct once once;

/* --- where values stand ---------------------------------------------------- */

static void *block_of(const struct setting *setting, const struct session_settings *of)
{
	if (setting->info.is_process_wide)
		return &process;
	return of ? (void *)of : (void *)&new_session;
}

static void *default_block_of(const struct setting *setting, const struct session_settings *of)
{
	if (setting->info.is_process_wide)
		return &base_process;
	return of ? &new_session : &base_session;
}

static const struct setting *find_setting(const char *name, size_t size)
{
	for (int i = 0; i < SETTINGS; i++)
		if (strlen(settings[i].info.name) == size && !strncasecmp(settings[i].info.name, name, size))
			return &settings[i];
	return NULL;
}

/* --- the environment ------------------------------------------------------- */

static void read_environment(const struct setting *setting, struct setting_value *value)
{
	char name[128] = "QUERYPROF_";
	size_t size = strlen(name);
	const char *text;
	char *error, *all;

	for (const char *from = setting->info.name; *from && size < sizeof(name) - 1; from++)
		name[size++] = *from >= 'a' && *from <= 'z' ? (char)(*from - 'a' + 'A') : *from;
	name[size] = 0;
	text = secure_getenv(name);
	if (!text)
		return;
	if (setting_parse(setting, text, value)) {
		setting_write(setting, default_block_of(setting, NULL), value);
		return;
	}
	error = setting_error(setting, text, setting_allowed(setting));
	all = text_format("%s%senvironment: %s", environment_error ? environment_error : "",
	                  environment_error ? "; " : "", error ? error : name);
	free(error);
	if (all) {
		free(environment_error);
		environment_error = all;
	}
}

static void read_defaults(void)
{
	static struct setting_value value; /* it must not fail, and is too large for a small stack */

	for (int i = 0; i < SETTINGS; i++) {
		value.number = settings[i].info.default_value;
		strcpy(value.text, settings[i].info.default_text ? settings[i].info.default_text : "");
		setting_write(&settings[i], default_block_of(&settings[i], NULL), &value);
		/* A query_id is for one statement: one for every session's first makes
		 * no sense. */
		if (settings[i].form != TEXT)
			read_environment(&settings[i], &value);
	}
	new_session = base_session;
	process = base_process;
	symbol_set_debug_path(process.debug_path);
	labels_read_comments(process.query_comment_labels);
	apply_budget(&process, NULL);
	apply_traces(&process, NULL);
	statement_stats_set_max((size_t)process.log_statements_max);
}

void settings_init(void)
{
	once_do(&once, read_defaults);
}

const char *settings_environment_error(void)
{
	settings_init();
	return environment_error;
}

/* --- changing -------------------------------------------------------------- */

static void make_store_config(const struct process_settings *from, struct store_config *config)
{
	*config = (struct store_config){
		.path = from->trace_log_path,
		.max_bytes = from->trace_log_max_bytes,
		.flush_interval_ns = from->trace_log_flush_interval_ms * 1000000,
		.chore = from->trace_log_symbolize ? embed_chore : NULL,
	};
}

static int apply_to_store(const struct process_settings *wanted, char **reason)
{
	struct store_config config;

	if (!running)
		return QP_OK;
	make_store_config(wanted, &config);
	return store_configure(&config, reason);
}

static int refuse_for_ring(const struct process_settings *wanted, char **reason)
{
	int64_t now = process.trace_log_ring_bytes;

	if (!ring_fixed || wanted->trace_log_ring_bytes == now)
		return QP_OK;
	*reason = text_format(
		"fixed at %lld bytes since the library started; set QUERYPROF_TRACE_LOG_RING_BYTES "
		"in the environment, or qp_config.trace_log_ring_bytes for qp_init()",
		(long long)now);
	return QP_LOCKED;
}

static int apply_statements_max(const struct process_settings *wanted, char **reason)
{
	(void)reason;
	statement_stats_set_max((size_t)wanted->log_statements_max);
	return QP_OK;
}

static int apply_comment_labels(const struct process_settings *wanted, char **reason)
{
	(void)reason;
	labels_read_comments(wanted->query_comment_labels);
	return QP_OK;
}

static int apply_budget(const struct process_settings *wanted, char **reason)
{
	(void)reason;
	budget_set_max_threads((uint32_t)wanted->query_profiler_max_threads);
	budget_set_max_overhead((uint32_t)wanted->query_profiler_max_overhead_percent);
	return QP_OK;
}

static int apply_debug_path(const struct process_settings *wanted, char **reason)
{
	(void)reason;
	return symbol_set_debug_path(wanted->debug_path) ? QP_OK : QP_NOMEM;
}

static bool is_keep(const char *text)
{
	return keep_parse(text) != 0;
}

static const char *const statement_words[] = {
	[STATEMENTS_OFF] = "off", [STATEMENTS_INSIDE] = "inside", [STATEMENTS_ALL] = "all"
};
#define STATEMENT_WORDS ((int)(sizeof(statement_words) / sizeof(*statement_words)))

static int find_statements(const char *text)
{
	int word = 0;

	while (word < STATEMENT_WORDS && strcmp(text, statement_words[word]) != 0)
		word++;
	return word;
}

static bool is_statements(const char *text)
{
	return find_statements(text) < STATEMENT_WORDS;
}

static int apply_traces(const struct process_settings *wanted, char **reason)
{
	(void)reason;
	keep_set(keep_parse(wanted->trace_keep), (uint64_t)wanted->trace_keep_min_duration_ns,
	         (uint64_t)wanted->trace_keep_one_of);
	chunk_set_wait((uint64_t)wanted->trace_wait_ms * 1000000);
	span_set_statements((enum span_statements)find_statements(wanted->trace_statements));
	return QP_OK;
}

static int change_process(const struct setting *setting, const struct setting_value *value, char **reason)
{
	struct process_settings *wanted = malloc(sizeof(*wanted));
	int rc = QP_OK;

	if (!wanted)
		return QP_NOMEM;
	lock_acquire(&changing);
	*wanted = process; /* written only under `changing` */
	setting_write(setting, wanted, value);
	if (setting->apply)
		rc = setting->apply(wanted, reason);
	if (!rc) {
		lock_acquire(&values);
		setting_write(setting, &process, value);
		lock_release(&values);
	}
	lock_release(&changing);
	free(wanted);
	return rc;
}

static int change(const struct setting *setting, struct session_settings *of, const char *text,
                  struct setting_value *value, char **error)
{
	char *reason = NULL;
	int rc;

	if (!strcasecmp(text, "DEFAULT")) {
		lock_acquire(&values);
		setting_read(setting, default_block_of(setting, of), value);
		lock_release(&values);
	} else if (!setting_parse(setting, text, value)) {
		*error = setting_error(setting, text, setting_allowed(setting));
		return QP_INVALID;
	}
	if (setting->info.is_process_wide) {
		rc = change_process(setting, value, &reason);
		if (rc)
			*error = setting_error(setting, text, reason);
		return rc;
	}
	lock_acquire(&values);
	setting_write(setting, block_of(setting, of), value);
	lock_release(&values);
	return QP_OK;
}

/* So that an UPDATE of all settings can leave one as it is. */
static bool is_value(const struct setting *setting, const struct session_settings *of, const char *text)
{
	char *now = settings_get(of, setting->info.name);
	bool is = now && !strcmp(now, text);

	free(now);
	return is;
}

static int set(struct session_settings *of, const char *name, const char *text, enum setting_source source,
               char **error)
{
	const struct setting *setting;
	struct setting_value *value;
	int rc;

	settings_init();
	*error = NULL;
	setting = find_setting(name, strlen(name));
	if (!setting) {
		*error = text_format(
			"%.*s: there is no such setting; SELECT name FROM system.settings lists them",
			(int)text_fit(name, SETTING_SHOWN), name);
		return QP_NOT_FOUND;
	}
	if (source == SETTING_FROM_SQL && __atomic_load_n(&locked, __ATOMIC_RELAXED)) {
		*error = setting_error(setting, text, text_format("settings are locked by the host program"));
		return QP_LOCKED;
	}
	if (source == SETTING_FROM_SQL && setting->is_hosts && !is_value(setting, of, text)) {
		*error = setting_error(setting, text,
		                       text_format("only the host program can change it, with qp_set() "
		                                   "or the environment at its start"));
		return QP_LOCKED;
	}
	value = calloc(1, sizeof(*value)); /* 4 KiB: too much for a host's small stack */
	if (!value)
		return QP_NOMEM;
	rc = change(setting, of, text, value, error);
	free(value);
	return rc;
}

int settings_set(struct session_settings *of, const char *name, const char *text, enum setting_source source,
                 char **error)
{
	int rc = set(of, name, text, source, error);

	if (rc && *error) {
		char *copy = strdup(*error);
		lock_acquire(&values);
		free(newest_error);
		newest_error = copy;
		lock_release(&values);
	}
	return rc;
}

char *settings_newest_error(void)
{
	lock_acquire(&values);
	char *copy = newest_error ? strdup(newest_error) : NULL;
	lock_release(&values);
	return copy;
}

void settings_lock(void)
{
	__atomic_store_n(&locked, true, __ATOMIC_RELAXED);
}

void settings_defaults(struct session_settings *of_session)
{
	settings_init();
	lock_acquire(&values);
	*of_session = new_session;
	lock_release(&values);
}

void settings_store_config(struct store_config *config)
{
	settings_init();
	lock_acquire(&values);
	make_store_config(&process, config);
	config->path = strdup(config->path);
	lock_release(&values);
}

size_t settings_ring_bytes(void)
{
	settings_init();
	return (size_t)__atomic_load_n(&process.trace_log_ring_bytes, __ATOMIC_RELAXED);
}

void settings_started(bool started)
{
	lock_acquire(&changing);
	running = started;
	lock_release(&changing);
}

void settings_ring_is_made(void)
{
	lock_acquire(&changing);
	ring_fixed = true;
	lock_release(&changing);
}

/* --- showing --------------------------------------------------------------- */

static char *value_text(const struct setting *setting, const void *block)
{
	struct setting_value *value = calloc(1, sizeof(*value));
	char *text;

	if (!value)
		return NULL;
	lock_acquire(&values);
	setting_read(setting, block, value);
	lock_release(&values);
	text = setting->info.is_text ? strdup(value->text) : text_format("%lld", (long long)value->number);
	free(value);
	return text;
}

char *settings_get(const struct session_settings *of, const char *name)
{
	const struct setting *setting = find_setting(name, strlen(name));

	settings_init();
	return setting ? value_text(setting, block_of(setting, of)) : NULL;
}

char *settings_get_default(const struct session_settings *of, const char *name)
{
	const struct setting *setting = find_setting(name, strlen(name));

	settings_init();
	return setting ? value_text(setting, default_block_of(setting, of)) : NULL;
}

bool settings_known(const char *name, int size)
{
	return size > 0 && find_setting(name, (size_t)size);
}

int settings_count(void)
{
	return SETTINGS;
}

const struct setting_info *settings_info(int index)
{
	return &settings[index].info;
}
