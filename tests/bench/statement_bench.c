/*
 * What the library costs a host per statement and per row: the same loops in one
 * process before it is loaded, loaded with both timers off, and with them on.
 * The rounds take turns, so that a machine that changes its speed changes it for
 * all; the figure is the median of the rounds' ratios.
 *
 *   cmake --build build/release --target bench && build/release/tests/bench/statement_bench
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 21

static uint64_t now(void)
{
	struct timespec t;

	/* CPU time: what others do on the machine is not the library's cost. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(int rc, const char *what)
{
	if (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) {
		fprintf(stderr, "%s: %s\n", what, sqlite3_errstr(rc));
		exit(1);
	}
}

static double tiny_statements(sqlite3 *db)
{
	enum { N = 100000 };
	sqlite3_stmt *stmt;
	uint64_t start;

	must(sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL), "prepare");
	start = now();
	for (int i = 0; i < N; i++) {
		sqlite3_step(stmt);
		sqlite3_reset(stmt);
	}
	start = now() - start;
	sqlite3_finalize(stmt);
	return (double)start / N;
}

static double rows(sqlite3 *db)
{
	enum { N = 300000 };
	sqlite3_stmt *stmt;
	uint64_t start;

	must(sqlite3_prepare_v2(db, "SELECT a, b FROM t LIMIT 300000", -1, &stmt, NULL), "prepare");
	start = now();
	for (int i = 0; sqlite3_step(stmt) == SQLITE_ROW; i++)
		sqlite3_column_int64(stmt, 1);
	start = now() - start;
	sqlite3_finalize(stmt);
	return (double)start / N;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof *values, compare);
	return values[ROUNDS / 2];
}

enum { PLAIN, OFF, ON_10MS, ON_1MS, MODES };
static const char *const names[MODES] = {
	"not loaded", "loaded, timers off", "CPU period 10 ms", "both periods 1 ms",
};
static const char *const settings[MODES] = {
	NULL,
	"PRAGMA query_profiler_cpu_time_period_ns=0; PRAGMA query_profiler_real_time_period_ns=0",
	"PRAGMA query_profiler_cpu_time_period_ns=10000000; PRAGMA query_profiler_real_time_period_ns=0",
	"PRAGMA query_profiler_cpu_time_period_ns=1000000; PRAGMA query_profiler_real_time_period_ns=1000000",
};

/* The hooks are the process's: what it cost before them is measured in a process
 * that has not loaded the library, one round at a time. */
static int serve(int argc, char **argv)
{
	sqlite3 *db;

	(void)argc;
	must(sqlite3_open(":memory:", &db), "open");
	must(sqlite3_exec(db, "CREATE TABLE t(a, b); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
	                  "WHERE x < 300000) INSERT INTO t SELECT x, x * 2 FROM c", NULL, NULL, NULL), "fill");
	if (argv[2]) {
		char *error = NULL;

		must(sqlite3_enable_load_extension(db, 1), "enable");
		if (sqlite3_load_extension(db, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", &error)) {
			fprintf(stderr, "%s\n", error);
			return 1;
		}
	}
	for (int command; (command = getchar()) != EOF;) {
		if (command >= '0' && command < '0' + MODES && settings[command - '0'])
			must(sqlite3_exec(db, settings[command - '0'], NULL, NULL, NULL), "settings");
		else if (command == 't')
			printf("%f\n", tiny_statements(db)), fflush(stdout);
		else if (command == 'r')
			printf("%f\n", rows(db)), fflush(stdout);
	}
	return 0;
}

struct server {
	FILE *in, *out;
};

static struct server start(const char *program, int loaded)
{
	char command[1024], path[] = "/tmp/statement-bench-XXXXXX";
	struct server server;

	if (!mkdtemp(path))
		exit(1);
	snprintf(command, sizeof command, "mkfifo %s/out && exec %s serve %s > %s/out", path, program,
	         loaded ? "loaded" : "", path);
	server.in = popen(command, "w");
	do {
		snprintf(command, sizeof command, "%s/out", path);
		server.out = fopen(command, "r");
	} while (!server.out);
	snprintf(command, sizeof command, "rm -r %s", path);
	if (!server.in || system(command))
		exit(1);
	return server;
}

static double ask(struct server *server, int what)
{
	double value = 0;

	fprintf(server->in, "%c", what);
	fflush(server->in);
	if (fscanf(server->out, "%lf", &value) != 1)
		exit(1);
	return value;
}

int main(int argc, char **argv)
{
	static double values[2][MODES][ROUNDS], ratios[ROUNDS];
	static const char *const loops[2] = { "SELECT 1, step and reset", "row of a table scan" };
	struct server plain, loaded;

	if (argc > 1)
		return serve(argc, argv);
	plain = start(argv[0], 0);
	loaded = start(argv[0], 1);
	for (int round = 0; round < ROUNDS; round++) {
		for (int mode = 0; mode < MODES; mode++) {
			struct server *server = mode == PLAIN ? &plain : &loaded;

			fprintf(server->in, "%d", mode);
			values[0][mode][round] = ask(server, 't');
			values[1][mode][round] = ask(server, 'r');
		}
	}
	for (int loop = 0; loop < 2; loop++) {
		printf("%s\n", loops[loop]);
		for (int mode = 0; mode < MODES; mode++) {
			double ns;

			for (int round = 0; round < ROUNDS; round++)
				ratios[round] = values[loop][mode][round] / values[loop][PLAIN][round];
			ns = values[loop][mode][ROUNDS / 2];
			printf("  %-20s %8.1f ns  %.3f x\n", names[mode], ns, median(ratios));
		}
	}
	pclose(plain.in);
	pclose(loaded.in);
	return 0;
}
