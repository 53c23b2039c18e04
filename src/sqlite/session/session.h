/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session: a connection of the host that has queryprof, and the table of them.
 *
 * A session is found by its connection and lives at least as long. It outlives the connection if
 * something still needs it: it is counted, and its memory is never unmapped, so a thread that finds
 * it late reads a session that has ended.
 */
#pragma once

#include "base/biased_lock.h"
#include "handler/thread.h"
#include "sqlite/library/host.h"
#include "sqlite/library/idle.h"
#include "sqlite/session/labels.h"
#include "sqlite/session/page_cache.h"
#include "sqlite/session/session_settings.h"
#include "sqlite/session/transaction.h"

struct address_space;

struct session {
	uint32_t count;     /* atomic: the connection and its open runs; 0: free */
	uint32_t next_free; /* index + 1 */
	uint32_t index;
	sqlite3 *db;                        /* atomic; NULL: the session has ended */
	const struct host_library *library; /* that the connection belongs to */
	/* Up to `settings`: what each run touches (base/hot_path.h). */
	uint32_t number;           /* session_id: unique in this process, 0 belongs to none */
	struct biased_lock biased; /* see session_enter_private() */
	int private_runs;          /* that were begun there and are open; they do not hold the session */
	bool has_kept;             /* atomic: the table has ended runs of its statements */
	struct session_labels labels;
	/* Atomic: how often the settings have changed. Runs copy the settings that they need. */
	uint32_t settings_version;
	struct session_settings settings;
	const struct address_space *space; /* of the SQL functions; NULL: those of this process */
	const void *mutex;                 /* atomic; the connection's, NULL: not known */
	char *database;                    /* the file of `main`; NULL: not known */
	struct hash database_hash;         /* hash_bytes() of it; NULL: of "" */
	/* The host's steps on this connection cannot be hooked: statements are followed
	 * by sqlite3_trace_v2, see trace_callback.h. */
	bool has_trace_callback;
	/* If so: the thread id of the owner of the connection's mutex, and how often it holds it;
	 * NULL if the connection has no readable mutex. */
	const volatile int *mutex_owner;
	const volatile unsigned *mutex_count;
	/* And the host's own trace callback, see qp_trace(). */
	struct {
		int (*callback)(unsigned, void *, void *, void *);
		void *context;
		unsigned mask;
	} host_callback;
	/* The host did not attach it, so nothing was added to the connection. `closing` (atomic):
	 * the host has closed it while statements are left; SQLite would report other calls of the
	 * connection to the host's error log. `bound`: SQLite ends the session (runs/session_life.c). */
	bool recorded, closing, bound;
	/* The host wants the tables, by .load or qp_attach(): any of their names brings the
	 * schema, not only the names that no host uses. Written before the session is used. */
	bool wants_tables, has_tables;
	struct transaction transaction;
	bool watched; /* atomic: its settings request samples */
	/* See sqlite/runs/open_statements.h. */
	struct newest_look {
		uint32_t prepares_left; /* atomic: until the next look */
		uint32_t recorded;      /* statements that were open at the newest record */
	} newest_look;
	struct page_cache page_cache;
	/* The newest look at the connection's modules, see sqlite/plan/module_methods.h. */
	struct {
		const void *first;
		uint32_t count, version;
	} modules;
};

/* The session of a connection, NULL if it has none. Lock-free. The caller ensures that the
 * connection exists. After the connection's end only session_hold() keeps the session. */
struct session *session_of(sqlite3 *db);

/* Whether a session's connection has this mutex. Async-signal-safe. */
bool session_has_mutex(const void *mutex);

/* The session whose connection has this mutex, NULL: none. It may end, and its memory be another session's,
 * until session_hold(): look at its mutex again then. */
struct session *session_of_mutex(const void *mutex);

/* Whether the host has closed the connection, which lives for its statements. */
static inline bool session_is_closing(const struct session *session)
{
	/* Relaxed: a thread that got a statement meanwhile may see it late, and only reads the statement. */
	return __atomic_load_n(&session->closing, __ATOMIC_RELAXED);
}

/* The session remains until session_release(). False: it has ended meanwhile. */
bool session_hold(struct session *session);
void session_release(struct session *session);

/* Whether a run of the session is open. */
static inline bool session_has_runs(const struct session *session)
{
	/* Relaxed: of a statement that the caller has, its own run was opened before. */
	return __atomic_load_n(&session->count, __ATOMIC_RELAXED) > 1 ||
	       __atomic_load_n(&session->private_runs, __ATOMIC_RELAXED) != 0;
}

static inline bool session_has_kept(const struct session *session)
{
	/* Relaxed: as above. */
	return __atomic_load_n(&session->has_kept, __ATOMIC_RELAXED);
}

/* A session that only one thread has used so far, as nearly all, belongs to that thread:
 * base/biased_lock.h. False: it is shared, and its user is outside. */
static inline bool session_enter_private(struct session *session, uint32_t thread)
{
	return biased_lock_acquire(&session->biased, thread);
}

/* The same, for a session that already belongs to the thread. False: it does not. */
static inline bool session_enter_private_again(struct session *session, uint32_t thread)
{
	return biased_lock_reacquire(&session->biased, thread);
}

static inline void session_leave_private(struct session *session)
{
	biased_lock_release(&session->biased);
}

/* The session is shared from now on, its user outside; the caller may be the user. */
static inline void session_share(struct session *session)
{
	biased_lock_revoke(&session->biased);
}

/* Adds a session for the connection, with the settings that new sessions have; `database` is
 * copied. The one that it has already, if so; NULL: no room. */
struct session *session_add(sqlite3 *db, const char *database, bool recorded);

/* The connection is freed: the session can no longer be found. True for one caller only, which
 * then ends its runs (runs_forget) and releases the connection's count. */
bool session_remove(struct session *session);

/* Calls `each` for the sessions that have not ended. */
void sessions_each(void (*each)(struct session *session));

/* The session's settings may request samples now; its last query has ended. */
void session_watch(struct session *session);
void session_unwatch(struct session *session);

/* Whether the settings request samples. */
static inline bool session_wants_samples(const struct session_settings *settings)
{
	for (int clock = 0; clock < TIMER_CLOCKS; clock++)
		if (settings->period_ns[clock])
			return true;
	return settings->off_cpu_period_ns != 0;
}

/* Whether the session may see queries of the one with this number (0: of none). */
static inline bool session_may_see(const struct session *session, uint32_t number)
{
	return session->settings.show_queries_of_other_sessions || number == session->number;
}

enum session_counter {
	SESSIONS_OPEN,
	SESSION_COUNTERS,
};
uint64_t session_counter(enum session_counter which);
