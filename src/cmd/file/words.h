/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for people. In SQL; each function is NULL of NULL:
 *   fileName(PATH)  what follows the last slash
 *   duration(NS)    "1.5 s", "20 ms"
 *   oneLine(TEXT)   the text with blanks for line breaks and tabs, without blanks at its ends
 *   withoutFolders(TEXT)  the text with fileName() of each word that begins with a slash
 *   virtualWords(DETAIL)  what the plan node asks a virtual table for (virtual_index.h); NULL: not known
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>

/* Gives a connection these functions. An SQLite result. */
int words_add(sqlite3 *db);

/* duration(NS), cut to `room` bytes with the zero. */
void words_duration(double ns, char *text, size_t room);

/* The path as from the present folder, if it is below that. */
const char *words_path_here(const char *path);
