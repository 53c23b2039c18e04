/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace file, and queries on it that any program can run.
 */
#ifndef TESTS_SPAN_SUPPORT_H
#define TESTS_SPAN_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

extern char trace_path[64];

/* Fixture of a test: queryprof runs with its own trace file. */
int set_up_file(void **state);
int tear_down_file(void **state);

/* Returns one value from the trace file, after everything recorded was stored. The text is in a static
 * buffer. */
int64_t ask(const char *sql);
const char *ask_text(const char *sql);

void set(const char *name, const char *value);
int64_t metric(const char *name);

#endif
