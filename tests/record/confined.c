/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that confines itself between two queries. It prints its actions: queries before and after, in a
 * thread and in a forked child, with sleeps inside of them.
 *
 * usage: confined HOW ACTION [NUMBER]...
 *
 *   HOW     prctl
 *           seccomp    for the calling thread
 *           tsync      for all threads
 *           refused    the kernel refuses the filter
 *           early      before the first query
 *           strict
 *           sigreturn  a list of allowed calls that lacks rt_sigreturn
 *           list       a sandbox's list of allowed calls
 *   ACTION  kill, thread (kill it), trap, or an error number: for the system calls NUMBER, and for all
 *           calls that the list lacks
 */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CODE(code, k) ((struct sock_filter)BPF_STMT(code, k))
#define JUMP(k, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no))

static struct sock_filter filter[300];
static unsigned short size;

static unsigned answer_of(const char *action)
{
	if (!strcmp(action, "kill"))
		return SECCOMP_RET_KILL_PROCESS;
	if (!strcmp(action, "thread"))
		return SECCOMP_RET_KILL_THREAD;
	if (!strcmp(action, "trap"))
		return SECCOMP_RET_TRAP;
	return SECCOMP_RET_ERRNO | (unsigned)atoi(action);
}

static void add_number(unsigned number, unsigned answer)
{
	filter[size++] = JUMP(number, 0, 1);
	filter[size++] = CODE(BPF_RET | BPF_K, answer);
}

static void install(const char *how)
{
	struct sock_fprog program = { .len = size, .filter = filter };
	long result;

	if (strcmp(how, "refused") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		exit(77);
	if (!strcmp(how, "strict"))
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else if (!strcmp(how, "seccomp"))
		result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	else if (!strcmp(how, "tsync"))
		result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	else if (!strcmp(how, "refused")) /* an unknown flag; libseccomp's test calls; and no filter */
		result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0x80000000ul, &program) != -1 ||
		         syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) != -1 ||
		         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) !=
		                 -1 ||
		         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (void *)8) != -1;
	else
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	if (result)
		exit(76);
}

static void confine(const char *how, const char *action, char **numbers)
{
	static const int allowed[] = {
		SYS_read,
		SYS_write,
		SYS_pread64,
		SYS_pwrite64,
		SYS_futex,
		SYS_exit,
		SYS_exit_group,
		SYS_rt_sigprocmask,
		SYS_mmap,
		SYS_munmap,
		SYS_brk,
		SYS_mprotect,
		SYS_madvise,
		SYS_mremap,
		SYS_clock_gettime,
		SYS_nanosleep,
		SYS_clock_nanosleep,
		SYS_close,
		SYS_fstat,
		SYS_newfstatat,
		SYS_lseek,
		SYS_fcntl,
		SYS_getpid,
		SYS_gettid,
		SYS_sched_yield,
		SYS_restart_syscall,
		SYS_getrandom,
		SYS_tgkill,
#if defined(SYS_poll)
		SYS_poll,
#else
		SYS_ppoll,
#endif
		SYS_rseq,
		SYS_set_robust_list,
		SYS_clone3,
		SYS_clone,
		SYS_wait4,
		SYS_rt_sigaction,
		SYS_rt_sigreturn /* last */
	};
	bool is_list = !strcmp(how, "list") || !strcmp(how, "sigreturn");
	size_t count = sizeof(allowed) / sizeof(*allowed) - !strcmp(how, "sigreturn");

	filter[size++] = CODE(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (; *numbers; numbers++)
		add_number((unsigned)atoi(*numbers), answer_of(action));
	for (size_t i = 0; is_list && i < count; i++)
		add_number((unsigned)allowed[i], SECCOMP_RET_ALLOW);
	filter[size++] = CODE(BPF_RET | BPF_K, is_list ? answer_of(action) : SECCOMP_RET_ALLOW);
	install(how);
}

static void say(const char *what)
{
	if (write(1, what, strlen(what)) < 0)
		_exit(1);
}

static void say_threads(void)
{
	DIR *threads = opendir("/proc/self/task");
	int count = -2; /* "." and ".." */
	char text[32];

	while (threads && readdir(threads))
		count++;
	if (threads)
		closedir(threads);
	snprintf(text, sizeof(text), "%d threads\n", count);
	say(text);
}

static void do_sleep(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct timespec moment = { .tv_nsec = 2000000 };

	(void)argc, (void)argv;
	nanosleep(&moment, NULL);
	poll(NULL, 0, 1);
	sqlite3_result_int(context, 1);
}

static sqlite3 *open_one(void)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_create_function(db, "pause", 0, SQLITE_UTF8, NULL, do_sleep, NULL, NULL))
		exit(1);
	return db;
}

/* Takes about 10 ms, a third of it asleep, so there are samples of wall time on any machine. */
static void work(sqlite3 *db, const char *where)
{
	char sql[200];

	snprintf(sql, sizeof(sql),
	         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
	         " SELECT /* %s */ sum(i), pause() FROM n",
	         where);
	say(sqlite3_exec(db, sql, NULL, NULL, NULL) ? "failed " : "ok ");
	say(where);
	say("\n");
}

static void *work_in_thread(void *unused)
{
	sqlite3 *db = open_one();

	work(db, "in a thread");
	sqlite3_close(db);
	return unused;
}

static volatile int stop;

/* This thread has timers before the filter is installed, and gets signals at that moment. */
static void *work_beside(void *unused)
{
	sqlite3 *db = open_one();

	while (!stop)
		sqlite3_exec(db,
		             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
		             " SELECT /* beside */ sum(i) FROM n",
		             NULL, NULL, NULL);
	sqlite3_close(db);
	return unused;
}

int main(int argc, char **argv)
{
	bool is_strict = argc > 1 && !strcmp(argv[1], "strict");
	bool is_early = argc > 1 && !strcmp(argv[1], "early");
	pthread_t thread, beside;
	int status = 0;
	sqlite3 *db;
	pid_t child;
	int ends[2];
	char byte;

	if (argc < 3 || pipe(ends))
		return 2;
	if (is_early)
		confine(argv[1], argv[2], argv + 3);
	db = open_one();
	work(db, "before");
	if (is_early)
		say_threads();
	if (pthread_create(&beside, NULL, work_beside, NULL))
		return 1;
	work(db, "with another thread");
	if (is_strict) {
		stop = 1;
		pthread_join(beside, NULL);
	}
	if (!is_early)
		confine(argv[1], argv[2], argv + 3);
	if (is_strict) { /* SQLite would read the clock and free memory */
		say("strict\n");
		syscall(SYS_exit, 3);
	}
	work(db, "after");
	stop = 1;
	pthread_join(beside, NULL);
	work(db, "after the other thread");
	if (pthread_create(&thread, NULL, work_in_thread, NULL))
		say("no thread\n");
	else
		pthread_join(thread, NULL);
	child = fork();
	if (!child) {
		work(db, "in a child");
		_exit(4);
	}
	close(ends[1]);
	if (child > 0 && waitpid(child, &status, 0) == child)
		say(WIFEXITED(status) && WEXITSTATUS(status) == 4 ? "child ended\n" : "child was killed\n");
	else if (child > 0)
		while (read(ends[0], &byte, 1) > 0) /* until the child ends, if waitpid() is refused */
			;
	work(db, "last");
	sqlite3_close(db);
	say("end\n");
	return 5;
}
