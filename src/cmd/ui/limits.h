/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel lets this process have.
 */
#pragma once

/* This process gets half of the machine's memory at most: with more, a trace file of a stranger would make
 * the machine swap; so it ends the command as out of memory. */
void memory_limit_set(void);

/* As it was before, for another program that this process starts or becomes. */
void memory_limit_lift(void);

/* Reading debug information overflows a stack that is limited to a few hundred KiB (`ulimit -s`). Runs the
 * function with a stack that is large enough: on a thread if the first one's is not. Threads that are made
 * later have such a stack, too; the programs that are started have the limit. */
int stack_limit_run(int (*run)(int argc, char **argv), int argc, char **argv);

/* Lets this process open as many files as the system allows it; the usual limit is 1,024. */
void file_limit_raise(void);
