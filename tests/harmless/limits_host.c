/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that lack some resource or some permission.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

/* On newer architectures the kernel has only the calls with a folder's descriptor. */
#ifndef SYS_open
#define SYS_access SYS_faccessat
#define SYS_mkdir SYS_mkdirat
#define SYS_open SYS_openat
#define SYS_readlink SYS_readlinkat
#define SYS_unlink SYS_unlinkat
#endif

static void set_limit(int resource, rlim_t soft)
{
	struct rlimit limit;

	CHECK(getrlimit(resource, &limit) == 0);
	limit.rlim_cur = soft;
	CHECK(setrlimit(resource, &limit) == 0);
}

/* --- limits -------------------------------------------------------------------- */

/* No timer can be created. */
static void no_signals_pending(void)
{
	sqlite3 *db;

	set_limit(RLIMIT_SIGPENDING, 0);
	db = open_db();
	burn(db, 50);
	puts("without timers");
	tell_metrics(db);
}

static void no_descriptors(void)
{
	int fds[64], count = 0;
	sqlite3 *db = open_db();

	set_limit(RLIMIT_NOFILE, 40);
	while (count < 64 && (fds[count] = dup(2)) >= 0)
		count++;
	burn(db, 100);
	CHECK(dup(2) < 0 && errno == EMFILE);
	for (int i = 0; i < count; i++)
		CHECK(close(fds[i]) == 0);
	burn(db, 150);
	/* The store has tried again by now, or tries again when the samples are requested. */
	puts("some, later");
	tell_metrics(db);
}

/* A write beyond the limit raises a signal that ends the process. The library's writes must not. */
static void no_file_size(void)
{
	sqlite3 *db = open_db();
	char line[] = "x";
	int fd, error;

	burn_until_stored(db, 20);
	set_limit(RLIMIT_FSIZE, 0);
	burn(db, 150);
	signal(SIGXFSZ, SIG_IGN);
	fd = open(".", O_TMPFILE | O_RDWR, 0600);
	CHECK(fd >= 0);
	error = write(fd, line, 1) < 0 ? errno : 0;
	signal(SIGXFSZ, SIG_DFL);
	printf("own write: %s\n", strerror(error));
	tell_metrics(db);
}

/* The trace file exists, but its index cannot be created. */
static void no_file_size_ever(void)
{
	pid_t child = fork();
	sqlite3 *db;

	CHECK(child >= 0);
	if (!child) {
		burn_until_stored(open_db(), 1);
		exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	set_limit(RLIMIT_FSIZE, 0);
	db = open_db();
	burn(db, 75);
	puts("went on");
	tell_metrics(db);
}

static size_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	CHECK(file && fscanf(file, "%zu", &pages) == 1);
	fclose(file);
	return pages * 4096;
}

/* There is no memory for the library's ring or thread. Loading fails with an error, and the host
 * continues. */
static void no_memory(void)
{
	sqlite3 *db, *other;
	char *error = NULL;

	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
	burn(db, 25);
	set_limit(RLIMIT_AS, address_space() + (6 << 20));
	if (library_path()) {
		sqlite3_enable_load_extension(db, 1);
		CHECK(sqlite3_load_extension(db, library_path(), "sqlite3_queryprof_init", &error) ==
		      SQLITE_ERROR);
		fprintf(stderr, "refused: %s\n", error);
	}
	burn(db, 25);
	CHECK(sqlite3_open(":memory:", &other) == SQLITE_OK);
	burn(other, 25);
	puts("went on");
}

/* The end of a scenario that did not stop the host. */
static void go_on(sqlite3 *db)
{
	puts("went on");
	tell_metrics(db);
}

/* The same after the library has started. */
static void no_more_memory(void)
{
	sqlite3 *db = open_db();

	burn(db, 25);
	set_limit(RLIMIT_AS, address_space() + (1 << 20));
	burn(db, 50);
	set_limit(RLIMIT_AS, RLIM_INFINITY);
	go_on(db);
}

/* --- seccomp -------------------------------------------------------------------------- */

/* From now on these system calls get `answer`, on all threads. */
static void confine(unsigned answer, const int *calls, int count)
{
	struct sock_filter filter[40];
	int size = 0;

	filter[size++] =
		(struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < count; i++) {
		filter[size++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
		filter[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
	}
	filter[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = (unsigned short)size, .filter = filter };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)) {
		fprintf(stderr, "no seccomp here: %s\n", strerror(errno));
		_exit(77);
	}
}

static void refuse(int error, const int *calls, int count)
{
	confine(SECCOMP_RET_ERRNO | (unsigned)error, calls, count);
}

static void punish(const int *calls, int count)
{
	confine(SECCOMP_RET_KILL_PROCESS, calls, count);
}

#define REFUSE(error, ...)                                                                                   \
	do {                                                                                                 \
		const int calls[] = { __VA_ARGS__ };                                                         \
		refuse(error, calls, (int)(sizeof(calls) / sizeof(*calls)));                                 \
	} while (0)

static void refused_timers(void)
{
	sqlite3 *db;

	REFUSE(ENOSYS, SYS_timer_create);
	db = open_db();
	burn(db, 50);
	go_on(db);
}

