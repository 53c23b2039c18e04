/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and stops the parts in the order in which samples pass through them.
 */
#pragma once

#include <stdbool.h>

/* Between qp_init() and qp_shutdown(). Any thread. */
bool process_running(void);

/* Writes to the ring the sums of pages and WALs that are kept for up to a second. Any thread. */
void process_flush_sums(void);

/* The command that reads the ring is gone: as qp_shutdown(), and the next start has another ring. */
void process_end_recording(void);

struct ring;

/* The ring that samples go to, from the first start on; NULL before. */
const struct ring *process_ring(void);
