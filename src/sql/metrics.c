/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line a metric: its name, what it says, and where the number comes from. A
 * metric that is a text is "" while there is nothing to report.
 *
 * Signals and the samples that ordinary code took add up (wire/ledger.h): query_profiler_runs +
 * samples_taken = samples + samples_dropped + signals_idle + signals_asked + signals_late +
 * signals_foreign + signals_reentered.
 */
#include "sql/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/fast_clock.h"
#include "base/text.h"
#include "collect/ledger_reader.h"
#include "collect/ring_reader.h"
#include "collect/state.h"
#include "handler/unwind/unwind.h"
#include "hook/confine.h"
#include "label/sets.h"
#include "query/statement_stats.h"
#include "query/watch_cost.h"
#include "recorder/confined.h"
#include "recorder/process.h"
#include "settings/settings.h"
#include "span/keep.h"
#include "sqlite/library/host.h"
#include "sqlite/plan/bytecode.h"
#include "sqlite/runs/runs.h"
#include "sqlite/session/session.h"
#include "store/store.h"
#include "handler/budget.h"
#include "wire/ledger.h"

/* The counters of one part, which numbers them by an enum of its own. */
#define GETTER(name, read, counter)                                                                          \
	static uint64_t name(int which)                                                                      \
	{                                                                                                    \
		return read((enum counter)which);                                                            \
	}

GETTER(get_ledger, ledger_read, ledger_counter)
GETTER(get_unwind, unwind_counter, unwind_counter)
GETTER(get_budget, budget_figure, budget_figure)
GETTER(get_sampler, sampler_counter, sampler_counter)
GETTER(get_store, store_counter, store_counter)
GETTER(get_queries, runs_counter, run_counter)
GETTER(get_bytecode, bytecode_counter, bytecode_counter)
GETTER(get_statements, statement_stats_counter, statement_counter_name)
GETTER(get_spans, keep_counter, keep_counter)
GETTER(get_session, session_counter, session_counter)

static uint64_t get_watch_cost(int which)
{
	(void)which;
	return watch_cost_so_far();
}

static uint64_t get_cost(int which)
{
	return get_budget(which) + watch_cost_so_far();
}

static uint64_t get_signal(int which)
{
	(void)which;
	return (uint64_t)sampler_signal();
}

enum { RING_SIZE, RING_USED, RING_DROPPED };

static uint64_t get_ring(int which)
{
	const struct ring *ring = process_ring();
	uint64_t tail;

	if (!ring)
		return 0;
	if (which == RING_SIZE)
		return ring_bytes(ring);
	if (which == RING_DROPPED)
		return ring_dropped(ring);
	tail = ring_tail(ring); /* first: the head is never behind it */
	return ring_head(ring) - tail;
}

static uint64_t get_labels(int which)
{
	return label_counter((enum label_counter)which);
}

static char *text_of_errno(int which)
{
	uint64_t code = sampler_counter((enum sampler_counter)which);
	char buffer[128];

	return code ? strdup(strerror_r((int)code, buffer, sizeof(buffer))) : NULL;
}

static char *text_of_store(int which)
{
	return which ? store_error() : store_path();
}

enum { TEXT_VERSION, TEXT_ENVIRONMENT_ERROR, TEXT_CLOCK };

static char *text_copy(int which)
{
	const char *const texts[] = {
		[TEXT_VERSION] = QUERYPROF_VERSION,
		[TEXT_ENVIRONMENT_ERROR] = settings_environment_error(),
		[TEXT_CLOCK] = fast_clock_source(),
	};

	return texts[which] ? strdup(texts[which]) : NULL;
}

static char *text_of_debug(int which)
{
	(void)which;
	return debug_error();
}

static char *text_of_setting(int which)
{
	(void)which;
	return settings_newest_error();
}

/* By which way the statements of each SQLite library are seen. */
static char *text_of_libraries(int which)
{
	char *text = NULL;

	(void)which;
	for (int i = 0; i < HOST_LIBRARIES_MAX; i++) {
		const struct host_library *library = &host_libraries[i];
		const char *why = __atomic_load_n(&library->unpatched, __ATOMIC_RELAXED);
		const char *how;
		char *longer;

		if (!host_api(library))
			break;
		how = host_is_patched(library)                                      ? "patched code"
		      : __atomic_load_n(&library->steps_are_seen, __ATOMIC_RELAXED) ? "import tables"
		                                                                    : "its trace callback";
		longer = text_format("%s%s%s: %s%s%s", text ? text : "", text ? "; " : "",
		                     library->name ? library->name : "?", how,
		                     why ? ", because its code was not patched: " : "", why ? why : "");
		free(text);
		text = longer;
	}
	return text;
}

