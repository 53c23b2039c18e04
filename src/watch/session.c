/*
 * The table of sessions, from connection to what we keep of it.
 *
 * Every step of every statement looks its session up, on any thread, so looking
 * up takes no lock: open addressing in memory that is never unmapped, entries
 * written under a mutex. A connection's entry cannot change while one of its
 * statements is being stepped, for it goes only when the connection is closed.
 */
#include "watch/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "watch/hooks.h"
#include "watch/queries.h"
#include "watch/runs.h"

#define TABLE_SLOTS 65536u /* a power of two */
#define TABLE_FULL (TABLE_SLOTS / 4 * 3)
#define REMOVED ((sqlite3 *)1)

struct entry {
	sqlite3 *db; /* NULL: never used, ends a search; REMOVED: used before */
	struct session *session;
};

static struct entry *table;
static uint32_t table_used; /* entries that are not NULL */
LOCK_DEFINE(table_lock, LOCK_SESSIONS);
static uint64_t counters[SESSION_COUNTERS];

static uint32_t hash(const sqlite3 *db)
{
	return (uint32_t)((uintptr_t)db * 0x9E3779B97F4A7C15ull >> 40) & (TABLE_SLOTS - 1);
}

struct session *session_of(sqlite3 *db)
{
	const struct entry *entries = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	if (!entries)
		return NULL;
	for (uint32_t i = hash(db);; i = (i + 1) & (TABLE_SLOTS - 1)) {
		/* acquire: the session was stored before its connection */
		sqlite3 *found = __atomic_load_n(&entries[i].db, __ATOMIC_ACQUIRE);

		if (found == db)
			return __atomic_load_n(&entries[i].session, __ATOMIC_RELAXED);
		if (!found)
			return NULL;
	}
}

/* The connection's session in the table: this one, the one that it had already, or
 * NULL when there is no room. */
static struct session *table_add(struct session *session)
{
	struct session *added;

	pthread_mutex_lock(&table_lock);
	if (!table) {
		void *memory = mmap(NULL, TABLE_SLOTS * sizeof *table, PROT_READ | PROT_WRITE,
		                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (memory != MAP_FAILED)
			__atomic_store_n(&table, memory, __ATOMIC_RELEASE);
	}
	added = session_of(session->db);
	if (!added && table && counters[SESSIONS_OPEN] < TABLE_FULL) {
		uint32_t i = hash(session->db);

		while (table[i].db && table[i].db != REMOVED)
			i = (i + 1) & (TABLE_SLOTS - 1);
		if (table[i].db || table_used < TABLE_FULL) {
			table_used += !table[i].db;
			__atomic_store_n(&table[i].session, session, __ATOMIC_RELAXED);
			__atomic_store_n(&table[i].db, session->db, __ATOMIC_RELEASE);
			__atomic_add_fetch(&counters[SESSIONS_OPEN], 1, __ATOMIC_RELAXED);
			added = session;
		}
	}
	pthread_mutex_unlock(&table_lock);
	return added;
}

static void table_remove(const struct session *session)
{
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = hash(session->db); table[i].db; i = (i + 1) & (TABLE_SLOTS - 1)) {
		if (table[i].db != session->db)
			continue;
		__atomic_store_n(&table[i].db, REMOVED, __ATOMIC_RELEASE);
		__atomic_sub_fetch(&counters[SESSIONS_OPEN], 1, __ATOMIC_RELAXED);
		/* Removed entries at the end of a run need not stay: no search goes on
		 * behind them. */
		while (table[i].db == REMOVED && !table[(i + 1) & (TABLE_SLOTS - 1)].db) {
			__atomic_store_n(&table[i].db, NULL, __ATOMIC_RELEASE);
			table_used--;
			i = (i - 1) & (TABLE_SLOTS - 1);
		}
		break;
	}
	pthread_mutex_unlock(&table_lock);
}

static uint32_t closing; /* sessions of sqlite3_close_v2() that wait for their statements */

/* The session is no longer one that the hooks alone know of. */
static void unrecord(struct session *session)
{
	if (session->closing)
		__atomic_sub_fetch(&closing, 1, __ATOMIC_RELAXED);
	session->closing = session->recorded = false;
}

static void session_free(struct session *session)
{
	free(session->database);
	free(session);
}

/* SQLite calls it when the connection is closed, behind everything else; of a
 * recorded connection the hooks call it before. */
static void session_detach(void *context)
{
	struct session *session = context;

	unrecord(session);
	queries_forget(session);
	table_remove(session);
	session_free(session);
}

/* Finds the owner and the depth inside the connection's mutex, if it is the usual
 * one: a pthread mutex comes first in it. Believed only after a trial. */
static void read_mutex(struct session *session)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(session->db);
	pthread_mutex_t *inner = (pthread_mutex_t *)mutex;
	int me = (int)syscall(SYS_gettid);
	unsigned before;

	if (!mutex)
		return;
	sqlite3_mutex_enter(mutex);
	before = inner->__data.__count;
	sqlite3_mutex_enter(mutex);
	if (inner->__data.__owner == me && inner->__data.__count == before + 1) {
		session->mutex_owner = &inner->__data.__owner;
		session->mutex_count = &inner->__data.__count;
	}
	sqlite3_mutex_leave(mutex);
	sqlite3_mutex_leave(mutex);
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

