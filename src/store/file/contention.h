/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another process has a lock on the trace file. The store's threads wait for it in short naps; the host's
 * threads never do.
 */
#pragma once

#include <stdbool.h>

#define CONTENTION_NAPS_MAX 1000

/* Another process has locked the file for too long to wait. That is not an error of the file: try again
 * later. Negative, unlike a QP_ code. */
#define DATABASE_LOCKED (-1)

struct contention_limit {
	/* Called every few ms while another process has the file locked: true ends the wait. NULL: the wait
	 * has its usual limit. */
	bool (*give_up)(void *context);
	void *context;
};

/* Sleeps shortly. False: there were already `most` naps, or the caller gives up. */
bool contention_nap(const struct contention_limit *limit, int naps, int most);

/* Sleeps longer than a nap, so that another process that naps gets its turn. */
void contention_yield(void);
