/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line that all subcommands share: options, wherever they stand, and arguments.
 */
#pragma once

#include "cmd/line/command.h"

/* The option of that name, `size` bytes without dashes; NULL: there is none. */
const struct command_option *options_find(const struct command *command, const char *name, size_t size);

/* Passes the options' values on and leaves the arguments alone in argv, `count` of them; the trace file that
 * a command reads is there, given or not. *wants_help: after --help nothing more was read. A command_result.
 */
int options_read(const struct command *command, int *count, char **argv, bool *wants_help);
