/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/session/binding.h"

#include "watch/lock/locks.h"
#include "watch/run/runs.h"
#include "watch/trace_fallback.h"

void session_set_closing(struct session *session)
{
	/* Relaxed: the thread that finalizes the last statement has had the connection's mutex since. */
	__atomic_store_n(&session->closing, true, __ATOMIC_RELAXED);
}

/* The session is no longer one that the hooks alone know of. */
static void set_bound(struct session *session)
{
	__atomic_store_n(&session->closing, false, __ATOMIC_RELAXED);
	session->recorded = false;
}

void session_end(struct session *session)
{
	if (!session_remove(session))
		return;
	set_bound(session);
	trace_fallback_end(session);
	runs_forget(session);
	session_unwatch(session);
	session_release(session);
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

static struct session *add(sqlite3 *db)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(db);
	struct session *session;

	sqlite3_mutex_enter(mutex);
	session = session_add(db, sqlite3_db_filename(db, "main"), false);
	if (session)
		locks_follow(session);
	sqlite3_mutex_leave(mutex);
	return session;
}

struct session *session_bind(sqlite3 *db, bool *is_new, char **error)
{
	struct session *session = session_of(db);
	char name[64];

	*is_new = !session || session->recorded;
	if (!session && !(session = add(db))) {
		*error = sqlite3_mprintf("queryprof: no room for another connection");
		return NULL;
	}
	if (!*is_new)
		return session;
	set_bound(session);
	/* Another copy of the library in the process has a module of its own: one of the same
	 * name would take its place, and end its session. */
	sqlite3_snprintf((int)sizeof name, name, "queryprof_session_%p", (const void *)&module);
	/* On failure SQLite has called end_bound(). */
	if (sqlite3_create_module_v2(db, name, &module, session, end_bound)) {
		*error = sqlite3_mprintf("queryprof: %s", sqlite3_errmsg(db));
		return NULL;
	}
	return session;
}
