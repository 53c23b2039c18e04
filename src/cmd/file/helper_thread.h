/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that works on items in the order in which they were added, while the caller makes the next ones,
 * so a pass over a file uses two processors. The caller must not touch the data that the work changes until
 * helper_thread_wait(). If no thread can be started, the caller's thread does the work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct helper_thread;

/* There are `blocks` blocks of `items` items each. `work` receives one block as an array of `count` items. It
 * returns false to end the work: no memory, or errno has the error. NULL: no memory. */
struct helper_thread *helper_thread_start(size_t item_size, size_t items, size_t blocks,
                                          bool (*work)(void *context, const void *first, size_t count),
                                          void *context);

/* The place of the next item, which must be complete when the thread's next function is called. NULL: the
 * work has ended. */
void *helper_thread_add(struct helper_thread *thread);

/* Returns when all items are done. False: work() failed, and errno has its value or 0. */
bool helper_thread_wait(struct helper_thread *thread);

/* Also waits. NULL is ignored. */
void helper_thread_end(struct helper_thread *thread);
