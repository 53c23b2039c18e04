/*
 * One session: a connection of the host's that has queryprof.
 */
#ifndef QUERYPROF_WATCH_SESSION_H
#define QUERYPROF_WATCH_SESSION_H

#include "watch/host.h"
#include "settings/settings.h"

struct session {
	sqlite3 *db;
	const struct host_library *library; /* that the connection belongs to */
	struct session_settings settings;
	uint32_t number; /* session_id: no other of this process has it, 0 is none's */
	char *database;  /* the file of `main`; NULL: not known */
	/* The host's steps on this connection cannot be hooked: statements are told
	 * by sqlite3_trace_v2, see queries.h. */
	bool traced;
	/* Then: thread id of the owner of the connection's mutex, and how often it
	 * holds it; NULL when the connection has none that we can read. */
	const volatile int *mutex_owner;
	const volatile unsigned *mutex_count;
	/* And the host's own trace callback, see qp_trace(). */
	struct {
		int (*callback)(unsigned, void *, void *, void *);
		void *context;
		unsigned mask;
	} host_trace;
	/* The host did not ask for it: to the connection nothing was added, and the hooks
	 * tell of its end. `closing`: the host has closed it, statements are left. */
	bool recorded, closing;
	/* It asked for the tables by .load or qp_attach(): their names alone bring the schema,
	 * not only those that no host has. Written before the session is used. */
	bool wants_tables, has_tables;
	/* src/sqlite/queries.c only */
	uint32_t open_runs;
	bool watched;
};

/* The session of a connection that asks for one, from here on until SQLite closes it.
 * `*is_new`: it had none, or was only recorded. NULL: it cannot have one, `*error`
 * (sqlite3_malloc). */
struct session *session_bind(sqlite3 *db, bool *is_new, char **error);

/* From now on its statements are seen by sqlite3_trace_v2: the host's calls cannot be
 * hooked. */
void session_trace(struct session *session);

/* settings_set() of the session or, NULL, of what new ones start with; and its statements
 * are followed from now on, or no longer. */
int session_set(struct session *session, const char *name, const char *value, enum setting_source source,
                char **error);

/* Counts a connection that could not be given all of a session. */
void session_refused(void);

/* The session of a connection, NULL when it has none. Lock-free; any thread that
 * may use the connection. */
struct session *session_of(sqlite3 *db);

/* From now on every connection is a session, without schema, functions or PRAGMAs, from
 * the first statement that session_follow() is asked about. `start`, called before,
 * says whether there is anything to sample with. */
void session_record_all(bool (*start)(void));
bool session_recording(void);

/* What new sessions start with may have changed: while all are recorded and that has a
 * period, any statement may be one of a connection that has no session yet. */
void session_watch_strangers(void);

/* The session of a connection whose statement is about to be prepared or stepped: as
 * session_of(), or a new one while all are recorded. */
struct session *session_follow(sqlite3 *db);

/* Whether the session may be told of queries of the one with this number (0: of none). */
static inline bool session_may_see(const struct session *session, uint32_t number)
{
	return session->settings.show_queries_of_other_sessions || number == session->number;
}

/* The host is about to close the connection, or to finalize the statement, which may
 * be the last of a connection closed before: recorded sessions end. */
void session_closing(sqlite3 *db, bool even_with_statements);
void session_finalizing(sqlite3_stmt *stmt);

enum session_counter {
	SESSIONS_OPEN,
	SESSIONS_REFUSED, /* connections that could not be given a session */
	SESSION_COUNTERS,
};
uint64_t session_counter(enum session_counter which);

#endif
