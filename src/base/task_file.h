/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's files about this process and its threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the thread's file of this name (stat, status, comm; see proc(5)) into `text`, at most
 * `size` - 1 bytes of it, and ends it with a NUL. Without malloc(). False, and `text` is empty:
 * there is no such thread, or no /proc. */
bool task_file_read(uint32_t thread_id, const char *name, char *text, size_t size);

/* The same for the calling thread's file, even if its number in /proc differs, in a namespace. */
bool task_file_read_own(const char *name, char *text, size_t size);

/* The same of the process's file. */
bool task_file_read_process(const char *name, char *text, size_t size);

/* The same of another process's file, by the number that it has for this one. */
bool task_file_read_other(uint32_t process_id, const char *name, char *text, size_t size);

/* The state of the thread or process, in the text of its file stat; 0: the text has none. */
char task_file_state(const char *stat);
