/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host for tests/bench/whole_program: four threads write to one database in WAL mode. Each transaction
 * makes twenty changes and reads one row, like a worker of a server.
 *
 *  writers FILE TRANSACTIONS    of each thread
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/must.h"

#define THREADS 4
#define CHANGES 20
#define ACCOUNTS 1000

static const char *file;
static int transactions;

static sqlite3 *open_database(void)
{
	sqlite3 *db;

	must(NULL, sqlite3_open(file, &db), "writers");
	must(db, sqlite3_busy_timeout(db, 600000), "writers");
	must(db, sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF", NULL, NULL, NULL),
	     "writers");
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;

	must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), "writers");
	return stmt;
}

static void run(sqlite3_stmt *stmt, int first, int second)
{
	int rc;

	sqlite3_bind_int(stmt, 1, first);
	sqlite3_bind_int(stmt, 2, second);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		sqlite3_column_int64(stmt, 0);
	must(sqlite3_db_handle(stmt), rc, "writers");
	must(sqlite3_db_handle(stmt), sqlite3_reset(stmt), "writers");
}

static void *work(void *number)
{
	unsigned random = (unsigned)(size_t)number + 1;
	sqlite3 *db = open_database();
	sqlite3_stmt *begin = prepare(db, "BEGIN IMMEDIATE"), *commit = prepare(db, "COMMIT");
	sqlite3_stmt *change = prepare(db, "UPDATE account SET balance = balance + ?2 WHERE id = ?1");
	sqlite3_stmt *tell = prepare(db, "INSERT INTO movement(account, amount) VALUES (?1, ?2)");
	sqlite3_stmt *look =
		prepare(db, "SELECT id, amount FROM movement WHERE account = ?1 ORDER BY id DESC LIMIT 10");

	for (int i = 0; i < transactions; i++) {
		int account = rand_r(&random) % ACCOUNTS;

		run(begin, 0, 0);
		for (int k = 0; k < CHANGES / 2; k++) {
			account = rand_r(&random) % ACCOUNTS;
			run(change, account, k);
			run(tell, account, k);
		}
		run(commit, 0, 0);
		run(look, account, 0);
	}
	sqlite3_finalize(begin);
	sqlite3_finalize(commit);
	sqlite3_finalize(change);
	sqlite3_finalize(tell);
	sqlite3_finalize(look);
	sqlite3_close(db);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	sqlite3 *db;

	if (argc != 3)
		return 2;
	file = argv[1];
	transactions = atoi(argv[2]);
	db = open_database();
	must(db,
	     sqlite3_exec(db,
	                  "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER);"
	                  "CREATE TABLE movement(id INTEGER PRIMARY KEY, account INTEGER, amount INTEGER);"
	                  "CREATE INDEX movement_account ON movement(account);"
	                  "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 999)"
	                  " INSERT INTO account SELECT i, 0 FROM c",
	                  NULL, NULL, NULL),
	     "writers");
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	sqlite3_close(db);
	return 0;
}
