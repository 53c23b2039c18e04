/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of the library, in one list that is walked at fork().
 *
 *	LOCK_DEFINE(unused_lock, LOCK_ENGINE);
 *	...
 *	lock_acquire(&unused_lock);
 *
 * defines a mutex and gives it its rank: a thread that holds a lock takes only
 * locks further down in enum lock_rank. The linker makes the list (a section), so a lock
 * that is defined is in it. fork() waits for the locks in that order, a second in all, so
 * that what they guard is whole in the child; in the child all are new.
 *
 * Mutexes and conditions are the library's own, words that the kernel waits for: a library of the
 * host's may replace those of libc, do anything in them, and read another clock. A thread that has
 * a lock is not cancelled: it would leave the lock taken. Builds with assertions (debug, asan,
 * tsan) abort where a thread takes a lock against the order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bounded_wait.h"

/* How a function uses locks, for clang's thread-safety analysis. A build with clang warns of a
 * call without a required lock, and of a function that returns with other locks than declared.
 * NOT_ANALYSED: a function that takes locks in a way that the analysis cannot follow. */
#ifdef __clang__
#define LOCK_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define LOCK_ATTRIBUTE(attribute)
#endif
#define REQUIRES(...) LOCK_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ACQUIRES(...) LOCK_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASES(...) LOCK_ATTRIBUTE(release_capability(__VA_ARGS__))
#define ACQUIRES_IF(result, ...) LOCK_ATTRIBUTE(try_acquire_capability(result, __VA_ARGS__))
#define GUARDED_BY(lock) LOCK_ATTRIBUTE(guarded_by(lock))
#define NOT_ANALYSED LOCK_ATTRIBUTE(no_thread_safety_analysis)

/* The order, outermost first. */
enum lock_rank {
	LOCK_OFFER,  /* entry/extension.c: requesting SQLite's routines */
	LOCK_SQLITE, /* sqlite/library/host.c: calls of queryprof's own that take SQLite's mutexes for all */
	LOCK_RECORD, /* recorder/record.c: libraries being taken on */
	LOCK_LATE_PATCH,       /* sqlite/calls/adopt.c: code being patched that threads run */
	LOCK_PROCESS,          /* recorder/process.c: starting and stopping */
	LOCK_HOOKS,            /* hook/hook.c: slots being patched */
	LOCK_LIBRARIES,        /* sqlite/library/host.c: the SQLite libraries */
	LOCK_ENGINE,           /* recorder/engine_query.c: queries to be used again */
	LOCK_SETTINGS_CHANGE,  /* settings: one change at a time */
	LOCK_SETTINGS_VALUES,  /* settings: the values, to copy */
	LOCK_SESSIONS,         /* sqlite/session/session.c: the table of sessions */
	LOCK_DATABASE_METHODS, /* sqlite/locks/locks.c: methods being replaced */
	LOCK_ALLOCATORS,       /* sqlite/memory/allocator.c: methods being replaced */
	LOCK_MODULE_METHODS,   /* sqlite/plan/module_methods.c: methods being replaced */
	LOCK_OPENED_FILES,     /* sqlite/locks/opened_files.c: the files that SQLite has open */
	LOCK_DATABASE_FILES,   /* sqlite/locks/lock_holders.c: the files of databases */
	LOCK_PAGE_FILES,       /* sqlite/pages/page_files.c: the files whose pages are counted */
	LOCK_PAGE_BTREES,      /* sqlite/pages/page_owners.c: the b-trees of databases */
	LOCK_PAGE_MEMORY,      /* sqlite/pages/page_memory.c */
	LOCK_STORE_SPACE,      /* store/read/space.c: the modules of the file */
	LOCK_STORE,            /* store: the next two at a fork, see store_before_fork() */
	LOCK_STORE_CONTROL,    /* store/control/control.c: the flusher's state */
	LOCK_STORE_POOL,       /* store/read/pool.c: reading connections */
	LOCK_STATEMENTS_FOLD,  /* query/statement_stats.c: statements being read, or folded */
	LOCK_STATEMENTS,       /* query/statement_stats.c: the table of statements */
	LOCK_SESSION_LABELS,   /* sqlite/session/labels.c: the sets of sessions */
	LOCK_LABELS,           /* label/sets.c: the table of label sets */
	LOCK_SPAN_SITES,       /* span/site.c: the list of sites */
	LOCK_BYTECODE,         /* sqlite/plan/bytecode.c: the programs that were published */
	LOCK_SYMBOL_LOAD,      /* symbol: an object's symbols being read */
	LOCK_SYMBOL_LINES,     /* symbol: an object's lines being read */
	LOCK_PERF_MAP,         /* symbol/perf_map.c */
	LOCK_DEBUGINFOD,       /* symbol/debuginfod.c: fetching */
	LOCK_CODE_MAPS,        /* modules/publish.c: waiting for readers of a code map */
	LOCK_MODULES,          /* modules/modules.c: the list of modules */
	LOCK_SAMPLER,          /* process/start.c: starting and stopping */
	LOCK_STACKS,           /* timers/stacks.c: requesting threads' stacks */
	LOCK_SIGNAL,           /* timers/signal.c: the choice of the signal */
	LOCK_THREADS,          /* collect/slots.c: more room for threads */
	LOCK_INTERPRETERS,     /* interpreter/call_stack.c: looking for interpreters */
	LOCK_LOADER,           /* base/loader.c: looking at the objects of the loader */
	LOCK_MEMORY,           /* system/memory.c: the arenas */
	LOCK_RANKS,
};

