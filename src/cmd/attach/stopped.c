/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/stopped.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "cmd/ui/process_files.h"

#define PATIENCE_NS 2000000000ull
#define SPIN_NS 2000000ull

/* The kernel's own value, which a program never sees. */
enum { ERESTARTSYS = 512, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK = 516 };

/* Waits for the thread's next stop; -1: it has ended, -2: it did not stop. */
static int await_stop(pid_t thread)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int status;

	for (;;) {
		pid_t changed = waitpid(thread, &status, __WALL | WNOHANG);
		const uint64_t past = clock_ns(CLOCK_MONOTONIC) - begin;

		if (changed == thread)
			return WIFSTOPPED(status) ? status >> 8 : -1;
		if (changed < 0 && errno != EINTR)
			return -1;
		if (past > PATIENCE_NS)
			return -2;
		if (past < SPIN_NS)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
}

#define EVENT(signal) ((signal) | PTRACE_EVENT_STOP << 8)

/* Stops the thread, but not in the middle of delivering a signal. */
static int await_interrupt(pid_t thread)
{
	int stop;

	while ((stop = await_stop(thread)) >= 0 && stop != EVENT(SIGTRAP)) {
		if (stop >> 8 == PTRACE_EVENT_STOP) /* by SIGSTOP, with the whole process */
			return EBUSY;
		/* A signal for the thread comes first. */
		if (ptrace(PTRACE_CONT, thread, NULL, (void *)(intptr_t)(stop & 0xff)))
			return errno;
	}
	return stop == -2 ? ETIMEDOUT : stop < 0 ? ESRCH : 0;
}

int stopped_begin(struct stopped *stopped, pid_t process, pid_t thread)
{
	int error;

	stopped->process = process;
	stopped->thread = thread;
	stopped->xstate_size = 0;
	/* If this process is killed, the kernel would deliver the stop's SIGTRAP; with this option it
	 * delivers no signal. */
	if (ptrace(PTRACE_SEIZE, thread, NULL, (void *)PTRACE_O_TRACESYSGOOD) ||
	    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL))
		return errno;
	error = await_interrupt(thread);
	if (!error && ptrace(PTRACE_GETREGS, thread, NULL, &stopped->registers))
		error = errno;
	if (error && error != ETIMEDOUT)
		ptrace(PTRACE_DETACH, thread, NULL, NULL);
	return error;
}

static bool is_interrupted(const struct user_regs_struct *registers, int error)
{
	return (long long)registers->orig_rax >= 0 && (long long)registers->rax == -error;
}

static bool has_pending(const struct stopped *stopped)
{
	const unsigned long long blocked =
		(unsigned long long)process_number(stopped->process, stopped->thread, "status", "SigBlk", 16);
	const unsigned long long pending =
		(unsigned long long)process_number(stopped->process, stopped->thread, "status", "SigPnd",
	                                           16) |
		(unsigned long long)process_number(stopped->process, stopped->thread, "status", "ShdPnd", 16);

	return (pending & ~(stopped->xstate_size ? stopped->signals : blocked)) != 0;
}

static void issue_again(struct user_regs_struct *registers)
{
	registers->rax = registers->orig_rax;
	registers->orig_rax = (unsigned long long)-1;
	registers->rip -= 2;
}

int stopped_call_number(const struct stopped *stopped)
{
	static const int errors[] = { EINTR, ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND,
		                      ERESTART_RESTARTBLOCK };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (is_interrupted(&stopped->registers, errors[i]))
			return (int)stopped->registers.orig_rax;
	return -1;
}

struct user_regs_struct stopped_again(const struct stopped *stopped)
{
	struct user_regs_struct registers = stopped->registers;

	if (stopped_call_number(stopped) >= 0)
		issue_again(&registers);
	return registers;
}

int stopped_keep(struct stopped *stopped)
{
	struct iovec xstate = { stopped->xstate, sizeof(stopped->xstate) };

	if (ptrace(PTRACE_GETREGSET, stopped->thread, NT_X86_XSTATE, &xstate) ||
	    ptrace(PTRACE_GETSIGMASK, stopped->thread, sizeof(stopped->signals), &stopped->signals))
		return errno;
	stopped->xstate_size = xstate.iov_len;
	return 0;
}

