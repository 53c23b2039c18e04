/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/lock_holders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/pointer_slots.h"
#include "query/query.h"
#include "sqlite/session/transaction.h"

#define FILES 8192u /* a power of two; databases and WALs */

/* SQLite's levels. */
#define LEVEL_SHARED 1
#define LEVEL_RESERVED 2
#define LEVEL_PENDING 3

struct lock_file {
	uint64_t device, inode;
	uint32_t session, process;
	struct transaction *transaction; /* the session's */
	bool has_wal;                    /* the file's own lock is kept between transactions */
	char *path;
	struct wal *wal;
	struct lock_file *database; /* of an entry of a WAL, which has nothing else */
	bool is_listed;
	/* Relaxed atomics, as no thread waits for a change of them. */
	uint32_t level, shared, exclusive; /* of the WAL index: bits */
	/* Who took the first lock, and the first one to write: the newest one, and the newest one that has
	 * changed the database. */
	uint32_t writing; /* of `writes`: the newest one */
	struct holder {
		uint32_t thread_id, transaction;
		uint64_t query_hi, query_lo;
		uint64_t committed_ns;    /* CLOCK_MONOTONIC; 0: it has not */
		char text[LOCK_TEXT_MAX]; /* of the query; under the lock */
	} locks, writes[2];
};

/* Entries are added, removed and described under the lock, but found without it. The keys are
 * separate from the entries, so that searching all of them is quick. The first entry allocates the
 * table, because a host in which queryprof is loaded but refused may have no memory for it. */
LOCK_DEFINE(lock, LOCK_DATABASE_FILES);
static const void *keys[FILES]; /* of base/pointer_slots.h */
static struct lock_file *files; /* FILES of them; written before any key */
static uint32_t used;

/* The slots that were ever used, few of all, so that a visit of all entries is short. */
static uint16_t list[FILES];
static uint32_t listed;

static uint32_t load(const uint32_t *of)
{
	return __atomic_load_n(of, __ATOMIC_RELAXED);
}

static void store(uint32_t *to, uint32_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELAXED);
}

struct lock_request lock_of_level(int level)
{
	return (struct lock_request){ WAIT_ON_SHARED + (enum wait_object)level - LEVEL_SHARED, -1,
		                      level > LEVEL_SHARED };
}

struct lock_request lock_of_slot(int slot, bool is_exclusive)
{
	const int readers = WAIT_ON_WAL_READ - WAIT_ON_WAL_WRITE;

	return (struct lock_request){ WAIT_ON_WAL_WRITE + (enum wait_object)(slot < readers ? slot : readers),
		                      slot, is_exclusive };
}

/* --- entries ---------------------------------------------------------------------------- */

struct lock_file *lock_file_find(const sqlite3_file *file)
{
	uint32_t slot = pointer_slot_find(keys, FILES, file);

	return slot == POINTER_SLOT_NONE ? NULL : &files[slot];
}

/* Under the lock. The first entry that is listed at `*at` or later, and moves that past it; NULL: none. */
static struct lock_file *next_entry(uint32_t *at)
{
	while (*at < listed) {
		const uint16_t slot = list[(*at)++];

		if (pointer_slot_is_used(keys[slot]))
			return &files[slot];
	}
	return NULL;
}

static void publish(struct lock_file *added, const sqlite3_file *file)
{
	const uint32_t slot = (uint32_t)(added - files);

	if (!added->is_listed)
		list[listed++] = (uint16_t)slot;
	added->is_listed = true;
	pointer_slot_publish(keys, &used, slot, file);
}

static struct lock_file *find_room(const sqlite3_file *file)
{
	uint32_t slot;

	if (!files && !(files = calloc(FILES, sizeof(*files))))
		return NULL;
	slot = pointer_slot_choose(keys, FILES, used, file);
	return slot == POINTER_SLOT_NONE ? NULL : &files[slot];
}

struct lock_file *lock_file_add(const sqlite3_file *file, const char *path, struct transaction *transaction,
                                uint32_t session)
{
	struct lock_file *added;
	struct stat identity = { 0 };

	if (!path || stat(path, &identity))
		return NULL;
	lock_acquire(&lock);
	added = lock_file_find(file);
	if (!added && (added = find_room(file))) {
		free(added->path);
		added->path = strdup(path);
		added->device = identity.st_dev;
		added->inode = identity.st_ino;
		added->process = (uint32_t)getpid();
		added->database = NULL;
		added->has_wal = false;
		store(&added->level, 0);
		store(&added->shared, 0);
		store(&added->exclusive, 0);
		added->writes[0].committed_ns = added->writes[1].committed_ns = 0;
		publish(added, file);
	}
	if (added) {
		added->session = session;
		added->transaction = transaction;
	}
	lock_release(&lock);
	return added;
}

