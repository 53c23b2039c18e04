/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the hosts of these tests: programs with one scenario a name, which
 * print what they see. The same program runs alone, with the library loaded, and
 * recorded: it must print the same.
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
extern const struct scenario scenarios[]; /* ends with a name NULL */

/* Ends the program, with the line, when it does not hold. */
#define CHECK(condition) check((condition), __FILE__, __LINE__, #condition)
void check(int holds, const char *file, int line, const char *text);

/* A connection, in memory, with the library if there is to be one. */
sqlite3 *open_db(void);
void load_library(sqlite3 *db);
const char *library_path(void); /* NULL: none is to be loaded */

/* Runs SQL, which must go well; gives the first number of the first row, or 0. */
long long ask(sqlite3 *db, const char *sql);

/* Runs queries until the thread has used this much CPU time. */
void use_cpu(sqlite3 *db, int ms);

/* The same for samples: one query, when the host is alone. */
void burn(sqlite3 *db, int ms);

/* Runs queries until the trace file has this many samples; returns at once without one. */
void burn_until_stored(sqlite3 *db, int samples);

/* An SQL function without arguments that calls `call` and returns what that returns. */
void add_function(sqlite3 *db, const char *name, int (*call)(void));

/* One value of system.metrics; 0 when the library is not loaded. */
long long metric(sqlite3 *db, const char *name);

/* Tells the test, on the standard error, all metrics. Only when the library is loaded. */
void tell_metrics(sqlite3 *db);

#endif