static void refused_timers_later(void)
{
	sqlite3 *db = open_db();

	burn(db, 25);
	REFUSE(EPERM, SYS_timer_create, SYS_timer_settime, SYS_timer_delete);
	burn(db, 50);
	usleep(20000);
	go_on(db);
}

/* Refuses the library's other system calls, except calls for memory, threads and locks. */
static void refused_calls(void)
{
	sqlite3 *db = open_db();

	burn(db, 25);
	REFUSE(EPERM, SYS_timer_create, SYS_rt_tgsigqueueinfo, SYS_tgkill, SYS_getrandom, SYS_prctl,
	       SYS_process_vm_readv, SYS_sched_getaffinity, SYS_flock, SYS_fchown, SYS_fchmod, SYS_fallocate,
	       SYS_readlink, SYS_getcwd, SYS_uname);
	burn(db, 50);
	go_on(db);
}

/* A sandbox in which no file can be opened. */
static void refused_files(void)
{
	sqlite3 *db = open_db();

	REFUSE(EACCES, SYS_openat, SYS_open, SYS_mkdir, SYS_unlink, SYS_newfstatat, SYS_statx, SYS_access);
	burn(db, 75);
	go_on(db);
}

/* The filter kills the process for calls that only the library makes. */
static void punished_calls(void)
{
	sqlite3 *db = open_db();

	burn(db, 25);
	punish((const int[]){ SYS_openat, SYS_getrusage, SYS_process_vm_readv, SYS_pwrite64,
	                      SYS_timer_settime },
	       5);
	burn(db, 50);
	go_on(db);
}

/* The filter permits poll(), which the host calls, but not ppoll(). */
static void refused_ppoll(void)
{
	sqlite3 *db = open_db();

	burn(db, 25);
	REFUSE(EPERM, SYS_ppoll);
	printf("polled: %d\n", poll(NULL, 0, 1));
	go_on(db);
}

/* --- where it is and who it is --------------------------------------------------------- */

static void no_proc(void)
{
	sqlite3 *db;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/proc", "tmpfs", 0, NULL)) {
		fprintf(stderr, "/proc cannot be hidden here: %s\n", strerror(errno));
		_exit(77);
	}
	db = open_db();
	burn(db, 50);
	go_on(db);
}

/* Changes into an empty root folder, in which the trace file has no path. */
static void changed_root(void)
{
	sqlite3 *db = open_db();

	burn(db, 50);
	if (mkdir("empty", 0700) || chroot("empty") || chdir("/")) {
		fprintf(stderr, "no chroot here: %s\n", strerror(errno));
		_exit(77);
	}
	for (int i = 0; i < 10; i++)
		CHECK(ask(db,
		          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000) "
		          "SELECT /* later */ count(*) FROM c") == 50000);
	go_on(db);
}

/* Changes the user, like a server that starts as root. */
static void changed_user(void)
{
	sqlite3 *db = open_db();

	burn(db, 50);
	if (setgid(65534) || setuid(65534)) {
		fprintf(stderr, "no other user here: %s\n", strerror(errno));
		_exit(77);
	}
	for (int i = 0; i < 10; i++)
		CHECK(ask(db,
		          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000) "
		          "SELECT /* later */ count(*) FROM c") == 50000);
	go_on(db);
}

/* --- the library comes and goes ----------------------------------------------------------- */

static volatile int stop;

static void *keep_burning(void *context)
{
	sqlite3 *db;

	(void)context;
	while (!stop) {
		CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
		burn(db, 2);
		CHECK(sqlite3_close(db) == SQLITE_OK);
	}
	return NULL;
}

/* Closes the library more often than it was opened, while threads run queries. */
static void unloaded(void)
{
	sqlite3 *db = open_db();
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, keep_burning, NULL) == 0);
	burn(db, 25);
	for (int round = 0; round < 10; round++) {
		void *handle = library_path() ? dlopen(library_path(), RTLD_NOW) : NULL;

		if (handle) {
			for (int i = 0; i < 5; i++)
				dlclose(handle);
		}
		sqlite3_reset_auto_extension(); /* also removes the library's entry */
		CHECK(sqlite3_close(db) == SQLITE_OK);
		burn(db = open_db(), 5);
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	go_on(db);
}

const struct scenario scenarios[] = {
	{ "no_signals_pending", no_signals_pending },
	{ "no_descriptors", no_descriptors },
	{ "no_file_size", no_file_size },
	{ "no_file_size_ever", no_file_size_ever },
	{ "no_memory", no_memory },
	{ "no_more_memory", no_more_memory },
	{ "refused_timers", refused_timers },
	{ "refused_timers_later", refused_timers_later },
	{ "refused_calls", refused_calls },
	{ "refused_files", refused_files },
	{ "punished_calls", punished_calls },
	{ "refused_ppoll", refused_ppoll },
	{ "no_proc", no_proc },
	{ "changed_root", changed_root },
	{ "changed_user", changed_user },
	{ "unloaded", unloaded },
	{ NULL, NULL },
};