void lock_file_remove(const sqlite3_file *file)
{
	uint32_t slot;

	if (!lock_file_find(file))
		return;
	lock_acquire(&lock);
	slot = pointer_slot_find(keys, FILES, file);
	if (slot != POINTER_SLOT_NONE)
		pointer_slot_remove(keys, FILES, &used, slot);
	lock_release(&lock);
}

void lock_files_forget(void)
{
	lock_acquire(&lock);
	for (uint32_t i = 0; i < FILES; i++)
		if (pointer_slot_is_used(keys[i]))
			pointer_slot_remove(keys, FILES, &used, i);
	lock_release(&lock);
}

void lock_file_add_wal(struct lock_file *file, const sqlite3_file *wal)
{
	struct lock_file *added;

	lock_acquire(&lock);
	if (!lock_file_find(wal) && (added = find_room(wal))) {
		added->device = added->inode = 0; /* no holder of a lock */
		added->database = file;
		publish(added, wal);
	}
	lock_release(&lock);
}

struct lock_file *lock_file_database(const struct lock_file *wal)
{
	return wal->database;
}

struct wal **lock_file_wal(struct lock_file *file)
{
	return &file->wal;
}

void lock_files_visit_wals(void (*visit)(struct wal *wal))
{
	struct lock_file *file;

	lock_acquire(&lock);
	for (uint32_t i = 0; (file = next_entry(&i));)
		if (!file->database && file->wal)
			visit(file->wal);
	lock_release(&lock);
}

bool lock_file_has_wal(const struct lock_file *file)
{
	return file->has_wal;
}

bool lock_file_uses_index(const struct lock_file *file)
{
	enum { READ_MARK_0 = 3 }; /* of those who read the database only */

	return (load(&file->shared) | load(&file->exclusive)) & ~(1u << READ_MARK_0);
}

void lock_file_lost_wal(struct lock_file *file)
{
	file->has_wal = false;
}

const char *lock_file_path(const struct lock_file *file)
{
	return file->path ? file->path : "";
}

void lock_file_set_session(struct lock_file *file, struct transaction *transaction, uint32_t session)
{
	if (file->session == session)
		return;
	lock_acquire(&lock);
	file->session = session;
	file->transaction = transaction;
	lock_release(&lock);
}

struct transaction *lock_file_transaction(const struct lock_file *file, uint32_t *session)
{
	*session = file->session;
	return file->transaction;
}

/* --- what they have --------------------------------------------------------------------- */

static void name_holder(struct holder *holder, const struct query_run *run)
{
	const char *text = run && run->text ? run->text : "";
	size_t size = strnlen(text, sizeof(holder->text) - 1);

	store(&holder->thread_id, thread_current ? thread_current->id : 0);
	__atomic_store_n(&holder->committed_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&holder->query_hi, run ? run->key.hi : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&holder->query_lo, run ? run->key.lo : 0, __ATOMIC_RELAXED);
	lock_acquire(&lock);
	memcpy(holder->text, text, size);
	holder->text[size] = 0;
	lock_release(&lock);
}

static bool is_locked(const struct lock_file *file)
{
	return load(&file->shared) || load(&file->exclusive) ||
	       load(&file->level) >= (file->has_wal ? LEVEL_RESERVED : LEVEL_SHARED);
}

bool lock_file_is_locked_here(const struct lock_file *file)
{
	return is_locked(file) && thread_current && load(&file->locks.thread_id) == thread_current->id;
}

unsigned lock_file_locks(const struct lock_file *file)
{
	const bool writes = load(&file->exclusive) & 1 || load(&file->level) >= LEVEL_RESERVED;

	return (unsigned)is_locked(file) << HOLD_ANY | (unsigned)writes << HOLD_WRITE |
	       (unsigned)(load(&file->level) >= LEVEL_PENDING) << HOLD_PENDING |
	       (unsigned)(load(&file->level) > LEVEL_PENDING) << HOLD_EXCLUSIVE;
}

void lock_file_acquired(struct lock_file *file, struct lock_request taken, const struct query_run *run)
{
	bool writes = load(&file->level) >= LEVEL_RESERVED || load(&file->exclusive);

	if (!is_locked(file))
		name_holder(&file->locks, run);
	if (taken.is_exclusive && !writes) {
		if (file->writes[file->writing].committed_ns)
			store(&file->writing, !file->writing);
		name_holder(&file->writes[file->writing], run);
	}
	if (taken.slot < 0) {
		file->has_wal &= taken.lock == WAIT_ON_SHARED;
		store(&file->level, (uint32_t)taken.lock - WAIT_ON_SHARED + LEVEL_SHARED);
	} else {
		uint32_t *mask = taken.is_exclusive ? &file->exclusive : &file->shared;

		file->has_wal = true;
		store(mask, load(mask) | 1u << taken.slot);
	}
}

/* SQLite's VFS goes from RESERVED to EXCLUSIVE through PENDING, in which it remains until the
 * readers have left. */
bool lock_file_is_pending(struct lock_file *file, struct lock_request refused)
{
	if (refused.lock != WAIT_ON_EXCLUSIVE || load(&file->level) != LEVEL_RESERVED)
		return false;
	store(&file->level, LEVEL_PENDING);
	return true;
}

