/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a recording is empty or incomplete.
 */
#pragma once

#include <stdbool.h>

struct losses;

/* Whether a process of the recording still runs; also after messages_end(). */
bool explain_is_any_running(void);

/* Whether some process had a SQLite library that could be recorded. */
bool explain_has_sqlite(void);

/* Adds what processes without a shared ring could not store, because nothing else counts it. */
void explain_losses(struct losses *losses);

/* Prints each SQLite that was seen and is not followed, with the reason, after `before`. False: there is
 * none. */
bool explain_refused(const char *before);

/* Prints what seccomp filters of recorded processes have disabled. */
void explain_confinement(const char *path);

/* Explains why the trace file has no query: with a SQLite library, or without one in `program`, which
 * ended with `status`, and in the programs that it started. True: explain_refused() has explained it. */
bool explain_no_query(const char *path);
bool explain_not_attached(void); /* for a process that was already running */
bool explain_no_sqlite(const char *program, int status);
