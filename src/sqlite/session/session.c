/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of sessions, from the connection to queryprof's data of it.
 *
 * Every step of every statement looks its session up, on any thread, so looking
 * up takes no lock: open addressing in memory that is never unmapped, entries
 * written under a mutex. A connection's entry cannot change while one of its
 * statements is being stepped, for it goes only when the connection is closed.
 */
#include "sqlite/session/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/lock.h"
#include "sqlite/session/labels.h"

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

/* --- memory, under the lock ----------------------------------------------------- */

#define BLOCK 64u

static struct session *blocks[TABLE_SLOTS / BLOCK];
static uint32_t session_count; /* sessions ever made; atomic */
static uint32_t free_session;  /* index + 1; 0: none */

static struct session *session_at(uint32_t index)
{
	return &blocks[index / BLOCK][index % BLOCK];
}

static void give_free(struct session *session)
{
	session->next_free = free_session;
	free_session = session->index + 1;
}

/* One at a time: what is not needed of a block stays untouched. */
static struct session *add_session(void)
{
	const uint32_t index = session_count;
	void *memory;

	if (index == TABLE_SLOTS)
		return NULL;
	if (index % BLOCK == 0) {
		memory = mmap(NULL, BLOCK * sizeof(struct session), PROT_READ | PROT_WRITE,
		              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return NULL;
		blocks[index / BLOCK] = memory;
	}
	session_at(index)->index = index;
	/* Release: with session_has_mutex(). */
	__atomic_store_n(&session_count, index + 1, __ATOMIC_RELEASE);
	return session_at(index);
}

static struct session *take_free(void)
{
	struct session *session;

	if (!free_session)
		return add_session();
	session = session_at(free_session - 1);
	free_session = session->next_free;
	return session;
}

bool session_has_mutex(const void *mutex)
{
	uint32_t count = __atomic_load_n(&session_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count; i++)
		if (__atomic_load_n(&session_at(i)->mutex, __ATOMIC_RELAXED) == mutex)
			return true;
	return false;
}

struct session *session_of_mutex(const void *mutex)
{
	uint32_t count = __atomic_load_n(&session_count, __ATOMIC_ACQUIRE);
	struct session *session;

