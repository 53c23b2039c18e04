/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The script that an interpreter runs. Its executable, "python3", does not tell one program from another.
 */
#pragma once

#include <stddef.h>

/* The script among the arguments of an interpreter, as given: the first argument that is neither
 * an option nor an option's value, and names a file. "": the executable is not an interpreter of
 * the table, or runs code of the command line or a module, or the file cannot be found from the
 * current folder. `arguments`: as in /proc/PID/cmdline, the program's name first; an empty one
 * ends them. */
void script_find(const char *executable, const char *arguments, char *script, size_t size);

/* The same of this process. */
void script_here(const char *executable, char *script, size_t size);
