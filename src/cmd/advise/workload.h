/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statements of a trace file that ran on one database, with the values to replay them with.
 */
#pragma once

#include "cmd/advise/compared.h"
#include "cmd/advise/connection.h"

#define VARIANTS                                                                                             \
	16 /* replayed variants of a statement: its recorded texts, or values drawn for its parameters */

struct recorded {
	int64_t hash, runs;
	double ns; /* over all runs */
	bool is_write;
	bool is_other;         /* BEGIN, PRAGMA, CREATE: no index helps, and they are not replayed */
	char *written;         /* the program's text, without values */
	char *texts[VARIANTS]; /* with literals and recorded values; without values only the first text */
	int variants;          /* 0: it is not replayed */
	bool is_drawn;         /* its values were drawn */
	char *reason;          /* why it is not replayed */
	touches touched;
	struct compared compared;
	sqlite3_value **values; /* variants × parameters, if they were drawn */
};

struct workload {
	VECTOR(struct recorded) statements; /* the most expensive first */
	char *database;                     /* as recorded */
	double ns;
	int64_t seconds; /* from the first run to the last */
	bool has_foreign_keys;
};

/* A command_result. */
int workload_read(struct workload *workload, const char *trace, const char *database);

/* Decides how each statement is replayed, in about this much time. The connection is to a copy of the
 * database. */
void workload_prepare(struct workload *workload, struct connection *connection, int64_t ns);

/* That variant, ready to run. NULL: connection->error has the reason. */
sqlite3_stmt *workload_statement(const struct recorded *recorded, struct connection *connection, int variant);

/* Whether the statement reads or writes the table, and whether it writes it. NULL: it does not. */
bool workload_touches(const struct recorded *recorded, const char *table);
bool workload_writes(const struct recorded *recorded, const char *table);

/* How many measured runs of that time represent all recorded runs. A recorded write may have been one of
 * many in a transaction that had already changed its pages. When it is replayed, it has a transaction of
 * its own and takes longer, so it counts by its recorded time. */
double workload_scale(const struct recorded *recorded, double run_ns);

void workload_free(struct workload *workload);
