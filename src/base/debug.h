/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log for people who work on queryprof, or who miss a name or a sample. Off unless the
 * environment says
 *
 *	QUERYPROF_DEBUG=hooks,symbols,store,timers     (or some of them, or "all")
 *	QUERYPROF_DEBUG_FILE=FILE                      ($TMPDIR/queryprof-debug.PID.log)
 *
 * Each line is appended with one write(), so processes and threads can share the file,
 * and the file is open for that moment only: a host may close descriptors that it does
 * not know. Costs one load and one branch when off. Not for the signal handler.
 */
#pragma once

#include "base/of_recorder.h"

enum debug_topic {
	DEBUG_HOOKS,   /* which slots were patched, which were not, and why */
	DEBUG_SYMBOLS, /* why a name or a line is missing */
	DEBUG_STORE,   /* what state the store is in */
	DEBUG_TIMERS,  /* timers made and refused */
	DEBUG_TOPICS,
};

/* One bit each; set while the library is loaded. */
ADDRESS_OF_RECORDER(unsigned, debug_topics);
#ifdef QUERYPROF_REST
#define debug_topics (*debug_topics_address())
#else
extern unsigned debug_topics;
#endif

#define debug_log(topic, ...)                                                                                \
	do {                                                                                                 \
		if (__builtin_expect(debug_topics & 1u << (topic), 0))                                       \
			debug_write((topic), __VA_ARGS__);                                                   \
	} while (0)

void debug_write(enum debug_topic topic, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The error in the two variables, or why the file cannot be written; NULL:
 * nothing. For system.metrics; free() it. */
char *debug_error(void);
