/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/session_settings.h"

#include <stdlib.h>
#include <string.h>

#include "label/pairs.h"
#include "timers/timers.h"

static struct session_settings of_new, of_environment;

#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)

/* A member of struct session_settings; more members of struct setting follow. */
#define SESSION(variable, member, ...)                                                                       \
	SETTING_LIST(variable, .value = &of_new.member, .base = &of_environment.member,                      \
	             .offset = offsetof(struct session_settings, member), __VA_ARGS__)

SESSION(cpu_period, period_ns[TIMER_CPU], SETTING_RANGE("ns", PERIOD_MIN_NS, PERIOD_MAX_NS, 10000000),
        .name = "query_profiler_cpu_time_period_ns", .zero = "off",
        .description = "CPU time of a query's thread from one sample to the next; 0: no such samples");
SESSION(real_period, period_ns[TIMER_REAL], SETTING_RANGE("ns", PERIOD_MIN_NS, PERIOD_MAX_NS, 0),
        .name = "query_profiler_real_time_period_ns", .zero = "off",
        .description = "Wall time of a query from one sample to the next; 0: no such samples");
SESSION(off_cpu_period, off_cpu_period_ns, SETTING_RANGE("ns", PERIOD_MIN_NS, PERIOD_MAX_NS, 0),
        .name = "query_profiler_off_cpu_period_ns", .zero = "off",
        .description = "Time that a query's thread waits from one sample of its waits to the next; 0: "
                       "no such samples");
/* On by default, unlike in a server: code that could load the extension can run any
 * code in this process already. A host that lets strangers write SQL turns it
 * off and calls qp_lock_settings(). */
SESSION(introspection, allow_introspection_functions, SETTING_ON_OFF(1),
        .name = "allow_introspection_functions",
        .description = "Allows addressToSymbol, addressToLine, traceToText and the columns symbols and "
                       "lines, which reveal something about the program's code");
SESSION(log, log_queries, SETTING_ON_OFF(1), .name = "log_queries",
        .description = "Queries with samples, or that take long enough, have a row in query_log");
SESSION(min_duration, log_queries_min_query_duration_ns, SETTING_RANGE("ns", 0, PERIOD_MAX_NS, 10000000),
        .name = "log_queries_min_query_duration_ns",
        .description = "Queries without samples are logged if they take at least this long; 0: all");
SESSION(parameters, log_query_parameters, SETTING_ON_OFF(0), .name = "log_query_parameters",
        .description = "query_log.expanded_query contains the values bound to the statement");
SESSION(stack_trace_timeout, stack_trace_timeout_ms, SETTING_RANGE("ms", 1, 60000, 100),
        .name = "stack_trace_timeout_ms",
        .description = "Longest time that reading system.stack_trace waits for the threads' responses");
/* On by default, for a person who searches for the slow part of a program. A host whose
 * connections belong to different people turns it off, and their SQL cannot turn it on. */
SESSION(other_sessions, show_queries_of_other_sessions, SETTING_ON_OFF(1),
        .name = "show_queries_of_other_sessions", .is_hosts = true,
        .description = "query_log, statement_stats, trace_log, processes and stack_trace show the queries "
                       "of all connections, not only of this one; only the host program can change this");
SESSION(id, query_id, SETTING_CHARS(SETTING_IS_TEXT, QUERY_ID_MAX, ""), .name = "query_id",
        .is_for_one_statement = true,
        .description = "The query_id of the next statement; empty: queryprof makes one");

/* Its keys in order, as label/pairs.h has them. */
static bool parse_labels(const char *text, struct setting_value *value)
{
	struct label_pairs pairs = { .items = { 0 } };
	char *set = label_pairs_add_json(&pairs, text) ? label_pairs_text(&pairs) : NULL;
	bool fits = set && strlen(set) <= SESSION_LABELS_MAX;

	if (fits)
		memcpy(value->text, set, strlen(set) + 1);
	free(set);
	label_pairs_free(&pairs);
	return fits;
}

SESSION(set_of_labels, labels, SETTING_CHARS(SETTING_IS_TEXT, SESSION_LABELS_MAX, ""),
        .name = "query_profiler_labels", .parse = parse_labels,
        .allowed = "a JSON object of texts and integers, such as {\"tenant\":\"acme\"}, of at most " TEXT_OF(
		SESSION_LABELS_MAX) " bytes",
        .description = "Labels of the connection's queries, as a JSON object; set_label() changes one");

void session_defaults(struct session_settings *settings)
{
	settings_copy(settings, &of_new, sizeof(of_new));
}