static const sqlite3_module session_module = {
	.xCreate = refuse_create,
	.xConnect = refuse_connect,
};

static char *copy_file_name(sqlite3 *db)
{
	const char *name = sqlite3_db_filename(db, "main");

	return name ? strdup(name) : NULL;
}

/* Numbers begin at random, so that those of two processes which write to one trace
 * file hardly meet; anew in a forked child. */
static uint32_t next_number(void)
{
	static uint64_t newest; /* the process in the upper half */
	uint64_t process = (uint64_t)(uint32_t)getpid() << 32,
		 old = __atomic_load_n(&newest, __ATOMIC_RELAXED), next;

	do {
		uint32_t number = (uint32_t)old + 1;

		if (old >> 32 != process >> 32 &&
		    getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
			number = (uint32_t)(process >> 12);
		next = process | (number ? number : 1);
	} while (
		!__atomic_compare_exchange_n(&newest, &old, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return (uint32_t)next;
}

static struct session *session_new(sqlite3 *db, bool recorded)
{
	struct session *session = calloc(1, sizeof *session), *added;

	if (!session)
		return NULL;
	session->db = db;
	session->library = host_library();
	session->recorded = recorded;
	session->number = next_number();
	session->database = copy_file_name(db);
	settings_defaults(&session->settings);
	added = table_add(session);
	if (added != session)
		session_free(session);
	return added;
}

/* --- recording -------------------------------------------------------------- */

static bool (*recording)(void); /* NULL: only connections that ask for it */

void session_record_all(bool (*start)(void))
{
	__atomic_store_n(&recording, start, __ATOMIC_RELEASE);
	session_watch_strangers();
}

void session_watch_strangers(void)
{
	static bool watched;
	struct session new_session = { 0 };
	bool wanted;

	if (!session_recording())
		return;
	settings_defaults(&new_session.settings);
	wanted = runs_wanted(&new_session);
	if (__atomic_exchange_n(&watched, wanted, __ATOMIC_RELAXED) != wanted)
		__atomic_add_fetch(&queries_watched_sessions, wanted ? 1 : -1u, __ATOMIC_RELAXED);
}

bool session_recording(void)
{
	return __atomic_load_n(&recording, __ATOMIC_ACQUIRE) != NULL;
}

struct session *session_follow(sqlite3 *db)
{
	struct session *session = session_of(db);
	bool (*start)(void);

	if (session || !db)
		return session;
	start = __atomic_load_n(&recording, __ATOMIC_ACQUIRE);
	if (!start || !start())
		return NULL;
	hooks_follow(); /* whose slots could not be told yet */
	session = session_new(db, true);
	if (session && session->recorded)
		queries_watch(session);
	return session;
}

void session_closing(sqlite3 *db, bool even_with_statements)
{
	struct session *session = session_recording() ? session_of(db) : NULL;

	if (!session || !session->recorded)
		return;
	if (!sqlite3_next_stmt(db, NULL))
		session_detach(session);
	else if (even_with_statements && !session->closing) {
		session->closing = true;
		__atomic_add_fetch(&closing, 1, __ATOMIC_RELAXED);
	}
}

void session_finalizing(sqlite3_stmt *stmt)
{
	sqlite3 *db = stmt && __atomic_load_n(&closing, __ATOMIC_RELAXED) ? sqlite3_db_handle(stmt) : NULL;
	struct session *session = db ? session_of(db) : NULL;

	if (session && session->closing && sqlite3_next_stmt(db, NULL) == stmt &&
	    !sqlite3_next_stmt(db, stmt))
		session_detach(session);
}

/* --- attaching -------------------------------------------------------------- */

struct session *session_bind(sqlite3 *db, bool *is_new, char **error)
{
	struct session *session = session_of(db);

	*is_new = !session || session->recorded;
	if (!session && !(session = session_new(db, false))) {
		*error = sqlite3_mprintf("queryprof: no room for another connection");
		return NULL;
	}
	if (!*is_new)
		return session;
	unrecord(session);
	/* On failure SQLite has called session_detach(). */
	if (sqlite3_create_module_v2(db, "queryprof_session", &session_module, session, session_detach)) {
		*error = sqlite3_mprintf("queryprof: %s", sqlite3_errmsg(db));
		return NULL;
	}
	return session;
}

void session_trace(struct session *session)
{
	read_mutex(session);
	session->traced = true;
	queries_trace(session, 0, NULL, NULL);
}

int session_set(struct session *session, const char *name, const char *value, enum setting_source source,
                char **error)
{
	int rc = settings_set(session ? &session->settings : NULL, name, value, source, error);

	if (!rc && session)
		queries_watch(session);
	else if (!rc)
		session_watch_strangers();
	return rc;
}

void session_refused(void)
{
	__atomic_add_fetch(&counters[SESSIONS_REFUSED], 1, __ATOMIC_RELAXED);
}

uint64_t session_counter(enum session_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}
