/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's sqlite3 shell on a trace file.
 */
#pragma once

#include "cmd/ui/output.h"

/* Becomes the shell. Returns only when that fails: COMMAND_FAILED after a complaint. */
int shell_become(const char *path, enum output_format format);
