/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of other processes in /proc. `thread` 0: those of the process.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* /proc/PID/NAME, or /proc/PID/task/TID/NAME; NULL: there is none, or it may not be read. */
FILE *process_file(pid_t process, pid_t thread, const char *name);

/* The folder /proc, whose numbers are processes, or /proc/PID/NAME of threads ("task") or descriptors ("fd").
 * NULL as opendir(), which the next one takes for an empty folder. */
DIR *process_folder(pid_t process, const char *name);

/* The next number, in no order; -1: there is none left, and the folder was closed. closedir() leaves earlier.
 */
int process_next(DIR *folder);

/* The number in the line NAME of such a file, read with this base; -1: there is no such line. */
long long process_number(pid_t process, pid_t thread, const char *file, const char *name, int base);

/* The letter of the state, and when the process began, in ticks; 0: it has ended. */
char process_state(pid_t process, pid_t thread);
uint64_t process_start_ticks(pid_t process);

/* Whether the process that began then has not ended. */
bool process_runs(pid_t process, uint64_t start_ticks);

/* Its name now, without the line break; it may contain characters that control a terminal. "": not known. */
void process_name(pid_t process, pid_t thread, char *name, size_t size);

/* The number of the system call in which the thread waits; -1: none, or it is not known. */
int process_call(pid_t process, pid_t thread);
