/*
 * One session: a connection of the host's that has queryprof.
 */
#ifndef QUERYPROF_SQLITE_SESSION_H
#define QUERYPROF_SQLITE_SESSION_H

#include "host.h"
#include "settings.h"

struct session {
	sqlite3 *db;
	struct session_settings settings;
	/* The host's steps on this connection cannot be hooked: statements are told
	 * by sqlite3_trace_v2, see queries.h. */
	bool traced;
	/* Then: thread id of the owner of the connection's mutex, and how often it
	 * holds it; NULL when the connection has none that we can read. */
	const volatile int *mutex_owner;
	const volatile unsigned *mutex_count;
};

/* Makes `db` a session: schema, functions, settings. Once a connection; again is
 * SQLITE_OK. On failure the connection is left without a session, with a message
 * in `*error` (sqlite3_malloc). `traced` as above. */
int session_attach(sqlite3 *db, bool traced, char **error);

/* The session of a connection, NULL when it has none. Lock-free; any thread that
 * may use the connection. */
struct session *session_of(sqlite3 *db);

/* For sqlite3_serialize and other scratch connections of ours: no session for
 * what the calling thread opens between these two. They nest. */
void session_suspend(void);
void session_resume(void);
bool session_suspended(void);

enum session_counter {
	SESSIONS_OPEN,
	SESSIONS_REFUSED, /* connections that could not be given a session */
	SESSION_COUNTERS,
};
uint64_t session_counter(enum session_counter which);

/* fork: no other thread is inside in the child. */
void session_before_fork(void);
void session_after_fork(void);

#endif
