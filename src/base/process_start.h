/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* When this process began, ns since 1970, as the file's table of processes has it. */
int64_t process_start_ns(void);

/* Whether /proc has a process of this number that began then: false if the number belongs to another one, or
 * to another pid namespace. */
bool process_began_at(uint32_t process_id, int64_t start_ns);
