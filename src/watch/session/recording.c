/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/session/recording.h"

#include "store/counters.h"
#include "store/store.h"
#include "watch/session/binding.h"
#include "watch/lock/locks.h"

static bool (*recording)(void); /* NULL: only connections that were attached */

void session_record_all(bool (*start)(void))
{
	__atomic_store_n(&recording, start, __ATOMIC_RELEASE);
	session_watch_strangers();
}

bool session_recording(void)
{
	return __atomic_load_n(&recording, __ATOMIC_ACQUIRE) != NULL;
}

bool session_start_recording(void)
{
	bool (*start)(void) = __atomic_load_n(&recording, __ATOMIC_ACQUIRE);

	return start && start();
}

void session_watch_strangers(void)
{
	static bool watched;
	struct session_settings settings;
	bool wanted;

	if (!session_recording())
		return;
	settings_defaults(&settings);
	wanted = session_wants_samples(&settings);
	if (__atomic_exchange_n(&watched, wanted, __ATOMIC_RELAXED) != wanted)
		sessions_watch_more(wanted ? 1 : -1);
}

/* --- a session begins ------------------------------------------------------------------ */

struct session *session_follow(sqlite3 *db)
{
	struct session *session = session_of(db);
	bool (*start)(void);

	if (session || !db)
		return session;
	start = __atomic_load_n(&recording, __ATOMIC_ACQUIRE);
	if (!start || !start())
		return NULL;
	sqlite3_mutex_enter(sqlite3_db_mutex(db));
	session = session_add(db, sqlite3_db_filename(db, "main"), true);
	if (session)
		locks_follow(session);
	sqlite3_mutex_leave(sqlite3_db_mutex(db));
	if (session && session->recorded)
		session_watch(session);
	if (!session) {
		store_count(STORE_SESSIONS_REFUSED, 1);
		store_start(); /* which notifies it */
	}
	return session;
}

struct session *recording_prepares(sqlite3 *db)
{
	struct session *session = session_of(db);

	/* A closed connection lives as long as its statements, and prepares no more. Without a
	 * statement this is another one at its address, the end of whose last was not seen. */
	if (session && session_is_closing(session) && !sqlite3_next_stmt(db, NULL))
		session_end(session);
	return session_follow(db);
}

/* --- and ends --------------------------------------------------------------------------- */

void recording_closing(sqlite3 *db, bool even_with_statements)
{
	struct session *session = session_recording() ? session_of(db) : NULL;
	sqlite3_mutex *mutex;
	bool is_last;

	if (!session || !session->recorded)
		return;
	mutex = sqlite3_db_mutex(db);
	sqlite3_mutex_enter(mutex);
	is_last = !sqlite3_next_stmt(db, NULL);
	if (!is_last && even_with_statements)
		session_set_closing(session);
	sqlite3_mutex_leave(mutex);
	if (is_last)
		session_end(session);
}

static void end_if_closing(struct session *session)
{
	if (session_is_closing(session))
		session_end(session);
}

int recording_finalize(sqlite3_stmt *stmt, int (*finalize)(sqlite3_stmt *))
{
	sqlite3 *db = stmt && session_recording() ? sqlite3_db_handle(stmt) : NULL;
	struct session *session = db ? session_of(db) : NULL;
	sqlite3_mutex *mutex;
	int rc;

	if (!session || !session->recorded || !session_hold(session))
		return finalize(stmt);
	/* Two threads may finalize the last two: under the mutex each sees what the other has
	 * left. The very last one may take connection and mutex along, and only SQLite knows
	 * whether it does; so it is finalized without the mutex. */
	mutex = sqlite3_db_mutex(db);
	sqlite3_mutex_enter(mutex);
	if (sqlite3_next_stmt(db, NULL) == stmt && !sqlite3_next_stmt(db, stmt)) {
		sqlite3_mutex_leave(mutex);
		end_if_closing(session);
		rc = finalize(stmt);
		end_if_closing(session); /* another thread has closed it in between */
	} else {
		rc = finalize(stmt);
		sqlite3_mutex_leave(mutex);
	}
	session_release(session);
	return rc;
}
