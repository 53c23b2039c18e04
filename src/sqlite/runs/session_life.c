/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/session_life.h"

#include "collect/state.h"
#include "handover/storing.h"
#include "sqlite/library/calling.h"
#include "sqlite/locks/locks.h"
#include "sqlite/memory/allocator.h"
#include "sqlite/opcode/locations.h"
#include "sqlite/runs/open_statements.h"
#include "sqlite/runs/runs.h"
#include "sqlite/runs/trace_callback.h"
#include "sqlite/session/recording.h"
#include "timers/threads.h"

/* The connection is freed: its session and the session's runs end. Idempotent. */
static void session_end(struct session *session)
{
	if (!session_remove(session))
		return;
	trace_callback_end(session);
	runs_forget(session);
	session_unwatch(session);
	session_release(session);
}

/* A session that SQLite ends, or in which a thread still is, is its connection's. Others may be those of
 * connections that were closed. */
static void end_old(struct session *session)
{
	if (session->bound || runs_is_inside(session))
		runs_forget(session);
	else
		session_end(session);
}

void sessions_end_old(void)
{
	sessions_each(end_old);
}

/* A module is the one thing whose destructor SQLite calls after all statements
 * and virtual tables of a connection have gone. It makes no tables; two functions,
 * for with one it would be taken as eponymous. */
static int refuse_create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                         char **error)
{
	(void)db, (void)aux, (void)argc, (void)argv, (void)vtab;
	*error = sqlite3_mprintf("queryprof_session makes no tables");
	return SQLITE_ERROR;
}

static int refuse_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                          char **error)
{
	return refuse_create(db, aux, argc, argv, vtab, error);
}

static const sqlite3_module module = {
	.xCreate = refuse_create,
	.xConnect = refuse_connect,
};

static void end_bound(void *session)
{
	session_end(session);
}

/* SQLite ends the session with the connection, or immediately if it has no memory. */
static int bind_session(struct session *session, sqlite3 *db)
{
	char name[64];

	if (session->bound)
		return SQLITE_OK;
	session->bound = true;
	/* Another copy of the library in the process has a module of its own: one of the same
	 * name would take its place, and end its session. */
	sqlite3_snprintf((int)sizeof(name), name, "queryprof_session_%p", (const void *)&module);
	return host_api(session->library)->create_module_v2(db, name, &module, session, end_bound);
}

/* The host is about to close the session's connection while statements are left: the session ends
 * when SQLite frees the connection. */
static void session_bind_closing(struct session *session, sqlite3 *db, bool even_with_statements)
{
	if (!session_hold(session))
		return;
	/* Relaxed: of a statement that another thread has, see session_is_closing(). */
	__atomic_store_n(&session->closing, even_with_statements, __ATOMIC_RELAXED);
	if (bind_session(session, db))
		session_end(session); /* which a SQLite that refuses the call has not done */
	session_release(session);
}

/* session_of() of a connection that is open, in a call of its library. The session of another
 * connection that was at its address, the end of which nobody has reported, ends. */
static struct session *session_of_open(const struct host_library *library, sqlite3 *db)
{
	struct session *session = session_of(db);

	if (!session || session->library == library)
		return session;
	session_end(session);
	return NULL;
}

static struct session *add(sqlite3 *db)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(db);
	struct session *session;

	sqlite3_mutex_enter(mutex);
	session = session_add(db, sqlite3_db_filename(db, "main"), false);
	if (session) {
		locks_follow(session);
		allocator_follow(session->library);
	}
	sqlite3_mutex_leave(mutex);
	return session;
}

struct session *session_bind(sqlite3 *db, bool *is_new, char **error)
{
	struct session *session = session_of_open(host_library(), db);

	*is_new = !session || session->recorded;
	if (!session && !(session = add(db))) {
		*error = sqlite3_mprintf("queryprof: no memory for another connection");
		return NULL;
	}
	if (!*is_new)
		return session;
	session->recorded = false;
	/* On failure SQLite has called end_bound(). */
	if (bind_session(session, db)) {
		*error = sqlite3_mprintf("queryprof: %s", sqlite3_errmsg(db));
		return NULL;
	}
	return session;
}

/* --- connections that are only recorded ----------------------------------------------------- */

void recording_learn(const struct host_library *library, const void *frame)
{
	const struct thread *thread = NULL;
	struct call call;

	call_enter_quiet(&call, library, frame);
	if (call.number && !call.running && (!session_recording() || session_start_recording()))
		thread = sampler_thread();
	if (thread)
		opcode_library_learn(library, thread);
	call_leave(&call);
}

struct session *session_follow(sqlite3 *db)
{
	struct session *session = session_of(db);

	/* One of an earlier recording, in which a thread was when this one began. */
	if (session && __builtin_expect(!sampler_ring(), 0))
		session_start_recording();
	if (session || !db)
		return session;
	if (!session_start_recording())
		return NULL;
	sqlite3_mutex_enter(sqlite3_db_mutex(db));
	session = session_add(db, sqlite3_db_filename(db, "main"), true);
	if (session) {
		locks_follow(session);
		allocator_follow(session->library);
	}
	sqlite3_mutex_leave(sqlite3_db_mutex(db));
	if (session && session->recorded)
		session_watch(session);
	if (!session) {
		counter_add(SAMPLER_SESSIONS_REFUSED, 1);
		storing_begin(); /* which notifies it */
	}
	return session;
}

struct session *recording_meets(const struct host_library *library, sqlite3 *db)
{
	struct session *session = session_of_open(library, db);

	if (session || !session_recording())
		return session;
	/* SQLite recognises a closed connection by its state, even where it has been freed. One that is open
	 * and has this as its newest error begins its session at the next call. */
	return host_api(library)->errcode(db) == SQLITE_MISUSE ? NULL : session_follow(db);
}

void recording_closing(const struct host_library *library, sqlite3 *db, bool even_with_statements)
{
	struct session *session = session_of_open(library, db);

	if (!session)
		return;
	page_cache_read_last(session);
	/* Only SQLite knows whether it frees the connection now: the remaining statements may be
	 * those of its virtual tables (R-Tree, FTS), which are freed with it. */
	if (host_api(library)->next_stmt(db, NULL)) {
		open_statements_inspect(session, true);
		session_bind_closing(session, db, even_with_statements);
	} else if (!session->bound) {
		session_end(session);
	}
}