/* What a filter leaves out, or that there is one which cannot be read. */
static char *text_of_confinement(int which)
{
	const char *sentence = confined_sentence();
	char names[1200];

	(void)which;
	if (sentence)
		return text_format("%s (%s)", sentence, confine_names(names, sizeof(names)));
	if (confine_has_unknown_filter())
		return strdup("a seccomp filter was installed before queryprof and cannot be read; queryprof "
		              "assumes that it refuses system calls with an error number");
	return NULL;
}

/* A person whose queries were all short sees two empty tables. */
static char *text_of_emptiness(int which)
{
	const char *confined = confined_sentence();

	(void)which;
	if (ledger_read(LEDGER_STORED))
		return NULL;
	if (confined)
		return strdup(confined);
	if (runs_counter(RUNS_LOGGED))
		return strdup(
			"no query was long enough for a sample: PRAGMA query_profiler_cpu_time_period_ns = "
			"'1ms' takes more samples; statement_stats counts every run");
	return strdup(runs_counter(RUNS_STARTED)
	                      ? "no query was long enough for a sample or a row of query_log: PRAGMA "
	                        "query_profiler_cpu_time_period_ns = '1ms' takes more samples, PRAGMA "
	                        "log_queries_min_query_duration_ns = 0 logs every query; statement_stats "
	                        "counts every run"
	                      : "no query has run on a connection whose period is not 0 (PRAGMA "
	                        "query_profiler_cpu_time_period_ns)");
}

