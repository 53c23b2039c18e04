/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stranger's statements may use: memory is limited for all commands (cmd/ui/limits.h).
 */
#pragma once

#include <stdint.h>

#define LIMIT_LEAST_NS INT64_C(1000000000)

/* Files that this process writes, temporary ones too, get no larger than several times the database. Some
 * time after `ns`, the process ends: no limit of SQLite's interrupts a single function call. */
void limits_set(const char *command, int64_t bytes, int64_t ns);