/* Not recursive. Begins as zeroes. */
struct LOCK_ATTRIBUTE(capability("mutex")) mutex {
	uint32_t word; /* atomic, enum in lock.c */
};

enum lock_at_fork {
	LOCK_WAITED, /* fork() takes it, if it can within its second */
	/* Within a tenth of a second, because the holder may wait without limit for a lock of the
	 * forking thread (the loader's). The protected data can be abandoned at any point, but the
	 * child is better off without that. */
	LOCK_BRIEFLY,
	/* fork() does not take it, because its holder may wait without limit for something that
	 * the forking thread has (a lock of the host, a signal). The protected data can be
	 * abandoned at any point. */
	LOCK_LEFT,
	LOCK_GROUPED, /* a group takes it */
};

/* A part of the library that takes and renews its locks itself. */
struct lock_group {
	void (*before_fork)(void);
	void (*after_fork_in_parent)(void);
	void (*after_fork_in_child)(void);
};

struct lock {
	const char *name;
	enum lock_rank rank;
	enum lock_at_fork at_fork;
	struct mutex *mutex; /* NULL: a group */
	const struct lock_group *group;
	/* In the child, if another thread held the lock at the fork: makes the protected data
	 * usable again. The lock is new then. NULL: it can be abandoned at any point. */
	void (*lost)(void);
	/* In the child, always: initialises the protected data. All locks are new then. NULL:
	 * nothing to do. */
	void (*in_child)(void);
};

/* A static mutex in the list; more members of struct lock may follow. */
#define LOCK_DEFINE(variable, rank_, ...)                                                                    \
	static struct mutex variable;                                                                        \
	LOCK_LIST_(variable, .name = #rank_, .rank = (rank_), .mutex = &variable, ##__VA_ARGS__)

/* A mutex that is defined elsewhere and that a group takes at a fork. */
#define LOCK_DEFINE_GROUPED(variable, rank_, mutex_)                                                         \
	LOCK_LIST_(variable, .name = #rank_, .rank = (rank_), .mutex = (mutex_), .at_fork = LOCK_GROUPED)

/* A group in the list: a pointer to a constant struct lock_group. */
#define LOCK_DEFINE_GROUP(variable, rank_, group_)                                                           \
	LOCK_LIST_(variable, .name = #rank_, .rank = (rank_), .group = (group_))

#define LOCK_LIST_(variable, ...)                                                                            \
	static const struct lock listed_##variable = { __VA_ARGS__ };                                        \
	static const struct lock *const entry_##variable __attribute__((used, section("queryprof_locks"))) = \
		&listed_##variable

/* For pthread_atfork(). The thread is not cancelled in between, because fork() is not a
 * cancellation point. */
void locks_before_fork(void);
void locks_after_fork_in_parent(void);
void locks_after_fork_in_child(void);

/* Locks of another library that calls these functions: its list, of which those count whose ranks are free
 * here.
 */
void locks_join(const struct lock *const *first, const struct lock *const *end);

/* The lock at a rank, NULL if this program has none there. */
const struct lock *lock_at(enum lock_rank rank);

void lock_acquire(struct mutex *mutex) ACQUIRES(mutex);
void lock_release(struct mutex *mutex) RELEASES(mutex);

/* False: another thread has it. This takes any lock, whatever the order, as it does not wait; so does the
 * next. */
bool lock_try(struct mutex *mutex) ACQUIRES_IF(true, mutex);

/* Waits for a lock whose holder may wait for what the calling thread has. */
bool lock_acquire_within(struct mutex *mutex, struct bounded_wait *wait) ACQUIRES_IF(true, mutex);

/* --- conditions ---------------------------------------------------------------------------------- */

/* What threads wait for that have a mutex. Begins as zeroes; a forked child can use it as it is. */
struct condition {
	uint32_t changes; /* atomic */
};

/* With the mutex, which another thread may take meanwhile: waits for condition_change(), at most
 * `most_ns` and the rest of the limit. May return without a change. False: that time is over. */
bool condition_wait(struct condition *condition, struct mutex *mutex, struct bounded_wait *wait,
                    uint64_t most_ns) REQUIRES(mutex);

/* With the mutex. Wakes all threads that wait. */
void condition_change(struct condition *condition);

/* --- what is done once --------------------------------------------------------------------------- */

/* Begins as zeroes. */
struct once {
	uint32_t state; /* atomic: the process in which a thread is working on it; all bits: done */
};

/* Other threads wait until it is done. In a child that was forked meanwhile it is done again. */
void once_do(struct once *once, void (*work)(void));
