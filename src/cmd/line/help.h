/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The help and the man page, from the tables of the commands.
 */
#pragma once

#include "cmd/line/command.h"

void help_print(FILE *to);
void help_print_command(const struct command *command, FILE *to);
void help_print_manual(FILE *to); /* man(7) */
