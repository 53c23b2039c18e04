/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that spend their time outside SQLite, each in a function of its own. They print their own
 * measurements in ns, one name and number per line.
 *
 * usage: program FOLDER rows | property | lock | threads NUMBER | waits
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "../lib/must.h"
#include "../lib/spin.h"

#define MS 1000000ull
#define ROWS 2000

/* Keeps the calling function on the stack during the preceding call. */
#define NO_TAIL_CALL __asm__ volatile("")

/* Like spin(), but in the calling function's own lines. */
#define WORK(cpu_ns)                                                                                         \
	for (uint64_t rounds = (uint64_t)((double)(cpu_ns)*spin_rate); rounds; rounds--)                     \
	__asm__ volatile("" : "+r"(rounds))

static const char *folder;

static sqlite3 *open_file(const char *name)
{
	char path[4096];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	must(NULL, sqlite3_open(path, &db), path);
	sqlite3_busy_timeout(db, 60000);
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;

	must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), sql);
	return stmt;
}

static void print(const char *name, uint64_t ns)
{
	printf("%s %llu\n", name, (unsigned long long)ns);
}

static void make_table(sqlite3 *db)
{
	must_exec(
		db,
		"CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)"
		" SELECT i, i % 50 AS author FROM n; CREATE INDEX t_i ON t (i)");
}

/* --- a quadratic formatter -------------------------------------------------------------------- */

/* Appends to a text, and searches for its end again for each character. */
__attribute__((noinline)) static void format_row(char *text, int value)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%d,", value);
	for (const char *from = digits; *from; from++) {
		char *to = text;

		while (*(volatile char *)to)
			to++;
		to[0] = *from;
		to[1] = '\0';
	}
}

static void run_rows(void)
{
	static char room[16 * ROWS];
	char *volatile text = room; /* volatile, so that the compiler does not clone the function */
	sqlite3 *db = open_file("rows.db");
	sqlite3_stmt *stmt;
	uint64_t cpu;

	make_table(db);
	stmt = prepare(db, "SELECT i FROM t");
	cpu = cpu_ns();
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		const int value = sqlite3_column_int(stmt, 0);

		for (int i = 0; i < 32; i++)
			format_row(text, value);
		if (strlen(text) > 12000)
			text[0] = '\0';
	}
	print("cpu", cpu_ns() - cpu);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

/* --- a query for each row, in a property's function -------------------------------------------- */

static sqlite3_stmt *of_author;

__attribute__((noinline)) static int author_name(int author)
{
	int length;

	sqlite3_bind_int(of_author, 1, author);
	sqlite3_step(of_author);
	length = sqlite3_column_bytes(of_author, 0);
	sqlite3_reset(of_author);
	WORK(500000); /* the time for the row's objects */
	return length;
}

static void run_property(void)
{
	sqlite3 *db = open_file("property.db");
	int length = 0;
	sqlite3_stmt *stmt;
	uint64_t cpu;

	make_table(db);
	of_author = prepare(db, "SELECT count(*) FROM t WHERE i = ?");
	stmt = prepare(db, "SELECT author FROM t LIMIT 1000");
	cpu = cpu_ns();
	while (sqlite3_step(stmt) == SQLITE_ROW)
		length += author_name(sqlite3_column_int(stmt, 0));
	print("cpu", cpu_ns() - cpu);
	print("bytes", (uint64_t)length);
	sqlite3_finalize(stmt);
	sqlite3_finalize(of_author);
	sqlite3_close(db);
}

/* --- a lock that is held while the program does other things ---------------------------------- */

__attribute__((noinline)) static void make_report(void)
{
	WORK(600 * MS);
}

__attribute__((noinline)) static void sleep_a_while(void)
{
	const struct timespec time = { 0, 200 * MS };

	nanosleep(&time, NULL);
	NO_TAIL_CALL;
}

static bool does_sleep(pid_t process)
{
	char path[32], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
	file = fopen(path, "r");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state == 'S';
}

