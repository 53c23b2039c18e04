/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread of another process, stopped for a moment without a signal.
 * A system call that the stop has interrupted continues. The kernel does this for most calls; calls that it
 * ends with EINTR are issued again, unless a signal is pending, which would have ended them anyway.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define XSTATE_MAX 14336

struct stopped {
	pid_t process, thread;
	struct user_regs_struct registers; /* that it continues with */
	uint64_t signals;                  /* that it blocks */
	size_t xstate_size;
	_Alignas(64) unsigned char xstate[XSTATE_MAX];
};

/* Stops the thread. Returns 0 or an errno value. After an error the thread is not stopped. ETIMEDOUT: the
 * kernel would stop it later, so this process must end soon. EBUSY: a signal has stopped the process. */
int stopped_begin(struct stopped *stopped, pid_t process, pid_t thread);

/* The thread continues as if it had not been stopped. */
void stopped_end(struct stopped *stopped);

/* The system call in which the thread waited when it was stopped; -1: none. If the thread was stopped
 * before, it may be restart_syscall(). */
int stopped_call_number(const struct stopped *stopped);

/* Reads everything that stopped_end() restores. An errno value. */
int stopped_keep(struct stopped *stopped);

/* The address of the instructions `syscall; ret`, and a stack from which `ret` resumes the interrupted code
 * if this process is killed. */
struct stopped_way {
	uint64_t instruction, stack;
};

/* The registers for a return from a signal handler: the system call is issued again. */
struct user_regs_struct stopped_again(const struct stopped *stopped);

/* A system call of the thread, which stays stopped and takes no more signals. */
long stopped_call(const struct stopped *stopped, struct stopped_way way, long number,
                  const uint64_t arguments[6]);

/* The thread runs with these registers, and takes no signal, until stopped_interrupt(). An errno value. */
int stopped_run(const struct stopped *stopped, const struct user_regs_struct *registers);

/* The state of the running thread: 0: it runs; a signal: a fault has stopped it; -1: it has ended. */
int stopped_poll(const struct stopped *stopped);
int stopped_interrupt(const struct stopped *stopped);

/* Its registers now, when it is stopped again. An errno value. */
int stopped_registers(const struct stopped *stopped, struct user_regs_struct *registers);

/* Leaves it running. */
void stopped_leave(const struct stopped *stopped);
