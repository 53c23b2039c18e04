/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another process has a lock on the trace file. The threads of the store wait for it in short naps; none of
 * the host's does.
 */
#pragma once

#include <stdbool.h>

#define CONTENTION_NAPS_MAX 1000

/* Another process has the file locked for longer than is worth waiting: not an error
 * of the file's, to be tried again. Negative, unlike a QP_ code. */
#define DATABASE_LOCKED (-1)

struct contention_limit {
	/* Called every few ms while another process has the file: true ends the wait. NULL: the wait has
	 * its usual limit. */
	bool (*give_up)(void *context);
	void *context;
};

/* Naps, unless there were `most` naps before, or the caller gives up: false. */
bool contention_nap(const struct contention_limit *limit, int naps, int most);

/* For a moment longer than a nap: another process that naps gets its turn. */
void contention_yield(void);
