/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools of the server. Each one is a command of queryprof, with its arguments as JSON. A child
 * process runs it, so a damaged file or a long statement ends that process and not the server.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

/* The default limits of an answer: characters, and seconds. */
#define TOOL_CHARACTERS 1999
#define TOOL_SECONDS 20

struct tool;

const struct tool *tools_find(const char *name); /* NULL: none */

/* Writes all tools as a JSON array. */
void tools_write_list(FILE *to);

/* Answers a call: each row of `arguments` is (name, JSON type, value). True: `to` has an error. */
bool tools_call(const struct tool *tool, sqlite3_stmt *arguments, FILE *to);
