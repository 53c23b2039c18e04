/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of a thread's seccomp filters. An existing filter cannot be read. One that `queryprof
 * record` itself has, as in a container, allows its calls; one that came later, and was not evaluated
 * (hook/confine.h), may kill the process at any call.
 *
 * They are counted by calls that a program makes to load a library: to open, read and close a file.
 */
#pragma once

#include <stdbool.h>

/* The number of the command's own filters, in the environment of the programs that it starts. */
#define FILTERS_VARIABLE "QUERYPROF_RECORD_FILTERS"

#define FILTERS_UNSEEN                                                                                       \
	"it has a seccomp filter that queryprof did not see, so it is not recorded: put record after the "   \
	"program that "                                                                                      \
	"installs the filter, or run a query before"

/* Of the calling thread; 0 also if they cannot be counted. */
int filters_here(void);

/* Under `record`: whether there are others than the command's and the `seen` ones that were evaluated. */
bool filters_are_unseen(int seen);
