/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that the library makes in a host, in one list, and the gate in front of them.
 *
 * A host may confine itself by a seccomp filter, which does not know these calls. A filter that
 * returns an error number is like any kernel that refuses a call. A filter that kills the process, or
 * sends it SIGSYS, is evaluated before it is installed (hook/confine.h), and from then on the
 * punished calls are not made: they fail with ENOSYS in system/call.h, through which all code of the
 * library makes them. All other calls continue. For the C library's own calls on behalf of the
 * library (threads, signal masks), the callers check the gate.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/of_recorder.h"

/* Older headers do not know them. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Who makes a call. The bits are combined. */
enum own_caller {
	BY_HOST = 1,   /* a host's thread, in a wrapper of a query, at a fork, or in the handler */
	BY_STORE = 2,  /* queryprof's threads: the flusher, the reader, the pacer */
	BY_START = 4,  /* a start of sampling, or a forked child that becomes a recorded process */
	BY_THREAD = 8, /* the C library, in a thread of queryprof's */
};

/* What is lost without it; LOST_NOTHING: another call replaces it, or a result is less exact. */
enum own_loss {
	LOST_NOTHING,
	LOST_TIMERS,     /* samples by timers */
	LOST_NEW_TIMERS, /* those of threads that have no timers yet */
	LOST_CPU,        /* CPU times */
	LOST_SWITCHES,   /* counts of waits */
	LOST_MODULES,    /* calls of modules that are loaded later */
	LOST_CHILDREN,   /* forked children */
	LOST_THREADS,    /* threads whose first query comes later */
	OWN_LOSSES,
};

/* clang-format off */

/* Calls that one processor's kernel does not have. */
#if defined(__x86_64__)
#define OWN_CALLS_OF_PROCESSOR(X)                                                          \
	X(access, BY_STORE, LOST_NOTHING) /* whether a file is there */                    \
	X(arch_prctl, BY_THREAD, LOST_NOTHING) /* by libc */                               \
	X(getdents, BY_STORE, LOST_NOTHING) /* names in a folder */                        \
	X(mkdir, BY_STORE, LOST_NOTHING) /* the folder of a temporary trace file */        \
	X(open, BY_STORE, LOST_NOTHING) /* by libraries */                                 \
	X(poll, BY_STORE, LOST_NOTHING) /* whether the command is still there */           \
	X(readlink, BY_HOST | BY_STORE | BY_START, LOST_NOTHING) /* the program's path */  \
	X(rmdir, BY_STORE, LOST_NOTHING) /* the folder of a temporary trace file */        \
	X(stat, BY_STORE, LOST_NOTHING) /* by libraries */                                 \
	X(unlink, BY_STORE, LOST_NOTHING) /* a temporary trace file, the index of a log */
#else
#define OWN_CALLS_OF_PROCESSOR(X)
#endif

