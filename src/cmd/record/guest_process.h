/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process at the other end of a connection, and when it has ended. A pidfd (Linux 5.3) becomes readable
 * then. An older kernel has the process's folder in /proc, which can be asked.
 */
#pragma once

#include <stdbool.h>

/* A pidfd, or a folder that `is_asked`. -1: refused, or the process does not wait any more, and its number
 * may be another process's. */
int guest_process_open(int connection, bool *is_asked);

/* Of a folder. */
bool guest_process_has_ended(int folder);
