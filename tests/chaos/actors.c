/* SPDX-License-Identifier: Apache-2.0 */
/* The actors: threads that query, and threads that disturb them. */
#include "chaos.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <queryprof.h>

extern char **environ;

atomic_int deeds[DEEDS];

void count_deed(enum deed deed)
{
	atomic_fetch_add(&deeds[deed], 1);
}

/* Each actor has its own `state`. */
static unsigned random_below(uint64_t *state, unsigned limit)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (unsigned)(*state >> 33) % limit;
}

void pause_us(unsigned us)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

/* --- actors that query --------------------------------------------------------------------------- */

struct run_counts counts[WORKERS + 1];

/* A child has no thread that would release a mutex of SQLite. So if a child is to query, the other threads
 * are outside of SQLite at the fork. */
static pthread_rwlock_t inside_sqlite = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void enter_sqlite(void)
{
	pthread_rwlock_rdlock(&inside_sqlite);
}

void leave_sqlite(void)
{
	pthread_rwlock_unlock(&inside_sqlite);
}

static sqlite3 *open_connection(uint64_t *state)
{
	static const int periods_us[] = { 100, 1000, 10000 };
	char sql[160];
	sqlite3 *db = NULL;

	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK, "%s", sqlite3_errmsg(db));
	snprintf(sql, sizeof(sql),
	         "PRAGMA query_profiler_cpu_time_period_ns = %d000; "
	         "PRAGMA query_profiler_real_time_period_ns = %d000",
	         periods_us[random_below(state, 3)], periods_us[random_below(state, 3)]);
	sqlite3_exec(db, sql, NULL, NULL, NULL);
	return db;
}

static void run(int worker, sqlite3_stmt *stmt, uint64_t *state)
{
	static const int lengths[] = { 1, 10, 300, 20000 };
	int rows = (int)random_below(state, 20), rc = SQLITE_ROW;

	enter_sqlite();
	sqlite3_bind_int(stmt, 1, lengths[random_below(state, 4)]);
	atomic_fetch_add(&counts[worker].begun, 1);
	while (rows-- >= 0 && rc == SQLITE_ROW)
		rc = sqlite3_step(stmt);
	CHECK(rc == SQLITE_ROW || rc == SQLITE_DONE, "%d", rc);
	sqlite3_reset(stmt);
	atomic_fetch_add(&counts[worker].ended, 1);
	leave_sqlite();
}

/* The life of a connection. */
static void *query(void *context)
{
	int worker = (int)(intptr_t)context % WORKERS;
	uint64_t state = chaos_seed ^ (uint64_t)(intptr_t)context * 0x9E3779B97F4A7C15u;
	sqlite3_stmt *stmt = NULL;
	char sql[160];
	sqlite3 *db;

	snprintf(sql, sizeof(sql),
	         "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ?) "
	         "SELECT max(x) AS w%d FROM c GROUP BY x %% 7",
	         worker);
	enter_sqlite();
	db = open_connection(&state);
	CHECK(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
	leave_sqlite();
	for (unsigned left = 1 + random_below(&state, 50); left && !atomic_load(&over); left--)
		run(worker, stmt, &state);
	enter_sqlite();
	if (random_below(&state, 2)) {
		sqlite3_close_v2(db);
		count_deed(ZOMBIE);
		sqlite3_finalize(stmt);
	} else {
		sqlite3_finalize(stmt);
		sqlite3_close(db);
	}
	leave_sqlite();
	if (!random_below(&state, 2))
		pause_us(random_below(&state, 3000));
	return NULL;
}

/* Runs each connection in a new thread, or many connections in one thread. */
void *query_on(void *context)
{
	uint64_t state = chaos_seed + (uint64_t)(intptr_t)context;
	intptr_t turn = (intptr_t)context;

	while (!atomic_load(&over)) {
		pthread_t thread;

		turn += WORKERS;
		if (random_below(&state, 2) || pthread_create(&thread, NULL, query, (void *)turn))
			query((void *)turn);
		else {
			pthread_join(thread, NULL);
			count_deed(SHORT_THREAD);
		}
	}
	return NULL;
}

/* --- actors that disturb --------------------------------------------------------------------------- */

static void load_and_query(uint64_t *state)
{
	void *handle = dlopen(CHAOS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
	int (*query_once)(sqlite3 *) = NULL;
	sqlite3 *db;

	CHECK(handle != NULL, "%s", dlerror());
	if (!handle)
		return;
	*(void **)&query_once = dlsym(handle, "plugin_query");
	if (query_once) {
		enter_sqlite();
		db = open_connection(state);
		atomic_fetch_add(&counts[PLUGIN].begun, 1);
		CHECK(query_once(db) == 1, "the plugin's query");
		atomic_fetch_add(&counts[PLUGIN].ended, 1);
		sqlite3_close(db);
		leave_sqlite();
		count_deed(PLUGIN_LOADED);
	}
	dlclose(handle);
}

/* Returns the exit status, which must be 0 or `other`. */
static int wait_for(pid_t child, const char *what, int other)
{
	int status = -1;

	CHECK(child > 0, "%s", what);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	CHECK(status == 0 || status == other << 8, "%s: status 0x%x", what, (unsigned)status);
	return status >> 8;
}

static int query_in_child(void)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	bool is_right = !sqlite3_open(":memory:", &db) &&
	                !sqlite3_prepare_v2(db, "SELECT 7 AS forked", -1, &stmt, NULL) &&
	                sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) == 7;

	return sqlite3_finalize(stmt) || sqlite3_close(db) || !is_right;
}