static const struct metric {
	const char *name;
	uint64_t (*get)(int which);
	char *(*text)(int which); /* malloc'ed; NULL: nothing to report */
	int which;
	const char *description;
} metrics[] = {
	{ "version", NULL, text_copy, TEXT_VERSION, "Version of queryprof" },
	{ "signal_moves", get_sampler, NULL, SAMPLER_SIGNAL_MOVES,
	  "How often the host took over the timers' signal; queries that ran on other threads at that time "
	  "have no further samples" },
	{ "signal", get_signal, NULL, 0, "Number of the signal that the timers send" },

	{ "why_empty", NULL, text_of_emptiness, 0,
	  "Why trace_log or query_log has no rows of this process yet, and what to do" },

	{ "seccomp", NULL, text_of_confinement, 0,
	  "What the program's seccomp filter prevents, and the system calls that it forbids" },

	{ "query_profiler_runs", get_ledger, NULL, LEDGER_SIGNALS, "Signals that reached the handler" },
	{ "query_profiler_signal_overruns", get_ledger, NULL, LEDGER_OVERRUNS,
	  "Periods of samples after their first; the weight includes them" },
	{ "samples", get_ledger, NULL, LEDGER_STORED, "Samples taken and handed to the ring" },
	{ "samples_taken", get_ledger, NULL, LEDGER_TAKEN,
	  "Samples taken in a call of the host, without a signal; samples and samples_dropped include them" },
	{ "samples_truncated", get_ledger, NULL, LEDGER_TRUNCATED,
	  "Samples whose trace does not reach the bottom of the stack" },
	{ "samples_without_opcode", get_ledger, NULL, LEDGER_NO_OPCODE,
	  "Samples of SQLite's statements with an unknown opcode" },
	{ "samples_dropped", get_ledger, NULL, LEDGER_DROPPED, "Samples lost because the ring was full" },
	{ "signals_idle", get_ledger, NULL, LEDGER_IDLE,
	  "Signals that found no query on the thread, or came before a period had ended" },
	{ "signals_asked", get_ledger, NULL, LEDGER_STACKS,
	  "Signals of system.stack_trace that returned a stack" },
	{ "signals_late", get_ledger, NULL, LEDGER_LATE,
	  "Signals of a removed timer, or of a stack_trace that already had its response" },
	{ "signals_foreign", get_ledger, NULL, LEDGER_FOREIGN,
	  "Other signals with the same number, forwarded to the previous handler" },
	{ "signals_reentered", get_ledger, NULL, LEDGER_REENTERED,
	  "Signals that arrived inside the handler" },

	{ "profiler_cost_ns", get_cost, NULL, BUDGET_COST_NS,
	  "Time that the host's threads have lost: in the handler, by its clock readings, in the kernel's "
	  "part of each signal, and in the wrappers; the CPU times of the store's threads are not included" },
	{ "profiler_watch_cost_ns", get_watch_cost, NULL, 0,
	  "The wrappers' part of it: runs and rows of statements times their calibrated cost" },
	{ "profiler_signal_cost_ns", get_budget, NULL, BUDGET_SIGNAL_NS,
	  "The kernel's part of a signal, estimated as the time of 16 system calls that do nothing" },
	{ "profiler_cost_ppm", get_budget, NULL, BUDGET_COST_PPM,
	  "The recent cost of samples and of storing them, in millionths of the queries' CPU time, or of "
	  "one processor if that is more; query_profiler_max_overhead_percent limits it" },
	{ "threads_in_queries", get_budget, NULL, BUDGET_IN_QUERIES,
	  "Threads in queries that are sampled on the wall clock, at the last check, at most a quarter of a "
	  "second ago" },
	{ "cpu_stretch", get_budget, NULL, BUDGET_CPU_STRETCH,
	  "Periods of CPU time between two signals, rounded up because some threads have one less; above 1 "
	  "if the cost exceeds query_profiler_max_overhead_percent" },
	{ "real_stretch", get_budget, NULL, BUDGET_REAL_STRETCH,
	  "The same on the wall clock; above 1 also with more threads than query_profiler_max_threads" },

	{ "unwind_cache_misses", get_unwind, NULL, UNWIND_CACHE_MISSES,
	  "Frames whose unwind rule was not cached yet" },
	{ "unwind_full_steps", get_unwind, NULL, UNWIND_FULL_STEPS, "Frames that needed all registers" },
	{ "unwind_no_rule", get_unwind, NULL, UNWIND_NO_RULE,
	  "Traces that ended at code without unwind information" },
	{ "unwind_bad_read", get_unwind, NULL, UNWIND_BAD_READ,
	  "Traces that ended at an address outside the thread's stack" },
	{ "unwind_unknown_stacks", get_unwind, NULL, UNWIND_UNKNOWN_STACKS,
	  "Traces of another stack than the thread's own: a signal stack, a coroutine's" },

	{ "threads", get_sampler, NULL, SAMPLER_THREADS, "Threads that have run queries and still run" },
	{ "thread_slots", get_sampler, NULL, SAMPLER_SLOTS, "Slots made for such threads so far" },
	{ "threads_failed", get_sampler, NULL, SAMPLER_THREADS_FAILED,
	  "Threads that are not sampled because memory ran out" },
	{ "threads_blocked", get_sampler, NULL, SAMPLER_THREADS_BLOCKED,
	  "Threads that had the timers' signal blocked at their first query and are not sampled" },
	{ "timers", get_sampler, NULL, SAMPLER_TIMERS, "Kernel timers that exist now" },
	{ "timers_failed", get_sampler, NULL, SAMPLER_TIMERS_FAILED,
	  "Timers that the system refused; their threads have no samples until it grants one" },
	{ "timer_error", NULL, text_of_errno, SAMPLER_TIMER_ERRNO,
	  "Why the system last refused a timer (see RLIMIT_SIGPENDING, ulimit -i)" },

	{ "ring_bytes", get_ring, NULL, RING_SIZE, "Size of the ring between handlers and flusher" },
	{ "ring_used_bytes", get_ring, NULL, RING_USED, "Records in the ring that wait to be stored" },
	{ "ring_dropped", get_ring, NULL, RING_DROPPED,
	  "Samples, rows and spans refused because the ring was full" },

	{ "store_samples", get_store, NULL, STORE_SAMPLES, "Samples written to the trace file" },
	{ "store_queries", get_store, NULL, STORE_QUERIES, "Queries written to the trace file" },
	{ "store_lost", get_store, NULL, STORE_LOST, "Samples, rows and spans that could not be written" },
	{ "store_trimmed", get_store, NULL, STORE_TRIMMED,
	  "Samples removed, oldest first, to keep trace_log_max_bytes" },
	{ "store_stacks", get_store, NULL, STORE_STACKS, "Distinct stacks of this process" },
	{ "store_flushes", get_store, NULL, STORE_FLUSHES, "Transactions" },
	{ "store_errors", get_store, NULL, STORE_ERRORS,
	  "Failed transactions and attempts to open the file" },
	{ "store_bytes", get_store, NULL, STORE_BYTES, "Size of the trace file with its WAL" },
	{ "store_flusher_cpu_time_ns", get_store, NULL, STORE_FLUSHER_CPU_TIME_NS,
	  "CPU time of the flusher" },
	{ "store_reader_cpu_time_ns", get_store, NULL, STORE_READER_CPU_TIME_NS,
	  "CPU time of the thread that reads tables of the trace file for other threads" },
	{ "store_pacer_cpu_time_ns", get_store, NULL, STORE_PACER_CPU_TIME_NS,
	  "CPU time of the thread that checks the limits of the sampling cost" },
	{ "store_fields_skipped", get_store, NULL, STORE_FIELDS_SKIPPED,
	  "Optional fields of samples that are unknown to this version" },
	{ "label_sets", get_labels, NULL, LABEL_SETS, "Label sets that exist" },
	{ "label_sets_without_trampoline", get_labels, NULL, LABEL_SETS_WITHOUT,
	  "Label sets made while all trampolines were in use; they share one" },
	{ "label_sets_unknown", get_store, NULL, STORE_LABELS_UNKNOWN,
	  "Label sets of samples for which the store received no record" },
	{ "store_path", NULL, text_of_store, 0, "The trace file in use" },
	{ "store_error", NULL, text_of_store, 1, "Why nothing can be stored now" },

	{ "queries_started", get_queries, NULL, RUNS_STARTED, "Queries begun under the profiler" },
	{ "queries_logged", get_queries, NULL, RUNS_LOGGED, "Rows for query_log handed to the ring" },
	{ "queries_lost", get_queries, NULL, RUNS_LOST,
	  "Queries whose end queryprof did not see; they have no row in query_log" },
	{ "queries_untracked", get_queries, NULL, RUNS_UNTRACKED,
	  "Statements that ran without samples because too many were open at once" },
	{ "plans_read", get_bytecode, NULL, BYTECODE_READ,
	  "Programs and plans of statements read and published" },
#define PLAN_METRIC(name, metric, is_lasting, sentence)                                                      \
	{ metric, get_bytecode, NULL, name, "Plans not read: " sentence },
	PLANS_MISSING(PLAN_METRIC)
#undef PLAN_METRIC
		{ "plans_lost", get_store, NULL, STORE_PLANS_LOST,
	          "Records of programs and plans that could not be written; later samples publish them "
	          "again" },
	{ "statements", get_statements, NULL, STATEMENTS_KEPT,
	  "Statements in system.statement_stats, without \"(other)\"" },
	{ "statements_folded", get_statements, NULL, STATEMENTS_FOLDED,
	  "Statements counted as \"(other)\", because there were more than log_statements_max" },
	{ "sessions", get_session, NULL, SESSIONS_OPEN, "Connections that have queryprof" },
	{ "libraries", NULL, text_of_libraries, 0,
	  "SQLite libraries of the process, and how queryprof follows their statements" },
	{ "sessions_refused", get_sampler, NULL, SAMPLER_SESSIONS_REFUSED,
	  "Connections that queryprof could not be added to" },
	{ "allocators_unknown", get_sampler, NULL, SAMPLER_ALLOCATORS_UNKNOWN,
	  "SQLite libraries whose memory is not sampled, because their allocator was not found" },
	{ "memory_blocks_lost", get_sampler, NULL, SAMPLER_BLOCKS_LOST,
	  "Sampled blocks of memory whose free is not followed, because there was no space" },
	{ "traces_kept", get_spans, NULL, TRACES_KEPT, "Traces of requests that trace_keep keeps" },
	{ "traces_left_out", get_spans, NULL, TRACES_UNKEPT,
	  "Traces of requests that trace_keep does not keep" },
	{ "spans", get_spans, NULL, SPANS_RECORDED, "Spans of traces that are kept, handed to the ring" },
	{ "spans_dropped", get_spans, NULL, SPANS_DROPPED,
	  "Spans lost because the ring was full or memory ran out" },
	{ "spans_unended", get_spans, NULL, SPANS_UNENDED,
	  "Spans without an end; they were closed with the enclosing span" },
	{ "store_spans", get_store, NULL, STORE_SPANS, "Spans written to the trace file" },
	{ "store_spans_lost", get_store, NULL, STORE_SPANS_LOST, "Spans that could not be written" },
	{ "clock", NULL, text_copy, TEXT_CLOCK, "The clock of the times of queries, waits and spans" },
	{ "settings_environment_error", NULL, text_copy, TEXT_ENVIRONMENT_ERROR,
	  "Settings in the environment that were refused, and why" },
	{ "settings_error", NULL, text_of_setting, 0, "The newest refused change of a setting" },
	{ "debug_error", NULL, text_of_debug, 0, "Why the debug log (QUERYPROF_DEBUG) is not written" },
};

void metrics_each(int (*each)(void *context, const qp_metric *metric), void *context)
{
	uint64_t ledger[LEDGER_COUNTERS];

	ledger_read_all(ledger);
	for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
		uint64_t value = metrics[i].get == get_ledger ? ledger[metrics[i].which]
		                 : metrics[i].get             ? metrics[i].get(metrics[i].which)
		                                              : 0;
		char *text = metrics[i].text ? metrics[i].text(metrics[i].which) : NULL;
		qp_metric metric = {
			.name = metrics[i].name,
			.value = (int64_t)value,
			.text = metrics[i].text ? text ? text : "" : NULL,
			.description = metrics[i].description,
		};
		int stop = each(context, &metric);

		free(text);
		if (stop)
			return;
	}
}
