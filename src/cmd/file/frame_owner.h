/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of a frame of a stack.
 */
#pragma once

#include <stdbool.h>

/* Whether the reader can change the code: false for SQLite, its drivers, interpreters, the libraries of
 * languages and of the system, and queryprof. module: the file's name without folders, "" if unknown; file:
 * the source, "" if unknown. */
bool frame_is_of_program(const char *function, const char *module, const char *file);

/* Whether the module is an interpreter whose programs have call stacks (interpreter/call_stack.h). */
bool module_is_interpreter(const char *module);
