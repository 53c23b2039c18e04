/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program in such a way that the command's parent cannot distinguish the two processes: the
 * program gets the command's signals, and the command ends as it ends.
 */
#pragma once

/* The signal of a file that grows too large would end the command; without it, the write fails and the
 * command says so. The program gets the action that was there. Before program_start(). */
void program_ignore_file_size(void);

/* All signals wait from here on: for the program, or for the end of this process. program_start() begins
 * with it; before, where something is half done that no signal may leave so. */
void program_hold_signals(void);

/* Starts argv (found as the shell finds it), with the command's environment and descriptors. 0, or the
 * errno value of why it could not be started. All signals are blocked afterwards; where it was started, the
 * command's own standard input and output lead nowhere, and the descriptors that it has inherited are
 * closed. */
int program_start(char **argv);

/* Waits until it ends. Its end, as waitpid() gives it. */
int program_wait(void);

/* The number of its process, and the name that the process had when it ended ("": not known). */
int program_process(void);
const char *program_last_name(void);

/* Ends this process as the program has ended: the same exit status or signal. */
_Noreturn void program_end_alike(int status);
