/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current activity of recorded processes, for the page: the output of `queryprof dump` without the
 * machine's folders.
 */
#pragma once

/* Prints it as JSON on stdout. `known` is false if no process records to the file now. A command_result. */
int now_print(const char *path);
