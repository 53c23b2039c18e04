/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common syntax of all subcommands: options, in any place, and arguments.
 */
#pragma once

#include "cmd/line/command.h"

/* The option with that name, `size` bytes without dashes; NULL: none. */
const struct command_option *options_find(const struct command *command, const char *name, size_t size);

/* Passes on the options' values and leaves only the arguments in argv, `count` of them, with the default
 * trace file if the command reads one. *wants_help: after --help, the rest was not read. A command_result. */
int options_read(const struct command *command, int *count, char **argv, bool *wants_help);
