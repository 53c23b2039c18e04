/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that cannot have its trace file leaves storing to another one that holds the shared ring,
 * too: under `queryprof record` the command. It then reads the ring, and the flusher does not,
 * as long as the connection to it is open. A ring has one reader.
 */
#ifndef QUERYPROF_STORE_DETACH_H
#define QUERYPROF_STORE_DETACH_H

#include <stdbool.h>

/* The flusher's: sends the request to the other process. False: there is none. */
bool detach_begin(void);

/* Whether there is one. What is in the ring when this process ends is stored by it in any case. */
bool detach_is_possible(void);

/* The flusher's: whether the other process reads the ring. It looks whether that is there. */
bool detach_goes_on(void);

/* Called by the flusher: brings the counters of statements into the ring, as no other process has them. */
void detach_send_statements(void);

/* The same as detach_goes_on() without a look. */
bool detach_is_on(void);

/* In a thread that takes the place of an earlier flusher, whose connection has gone. */
void detach_begin_again(void);

/* In a forked child: its ring is its own again. */
void detach_reset_in_child(void);

#endif
