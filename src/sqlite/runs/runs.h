/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: one run of a statement, from its first step to its end (done, an error, reset or finalize),
 * or one operation without a statement (operations.h). The open ones are in a table that is never
 * unmapped, because the handler counts in it, on whatever thread the statement is stepped.
 *
 * A limited number of ended runs stays in the table until their statements are finalized, so that
 * nothing must be looked up when the statement runs again.
 *
 * A run belongs to the call that is inside it: `owner` is the call's number. Only the owner changes
 * the run or ends it. A call finds an open run by its statement or handle and takes it with one
 * compare-and-swap, if no other call has it; so two threads may step one statement, and a statement
 * may be reset inside its own step.
 *
 * A run copies the settings of its session that it needs when it begins, and it holds the session,
 * unless that is private to one thread (session_enter_private()). Then the thread takes and releases
 * its runs by ordinary stores.
 *
 * A run reads SQLite's objects in a call that has the statement. SQLite lets another thread finalize
 * the statement as soon as the real call has returned, but it waits for the private thread. A call
 * that finds at its end that the session has become shared agrees with the finalizing thread through
 * the owner's word: either the call sets OWNER_ENDS before it reads, and the other thread waits for
 * the end; or the other thread has set OWNER_GONE before, and the call reads nothing. Meanwhile the
 * call never waits for the connection's mutex, because the other thread may hold it. A call that
 * begins on a shared session instead holds the mutex from its beginning to its end, so the error
 * message that it reads is its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hot_path.h"
#include "sqlite/session/run.h"

/* No call has these numbers. */
#define RUN_FREE 0ull
#define RUN_OPEN 1ull /* and no call is inside */
#define RUN_ENDED 2ull

/* In the low bits of a call's number. */
#define OWNER_ENDS 1ull /* the call reads the statement for the last time */
#define OWNER_GONE 2ull /* the statement is being finalized by another call */
#define OWNER_FLAGS (OWNER_ENDS | OWNER_GONE)

/* The open run of a statement or handle. NULL: none, or, with `*is_busy`, another call is inside
 * it. The caller owns the run then. */
struct run *runs_acquire(const void *key, uint64_t owner, bool *is_busy);

/* The session of that run, NULL: it belongs to another statement, or is not private. The run may
 * have ended. */
static inline struct session *runs_guess_session(const struct run *run, const sqlite3_stmt *stmt)
{
	/* Relaxed: runs_acquire_private() checks again. */
	return __atomic_load_n(&run->stmt, __ATOMIC_RELAXED) == stmt &&
	                       __atomic_load_n(&run->is_private, __ATOMIC_RELAXED)
	               ? __atomic_load_n(&run->session, __ATOMIC_RELAXED)
	               : NULL;
}

/* Whether the run's session is this one: if the run does not hold it, its memory may belong to
 * another session now. */
static inline bool runs_is_of_session(const struct run *run, const struct session *session)
{
	return run->query.session == session->number;
}

/* runs_acquire() for a statement whose run may be this one; `session` is private now. */
static inline bool runs_acquire_private(struct run *run, const struct session *session,
                                        const sqlite3_stmt *stmt, uint64_t owner)
{
	/* Relaxed: an open run of this session cannot change hands now. */
	if (__atomic_load_n(&run->owner, __ATOMIC_RELAXED) != RUN_OPEN || run->stmt != stmt ||
	    !runs_is_of_session(run, session))
		return false;
	__atomic_store_n(&run->owner, owner, __ATOMIC_RELAXED);
	return true;
}

/* The statement is about to be finalized, and runs_acquire() found that another call is inside of
 * its run. */
void runs_statement_goes(const sqlite3_stmt *stmt);

/* The call with this number was left, and its run cannot be distinguished from another any more. */
COLD_PATH void runs_lose(struct run *run, uint64_t owner);

/* Whether it is the preparation of a statement that does not exist yet. */
static inline bool runs_is_preparation(const struct run *run)
{
	return run->kind == RUN_STATEMENT && !run->stmt;
}

/* Whether the call still owns the run, which may have been lost meanwhile. */
static inline bool runs_is_own(const struct run *run, uint64_t owner)
{
	return (__atomic_load_n(&run->owner, __ATOMIC_RELAXED) & ~OWNER_FLAGS) == owner;
}

