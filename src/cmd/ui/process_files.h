/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of other processes in /proc. thread 0: the files of the process.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* /proc/PID/NAME, or /proc/PID/task/TID/NAME; NULL: it does not exist, or access is denied. */
FILE *process_file(pid_t process, pid_t thread, const char *name);

/* The folder /proc, whose numbers are processes, or /proc/PID/NAME of threads ("task") or descriptors ("fd").
 * NULL like opendir(); process_next() treats it as an empty folder. */
DIR *process_folder(pid_t process, const char *name);

/* The next number, in any order; -1: none is left, and the folder was closed. To stop earlier, call
 * closedir(). */
int process_next(DIR *folder);

/* The number in the line NAME of such a file, in this base; -1: no such line. */
long long process_number(pid_t process, pid_t thread, const char *file, const char *name, int base);

/* The letter of the state, and the start of the process in ticks; 0: it has ended. */
char process_state(pid_t process, pid_t thread);
uint64_t process_start_ticks(pid_t process);

/* Whether the process with that start is still running. */
bool process_runs(pid_t process, uint64_t start_ticks);

/* Its current name, without the line break; it may contain characters that control a terminal. "": not
 * known. */
void process_name(pid_t process, pid_t thread, char *name, size_t size);

/* The number of the system call in which the thread waits; -1: none, or not known. */
int process_call(pid_t process, pid_t thread);
