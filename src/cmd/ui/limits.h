/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel gives this process: its limits, and the size of its pages.
 */
#pragma once

/* Limits this process to half of the machine's memory. A stranger's trace file that needs more would make the
 * machine swap; with the limit, the command ends as out of memory. */
void memory_limit_set(void);

/* Restores the limit for another program that this process starts or becomes. */
void memory_limit_lift(void);

/* Lets the heap use large pages, for a command that reads millions of samples: its hash tables miss the
 * processor's table of pages, and each small page costs a fault. */
void large_pages_use(void);

/* For threads that allocate one after the other. A heap of a thread's own grows page by page, with a call of
 * the kernel for each. */
void heap_share(void);

/* Reading debug information overflows a stack that is limited to a few hundred KiB (`ulimit -s`). Runs the
 * function with a stack that is large enough: on a new thread if the first one's is too small. Later threads
 * have such a stack, too; started programs keep the limit. */
int stack_limit_run(int (*run)(int argc, char **argv), int argc, char **argv);

/* Lets this process open as many files as the system allows; the usual limit is 1,024. */
void file_limit_raise(void);