/* X(name, callers, what is lost without it), and the reason for the call. */
#define OWN_CALLS(X)                                                                                                 \
	X(brk, BY_HOST | BY_STORE, LOST_NOTHING) /* memory */                                                        \
	X(clock_getres, BY_START, LOST_NOTHING) /* the length of a tick */                                           \
	X(clock_gettime, BY_HOST | BY_STORE, LOST_CPU) /* CPU clocks: the vdso reads the others itself */            \
	X(clock_nanosleep, BY_HOST | BY_STORE, LOST_NOTHING) /* a host's sleep is whole; a wait for a lock */        \
	X(clone, BY_STORE, LOST_NOTHING) /* a thread of queryprof's; stopping other threads to patch code */         \
	X(clone3, BY_STORE, LOST_NOTHING) /* a thread of queryprof's */                                              \
	X(close, BY_HOST | BY_STORE | BY_START, LOST_NOTHING) /* whatever was opened */                              \
	X(close_range, BY_STORE, LOST_NOTHING) /* the store's own table of descriptors */                            \
	X(connect, BY_START, LOST_CHILDREN) /* to the command, to hand a ring over */                                \
	X(epoll_create1, BY_STORE, LOST_NOTHING) /* takes the descriptors 0 to 2 of the store's table */             \
	X(exit, BY_THREAD, LOST_NOTHING) /* the end of a thread of queryprof's */                                    \
	X(faccessat, BY_STORE, LOST_NOTHING) /* whether the trace file may be opened again */                        \
	X(faccessat2, BY_STORE, LOST_NOTHING) /* the same in newer libraries */                                      \
	X(fallocate, BY_STORE | BY_START, LOST_NOTHING) /* room in the trace file; the ring's memory */              \
	X(fchmod, BY_STORE, LOST_NOTHING) /* the trace file's rights */                                              \
	X(fchown, BY_STORE, LOST_NOTHING) /* the same */                                                             \
	X(fcntl, BY_HOST | BY_STORE | BY_START, LOST_CHILDREN) /* locks of the trace file; seals; dup */             \
	X(fdatasync, BY_STORE, LOST_NOTHING) /* stored rows survive the machine */                                   \
	X(flock, BY_STORE, LOST_NOTHING) /* whose a temporary folder is */                                           \
	X(fstat, BY_HOST | BY_STORE, LOST_NOTHING) /* which file a descriptor is of */                               \
	X(fstatfs, BY_STORE, LOST_NOTHING) /* which kind of file system the trace file is on */                      \
	X(fsync, BY_STORE, LOST_NOTHING) /* as fdatasync */                                                          \
	X(ftruncate, BY_STORE | BY_START, LOST_CHILDREN) /* the size of the trace file, of the ring's memory */      \
	X(futex, BY_HOST | BY_STORE, LOST_NOTHING) /* locks; waking the flusher */                                   \
	X(getcwd, BY_STORE | BY_START, LOST_NOTHING) /* a trace file with a relative path */                         \
	X(getdents64, BY_HOST | BY_STORE, LOST_NOTHING) /* names in a folder */                                      \
	X(geteuid, BY_STORE | BY_START, LOST_CHILDREN) /* whose the trace file may be; whether the command listens */\
	X(getpid, BY_HOST | BY_STORE, LOST_NOTHING) /* whether this is a forked child */                             \
	X(getppid, BY_STORE, LOST_NOTHING) /* the time that a call takes that does nothing */                        \
	X(getrandom, BY_HOST | BY_STORE, LOST_NOTHING) /* phases of timers; names of files; libc's malloc */         \
	X(getrusage, BY_HOST, LOST_SWITCHES) /* how often the thread waited */                                       \
	X(getsockopt, BY_START, LOST_CHILDREN) /* whether the command listens at the socket */                       \
	X(gettid, BY_HOST | BY_STORE, LOST_THREADS) /* the thread's number */                                        \
	X(lseek, BY_HOST | BY_STORE, LOST_NOTHING) /* folders that are read again */                                 \
	X(madvise, BY_HOST | BY_STORE | BY_THREAD, LOST_NOTHING) /* memory goes back */                              \
	X(membarrier, BY_HOST | BY_STORE, LOST_NOTHING) /* a lock that belongs to one thread is taken over */        \
	X(memfd_create, BY_START, LOST_CHILDREN) /* the ring's memory */                                             \
	X(mkdirat, BY_STORE, LOST_NOTHING) /* the folder of a temporary trace file */                                \
	X(mmap, BY_HOST | BY_STORE | BY_START, LOST_NOTHING) /* memory; the trace file's index */                    \
	X(mprotect, BY_HOST | BY_STORE | BY_THREAD, LOST_MODULES) /* slots of the linker that are read-only */       \
	X(mremap, BY_HOST | BY_STORE | BY_START, LOST_NOTHING) /* memory; a forked child's ring */                   \
	X(munmap, BY_HOST | BY_STORE | BY_THREAD, LOST_NOTHING) /* memory goes back */                               \
	X(nanosleep, BY_HOST | BY_STORE, LOST_NOTHING) /* a wait for a thread that begins */                         \
	X(newfstatat, BY_HOST | BY_STORE, LOST_NOTHING) /* which file a path or descriptor is of */                  \
	X(openat, BY_HOST | BY_STORE | BY_START, LOST_NOTHING) /* the trace file; files with names of code */        \
	X(pidfd_open, BY_START, LOST_NOTHING) /* the command sees the process's end, or looks for it */              \
	X(ppoll, BY_HOST, LOST_NOTHING) /* a host's poll() is whole */                                               \
	X(prctl, BY_HOST | BY_STORE, LOST_NOTHING) /* names of threads; whether there is a filter */                 \
	X(pread64, BY_HOST | BY_STORE, LOST_NOTHING) /* the trace file; ELF files */                                 \
	X(prlimit64, BY_HOST | BY_STORE, LOST_NOTHING) /* bounds of the stack, of files */                           \
	X(process_vm_readv, BY_HOST, LOST_NOTHING) /* a stack whose bounds are not known, and an interpreter's frames, page by page */            \
	X(ptrace, BY_HOST, LOST_NOTHING) /* stops other threads to patch code, without a filter only */              \
	X(pwrite64, BY_HOST | BY_STORE, LOST_NOTHING) /* the trace file; code that is patched */                     \
	X(read, BY_HOST | BY_STORE | BY_START, LOST_NOTHING) /* files in /proc */                                    \
	X(readlinkat, BY_STORE, LOST_NOTHING) /* links in the trace file's path */                                   \
	X(rseq, BY_THREAD, LOST_NOTHING) /* the begin of a thread, by libc */                                        \
	X(rt_sigaction, BY_HOST, LOST_TIMERS) /* the handler; a signal handed to the host's action */                \
	X(rt_sigpending, BY_HOST, LOST_NOTHING) /* a signal that a write of ours raised */                           \
	X(rt_sigprocmask, BY_HOST | BY_STORE | BY_THREAD, LOST_TIMERS) /* no signal in between */                    \
	X(rt_sigreturn, BY_HOST, LOST_TIMERS) /* the end of each signal */                                           \
	X(rt_sigtimedwait, BY_HOST, LOST_NOTHING) /* a signal that a write of ours raised, or a timer before exec */ \
	X(rt_tgsigqueueinfo, BY_HOST, LOST_NOTHING) /* stacks of other threads; a signal given back to the host */   \
	X(sched_getaffinity, BY_HOST | BY_STORE, LOST_NOTHING) /* the number of processors */                        \
	X(sched_yield, BY_HOST | BY_STORE, LOST_NOTHING) /* a lock that is held for some instructions */             \
	X(sendmsg, BY_START | BY_STORE, LOST_CHILDREN) /* hands the ring over */                                     \
	X(set_robust_list, BY_THREAD, LOST_NOTHING) /* the begin of a thread, by libc */                             \
	X(sigaltstack, BY_HOST, LOST_NOTHING) /* bounds of a signal stack */                                         \
	X(socket, BY_START | BY_STORE, LOST_CHILDREN) /* to the command */                                           \
	X(statfs, BY_STORE, LOST_NOTHING) /* the kind of file system */                                              \
	X(statx, BY_STORE, LOST_NOTHING) /* by libraries */                                                          \
	X(tgkill, BY_HOST | BY_STORE, LOST_NOTHING) /* whether a thread is still there */                            \
	X(timer_create, BY_HOST, LOST_NEW_TIMERS) /* a thread's timers */                                            \
	X(timer_delete, BY_HOST | BY_STORE, LOST_TIMERS) /* their end */                                             \
	X(timer_settime, BY_HOST | BY_STORE, LOST_TIMERS) /* their next expiration */                                \
	X(uname, BY_START, LOST_NOTHING) /* the host's name, for the trace file */                                   \
	X(unlinkat, BY_STORE, LOST_NOTHING) /* a temporary trace file */                                             \
	X(unshare, BY_STORE, LOST_NOTHING) /* a table of descriptors, where there is no close_range */               \
	X(wait4, BY_HOST, LOST_NOTHING) /* stopping other threads to patch code */                                   \
	X(write, BY_HOST | BY_STORE | BY_START, LOST_NOTHING) /* the debug log; a line for the command's last words */                                               \
	OWN_CALLS_OF_PROCESSOR(X)

