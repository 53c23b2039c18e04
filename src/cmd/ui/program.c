/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program run as a child, to which each signal is passed on exactly once.
 *
 * The command stays its parent, instead of becoming the program, so that it can print a summary at the end.
 * So it must pass on signals that were sent to the command alone. The program has already received those of
 * the terminal, or of kill() to the whole process group. It must not get them twice, because it may count its
 * interrupts. The kernel marks the terminal's signals. For the others there is a witness: a process of the
 * same group that never handles a signal. A signal to the group stays pending in it, and /proc shows that.
 *
 * This process blocks all signals and takes them one by one, so their dispositions remain those that the
 * program inherits.
 */
#include "cmd/ui/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/ui/process_files.h"

struct inherited {
	sigset_t blocked;
	struct sigaction on_child, on_file_size;
	bool is_held; /* `blocked` is known */
};

static struct inherited inherited;
static pid_t program, witness;

/* --- starting --------------------------------------------------------------------- */

/* If this process is killed, the program is too, because it would get no signals of the command. */
static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
}

static _Noreturn void become(char **argv, pid_t parent, int errors)
{
	int error;

	die_with_parent(parent);
	sigaction(SIGCHLD, &inherited.on_child, NULL);
	sigaction(SIGXFSZ, &inherited.on_file_size, NULL);
	sigprocmask(SIG_SETMASK, &inherited.blocked, NULL);
	execvp(argv[0], argv);
	error = errno;
	while (write(errors, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(127);
}

static int start_program(char **argv)
{
	pid_t me = getpid();
	int ends[2], error = 0;
	ssize_t size;

	/* exec() closes the second end when the program starts. */
	if (pipe2(ends, O_CLOEXEC))
		return errno;
	program = fork();
	if (program == 0)
		become(argv, me, ends[1]);
	if (program < 0)
		error = errno;
	close(ends[1]);
	while (!error && (size = read(ends[0], &error, sizeof(error))) < 0 && errno == EINTR)
		;
	close(ends[0]);
	if (error && program > 0)
		waitpid(program, NULL, 0);
	return error;
}

#define FDS_MAX 1024 /* checked if there is no /proc */

/* A descriptor with FD_CLOEXEC did not exist at this process's exec: it belongs to the command or to a
 * library that is preloaded here, too, and the program does not have it. */
static bool is_inherited(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* Readers of the program's output must see its end while this process still runs. A library that is preloaded
 * here, too, may continue to write to its descriptors. Their numbers are not freed, so that this cannot reach
 * files that are opened later. */
static void let_go_of_descriptors(void)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	DIR *fds = nowhere < 0 ? NULL : opendir("/proc/self/fd");
	const struct dirent *entry;

	if (nowhere >= 0) {
		dup2(nowhere, STDIN_FILENO);
		dup2(nowhere, STDOUT_FILENO);
	}
	while (fds && (entry = readdir(fds))) {
		int fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && is_inherited(fd))
			dup3(nowhere, fd, O_CLOEXEC);
	}
	for (int fd = STDERR_FILENO + 1; !fds && fd < FDS_MAX; fd++)
		if (is_inherited(fd))
			close(fd);
	if (fds)
		closedir(fds);
}

/* --- the witness ------------------------------------------------------------------ */

/* Closes all of them. close_range() exists since Linux 5.9. */
static void close_descriptors(void)
{
	DIR *fds = syscall(SYS_close_range, 0, ~0u, 0) ? opendir("/proc/self/fd") : NULL;
	const struct dirent *entry;

	while (fds && (entry = readdir(fds)))
		if (atoi(entry->d_name) != dirfd(fds))
			close(atoi(entry->d_name));
	if (fds)
		closedir(fds);
}

static void start_witness(void)
{
	pid_t me = getpid();

	witness = fork();
	if (witness)
		return;
	die_with_parent(me);
	prctl(PR_SET_NAME, "queryprof: wait");
	close_descriptors();
	for (;;)
		pause(); /* all signals are blocked */
}

static void end_witness(pid_t old)
{
	if (old > 0) {
		kill(old, SIGKILL);
		while (waitpid(old, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

static unsigned long long bit_of(int signal)
{
	return 1ull << (signal - 1);
}

static unsigned long long pending_of(pid_t process)
{
	const long long pending = process_number(process, 0, "status", "ShdPnd", 16);

	return pending == -1 ? 0 : (unsigned long long)pending;
}

static unsigned long long pending_here(void)
{
	unsigned long long pending = 0;
	sigset_t set;

	sigpending(&set);
	for (int signal = 1; signal < NSIG; signal++)
		if (sigismember(&set, signal) == 1)
			pending |= bit_of(signal);
	return pending;
}

/* Whether a received signal went to the whole group. A signal to the command alone that follows within the
 * waiting time counts as the group's, because the two cannot be distinguished. */
static bool has_witnessed(int signal)
{
	/* Signals that an earlier witness has received, and the command has not taken yet. */
	static unsigned long long earlier;
	/* The processes of the group receive the signal one after the other. */
	const struct timespec moment = { .tv_nsec = 2000000 };
	pid_t old = witness;

	if (witness <= 0)
		return false;
	nanosleep(&moment, NULL);
	if (!((earlier | pending_of(old)) & bit_of(signal)))
		return false;
	/* Later signals reach the new one, or both. */
	start_witness();
	earlier = (earlier | pending_of(old)) & pending_here();
	end_witness(old);
	return true;
}

/* --- until its end ---------------------------------------------------------------- */

/* Stops like the program, so that a shell notices, until SIGCONT arrives. */
static void stop_alike(int signal_number)
{
	struct sigaction before, standard = { .sa_handler = SIG_DFL };
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, signal_number);
	if (signal_number != SIGSTOP)
		sigaction(signal_number, &standard, &before);
	raise(signal_number);
	sigprocmask(SIG_UNBLOCK, &one, NULL); /* it stops here */
	sigprocmask(SIG_BLOCK, &one, NULL);
	if (signal_number != SIGSTOP)
		sigaction(signal_number, &before, NULL);
}

/* Whether a process or the terminal sent it. The program must not get signals of this process's own timers
 * and descriptors (also of a library that is preloaded into it). */
static bool is_to_be_passed_on(const siginfo_t *info)
{
	static const int of_terminal[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTSTP,
		                           SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH };

	if (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL)
		return true;
	for (size_t i = 0; i < sizeof(of_terminal) / sizeof(*of_terminal); i++)
		if (info->si_signo == of_terminal[i] && info->si_code == SI_KERNEL)
			return true;
	return false;
}

static void pass_on(const siginfo_t *info)
{
	/* First, because the witness also gets the terminal's signals, and would attribute the next one to
	 * the group. */
	bool is_witnessed = has_witnessed(info->si_signo);
	/* The kernel sends the terminal's signals to the group, except that only the session's leader learns
	 * of a hangup. */
	bool is_of_leader = info->si_signo == SIGHUP && getsid(0) == getpid();
	bool is_of_group = (info->si_code > 0 && !is_of_leader) || is_witnessed;

	/* A program that has left the group did not get the signal. Without the command it would be the
	 * group's leader, which cannot leave. */
	if (is_of_group && getpgid(program) == getpgrp())
		return;
	if (info->si_code == SI_QUEUE) {
		sigqueue(program, info->si_signo, info->si_value);
	} else {
		kill(program, info->si_signo);
	}
}

static char last_name[16];

/* A process that has ended keeps its name until its parent waits for it. */
static void read_last_name(void)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)program, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid != program)
		return;
	process_name(program, 0, last_name, sizeof(last_name));
}

int program_process(void)
{
	return program;
}

const char *program_last_name(void)
{
	return last_name;
}

/* True: the program has ended. */
static bool poll_status(int *status)
{
	pid_t changed;

	read_last_name();
	while ((changed = waitpid(program, status, WNOHANG | WUNTRACED)) == program) {
		if (!WIFSTOPPED(*status))
			return true;
		stop_alike(WSTOPSIG(*status));
	}
	return changed < 0 && errno == ECHILD;
}

static void stop_watching(void)
{
	end_witness(witness);
	sigprocmask(SIG_SETMASK, &inherited.blocked, NULL);
}

static bool is_dismissed;

bool program_is_dismissed(void)
{
	return is_dismissed;
}

int program_wait(void)
{
	int status = 0;
	sigset_t all;
	siginfo_t info;

	sigfillset(&all);
	while (!poll_status(&status))
		if (sigwaitinfo(&all, &info) > 0 && info.si_signo != SIGCHLD && is_to_be_passed_on(&info)) {
			is_dismissed |= info.si_signo == SIGTERM || info.si_signo == SIGHUP;
			pass_on(&info);
		}
	stop_watching();
	return status;
}

void program_ignore_file_size(void)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };

	sigaction(SIGXFSZ, &ignored, &inherited.on_file_size);
}

void program_hold_signals(void)
{
	sigset_t all;

	if (inherited.is_held)
		return;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &inherited.blocked);
	inherited.is_held = true;
}

int program_start(char **argv)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	int error;

	program_hold_signals();
	/* If SIGCHLD is ignored, waiting for the end is impossible. */
	sigaction(SIGCHLD, &standard, &inherited.on_child);
	start_witness(); /* first, to miss no signal */
	error = start_program(argv);
	if (error)
		end_witness(witness);
	else
		let_go_of_descriptors();
	return error;
}

_Noreturn void program_end_alike(int status)
{
	if (WIFSIGNALED(status)) {
		const struct sigaction standard = { .sa_handler = SIG_DFL };
		const struct rlimit none = { 0 };
		int signal_number = WTERMSIG(status);
		sigset_t one;

		setrlimit(RLIMIT_CORE, &none); /* only the program's core dump is of interest */
		sigaction(signal_number, &standard, NULL);
		sigemptyset(&one);
		sigaddset(&one, signal_number);
		sigprocmask(SIG_UNBLOCK, &one, NULL);
		raise(signal_number);
		_exit(128 + signal_number);
	}
	_exit(WEXITSTATUS(status));
}
