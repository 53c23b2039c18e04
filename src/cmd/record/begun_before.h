/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statements that a process is executing when `attach` begins. The recorder sees them only from their
 * next call on, so the command prints them.
 */
#pragma once

#include <sys/types.h>

struct inspection;

/* Each thread is stopped for a moment (cmd/attach/inspection.h). NULL: nothing can be seen. */
struct inspection *begun_before_inspect(pid_t process);

/* Prints a line for each of the outermost statements, a few at most, and frees the inspection. */
void begun_before_say(struct inspection *inspection);
