/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file that `record --new` replaces. It has another name until the recorded program has started,
 * and gets its own name back if that fails.
 */
#pragma once

/* Renames the file and SQLite's files next to it. From then on, signals wait (program_hold_signals()), so
 * that none ends this process in between. given: the path for messages. A command_result. */
int replaced_file_set_aside(const char *path, const char *given);

/* One of the two follows. The first one removes the new file. Neither does anything if no file was set
 * aside. */
void replaced_file_put_back(void);
void replaced_file_remove(void);

/* Removes a trace file and SQLite's files next to it. */
void trace_file_remove(const char *path);
