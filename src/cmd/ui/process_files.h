/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc says of other processes. `thread` 0: of the process.
 */
#ifndef QUERYPROF_CMD_UI_PROCESS_FILES_H
#define QUERYPROF_CMD_UI_PROCESS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* /proc/PID/NAME, or /proc/PID/task/TID/NAME; NULL: there is none, or it may not be read. */
FILE *process_file(pid_t process, pid_t thread, const char *name);

/* The number in the line NAME of `status`, read with this base; -1: there is no such line. */
long long process_status_number(pid_t process, pid_t thread, const char *name, int base);

/* The letter of the state, and when the process began, in ticks; 0: it has ended. */
char process_state(pid_t process, pid_t thread);
uint64_t process_start_ticks(pid_t process);

/* Whether the process that began then has not ended. */
bool process_runs(pid_t process, uint64_t start_ticks);

/* The name that it has now, without its line break; what drives a terminal may be in it. "": not known. */
void process_name(pid_t process, char *name, size_t size);

#endif