/* clang-format on */

#define OWN_CALL_NUMBERS 512 /* number of system calls; those of the list are below */

/* A bit for each call: set if it would be punished. Relaxed: a thread that installs a filter sees
 * its own stores, and other threads are ordered by the system call that installs it. */
ADDRESS_OF_RECORDER(uint64_t, own_calls_forbidden);
#ifdef QUERYPROF_REST
#define own_calls_forbidden (own_calls_forbidden_address())
#else
extern uint64_t own_calls_forbidden[OWN_CALL_NUMBERS / 64] __attribute__((visibility("hidden")));
#endif

static inline bool own_call_is_forbidden(long number)
{
	uint64_t word = __atomic_load_n(&own_calls_forbidden[(size_t)number / 64], __ATOMIC_RELAXED);

	return __builtin_expect(word >> ((size_t)number % 64) & 1, 0);
}

/* The process where getpid() is forbidden. */
pid_t own_calls_process(void);
void own_calls_renew_in_child(void);

/* --- for hook/confine.h ----------------------------------------------------------------------------- */

struct own_call {
	const char *name;
	uint16_t number;
	uint8_t callers, loss;
};
extern const struct own_call own_calls[] __attribute__((visibility("hidden")));
extern const size_t own_calls_count __attribute__((visibility("hidden")));

void own_call_forbid(const struct own_call *call, bool is_forbidden);
