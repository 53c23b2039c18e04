/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher thread, as the store starts and ends it.
 */
#pragma once

void flusher_main(void);

/* Without a thread: removes the records from the ring, and counts them as lost. */
void flusher_discard(void);

/* In a forked child: frees what the parent's thread has left. */
void flusher_reset_in_child(void);

/* Frees the memory of a flusher that has finished. */
void flusher_free(void);
