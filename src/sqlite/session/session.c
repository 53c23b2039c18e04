/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of sessions: maps a connection to queryprof's data of it.
 *
 * Every step of every statement looks its session up, on any thread, so the look-up takes no lock
 * (base/pointer_slots.h). A connection's slot cannot change while one of its statements is being
 * stepped, because it is removed only when the connection is closed.
 */
#include "sqlite/session/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/pointer_slots.h"
#include "wire/open_statements_record.h"

#define TABLE_SLOTS 65536u /* a power of two */

static struct table {
	const void *keys[TABLE_SLOTS]; /* connections */
	struct session *sessions[TABLE_SLOTS];
} * table;
static uint32_t table_used; /* keys that are not NULL */
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

/* One at a time, so unused parts of a block stay untouched. */
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

static struct session *acquire_free(void)
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
		/* Relaxed: session_hold() orders the reads of the session. */
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

	/* Acquire: the session's content, if its memory belonged to another one before. */
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
	session_labels_free(&session->labels);
	lock_acquire(&table_lock);
	give_free(session);
	lock_release(&table_lock);
}

/* --- the table ----------------------------------------------------------------------- */

struct session *session_of(sqlite3 *db)
{
	const struct table *now = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint32_t slot = now && db ? pointer_slot_find(now->keys, TABLE_SLOTS, db) : POINTER_SLOT_NONE;
	struct session *session;

	if (slot == POINTER_SLOT_NONE)
		return NULL;
	session = __atomic_load_n(&now->sessions[slot], __ATOMIC_RELAXED);
	/* Relaxed: the slot may belong to another connection by now, but only if this one has been
	 * closed, and then the caller does not use the result. */
	return __atomic_load_n(&session->db, __ATOMIC_RELAXED) == db ? session : NULL;
}

static void map_table(void)
{
	void *memory = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory != MAP_FAILED)
		__atomic_store_n(&table, memory, __ATOMIC_RELEASE);
}

/* The slot for a new connection. */
static uint32_t choose_slot(const sqlite3 *db)
{
	if (!table)
		map_table();
	return table ? pointer_slot_choose(table->keys, TABLE_SLOTS, table_used, db) : POINTER_SLOT_NONE;
}

static void table_add(uint32_t slot, struct session *session)
{
	__atomic_store_n(&table->sessions[slot], session, __ATOMIC_RELAXED);
	pointer_slot_publish(table->keys, &table_used, slot, session->db);
	__atomic_add_fetch(&counters[SESSIONS_OPEN], 1, __ATOMIC_RELAXED);
}

static void table_remove(const struct session *session)
{
	uint32_t slot = pointer_slot_find(table->keys, TABLE_SLOTS, session->db);

	if (slot == POINTER_SLOT_NONE)
		return;
	pointer_slot_remove(table->keys, TABLE_SLOTS, &table_used, slot);
	__atomic_sub_fetch(&counters[SESSIONS_OPEN], 1, __ATOMIC_RELAXED);
}

/* Numbers begin at random, so that those of two processes that write to one trace file hardly
 * collide; a forked child begins again. */
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
	session->database_hash = hash_bytes(database ? database : "", database ? strlen(database) : 0);
	session->recorded = recorded;
	session->has_trace_callback = session->closing = session->bound = false;
	session->wants_tables = session->has_tables = false;
	session->mutex_owner = NULL;
	session->mutex_count = NULL;
	transaction_reset(&session->transaction);
	memset(&session->host_callback, 0, sizeof(session->host_callback));
	__atomic_store_n(&session->watched, false, __ATOMIC_RELAXED);
	session->newest_look = (struct newest_look){ OPEN_STATEMENTS_MIN, 0 };
	page_cache_reset(&session->page_cache);
	memset(&session->modules, 0, sizeof(session->modules));
	session->private_runs = 0;
	session->has_kept = false;
	session->biased.is_inside = false;
	__atomic_store_n(&session->biased.user, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&session->db, db, __ATOMIC_RELAXED);
	/* Release: with session_hold(). */
	__atomic_store_n(&session->count, 1, __ATOMIC_RELEASE);
}

struct session *session_add(sqlite3 *db, const char *database, bool recorded)
{
	char *copy = database ? strdup(database) : NULL;
	struct session_settings settings;
	struct session *session;
	uint32_t slot;

	session_defaults(&settings);
	lock_acquire(&table_lock);
	session = session_of(db);
	if (!session && (slot = choose_slot(db)) != POINTER_SLOT_NONE && (session = acquire_free())) {
		fill(session, db, copy, recorded, &settings);
		copy = NULL;
		table_add(slot, session);
	}
	lock_release(&table_lock);
	free(copy);
	if (session && settings.labels[0])
		session_labels_follow(&session->labels, &session->settings);
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

void sessions_each(void (*each)(struct session *session))
{
	/* Acquire: the sessions' memory. */
	uint32_t count = __atomic_load_n(&session_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count; i++)
		if (__atomic_load_n(&session_at(i)->db, __ATOMIC_RELAXED))
			each(session_at(i));
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
