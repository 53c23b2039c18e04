/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of the library, in one list that is walked at fork().
 *
 *	LOCK_DEFINE(unused_lock, LOCK_ENGINE);
 *	...
 *	pthread_mutex_lock(&unused_lock);
 *
 * defines a mutex and gives it its place in the order: a thread that holds a lock takes only
 * locks further down in enum lock_place. The linker makes the list (a section), so a lock
 * that is defined is in it. fork() waits for the locks in that order, a second in all, so
 * that what they guard is whole in the child; in the child all are new.
 *
 * The functions of mutexes are lock.c's in each file that includes this. A thread that has a lock is not
 * cancelled: it would leave the lock taken. Builds with assertions (debug, asan, tsan) abort where a thread
 * takes a lock against the order.
 */
#ifndef QUERYPROF_BASE_LOCK_H
#define QUERYPROF_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The order, outermost first. */
enum lock_place {
	LOCK_OFFER,            /* entry/extension.c: requesting SQLite's routines */
	LOCK_RECORD,           /* entry/record.c: libraries being taken on */
	LOCK_LATE_PATCH,       /* watch/static/adopt.c: code being patched that threads run */
	LOCK_PROCESS,          /* entry/process.c: starting and stopping */
	LOCK_HOOKS,            /* hook/hook.c: slots being patched */
	LOCK_LIBRARIES,        /* watch/host.c: the SQLite libraries */
	LOCK_ENGINE,           /* entry/engine_query.c: queries to be used again */
	LOCK_SETTINGS_CHANGE,  /* settings: one change at a time */
	LOCK_SETTINGS_VALUES,  /* settings: the values, to copy */
	LOCK_SESSIONS,         /* watch/session/session.c: the table of sessions */
	LOCK_DATABASE_METHODS, /* watch/lock/locks.c: methods being replaced */
	LOCK_DATABASE_FILES,   /* watch/lock/lock_files.c: the files of databases */
	LOCK_STORE_SPACE,      /* store/read/space.c: the modules of the file */
	LOCK_STORE,            /* store: the next two at a fork, see store_before_fork() */
	LOCK_STORE_CONTROL,    /* store/control.c: the flusher's state */
	LOCK_STORE_POOL,       /* store/read/pool.c: reading connections */
	LOCK_STATEMENTS_FOLD,  /* query/statement_stats.c: statements being read, or folded */
	LOCK_STATEMENTS,       /* query/statement_stats.c: the table of statements */
	LOCK_SESSION_LABELS,   /* watch/session/session_labels.c: the sets of sessions */
	LOCK_LABELS,           /* label/sets.c: the table of label sets */
	LOCK_SPAN_SITES,       /* span/site.c: the list of sites */
	LOCK_PROGRAMS,         /* watch/plan/programs.c: the programs that were published */
	LOCK_SYMBOL_LOAD,      /* symbol: an object's symbols being read */
	LOCK_SYMBOL_LINES,     /* symbol: an object's lines being read */
	LOCK_PERF_MAP,         /* symbol/perf_map.c */
	LOCK_DEBUGINFOD,       /* symbol/debuginfod.c: fetching */
	LOCK_CODE_MAPS,        /* modules/publish.c: waiting for readers of a code map */
	LOCK_MODULES,          /* modules/modules.c: the list of modules */
	LOCK_SAMPLER,          /* sampler/start.c: starting and stopping */
	LOCK_STACKS,           /* sampler/stacks.c: requesting threads' stacks */
	LOCK_SIGNAL,           /* sampler/signal.c: the choice of the signal */
	LOCK_THREADS,          /* sampler/slots.c: more room for threads */
	LOCK_LOADER,           /* base/loader.c: looking at the objects of the loader */
	LOCK_MEMORY,           /* system/memory.c: the arenas */
	LOCK_PLACES,
};

enum lock_at_fork {
	LOCK_WAITED, /* fork() takes it, if it can within its second */
	/* Within a tenth of a second: the holder may wait without limit for what the forking thread has (the
	 * loader's lock). What it guards can be left at any point, but the child is better off without that.
	 */
	LOCK_BRIEFLY,
	/* fork() does not take it: its holder may wait without limit for what the forking
	 * thread has (a lock of the host's, a signal). What it guards can be left at any point. */
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
	enum lock_place place;
	enum lock_at_fork at_fork;
	pthread_mutex_t *mutex; /* NULL: a group */
	const struct lock_group *group;
	/* In the child, when another thread held the lock at the fork: makes what it guards
	 * usable again. The lock is new then. NULL: it can be left at any point. */
	void (*lost)(void);
	/* In the child, always: what it has to begin with. All locks are new then. NULL: nothing. */
	void (*in_child)(void);
};

/* A static mutex in the list; more members of struct lock may follow. */
#define LOCK_DEFINE(variable, place_, ...)                                                                   \
	static pthread_mutex_t variable = PTHREAD_MUTEX_INITIALIZER;                                         \
	LOCK_LIST_(variable, .name = #place_, .place = (place_), .mutex = &variable, ##__VA_ARGS__)

/* A mutex that stands elsewhere and that a group takes at a fork. */
#define LOCK_DEFINE_GROUPED(variable, place_, mutex_)                                                        \
	LOCK_LIST_(variable, .name = #place_, .place = (place_), .mutex = (mutex_), .at_fork = LOCK_GROUPED)

/* A group in the list: a pointer to a constant struct lock_group. */
#define LOCK_DEFINE_GROUP(variable, place_, group_)                                                          \
	LOCK_LIST_(variable, .name = #place_, .place = (place_), .group = (group_))

#define LOCK_LIST_(variable, ...)                                                                            \
	static const struct lock listed_##variable = { __VA_ARGS__ };                                        \
	static const struct lock *const entry_##variable __attribute__((used, section("queryprof_locks"))) = \
		&listed_##variable

/* For pthread_atfork(). The thread is not cancelled in between: fork() is no cancellation point. */
void locks_before_fork(void);
void locks_after_fork_in_parent(void);
void locks_after_fork_in_child(void);

/* The lock at a place, NULL when this program has none there. */
const struct lock *lock_at(enum lock_place place);

/* Waits for so long at most; for a lock whose holder may wait for what the calling thread has. */
bool lock_take_within(pthread_mutex_t *mutex, uint64_t ns);

int lock_take(pthread_mutex_t *mutex);
/* What `result` says: these take any lock, as they do not wait for ever. */
int lock_took(pthread_mutex_t *mutex, int result);
int lock_release(pthread_mutex_t *mutex);

#define pthread_mutex_lock(mutex) lock_take(mutex)
#define pthread_mutex_trylock(mutex) lock_took(mutex, pthread_mutex_trylock(mutex))
#define pthread_mutex_clocklock(mutex, clock, until)                                                         \
	lock_took(mutex, pthread_mutex_clocklock(mutex, clock, until))
#define pthread_mutex_unlock(mutex) lock_release(mutex)

#endif
