/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program in such a way that the command's parent cannot distinguish the two processes: the
 * program gets the command's signals, and the command ends as it ends.
 */
#pragma once

#include <stdbool.h>

/* A file that grows too large would end the command by SIGXFSZ. If it is ignored, the write fails and the
 * command reports it. The program gets the original action. Before program_start(). */
void program_ignore_file_size(void);

/* Blocks all signals, until they are for the program, or end this process. program_start() begins with it.
 * Call it earlier if a signal must not interrupt a change. */
void program_hold_signals(void);

/* Starts argv (found as the shell finds it), with the command's environment and descriptors. 0, or the errno
 * value of the failure. Afterwards all signals are blocked. If the program was started, the command's own
 * standard input and output lead nowhere, and the descriptors that it inherited are closed. */
int program_start(char **argv);

/* Waits until it ends. Returns the status of waitpid(). */
int program_wait(void);

/* Whether SIGTERM or SIGHUP came meanwhile. Then nobody may be there to end the command. */
bool program_is_dismissed(void);

/* Its process id, and the name that the process had at its end ("": not known). */
int program_process(void);
const char *program_last_name(void);

/* Ends this process like the program: with the same exit status or signal. */
_Noreturn void program_end_alike(int status);
