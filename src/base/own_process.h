/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the calling process owns the memory that it sees. A child of vfork() sees its parent's memory, and
 * a child that was made without fork()'s hooks still has the state of its parent.
 */
#pragma once

#include <stdbool.h>

/* Async-signal-safe. */
bool own_process_is_here(void);

/* From now on the calling process owns it. Called at the start and in a forked child. */
void own_process_renew(void);
