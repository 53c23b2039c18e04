/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that forks while another of its threads runs the first query of the process. The child runs
 * queries, and must end.
 *
 * usage: PROGRAM COUNT SEED [LIBRARY]     COUNT processes that fork at a random moment of that query
 *        PROGRAM inside [LIBRARY]         a process for each call of dl_iterate_phdr() that the query makes,
 * which forks while the call is under way
 *
 * Prints how many processes there were, and each child that hung or had no file. The statements of process N
 * are named first_N and child_N.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_QUERIES 5
#define HANG_MS 30000
#define INSIDE_MS 150

static const char *library; /* NULL: no library */

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void fail(const char *what)
{
	printf("failed: %s\n", what);
	fflush(stdout);
	_exit(3);
}

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		fail(error);
}

static sqlite3 *open_db(void)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		fail("sqlite3_open");
	sqlite3_enable_load_extension(db, 1);
	return db;
}

static void load(sqlite3 *db)
{
	char *error = NULL;

	if (library && sqlite3_load_extension(db, library, NULL, &error) != SQLITE_OK)
		fail(error);
}

/* The exit status of a child without a file: its parent's flusher did not close its own within the second for
 * which fork() waits. */
#define WITHOUT_FILE 9

/* Reading stores everything first. */
static void store_all(sqlite3 *db)
{
	char *error = NULL;

	if (sqlite3_exec(db, "SELECT count(*) FROM query_log", NULL, NULL, &error) == SQLITE_OK)
		return;
	if (strstr(error, "while its parent's trace file was in use"))
		_exit(WITHOUT_FILE);
	fail(error);
}

/* --- the calls of dl_iterate_phdr() of a first query ------------------------------------------------- */

static int (*real_iterate)(int (*see)(struct dl_phdr_info *, size_t, void *), void *context);
static __thread bool is_first; /* the thread runs the process's first query */
enum { NO_CALL = -1, BESIDE = -2 };
static int calls, held_call = NO_CALL;
static atomic_bool is_inside, has_forked;

struct look {
	int (*see)(struct dl_phdr_info *, size_t, void *);
	void *context;
	bool is_held;
};

static int see_held(struct dl_phdr_info *info, size_t size, void *context)
{
	struct look *look = context;

	if (look->is_held) {
		const int64_t end = now_us() + INSIDE_MS * 1000;

		look->is_held = false;
		atomic_store(&is_inside, true);
		/* Like a thread that has lost its processor. fork() waits for it, but at most a second. */
		while (now_us() < end && !atomic_load(&has_forked))
			nap_ms(1);
	}
	return look->see(info, size, look->context);
}

__attribute__((visibility("default"))) int dl_iterate_phdr(int (*see)(struct dl_phdr_info *, size_t, void *),
                                                           void *context)
{
	struct look look = { see, context, is_first && calls == held_call };

	calls += is_first;
	if (!real_iterate)
		*(void **)&real_iterate = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	return real_iterate(see_held, &look);
}

/* --- one process ------------------------------------------------------------------------------------- */

static atomic_bool has_begun, has_ended;
static long first_us;

static char first_sql[64], child_sql[64];

static void *first_query(void *db)
{
	int64_t before = now_us();

	is_first = true;
	atomic_store(&has_begun, true);
	load(db);
	run(db, first_sql);
	is_first = false;
	first_us = (long)(now_us() - before);
	run(db, first_sql);
	atomic_store(&has_ended, true);
	return NULL;
}

static void be_child(sqlite3 *db)
{
	load(db);
	for (int i = 0; i < CHILD_QUERIES; i++)
		run(db, child_sql);
	if (library)
		store_all(db);
	exit(0);
}

/* Returns the child's exit status, or -1. */
static int wait_for(pid_t child)
{
	int status = -1;

	for (int ms = 0; ms < HANG_MS; ms += 5) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		nap_ms(5);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -1;
}

struct process {
	int number;
	long delay_us;
	int held_call;
};

/* The results of the process. */
struct found {
	long first_us;
	int calls;
	bool has_forked_inside, is_child_without_file;
};

static int see_until_forked(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)info, (void)size, (void)context;
	atomic_store(&is_inside, true);
	while (!atomic_load(&has_forked))
		nap_ms(1);
	return 1;
}

static void *be_inside(void *unused)
{
	is_first = false;
	dl_iterate_phdr(see_until_forked, NULL);
	return unused;
}

