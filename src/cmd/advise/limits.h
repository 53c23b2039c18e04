/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits for a stranger's statements. Memory is limited for all commands (cmd/ui/limits.h).
 */
#pragma once

#include <stdint.h>

#define LIMIT_LEAST_NS INT64_C(1000000000)

/* Limits files that this process writes, including temporary ones, to several times the size of the
 * database. Ends the process some time after `ns`, because no limit of SQLite's interrupts a single
 * function call. */
void limits_set(const char *command, int64_t bytes, int64_t ns);
