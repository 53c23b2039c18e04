/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a recording in a process that continues.
 */
#pragma once

#include <stdbool.h>

/* Before qp_record(), where a recording has ended: what is known of connections and statements may be old. */
void record_begin_again(void);

/* Takes back what qp_record() and the queries since then have changed: no function is replaced any more, no
 * timer exists, and no fork hands a ring over. qp_record() begins again, with another ring. Calls nothing of
 * SQLite. False: another thread is taking on a library, so nothing was changed, or not all. */
bool record_end(void);
