/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host whose queries wait for locks, or sleep, in every way that SQLite offers. Each wait runs in a
 * thread of its own for 1 s, all at the same time, while the real-time timers tick every ms. Prints the
 * duration of each wait, and fails if a wait was too short or too long.
 *
 *   sleep_times loaded LIBRARY    loads the library into some of its connections
 *   sleep_times recorded          `queryprof record` loads the library
 *   sleep_times linked            the same program with a static SQLite
 */
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "../lib/must.h"
#include "../lib/steal.h"

#ifdef LINKED
int sqlite3_queryprof_init(sqlite3 *db, char **error, const struct sqlite3_api_routines *api);
#endif

#define WAIT_MS 1000
#define STEPS 20 /* calls of the host's own busy handler */
#define STEP_MS (WAIT_MS / STEPS)
#define ROUNDS 60 /* other guests of the machine may make some waits too long */

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Returns how long the thread was ready to run while other threads or a hypervisor's guests used the
 * processors. This time is not part of the wait. */
static double delay_ms(void)
{
	unsigned long long ran = 0, delayed = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	if (file) {
		if (fscanf(file, "%llu %llu", &ran, &delayed) != 2)
			delayed = 0;
		fclose(file);
	}
	return (double)delayed / 1e6 + (double)stolen_ticks() * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

/* --- how to wait ------------------------------------------------------------ */

static void step_by_nanosleep(void)
{
	nanosleep(&(struct timespec){ 0, STEP_MS * 1000000L }, NULL);
}

static void step_by_clock_nanosleep(void)
{
	clock_nanosleep(CLOCK_REALTIME, 0, &(struct timespec){ 0, STEP_MS * 1000000L }, NULL);
}

static void step_by_usleep(void)
{
	usleep(STEP_MS * 1000);
}

static void step_by_poll(void)
{
	poll(NULL, 0, STEP_MS);
}

static void step_by_select(void)
{
	select(0, NULL, NULL, NULL, &(struct timeval){ 0, STEP_MS * 1000 });
}

static void step_by_sqlite(void)
{
	sqlite3_sleep(STEP_MS);
}

static void step_by_vfs(void)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find("unix-none");

	vfs->xSleep(vfs, STEP_MS * 1000);
}

static int on_busy(void *step, int count)
{
	if (count == STEPS)
		return 0;
	((void (*)(void))(uintptr_t)step)();
	return 1;
}

static void nap(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	for (int i = 0; i < STEPS; i++)
		((void (*)(void))(uintptr_t)sqlite3_user_data(context))();
	sqlite3_result_int(context, 1);
}

enum means {
	BUSY_TIMEOUT, /* sqlite3_busy_timeout() */
	BUSY_PRAGMA,  /* PRAGMA busy_timeout */
	BUSY_HANDLER, /* sqlite3_busy_handler(): `step` as long as it is busy */
	IN_FUNCTION,  /* `step` in an SQL function of the host */
	OUTSIDE,      /* `step` between two queries */
};

