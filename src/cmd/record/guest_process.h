/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process at the other end of a connection, and whether it has ended. A pidfd (Linux 5.3) becomes
 * readable then. With an older kernel, its folder in /proc shows it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A pidfd, or a folder that `is_asked`; -1, which `is_asked`, too: the process has ended. `sent_ns` as in
 * its message. */
int guest_process_open(int connection, uint64_t sent_ns, bool *is_asked);

/* Of a folder. */
bool guest_process_has_ended(int folder);