/* The run stays open for the next call; it is lost when its statement is gone. */
static inline void runs_give_back(struct run *run)
{
	uint64_t owner = __atomic_load_n(&run->owner, __ATOMIC_RELAXED) & ~OWNER_FLAGS;

	/* Release: with runs_acquire(). */
	if (!__atomic_compare_exchange_n(&run->owner, &(uint64_t){ owner }, RUN_OPEN, false, __ATOMIC_RELEASE,
	                                 __ATOMIC_RELAXED))
		runs_lose(run, owner);
}

/* The same for the run of a statement that `thread` has stepped; NULL: it is no longer sampled. */
static inline void runs_give_back_private(struct run *run, const struct thread *thread)
{
	struct session *session = run->session;

	if (thread && run->is_private && session_enter_private_again(session, thread->id)) {
		__atomic_store_n(&run->owner, RUN_OPEN, __ATOMIC_RELAXED);
		session_leave_private(session);
	} else {
		runs_give_back(run);
	}
}

/* Whether the run has ended. Lasting for private runs only: no other thread can end or take one. */
static inline bool runs_has_ended(const struct run *run)
{
	return __atomic_load_n(&run->owner, __ATOMIC_RELAXED) == RUN_ENDED;
}

/* The statement is about to be finalized, or has just come: its run that has ended is not kept
 * any more. */
void runs_drop_ended(const sqlite3_stmt *stmt);

/* Parts of the table, for begin.c. A free run for the key, or for none (NULL). NULL: the table is
 * full, which is counted. */
struct run *runs_claim(const void *key, uint64_t owner);
void runs_free(struct run *run);

/* runs_acquire() of a run that is RUN_OPEN, or RUN_ENDED. */
struct run *runs_acquire_from(const void *key, uint64_t from, uint64_t owner, bool *is_busy);

/* Whether there may be runs that have ended. Counts one more; false: there are too many. */
bool runs_any_kept(void);
bool runs_count_kept(struct run *run);

/* The key by which the run is found. */
const void **runs_key(const struct run *run);

static inline void runs_set_statement(struct run *run, sqlite3_stmt *stmt)
{
	/* Relaxed: runs_acquire_private() checks again. */
	__atomic_store_n(&run->stmt, stmt, __ATOMIC_RELAXED);
}

/* The thread works for the run from here to runs_pop(). `frame` as in query_tag. */
void runs_push_anew(struct run *run, struct thread *thread, const void *frame);
void runs_pop(struct run *run);

/* `thread` is inside of no query. */
HOT_INLINE void runs_push_alone(struct run *run, struct thread *thread, const void *frame)
{
	run->tag_thread = thread;
	if (run->tag_slot != thread || !sampler_push_again(thread, run->tag, &run->query.key, frame))
		runs_push_anew(run, thread, frame);
}

static inline void runs_push(struct run *run, struct thread *thread, const void *frame)
{
	if (frame && !thread->nesting) {
		runs_push_alone(run, thread, frame);
	} else {
		run->tag_thread = thread;
		runs_push_anew(run, thread, frame);
	}
}

/* Whether the statement exists until the run is released. False: another thread finalizes it. */
bool runs_claim_end(struct run *run);

/* Whether the settings that the run has copied are still those of its session. */
static inline bool runs_has_settings_of(const struct run *run, const struct session *session)
{
	/* Relaxed: a change on another thread may take effect a run later. */
	return run->settings.version == __atomic_load_n(&session->settings_version, __ATOMIC_RELAXED);
}

/* Ends a run without a row. The other one keeps it for its statement, which still exists, if
 * possible: `is_inside`, the session is private now. */
void runs_release(struct run *run);
void runs_keep(struct run *run, bool is_inside);

/* Whether a call is inside of one of the session's runs. */
bool runs_is_inside(const struct session *session);

/* The session has ended, and so do its runs, without a row, except those that a call is inside. */
void runs_forget(struct session *session);

enum run_counter {
	RUNS_STARTED,
	RUNS_LOGGED,    /* records handed to the ring */
	RUNS_LOST,      /* ended unseen, without a line in the log */
	RUNS_UNTRACKED, /* more open statements at the same time than can be followed */
	RUNS_COUNTERS,
};
void runs_count(enum run_counter which);
uint64_t runs_counter(enum run_counter which);

/* The runs of the thread's calls that were left are lost. `frame` as in calling_free_abandoned(). */
void runs_lose_abandoned(struct calling *calling, const struct host_library *library, const void *frame);

/* call_enter(), after runs_lose_abandoned(). */
static inline void runs_enter_call(struct call *call, const struct host_library *library, const void *frame)
{
	struct calling *calling = calling_here();

	if (__builtin_expect(calling && calling->used, 0))
		runs_lose_abandoned(calling, library, frame);
	call_enter(call, library, frame);
}
