/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a recording is empty or incomplete.
 */
#pragma once

#include <stdbool.h>

struct losses;

/* Makes the pipe to which recorded processes write what is to be said (recorder/mark.h), and
 * names it in the environment. A command_result. */
int explain_begin(void);
/* Removes it, if there is one. */
void explain_end(void);

/* Whether a process of the recording still runs; also after explain_end(). */
bool explain_is_any_running(void);

/* Whether some process had a SQLite library that could be recorded. */
bool explain_has_sqlite(void);

/* Adds what processes without a shared ring could not store, which is not counted elsewhere. */
void explain_losses(struct losses *losses);

/* Names each SQLite that was seen and is not followed, and why, after `before`. False: there was none. */
bool explain_refused(const char *before);

/* Says what seccomp filters of recorded processes have left out. */
void explain_confinement(const char *path);

/* There is no query in the trace file: with a SQLite library, and without one in `program` and
 * what it started, which has ended so. True: explain_refused() has explained it. */
bool explain_no_query(const char *path);
bool explain_not_attached(void); /* of a process that ran already */
bool explain_no_sqlite(const char *program, int status);