static const struct wait {
	const char *name, *vfs; /* NULL: the default, a VFS of the host */
	enum means means;
	void (*step)(void);
	int before; /* whether its connection opens before the library is loaded */
} waits[] = {
	{ "busy_timeout", "unix", BUSY_TIMEOUT, NULL, 0 },
	{ "busy_timeout", "unix", BUSY_TIMEOUT, NULL, 1 },
	{ "busy_timeout", "unix-dotfile", BUSY_TIMEOUT, NULL, 0 },
	{ "busy_timeout", "unix-dotfile", BUSY_TIMEOUT, NULL, 1 },
	{ "busy_timeout", "unix-excl", BUSY_TIMEOUT, NULL, 1 },
	{ "busy_timeout", NULL, BUSY_TIMEOUT, NULL, 0 },
	{ "busy_timeout", NULL, BUSY_TIMEOUT, NULL, 1 },
	{ "PRAGMA busy_timeout", "unix", BUSY_PRAGMA, NULL, 0 },
	{ "busy handler, sqlite3_sleep", "unix", BUSY_HANDLER, step_by_sqlite, 0 },
	{ "busy handler, sqlite3_sleep", "unix", BUSY_HANDLER, step_by_sqlite, 1 },
	{ "busy handler, nanosleep", "unix", BUSY_HANDLER, step_by_nanosleep, 1 },
	{ "busy handler, nanosleep", NULL, BUSY_HANDLER, step_by_nanosleep, 0 },
	{ "busy handler, clock_nanosleep", "unix", BUSY_HANDLER, step_by_clock_nanosleep, 0 },
	{ "busy handler, usleep", "unix", BUSY_HANDLER, step_by_usleep, 0 },
	{ "busy handler, poll", "unix", BUSY_HANDLER, step_by_poll, 0 },
	{ "busy handler, select", "unix", BUSY_HANDLER, step_by_select, 0 },
	{ "function, xSleep", "unix-none", IN_FUNCTION, step_by_vfs, 0 },
	{ "function, sqlite3_sleep", "unix-none", IN_FUNCTION, step_by_sqlite, 1 },
	{ "outside, sqlite3_sleep", "unix", OUTSIDE, step_by_sqlite, 0 },
	{ "outside, nanosleep", "unix", OUTSIDE, step_by_nanosleep, 1 },
};
#define WAITS (sizeof(waits) / sizeof(*waits))

/* --- a VFS of the host's ------------------------------------------------------ */

static int own_sleep(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000L }, NULL);
	return us;
}

static void register_own_vfs(void)
{
	static sqlite3_vfs own;

	own = *sqlite3_vfs_find("unix");
	own.zName = "own";
	own.xSleep = own_sleep;
	own.pNext = NULL;
	must(NULL, sqlite3_vfs_register(&own, 1), "vfs_register");
}

/* --- the waits ---------------------------------------------------------------- */

static char folder[] = "/tmp/queryprof-sleep-XXXXXX";

struct waiter {
	const struct wait *wait;
	sqlite3 *holder, *db;
	double ms, delay_ms;
	int good;
};

static sqlite3 *open_database(const struct waiter *waiter, size_t number)
{
	sqlite3 *db;
	char path[64];

	snprintf(path, sizeof(path), "%s/%zu.db", folder, number);
	must(NULL, sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, waiter->wait->vfs),
	     path);
	return db;
}

/* Reads the schema, and has another connection lock the database. */
static void make_busy(struct waiter *waiter, size_t number)
{
	const struct wait *wait = waiter->wait;

	if (wait->means == BUSY_HANDLER)
		sqlite3_busy_handler(waiter->db, on_busy, (void *)(uintptr_t)wait->step);
	else if (wait->means == BUSY_TIMEOUT)
		sqlite3_busy_timeout(waiter->db, WAIT_MS);
	else if (wait->means == BUSY_PRAGMA)
		must_exec(waiter->db, "PRAGMA busy_timeout = 1000");
	else
		sqlite3_create_function(waiter->db, "nap", 0, SQLITE_UTF8, (void *)(uintptr_t)wait->step, nap,
		                        NULL, NULL);
	must_exec(waiter->db, "CREATE TABLE t(x)");
	waiter->holder = open_database(waiter, number);
	if (wait->means <= BUSY_HANDLER)
		must_exec(waiter->holder, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)");
}

static void *wait_once(void *context)
{
	struct waiter *waiter = context;
	const struct wait *wait = waiter->wait;
	double start, delay;
	int rc;

	if (wait->means == OUTSIDE) /* its timers continue after it has ended */
		must_exec(waiter->db,
		          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 30000) "
		          "SELECT sum(x) FROM c");
	delay = delay_ms();
	start = now_ms();
	if (wait->means == OUTSIDE) {
		for (int i = 0; i < STEPS; i++)
			wait->step();
	} else if (wait->means == IN_FUNCTION) {
		must_exec(waiter->db, "SELECT nap()");
	} else if ((rc = sqlite3_exec(waiter->db, "INSERT INTO t VALUES (2)", NULL, NULL, NULL)) !=
	           SQLITE_BUSY) {
		fprintf(stderr, "%s: %d instead of SQLITE_BUSY\n", wait->name, rc);
		exit(1);
	}
	waiter->ms = now_ms() - start;
	waiter->delay_ms = delay_ms() - delay;
	return NULL;
}

