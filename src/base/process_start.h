/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* When this process began, ns since 1970, as the file's table of processes has it. */
int64_t process_start_ns(void);
