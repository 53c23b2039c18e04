/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of the command that stops threads of other processes.
 * No signal of a terminal reaches it, and it ends within seconds. So the command may be killed at any moment,
 * and when the child ends, the kernel releases a thread that it was about to stop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory for the results, which the child shares with the command. NULL: there is none. */
void *helper_memory(size_t size);

/* Calls `work` in the child and waits for its end. False: the child did not complete it; errno is 0 if the
 * child began. */
bool helper_run(void (*work)(void *context), void *context);