	for (uint32_t i = 0; i < count; i++) {
		session = session_at(i);
		/* Relaxed: session_hold() orders what is read of the session. */
		if (__atomic_load_n(&session->mutex, __ATOMIC_RELAXED) == mutex &&
		    __atomic_load_n(&session->db, __ATOMIC_RELAXED))
			return session;
	}
	return NULL;
}

/* --- counts ------------------------------------------------------------------------ */

bool session_hold(struct session *session)
{
	uint32_t count = __atomic_load_n(&session->count, __ATOMIC_RELAXED);

	/* Acquire: what the session is, when its memory had another one before. */
	while (count && !__atomic_compare_exchange_n(&session->count, &count, count + 1, true,
	                                             __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		;
	return count > 0;
}

void session_release(struct session *session)
{
	/* Release and acquire: whatever the others did with the session came before its end. */
	if (__atomic_sub_fetch(&session->count, 1, __ATOMIC_ACQ_REL))
		return;
	free(session->database);
	session->database = NULL;
	session_labels_free(session);
	lock_acquire(&table_lock);
	give_free(session);
	lock_release(&table_lock);
}

/* --- the table ----------------------------------------------------------------------- */

static uint32_t hash(const sqlite3 *db)
{
	return (uint32_t)((uintptr_t)db * 0x9E3779B97F4A7C15ull >> 40) & (TABLE_SLOTS - 1);
}

struct session *session_of(sqlite3 *db)
{
	const struct entry *entries = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	if (!entries || !db)
		return NULL;
	for (uint32_t i = hash(db);; i = (i + 1) & (TABLE_SLOTS - 1)) {
		/* acquire: the session was stored before its connection */
		sqlite3 *found = __atomic_load_n(&entries[i].db, __ATOMIC_ACQUIRE);

		if (found == db) {
			struct session *session = __atomic_load_n(&entries[i].session, __ATOMIC_RELAXED);

			/* Relaxed: the entry may be another connection's by now, but only when this
			 * one has been closed, and then the caller has no use for the result. */
			return __atomic_load_n(&session->db, __ATOMIC_RELAXED) == db ? session : NULL;
		}
		if (!found)
			return NULL;
	}
}

static void map_table(void)
{
	void *memory = mmap(NULL, TABLE_SLOTS * sizeof(*table), PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory != MAP_FAILED)
		__atomic_store_n(&table, memory, __ATOMIC_RELEASE);
}

/* The entry for a new connection, NULL: there is no room. */
static struct entry *find_room(const sqlite3 *db)
{
	uint32_t i = hash(db);

	if (!table)
		map_table();
	if (!table || counters[SESSIONS_OPEN] >= TABLE_FULL)
		return NULL;
	while (table[i].db && table[i].db != REMOVED)
		i = (i + 1) & (TABLE_SLOTS - 1);
	return table[i].db || table_used < TABLE_FULL ? &table[i] : NULL;
}

static void table_add(struct entry *entry, struct session *session)
{
	table_used += !entry->db;
	__atomic_store_n(&entry->session, session, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->db, session->db, __ATOMIC_RELEASE);
	__atomic_add_fetch(&counters[SESSIONS_OPEN], 1, __ATOMIC_RELAXED);
}

static void table_remove(const struct session *session)
{
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
		    getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
			number = (uint32_t)(process >> 12);
		next = process | (number ? number : 1);
	} while (
		!__atomic_compare_exchange_n(&newest, &old, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return (uint32_t)next;
}

/* The memory of an earlier session, which may still be looked at. */
static void fill(struct session *session, sqlite3 *db, char *database, bool recorded,
                 const struct session_settings *settings)
{
	session->library = host_library();
	__atomic_store_n(&session->mutex, NULL, __ATOMIC_RELAXED);
	session->settings = *settings;
	session->number = next_number();
	session->database = database;
	session->recorded = recorded;
	session->traced = session->closing = session->bound = false;
	session->wants_tables = session->has_tables = false;
	session->mutex_owner = NULL;
	session->mutex_count = NULL;
	memset(&session->transaction, 0, offsetof(struct transaction, text));
	memset(&session->host_trace, 0, sizeof(session->host_trace));
	__atomic_store_n(&session->watched, false, __ATOMIC_RELAXED);
	session->private_runs = 0;
	session->has_kept = false;
	session->bias.is_inside = false;
	__atomic_store_n(&session->bias.user, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&session->db, db, __ATOMIC_RELAXED);
	/* Release: with session_hold(). */
	__atomic_store_n(&session->count, 1, __ATOMIC_RELEASE);
}

struct session *session_add(sqlite3 *db, const char *database, bool recorded)
{
	char *copy = database ? strdup(database) : NULL;
	struct session_settings settings;
	struct session *session;
	struct entry *room;

	settings_defaults(&settings);
	lock_acquire(&table_lock);
	session = session_of(db);
	if (!session && (room = find_room(db)) && (session = take_free())) {
		fill(session, db, copy, recorded, &settings);
		copy = NULL;
		table_add(room, session);
	}
	lock_release(&table_lock);
	free(copy);
	if (session && settings.labels[0])
		session_labels_follow(session);
	return session;
}

bool session_remove(struct session *session)
{
	bool is_first;

	lock_acquire(&table_lock);
	is_first = session->db != NULL;
	if (is_first)
		table_remove(session);
	__atomic_store_n(&session->db, NULL, __ATOMIC_RELAXED);
	lock_release(&table_lock);
	return is_first;
}

/* --- who is sampled ------------------------------------------------------------------ */

void session_watch(struct session *session)
{
	if (session_wants_samples(&session->settings) &&
	    !__atomic_exchange_n(&session->watched, true, __ATOMIC_RELAXED))
		sessions_watch_more(1);
}

void session_unwatch(struct session *session)
{
	if (__atomic_exchange_n(&session->watched, false, __ATOMIC_RELAXED))
		sessions_watch_more(-1);
}

/* --- counters -------------------------------------------------------------------------- */

uint64_t session_counter(enum session_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}