/* The child ends 100 ms after the program has begun to wait for it. */
__attribute__((noinline)) static void run_child(void)
{
	pid_t parent = getpid(), child = fork();

	if (child == 0) {
		while (!does_sleep(parent))
			usleep(1000);
		usleep(100000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	NO_TAIL_CALL;
}

static void *wait_for_lock(void *unused)
{
	sqlite3 *db = open_file("lock.db");

	(void)unused;
	must_exec(db, "INSERT INTO jobs VALUES ('other')");
	sqlite3_close(db);
	return NULL;
}

static void run_lock(void)
{
	sqlite3 *db = open_file("lock.db");
	uint64_t begun, start, idle, cpu;
	pthread_t other;

	must_exec(db, "CREATE TABLE jobs (state)");
	begun = now_ns();
	must_exec(db, "BEGIN IMMEDIATE");
	start = now_ns();
	must_exec(db, "INSERT INTO jobs VALUES ('run')");
	idle = now_ns();
	pthread_create(&other, NULL, wait_for_lock, NULL);
	cpu = cpu_ns();
	make_report();
	print("report", cpu_ns() - cpu);
	sleep_a_while();
	run_child();
	print("idle", now_ns() - idle);
	print("held", now_ns() - start);
	must_exec(db, "COMMIT");
	print("longest", now_ns() - begun);
	pthread_join(other, NULL);
	sqlite3_close(db);
}

/* --- many threads, each with its own transactions --------------------------------------------- */

#define EACH 4 /* transactions of a thread */

static void *run_transactions(void *number)
{
	uint64_t *held = number;
	char name[32];
	sqlite3 *db;

	snprintf(name, sizeof(name), "thread%llu.db", (unsigned long long)*held);
	*held = 0;
	db = open_file(name);
	must_exec(db, "PRAGMA synchronous = OFF; CREATE TABLE t (i)");
	for (int i = 0; i < EACH; i++) {
		const struct timespec pause = { 0, 20 * MS };
		uint64_t start;

		must_exec(db, "BEGIN IMMEDIATE");
		start = now_ns();
		must_exec(db, "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
		              "LIMIT 20000)"
		              " SELECT i FROM n");
		WORK(40 * MS);
		nanosleep(&pause, NULL);
		*held += now_ns() - start;
		must_exec(db, "COMMIT");
	}
	sqlite3_close(db);
	return NULL;
}

static void run_threads(int count)
{
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	uint64_t *held = calloc((size_t)count, sizeof(*held)), sum = 0;

	for (int i = 0; i < count; i++) {
		held[i] = (uint64_t)i;
		pthread_create(&threads[i], NULL, run_transactions, &held[i]);
	}
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		sum += held[i];
	}
	print("held", sum);
	free(threads);
	free(held);
}

/* --- waits so short that nearly all of them is CPU time -------------------------------------------- */

/* Returns -1 and sets errno, whichever function waits. */
static int wait_briefly(int how, int epoll, sem_t *semaphore)
{
	const struct timespec step = { 0, 5000 };
	struct timeval time = { 0, 5 };
	struct epoll_event event;
	struct pollfd fd = { .fd = -1 };
	struct timespec until;

	clock_gettime(how == 8 ? CLOCK_REALTIME : CLOCK_MONOTONIC, &until);
	until.tv_nsec += until.tv_nsec < 999990000 ? 10000 : 0;
	switch (how) {
	case 0: return nanosleep(&step, NULL);
	case 1: return (errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL)) ? -1 : 0;
	case 2: return usleep(5);
	case 3: return ppoll(&fd, 1, &step, NULL);
	case 4: return select(0, NULL, NULL, NULL, &time);
	case 5: return pselect(0, NULL, NULL, NULL, &step, NULL);
	case 6: return poll(&fd, 1, 1);
	case 7: return epoll_wait(epoll, &event, 1, 1);
	default: return sem_timedwait(semaphore, &until);
	}
}

/* Waits for `ns` in all. Returns how many waits were interrupted. */
static uint64_t wait_often(uint64_t ns)
{
	const int epoll = epoll_create1(0);
	uint64_t end = now_ns() + ns, interrupted = 0;
	sem_t semaphore;

	sem_init(&semaphore, 0, 0);
	/* The two functions that wait for whole ms are rare. */
	for (unsigned i = 0; now_ns() < end; i++)
		interrupted += wait_briefly(i % 64 < 2   ? 6 + (int)(i % 64)
		                            : i % 7 == 6 ? 8
		                                         : (int)(i % 7),
		                            epoll, &semaphore) < 0 &&
		               errno == EINTR;
	close(epoll);
	return interrupted;
}

static void run_waits(void)
{
	sqlite3 *db = open_file("waits.db");

	prctl(PR_SET_TIMERSLACK, 1);
	must_exec(db, "CREATE TABLE t (i)");
	must_exec(db, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)");
	print("in_transaction", wait_often(1500 * MS));
	must_exec(db, "COMMIT");
	print("after_it", wait_often(1500 * MS));
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";

	if (argc < 3)
		return 2;
	folder = argv[1];
	if (!strcmp(what, "rows"))
		run_rows();
	else if (!strcmp(what, "property"))
		run_property();
	else if (!strcmp(what, "lock"))
		run_lock();
	else if (!strcmp(what, "threads") && argc > 3)
		run_threads(atoi(argv[3]));
	else if (!strcmp(what, "waits"))
		run_waits();
	else
		return 2;
	return 0;
}