/* Returns whether every wait had the right length, in this round or an earlier one. */
static int run_round(struct waiter *waiters)
{
	pthread_t threads[WAITS];
	int good = 1;

	for (size_t i = 0; i < WAITS; i++)
		if (!waiters[i].good)
			must(NULL, pthread_create(&threads[i], NULL, wait_once, &waiters[i]),
			     "pthread_create");
	for (size_t i = 0; i < WAITS; i++) {
		struct waiter *waiter = &waiters[i];

		if (waiter->good)
			continue;
		pthread_join(threads[i], NULL);
		printf("%-30s %-13s %-7s %8.1f ms, %.1f of them without a processor\n", waiter->wait->name,
		       waiter->wait->vfs ? waiter->wait->vfs : "the host's",
		       waiter->wait->before ? "before" : "after", waiter->ms, waiter->delay_ms);
		if (waiter->ms < WAIT_MS * 0.98) {
			fprintf(stderr, "too short\n");
			exit(1);
		}
		waiter->good = waiter->ms - waiter->delay_ms <= WAIT_MS * 1.02;
		good &= waiter->good;
	}
	return good;
}

static void load(sqlite3 *db, const char *library)
{
#ifdef LINKED
	(void)db, (void)library;
#else
	must_load(db, library);
#endif
}

static int read_number(void *context, int count, char **values, char **names)
{
	(void)names;
	if (count)
		*(long *)context = atol(values[0]);
	return 0;
}

int main(int argc, char **argv)
{
	struct waiter waiters[WAITS] = { 0 };
	int loads = argc > 1 && strcmp(argv[1], "recorded");
	long samples = -1;
	sqlite3 *db;
	char command[64];

	if (argc < 2 || !mkdtemp(folder))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
#ifdef LINKED
	must(NULL, sqlite3_auto_extension((void (*)(void))sqlite3_queryprof_init), "auto_extension");
#endif
	register_own_vfs();
	/* Connections that do not name a VFS now use the host's. */
	for (int before = 1; before >= 0; before--) {
		for (size_t i = 0; i < WAITS; i++) {
			waiters[i].wait = &waits[i];
			if (waits[i].before != before)
				continue;
			waiters[i].db = open_database(&waiters[i], i);
			make_busy(&waiters[i], i);
		}
		must(NULL, sqlite3_open(":memory:", &db), "open");
		if (before && loads) {
			load(db, argv[2]);
			for (size_t i = 0; i < WAITS; i++)
				if (waiters[i].db)
					load(waiters[i].db, argv[2]);
		}
		sqlite3_close(db);
	}
	for (size_t i = 0; loads && i < WAITS; i++)
		must_exec(waiters[i].db, "PRAGMA system.query_profiler_real_time_period_ns = 1000000");

	int good = 0;
	for (int round = 0; !good && round < ROUNDS; round++)
		good = run_round(waiters);

	if (loads) {
		must(NULL, sqlite3_open(":memory:", &db), "open");
		must(db,
		     sqlite3_exec(db, "SELECT sum(weight) FROM system.trace_log WHERE trace_type = 'Real'",
		                  read_number, &samples, NULL),
		     "samples");
		printf("%ld samples\n", samples);
		if (samples < (long)WAITS * WAIT_MS / 2)
			good = 0;
		sqlite3_close(db);
	}
	for (size_t i = 0; i < WAITS; i++) {
		sqlite3_close(waiters[i].holder);
		must(waiters[i].db, sqlite3_close(waiters[i].db), "close");
	}
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) || !good;
}