void stopped_end(struct stopped *stopped)
{
	struct user_regs_struct registers = stopped->registers;
	struct iovec xstate = { stopped->xstate, stopped->xstate_size };
	const bool is_again = is_interrupted(&registers, EINTR) && !has_pending(stopped);

	if (is_again)
		issue_again(&registers);
	/* First the state that the thread restores itself if this process is killed meanwhile. */
	if (stopped->xstate_size) {
		ptrace(PTRACE_SETSIGMASK, stopped->thread, sizeof(stopped->signals), &stopped->signals);
		ptrace(PTRACE_SETREGSET, stopped->thread, NT_X86_XSTATE, &xstate);
	}
	if (is_again || stopped->xstate_size)
		ptrace(PTRACE_SETREGS, stopped->thread, NULL, &registers);
	ptrace(PTRACE_DETACH, stopped->thread, NULL, NULL);
}

/* The registers come first, because with them the thread restores its signals itself. */
static int set_registers(const struct stopped *stopped, const struct user_regs_struct *registers)
{
	const uint64_t all = ~0ull;

	return ptrace(PTRACE_SETREGS, stopped->thread, NULL, registers) ||
	                       ptrace(PTRACE_SETSIGMASK, stopped->thread, sizeof(all), &all)
	               ? errno
	               : 0;
}

long stopped_call(const struct stopped *stopped, struct stopped_way way, long number,
                  const uint64_t arguments[6])
{
	struct user_regs_struct registers = stopped->registers;

	registers.rip = way.instruction;
	registers.rsp = way.stack;
	registers.rax = (unsigned long long)number;
	registers.orig_rax = (unsigned long long)-1;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	if (set_registers(stopped, &registers))
		return -errno;
	/* Before the call and after it. */
	for (int i = 0; i < 2; i++)
		if (ptrace(PTRACE_SYSCALL, stopped->thread, NULL, NULL) || await_stop(stopped->thread) < 0)
			return -ESRCH;
	/* Then again in a stop after which the kernel continues an interrupted call. */
	if (ptrace(PTRACE_GETREGS, stopped->thread, NULL, &registers) ||
	    ptrace(PTRACE_INTERRUPT, stopped->thread, NULL, NULL) ||
	    ptrace(PTRACE_CONT, stopped->thread, NULL, NULL) || await_interrupt(stopped->thread))
		return -ESRCH;
	return (long)registers.rax;
}

int stopped_run(const struct stopped *stopped, const struct user_regs_struct *registers)
{
	int error = set_registers(stopped, registers);

	return !error && ptrace(PTRACE_CONT, stopped->thread, NULL, NULL) ? errno : error;
}

int stopped_poll(const struct stopped *stopped)
{
	int status;
	pid_t changed = waitpid(stopped->thread, &status, __WALL | WNOHANG);

	if (changed == 0 || (changed < 0 && errno == EINTR))
		return 0;
	if (changed < 0 || !WIFSTOPPED(status))
		return -1;
	if (status >> 16 == PTRACE_EVENT_STOP || WSTOPSIG(status) == SIGSTOP || WSTOPSIG(status) == SIGTRAP) {
		ptrace(PTRACE_CONT, stopped->thread, NULL, NULL);
		return 0;
	}
	return WSTOPSIG(status);
}

int stopped_interrupt(const struct stopped *stopped)
{
	return ptrace(PTRACE_INTERRUPT, stopped->thread, NULL, NULL) ? errno
	                                                             : await_interrupt(stopped->thread);
}

int stopped_registers(const struct stopped *stopped, struct user_regs_struct *registers)
{
	return ptrace(PTRACE_GETREGS, stopped->thread, NULL, registers) ? errno : 0;
}

void stopped_leave(const struct stopped *stopped)
{
	ptrace(PTRACE_DETACH, stopped->thread, NULL, NULL);
}