static void fork_and_execute(void)
{
	pid_t child = fork();

	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	if (!wait_for(child, "exec", 0))
		count_deed(EXECUTED);
}

static void fork_and_end(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	if (!wait_for(child, "fork", 0))
		count_deed(FORKED);
}

static void fork_and_query(void)
{
	pid_t child;

	/* The fork may wait for the flusher, and other threads wait for the fork. */
	atomic_fetch_add(&forking, 1);
	pthread_rwlock_wrlock(&inside_sqlite);
	child = fork();
	if (!child)
		_exit(query_in_child());
	pthread_rwlock_unlock(&inside_sqlite);
	atomic_fetch_sub(&forking, 1);
	if (!wait_for(child, "fork with a query", 0))
		count_deed(FORK_QUERIED);
}

/* Uses another process, because closing a descriptor of the file would release this process's locks. */
int run_self(const char *what, const char *path, unsigned ms)
{
	char number[20];
	char *arguments[] = { (char *)"chaos", (char *)what, (char *)path, number, NULL };
	pid_t child = -1;

	snprintf(number, sizeof(number), "%u", ms);
	if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ))
		child = -1;
	return wait_for(child, what, UNLOCKED);
}

/* SQLite finds a file's log by its name. If a file is replaced while a process has it open, that process
 * removes the new file's log when it closes. So SQLite's documentation forbids to rename or remove a file in
 * use. Here only queryprof must bear it. */
static pthread_mutex_t other_or_replaced = PTHREAD_MUTEX_INITIALIZER;

static void lock_file(const char *path, unsigned ms)
{
	pthread_mutex_lock(&other_or_replaced);
	if (!run_self("--lock", path, ms))
		count_deed(LOCKED);
	pthread_mutex_unlock(&other_or_replaced);
}

/* Runs in one thread at a time, so that it restores the original limit. */
static void limit_size(unsigned ms)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct rlimit before, full;

	pthread_mutex_lock(&lock);
	getrlimit(RLIMIT_FSIZE, &before);
	full = (struct rlimit){ 4096, before.rlim_max };
	if (!setrlimit(RLIMIT_FSIZE, &full))
		count_deed(SIZE_LIMITED);
	pause_us(ms * 1000);
	setrlimit(RLIMIT_FSIZE, &before);
	pthread_mutex_unlock(&lock);
}

static void fill_disk(unsigned ms)
{
	atomic_store(&disk_is_full, true);
	pause_us(ms * 1000);
	atomic_store(&disk_is_full, false);
}

static void hang_disk(unsigned ms)
{
	atomic_store(&disk_hangs, true);
	pause_us(ms * 1000);
	atomic_store(&disk_hangs, false);
}

/* Removes the file last, because a new file, which begins then, must keep its log. */
static void remove_file(const char *path)
{
	static const char *const suffixes[] = { "-wal", "-shm", "" };
	char name[240];
	int code = -1;

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		code = unlink(name);
	}
	if (!code)
		count_deed(REMOVED);
}

static void rename_file(const char *path)
{
	static int number;
	char other[240];

	snprintf(other, sizeof(other), "%s.old%d", path, number++);
	if (!rename(path, other))
		count_deed(RENAMED);
}

static void replace_file(uint64_t *state, const char *path)
{
	pthread_mutex_lock(&other_or_replaced);
	if (random_below(state, 2))
		rename_file(path);
	else
		remove_file(path);
	pthread_mutex_unlock(&other_or_replaced);
}

static void change_setting(uint64_t *state)
{
	char value[20];
	int code;

	switch (random_below(state, 3)) {
	case 0: code = qp_set(NULL, "trace_log_path", trace[random_below(state, 2)]); break;
	case 1:
		snprintf(value, sizeof(value), "%u", 10 + random_below(state, 500));
		code = qp_set(NULL, "trace_log_flush_interval_ms", value);
		break;
	default:
		code = qp_set(NULL, "query_profiler_max_overhead_percent",
		              random_below(state, 2) ? "0" : "2");
	}
	if (!code)
		count_deed(SETTING_CHANGED);
}

void *disturb(void *context)
{
	uint64_t state = chaos_seed * 31 + (uint64_t)(intptr_t)context;

	while (!atomic_load(&over)) {
		const char *path = trace[random_below(&state, 2)];

		switch (random_below(&state, CAN_FORK ? 11 : 8)) {
		case 0: replace_file(&state, path); break;
		case 1: lock_file(path, random_below(&state, 200)); break;
		case 2: limit_size(random_below(&state, 50)); break;
		case 3: fill_disk(random_below(&state, 200)); break;
		case 4: change_setting(&state); break;
		case 5: hang_disk(random_below(&state, 200)); break;
		case 8: fork_and_end(); break;
		case 9: fork_and_execute(); break;
		case 10: fork_and_query(); break;
		default: load_and_query(&state);
		}
		pause_us(random_below(&state, 20000));
	}
	return NULL;
}