void lock_file_lowered_level(struct lock_file *file, int level)
{
	if ((uint32_t)level < load(&file->level))
		store(&file->level, (uint32_t)level);
}

void lock_file_released_slots(struct lock_file *file, int first, int count)
{
	uint32_t mask = ((1u << count) - 1) << first;

	store(&file->exclusive, load(&file->exclusive) & ~mask);
	store(&file->shared, load(&file->shared) & ~mask);
}

static bool stands_against(const struct lock_file *file, struct lock_request request)
{
	if (request.slot >= 0)
		return (load(&file->exclusive) | (request.is_exclusive ? load(&file->shared) : 0)) >>
		               request.slot &
		       1;
	switch (request.lock) {
	case WAIT_ON_SHARED: return load(&file->level) >= LEVEL_PENDING;
	case WAIT_ON_RESERVED: return load(&file->level) >= LEVEL_RESERVED;
	default: return load(&file->level) >= LEVEL_SHARED;
	}
}

/* The owner of the conflicting lock. */
static const struct holder *holder_of(const struct lock_file *file, struct lock_request request)
{
	const bool writes = request.slot >= 0 ? load(&file->exclusive) >> request.slot & 1
	                                      : load(&file->level) >= LEVEL_RESERVED;

	return writes ? &file->writes[load(&file->writing) & 1] : &file->locks;
}

void lock_file_committed(struct lock_file *file, uint64_t now_ns)
{
	struct holder *writer = &file->writes[file->writing];

	store(&writer->transaction, load(&file->transaction->open.number));
	__atomic_store_n(&writer->committed_ns, now_ns, __ATOMIC_RELAXED);
}

bool lock_file_only_tries(const struct lock_file *file, struct lock_request refused)
{
	return refused.lock == WAIT_ON_WAL_READ && refused.is_exclusive &&
	       !(load(&file->exclusive) & 1u << (WAIT_ON_WAL_CHECKPOINT - WAIT_ON_WAL_WRITE));
}

static bool is_same_database(const struct lock_file *file, const struct lock_file *other)
{
	return other != file && other->inode == file->inode && other->device == file->device &&
	       other->process == file->process;
}

/* Under the lock. */
static void describe_holder(const struct lock_file *file, const struct holder *named, uint32_t transaction,
                            struct lock_holder *holder, char text[LOCK_TEXT_MAX])
{
	*holder = (struct lock_holder){
		.query = { __atomic_load_n(&named->query_hi, __ATOMIC_RELAXED),
		           __atomic_load_n(&named->query_lo, __ATOMIC_RELAXED) },
		.process_id = file->process,
		.thread_id = load(&named->thread_id),
		.session = file->session,
		.transaction = transaction,
	};
	memcpy(text, named->text, LOCK_TEXT_MAX);
}

bool lock_file_find_writer(const struct lock_file *file, uint64_t since_ns, struct lock_holder *writer,
                           char text[LOCK_TEXT_MAX])
{
	const struct lock_file *other;
	uint64_t first = UINT64_MAX;

	lock_acquire(&lock);
	for (uint32_t i = 0; (other = next_entry(&i));) {
		for (int j = 0; j < 2 && is_same_database(file, other); j++) {
			const struct holder *named = &other->writes[j];
			uint64_t at = __atomic_load_n(&named->committed_ns, __ATOMIC_RELAXED);

			if (at <= since_ns || at >= first)
				continue;
			first = at;
			describe_holder(other, named, load(&named->transaction), writer, text);
		}
	}
	lock_release(&lock);
	return first != UINT64_MAX;
}

bool lock_file_find_holder(const struct lock_file *file, struct lock_request request,
                           struct lock_holder *holder, char text[LOCK_TEXT_MAX])
{
	const struct lock_file *other;
	bool found = false;

	lock_acquire(&lock);
	for (uint32_t i = 0; !found && (other = next_entry(&i));) {
		const struct holder *named;

		if (!is_same_database(file, other) || !stands_against(other, request))
			continue;
		named = holder_of(other, request);
		describe_holder(other, named, load(&other->transaction->open.number), holder, text);
		__atomic_store_n(&other->transaction->was_waited_for, true, __ATOMIC_RELAXED);
		found = true;
	}
	lock_release(&lock);
	return found;
}

uint64_t lock_holder_since(const struct lock_holder *holder)
{
	const struct lock_file *file;
	uint64_t since = 0;

	lock_acquire(&lock);
	for (uint32_t i = 0; !since && (file = next_entry(&i));)
		if (!file->database && file->session == holder->session && holder->transaction &&
		    __atomic_load_n(&file->transaction->open.number, __ATOMIC_RELAXED) == holder->transaction)
			since = __atomic_load_n(&file->transaction->state->start_ns, __ATOMIC_RELAXED);
	lock_release(&lock);
	return since;
}