static void be_process(const struct process *process, int to)
{
	struct found found = { 0 };
	pthread_t thread;
	sqlite3 *first, *second;
	int64_t begin;
	pid_t child;
	int status;

	/* The other thread may hold SQLite's mutex for memory statistics at the fork. In the child the
	 * mutex would stay locked forever, with or without queryprof. So the statistics are off. */
	if (sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK)
		fail("sqlite3_config");
	/* A fork during a dlopen() would also leave it unfinished in the child. */
	if (library && !dlopen(library, RTLD_NOW))
		fail(dlerror());
	first = open_db();
	second = open_db();
	snprintf(first_sql, sizeof(first_sql), "SELECT 7 AS first_%d", process->number);
	snprintf(child_sql, sizeof(child_sql), "SELECT 7 AS child_%d", process->number);
	held_call = process->held_call;
	if (pthread_create(&thread, NULL, held_call == BESIDE ? be_inside : first_query, first))
		fail("pthread_create");
	while (!atomic_load(&has_begun) && held_call != BESIDE)
		;
	begin = now_us();
	while (held_call == NO_CALL && now_us() - begin < process->delay_us)
		;
	while (held_call != NO_CALL && !atomic_load(&is_inside) && !atomic_load(&has_ended))
		nap_ms(1);
	found.has_forked_inside = atomic_load(&is_inside);
	child = fork();
	if (!child)
		be_child(second);
	atomic_store(&has_forked, true);
	status = wait_for(child);
	if (status && status != WITHOUT_FILE)
		fail("the child hung, or failed");
	found.is_child_without_file = status == WITHOUT_FILE;
	pthread_join(thread, NULL);
	if (held_call == BESIDE)
		first_query(first);
	if (library)
		store_all(first); /* exit() has only two seconds for that */
	found.first_us = first_us;
	found.calls = calls;
	if (write(to, &found, sizeof(found)) != sizeof(found))
		fail("write");
	exit(0);
}

/* Executes the program anew for this process. */
static struct found run_process(const char *program, const struct process *process)
{
	struct found found = { 0 };
	int ends[2], status = -1;
	pid_t child;

	if (pipe(ends))
		fail("pipe");
	fflush(stdout);
	child = fork();
	if (!child) {
		char number[16], delay[24], call[16], to[16];

		close(ends[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(number, sizeof(number), "%d", process->number);
		snprintf(delay, sizeof(delay), "%ld", process->delay_us);
		snprintf(call, sizeof(call), "%d", process->held_call);
		snprintf(to, sizeof(to), "%d", ends[1]);
		execl(program, program, "process", number, delay, call, to, library, (char *)NULL);
		_exit(4);
	}
	close(ends[1]);
	if (read(ends[0], &found, sizeof(found)) != sizeof(found))
		found.first_us = 0;
	close(ends[0]);
	waitpid(child, &status, 0);
	if (status)
		printf("process %d, %ld us, call %d: status %d\n", process->number, process->delay_us,
		       process->held_call, status);
	if (found.is_child_without_file)
		printf("process %d: the child had no file\n", process->number);
	return found;
}

static void at_random_moments(const char *program, int count, unsigned seed)
{
	long most_us = 0;

	srand(seed);
	for (int i = 0; i < count; i++) {
		/* The first four measure how long the query takes. */
		struct process process = { i, i < 4 ? 0 : rand() % (most_us + most_us / 4 + 1), NO_CALL };
		struct found found = run_process(program, &process);

		if (i < 4 && found.first_us > most_us)
			most_us = found.first_us;
	}
	printf("%d processes\n", count);
}

static void inside_each_call(const char *program)
{
	int count = 0;

	for (bool is_one = true; is_one; count++)
		is_one = run_process(program, &(struct process){ count, 0, count }).has_forked_inside;
	printf("%d processes\n", count);
}

int main(int argc, char **argv)
{
	if (argc > 5 && !strcmp(argv[1], "process")) {
		library = argv[6];
		be_process(&(struct process){ atoi(argv[2]), atol(argv[3]), atoi(argv[4]) }, atoi(argv[5]));
	}
	if (argc > 1 && !strcmp(argv[1], "inside")) {
		library = argv[2];
		inside_each_call(argv[0]);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "beside")) {
		library = argv[2];
		run_process(argv[0], &(struct process){ 0, 0, BESIDE });
		puts("1 processes");
		return 0;
	}
	if (argc < 3)
		return 2;
	library = argv[3];
	at_random_moments(argv[0], atoi(argv[1]), (unsigned)atoi(argv[2]));
	return 0;
}
