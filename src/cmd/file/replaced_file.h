/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file that `record --new` replaces: it has another name until the recorded program has started,
 * and gets its own again where that fails.
 */
#pragma once

/* Renames the file and what SQLite has beside it. Signals wait from then on (program_hold_signals()), so that
 * none ends this process in between. `given`: the path for messages. A command_result. */
int replaced_file_set_aside(const char *path, const char *given);

/* One of the two: the first removes what was made in its place. Neither does anything where no file was set
 * aside. */
void replaced_file_put_back(void);
void replaced_file_remove(void);

/* Removes a trace file and what SQLite has beside it. */
void trace_file_remove(const char *path);
