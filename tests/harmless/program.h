/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared parts of the hosts. Each host has named scenarios, which print what they see. The same program
 * runs alone, with the library loaded, and recorded, and must print the same.
 *
 * usage: PROGRAM SCENARIO [LIBRARY], which is then loaded as an extension
 */
#ifndef TESTS_HARMLESS_PROGRAM_H
#define TESTS_HARMLESS_PROGRAM_H

#include <sqlite3.h>

struct scenario {
	const char *name;
	void (*run)(void);
};
extern const struct scenario scenarios[]; /* ends with a NULL name */

/* Ends the program with a message if the condition does not hold. */
#define CHECK(condition) check((condition), __FILE__, __LINE__, #condition)
void check(int holds, const char *file, int line, const char *text);

/* Opens a connection in memory, and loads the library if the program has one. */
sqlite3 *open_db(void);
void load_library(sqlite3 *db);
const char *library_path(void); /* NULL: no library */

/* Runs SQL, which must succeed. Returns the first number of the first row, or 0. */
long long ask(sqlite3 *db, const char *sql);

/* Runs queries until the thread has used this much CPU time. */
void use_cpu(sqlite3 *db, int ms);

/* As use_cpu(), for samples. If the host runs alone, it runs only one query. */
void burn(sqlite3 *db, int ms);

/* Runs queries until the trace file has this many samples. Returns immediately if there is no trace file. */
void burn_until_stored(sqlite3 *db, int samples);

/* Adds an SQL function without arguments that returns the result of `call`. */
void add_function(sqlite3 *db, const char *name, int (*call)(void));

/* Returns one value of system.metrics, or 0 if the library is not loaded. */
long long metric(sqlite3 *db, const char *name);

/* Prints all metrics to the standard error for the test, if the library is loaded. */
void tell_metrics(sqlite3 *db);

#endif
