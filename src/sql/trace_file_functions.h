/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL functions on a trace file: an address is one of the file, whatever this
 * process has mapped there. The file's own names and lines come first; what it lacks is
 * looked up in the programs and libraries that it names.
 *
 * For the extension's second entry point, and for the queryprof command. Free of SQLite's
 * macros for extensions, so that a program with an SQLite of its own can include it.
 */
#pragma once

struct address_space;
struct sqlite3;
struct sqlite3_api_routines;

/* Gives `db`, whose main database is a trace file, the functions of functions.h, until
 * the connection is closed; no sampling, no hooks, no schema. Each such connection reads its
 * own file. `*space`, unless `space` is NULL, becomes the address space of the file, for as long.
 * An SQLite result; `*error` is sqlite3_malloc'ed by the library of `api`. */
int trace_file_functions_attach(struct sqlite3 *db, char **error, const struct sqlite3_api_routines *api,
                                const struct address_space **space);
