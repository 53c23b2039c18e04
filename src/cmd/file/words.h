/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for users, as SQL functions, which return NULL for NULL:
 *   fileName(PATH)  the part after the last slash
 *   duration(NS)    "1.5 s", "20 ms"
 *   oneLine(TEXT)   the text with blanks for line breaks and tabs, without blanks at its ends
 *   withoutFolders(TEXT)  the text with fileName() of each word that begins with a slash
 *   virtualWords(DETAIL)  the plan node's query of a virtual table (virtual_index.h); NULL: not known
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>

/* Gives a connection these functions. An SQLite result. */
int words_add(sqlite3 *db);

/* duration(NS), cut to `room` bytes, including the 0 at the end. */
void words_duration(double ns, char *text, size_t room);

/* The path relative to the current folder, if it is below that. */
const char *words_path_here(const char *path);
