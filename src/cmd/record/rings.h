/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of the processes of a recording, held here until each process is gone, and stored
 * then; those of processes that cannot open the file all the time. See entry/handover.h.
 */
#ifndef QUERYPROF_CMD_RECORD_RINGS_H
#define QUERYPROF_CMD_RECORD_RINGS_H

#include <stdint.h>

#include "store/recovery.h"

/* From here on processes that have the environment hand their rings over. If no socket can
 * be had, what a killed process did not store is lost. */
void rings_open(void);

/* Begins to store what processes leave, on a thread of its own. With all signals blocked. */
void rings_watch(const char *path, int64_t max_bytes);

/* Ends it. All processes that were gone at the call have been stored afterwards. */
const struct recovery *rings_finish(void);

#endif
