/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading debug information overflows a stack that is limited to a few hundred KiB (`ulimit -s`).
 */
#ifndef QUERYPROF_CMD_UI_STACK_LIMIT_H
#define QUERYPROF_CMD_UI_STACK_LIMIT_H

/* Runs the function with a stack that is large enough: on a thread if the first one's is not. Threads that
 * are made later have such a stack, too; the programs that are started have the limit. */
int stack_limit_run(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
