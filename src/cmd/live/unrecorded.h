/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process that is not recorded does at this moment, as tables (sql/live/unrecorded_tables.sql).
 * ptrace() shows its threads (cmd/attach/inspection.h), /proc its files and locks.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/attach/target.h"

struct unrecorded {
	pid_t process;
	char program[16];
	sqlite3 *db;     /* with the tables */
	uint64_t now_ns; /* since 1970 */
	/* Threads: all; those with statements or in a function of SQLite; those that could not be stopped,
	 * the first one with the name of its wait, "": not known. */
	uint32_t threads, inside, unseen;
	pid_t unseen_thread;
	const char *unseen_wait;
	uint64_t stopped_ns; /* the longest stop of a thread */
	bool has_sqlite;     /* by its names */
	char nameless[256];  /* an object that contains a SQLite without names; "": none */
	/* Why the threads were not looked at; "": they were. */
	char sentence[SENTENCE_SIZE];
	bool is_refused; /* neither are its files known */
};

/* An SQLite result. Free it in both cases. */
int unrecorded_take(struct unrecorded *unrecorded, pid_t process);
void unrecorded_free(struct unrecorded *unrecorded);
