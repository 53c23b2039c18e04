/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's sqlite3 shell on a trace file.
 */
#ifndef QUERYPROF_CMD_READ_SHELL_H
#define QUERYPROF_CMD_READ_SHELL_H

#include "cmd/ui/output.h"

/* Becomes the shell. Returns only when that fails: COMMAND_FAILED after a complaint. */
int shell_become(const char *path, enum output_format format);

#endif
