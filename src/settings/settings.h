/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of settings behind every way to set one: PRAGMA (bare and `system.`),
 * UPDATE system.settings, set_setting(), qp_set() and the environment.
 */
#ifndef QUERYPROF_SETTINGS_SETTINGS_H
#define QUERYPROF_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/thread.h"

#define QUERY_ID_MAX 128 /* bytes of a user's own query_id, without the zero */

#define SESSION_LABELS_MAX 1000 /* bytes of a session's labels as JSON */

/* The settings of one session. Read by the threads that run its queries without a
 * lock, hence small scalars; query_id is taken and cleared under the connection's
 * own serialisation. */
struct session_settings {
	uint64_t period_ns[TIMER_CLOCKS]; /* query_profiler_{cpu,real}_time_period_ns */
	uint64_t off_cpu_period_ns;
	bool allow_introspection_functions;
	bool log_queries;
	uint64_t log_queries_min_query_duration_ns;
	bool log_query_parameters;
	uint64_t stack_trace_timeout_ms;
	bool show_queries_of_other_sessions;
	char query_id[QUERY_ID_MAX + 1];     /* for the next statement; "" none */
	char labels[SESSION_LABELS_MAX + 1]; /* a set as label/pairs.h has it; "" none */
};

/* Reads the environment (secure_getenv) into the defaults, once. A bad value
 * leaves the default and is reported in system.metrics (settings_environment_error). */
void settings_init(void);
const char *settings_environment_error(void); /* NULL: none */

/* The settings of a new session. */
void settings_defaults(struct session_settings *settings);

enum setting_source { SETTING_FROM_SQL, SETTING_FROM_C };

/* Sets one setting of a session; `of` NULL: process-wide ones, and the defaults of new
 * sessions. `value` is text as the user gave it; "DEFAULT" (any case) restores what
 * new sessions start with or, where no session has part in it, what the
 * environment or else the table says. A QP_ code; with one, `*error` (free() it)
 * names the setting, the value and what is allowed, and nothing has changed. */
int settings_set(struct session_settings *of, const char *name, const char *value, enum setting_source source,
                 char **error);

/* The error of the newest change that was refused, malloc'ed; NULL: none was. Where SQL can
 * return no error, a person finds it in system.metrics. */
char *settings_newest_error(void);

/* The value as text, malloc'ed; NULL: no such setting. */
char *settings_get(const struct session_settings *of, const char *name);

/* The value that DEFAULT would set, as text, malloc'ed. */
char *settings_get_default(const struct session_settings *of, const char *name);

/* Whether `name` (any case, `size` bytes) is a setting. */
bool settings_known(const char *name, int size);

void settings_lock(void);

/* For process.c: what the process-wide settings say now. The path in `config` is malloc'ed; NULL:
 * there is no memory. */
struct store_config;
void settings_store_config(struct store_config *config);
size_t settings_ring_bytes(void);

/* From now on (true) process-wide settings are passed on to the running store by
 * store_configure(). */
void settings_started(bool started);

/* trace_log_ring_bytes is fixed for good. */
void settings_ring_is_made(void);

/* One line of system.settings. */
struct setting_info {
	const char *name;
	const char *unit;
	const char *description;
	bool is_text;
	bool is_process_wide;
	const char *zero; /* what 0 stands for where it is allowed besides min..max, else NULL */
	int64_t min, max, default_value; /* of a text: max is its largest size in bytes */
	const char *default_text;        /* NULL: "" */
};
int settings_count(void);
const struct setting_info *settings_info(int index);

#endif
