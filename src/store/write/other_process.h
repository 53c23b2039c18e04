/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc says about a process that held a lock, recorded or not.
 */
#pragma once

#include <stdint.h>

struct writer_identity;

/* The kernel's limit, and useradd's. */
struct other_process {
	char program[16], user[33];
};

/* The process that has this number for `recorded`, which waited for it at `asked_ns` (since 1970). Both are
 * "" if that process, or `recorded`, has ended, or if `recorded` is in another pid namespace, where numbers
 * mean other processes. The user is a number if the first 64 KiB of /etc/passwd have no name for it. */
struct other_process other_process_describe(const struct writer_identity *recorded, uint32_t process_id,
                                            int64_t asked_ns);
