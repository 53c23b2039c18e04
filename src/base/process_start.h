/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* When this process began, ns since 1970, as the file's table of processes has it. */
int64_t process_start_ns(void);

/* The same of another process, by the number that it has for this one. False: /proc has none. */
bool process_start_of(uint32_t process_id, int64_t *start_ns);
