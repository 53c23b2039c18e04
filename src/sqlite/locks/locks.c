/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/locks.h"

#include <stddef.h>
#include <string.h>

#include "base/lock.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "hook/hook.h"
#include "sqlite/locks/lock_holders.h"
#include "sqlite/locks/mutexes.h"
#include "sqlite/locks/transactions.h"
#include "sqlite/locks/wal.h"

#define TABLES_MAX 8 /* two a library: SQLite has another one for files without locks */

/* SQLite's names for the slots of the WAL index. */
#define SLOT_CHECKPOINT 1

/* A table of methods, and what stood in it. */
struct lock_methods {
	const sqlite3_io_methods *table; /* NULL: none */
	int (*close)(sqlite3_file *);
	int (*lock)(sqlite3_file *, int);
	int (*unlock)(sqlite3_file *, int);
	int (*shm_lock)(sqlite3_file *, int, int, int);
	int (*shm_unmap)(sqlite3_file *, int);
	int (*write)(sqlite3_file *, const void *, int, sqlite3_int64);
	int (*truncate)(sqlite3_file *, sqlite3_int64);
	int (*sync)(sqlite3_file *, int);
};

LOCK_DEFINE(lock, LOCK_DATABASE_METHODS, .at_fork = LOCK_LEFT);
static struct lock_methods tables[TABLES_MAX];

/* --- whose call it is ------------------------------------------------------------------- */

static struct run *current_run(struct calling *calling)
{
	struct call_slot *slot = calling ? calling_find(calling, __builtin_frame_address(0)) : NULL;

	return slot && slot->run && !slot->run->is_queryprofs ? slot->run : NULL;
}

/* The file's entry; this also finds a database that was attached later. */
static struct lock_file *entry_of(sqlite3_file *file, const struct run *run)
{
	struct lock_file *found = lock_file_find(file);

	if (found || !run || !run->session || !run->session->db)
		return found;
	locks_follow(run->session);
	return lock_file_find(file);
}

/* --- waiting ---------------------------------------------------------------------------- */

/* Whether it is this run that waits, and not one around it. */
static bool is_waiting(const struct thread *thread, const struct run *run)
{
	return thread->waiting->lock && thread->wait.lock_query == run->query.key.lo;
}

/* The run's own transaction, if an earlier statement began it; NULL: none. */
static const struct transaction *earlier_transaction(const struct run *run)
{
	const struct transaction *own = run->session ? &run->session->transaction : NULL;

	return own && __atomic_load_n(&own->open.number, __ATOMIC_RELAXED) && !own->open.has_ended &&
	                       own->state->first.lo && own->state->first.lo != run->query.key.lo
	               ? own
	               : NULL;
}

static const char *path_of(const struct run *run, const struct lock_refusal *refused)
{
	const char *path = refused->file            ? lock_file_path(refused->file)
	                   : run->session->database ? run->session->database
	                                            : "";

	return strlen(path) <= 1024 ? path : "";
}

/* `code`: SQLite's; 0: the run goes on. */
static void write_record(const struct run *run, const struct thread *thread,
                         const struct lock_refusal *refused, uint32_t lock_requested, uint64_t wait_ns,
                         enum lock_outcome outcome, int code)
{
	struct ring *ring = sampler_ring();
	const struct transaction *own = earlier_transaction(run);
	const char *texts[] = { path_of(run, refused), refused->text, own ? own->state->text : "" };
	const size_t sizes[] = { strlen(texts[0]), strlen(texts[1]), strlen(texts[2]) };
	struct lock_wait_record *record;
	char *to;

	if (!ring || !(record = ring_reserve(ring, sizeof(*record) + sizes[0] + sizes[1] + sizes[2])))
		return;
	*record = (struct lock_wait_record){
		.query = run->query.key,
		.start_realtime_ns = refused->since_realtime_ns,
		.wait_ns = wait_ns,
		.lock = lock_requested,
		.outcome = outcome,
		.thread_id = thread->id,
		.holder = refused->holder,
		.tries = refused->tries,
		.code = (uint32_t)code,
		.transaction = own ? own->open.number : 0,
		.age_ns = own ? query_since(own->state->start_ns, refused->since_ns) : 0,
		.database_size = (uint32_t)sizes[0],
		.holder_size = (uint32_t)sizes[1],
		.first_size = (uint32_t)sizes[2],
	};
	to = record->text;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		memcpy(to, texts[i], sizes[i]);
		to += sizes[i];
	}
	ring_commit(ring, record, RECORD_LOCK_WAIT);
}

/* A process that is killed while it waits has published it. */
static void publish_wait(const struct run *run, struct thread *thread, struct lock_refusal *refused)
{
	uint64_t wait_ns = fast_clock_ns(&thread->clock) - refused->since_ns;

	if ((int64_t)wait_ns < (int64_t)refused->publish_next_ns)
		return;
	refused->publish_next_ns = 2 * wait_ns;
	if (run->settings.log)
		write_record(run, thread, refused, thread->waiting->lock, wait_ns, LOCK_WAITING, 0);
}

static void refuse(struct calling *calling, struct thread *thread, const struct run *run,
                   struct lock_file *file, struct lock_request request)
{
	struct lock_refusal *refused = &calling->refused;

	/* A run that was refused a write lock begins again with SHARED, which the holder's commit
	 * may refuse. */
	if (is_waiting(thread, run) && refused->file == file &&
	    (thread->waiting->lock == request.lock || request.lock == WAIT_ON_SHARED)) {
		refused->tries++;
		publish_wait(run, thread, refused);
		return;
	}
	*refused =
		(struct lock_refusal){ .file = file, .tries = 1, .publish_next_ns = LOCK_WAIT_PUBLISHED_NS };
	if (!lock_file_find_holder(file, request, &refused->holder, refused->text) &&
	    thread->wait.refused_by != 0)
		refused->holder.process_id = thread->wait.refused_by;
	/* After the search: SQLite may try another lock immediately, and has not waited then. */
	refused->since_ns = fast_clock_ns(&thread->clock);
	refused->since_realtime_ns = refused->since_ns + thread->realtime_offset_ns;
	thread->wait.lock_query = run->query.key.lo;
	__atomic_store_n(&thread->waiting->lock_since_ns, refused->since_ns, __ATOMIC_RELAXED);
	/* Relaxed: another thread may still read the holder before. */
	__atomic_store_n(&thread->waiting->holder_session, refused->holder.session, __ATOMIC_RELAXED);
	__atomic_store_n(&thread->waiting->holder_process, refused->holder.process_id, __ATOMIC_RELAXED);
	__atomic_store_n(&thread->waiting->holder_thread, refused->holder.thread_id, __ATOMIC_RELAXED);
	__atomic_store_n(&thread->waiting->lock, request.lock, __ATOMIC_RELAXED);
}

/* A lock that was given at the second try, without a sleep in between, was not waited for. */
#define WAITED_NS 50000

static void end_wait(struct calling *calling, struct thread *thread, const struct run *run, uint64_t end_ns,
                     int code)
{
	bool is_refused = locks_is_refusal(code);
	uint32_t lock_requested = thread->waiting->lock;
	uint64_t wait_ns = query_since(calling->refused.since_ns, end_ns);

	__atomic_store_n(&thread->waiting->lock, 0, __ATOMIC_RELAXED);
	if (run->settings.log && (is_refused || wait_ns >= WAITED_NS))
		write_record(run, thread, &calling->refused, lock_requested, wait_ns,
		             is_refused ? LOCK_REFUSED : LOCK_GIVEN, code);
}

/* SQLite did not ask for a lock, or it got it: the transaction's snapshot is too old to write to, or another
 * connection with the same shared cache uses the table. */
static void refuse_without_lock(struct calling *calling, struct thread *thread, const struct run *run,
                                int code)
{
	struct lock_refusal *refused = &calling->refused;
	const struct transaction *own = earlier_transaction(run);
	bool is_snapshot = code == SQLITE_BUSY_SNAPSHOT && own;

	if (!run->settings.log || !run->session || (!is_snapshot && (code & 0xff) != SQLITE_LOCKED))
		return;
	*refused = (struct lock_refusal){ .file = own ? own->file : NULL };
	if (is_snapshot && refused->file)
		lock_file_find_writer(refused->file, own->state->start_ns, &refused->holder, refused->text);
	refused->since_ns = run->query.left_ns;
	refused->since_realtime_ns = refused->since_ns + thread->realtime_offset_ns;
	write_record(run, thread, refused, is_snapshot ? WAIT_ON_WAL_WRITE : WAIT_OBJECT_NONE, 0,
	             LOCK_REFUSED, code);
}

/* The session to which the file belongs; NULL: that one has ended, and its memory belongs to another. */
static struct session *session_of_file(const struct lock_file *file)
{
	uint32_t number;
	struct transaction *transaction = lock_file_transaction(file, &number);
	struct session *session =
		(struct session *)((char *)transaction - offsetof(struct session, transaction));

	return session->number == number ? session : NULL;
}

/* A file belongs to the session whose run locks it first: a backup locks the file of another
 * connection, and connections with a shared cache have one file. */
static void note_acquired(struct lock_file *file, struct lock_request request, const struct run *run)
{
	unsigned before = lock_file_locks(file);
	struct session *session = NULL;

	if (run && run->session && !(before >> HOLD_ANY & 1))
		lock_file_set_session(file, &run->session->transaction, run->session->number);
	lock_file_acquired(file, request, run ? &run->query : NULL);
	if (run)
		session = session_of_file(file);
	if (session)
		transaction_locks_change(session, before, lock_file_locks(file), file, run);
}

/* The file has given locks back. */
static void see_release(struct lock_file *file, unsigned before)
{
	unsigned after = lock_file_locks(file);
	struct session *session = after != before ? session_of_file(file) : NULL;
	const struct run *run = session ? current_run(calling_current) : NULL;

	if (session)
		transaction_locks_change(session, before, after, file,
		                         run && run->session == session ? run : NULL);
}

static void see_result(sqlite3_file *file, struct lock_request request, int rc)
{
	struct calling *calling = calling_current;
	struct run *run = current_run(calling);
	struct lock_file *entry = entry_of(file, run);
	struct thread *thread = thread_current;
	struct session *session;
	unsigned before;

	if (!entry)
		return;
	before = lock_file_locks(entry);
	if (rc == SQLITE_OK)
		note_acquired(entry, request, run);
	if (!run || !thread)
		return;
	if (rc == SQLITE_BUSY && lock_file_is_pending(entry, request) && (session = session_of_file(entry)))
		transaction_locks_change(session, before, lock_file_locks(entry), entry, run);
	if (rc == SQLITE_BUSY && !lock_file_only_tries(entry, request))
		refuse(calling, thread, run, entry, request);
	else if (rc != SQLITE_BUSY && is_waiting(thread, run) && thread->waiting->lock == request.lock &&
	         calling->refused.file == entry)
		end_wait(calling, thread, run, fast_clock_ns(&thread->clock), SQLITE_OK);
}

void locks_run_is_lost(const struct run *run)
{
	if (thread_current && is_waiting(thread_current, run))
		__atomic_store_n(&thread_current->waiting->lock, 0, __ATOMIC_RELAXED);
}

void locks_wait_ends(const struct run *run, const struct thread *thread, int code)
{
	if (thread != thread_current)
		return;
	if (calling_current && locks_is_refusal(code) &&
	    (!is_waiting(thread, run) || code == SQLITE_BUSY_SNAPSHOT))
		refuse_without_lock(calling_current, thread_current, run, code);
	else if (calling_current && locks_is_refusal(code))
		/* The call has returned; queryprof's work since then is not part of the wait. */
		end_wait(calling_current, thread_current, run, run->query.left_ns, code);
	if (!is_waiting(thread, run))
		return;
	__atomic_store_n(&thread_current->waiting->lock, 0, __ATOMIC_RELAXED);
}

/* --- the methods ------------------------------------------------------------------------ */

static void follow_wal(const struct session *session, struct lock_file *entry, const sqlite3_file *database);

static struct wal_call wal_call_of(const struct lock_methods *real, sqlite3_file *file)
{
	return (struct wal_call){ lock_file_find(file), file, real->table, current_run(calling_current) };
}

static bool sees_unmap(const struct lock_methods *real, const sqlite3_file *file);

static int lock_with(const struct lock_methods *real, sqlite3_file *file, int level)
{
	struct lock_file *entry = level == SQLITE_LOCK_EXCLUSIVE ? lock_file_find(file) : NULL;
	/* Before SQLite's request, which a file without a WAL makes, too. */
	const bool may_close = entry && lock_file_has_wal(entry) && sees_unmap(real, file);
	int rc;

	if (thread_current)
		thread_current->wait.refused_by = 0;
	rc = real->lock(file, level);
	see_result(file, lock_of_level(level), rc);
	if (may_close && rc == SQLITE_OK) {
		const struct wal_call call = wal_call_of(real, file);

		wal_see_exclusive(&call);
	}
	return rc;
}

static int unlock_with(const struct lock_methods *real, sqlite3_file *file, int level)
{
	struct lock_file *entry = lock_file_find(file);

	if (entry) {
		unsigned before = lock_file_locks(entry);

		wal_see_unlocked(entry);
		lock_file_lowered_level(entry, level);
		see_release(entry, before);
	}
	return real->unlock(file, level);
}

static int shm_lock_with(const struct lock_methods *real, sqlite3_file *file, int first, int count, int flags)
{
	struct thread *thread = thread_current;
	bool locks = flags & SQLITE_SHM_LOCK, is_exclusive = flags & SQLITE_SHM_EXCLUSIVE;
	struct lock_file *entry;
	int rc;

	if (!locks && (entry = lock_file_find(file))) {
		unsigned before = lock_file_locks(entry);

		if (is_exclusive) {
			const struct wal_call call = wal_call_of(real, file);

			wal_see_unlock(&call, first, count);
		}
		lock_file_released_slots(entry, first, count);
		see_release(entry, before);
	}
	if (thread)
		thread->wait.refused_by = 0;
	rc = real->shm_lock(file, first, count, flags);
	if (locks)
		see_result(file, lock_of_slot(first, is_exclusive), rc);
	if (locks && is_exclusive) {
		const struct wal_call call = wal_call_of(real, file);

		if (call.entry && call.run && call.run->session && call.run->session->db &&
		    !wal_has_file(call.entry))
			follow_wal(call.run->session, call.entry, file);
		if (call.entry)
			wal_see_lock(&call, first, count, rc);
	}
	if (thread && first == SLOT_CHECKPOINT && is_exclusive && (!locks || rc == SQLITE_OK))
		thread->wait.is_checkpointing = locks;
	return rc;
}

static int shm_unmap_with(const struct lock_methods *real, sqlite3_file *file, int removes)
{
	const struct wal_call call = wal_call_of(real, file);

	if (call.entry) {
		wal_see_unmap(&call);
		lock_file_lost_wal(call.entry);
	}
	return real->shm_unmap(file, removes);
}

static int write_with(const struct lock_methods *real, sqlite3_file *file, const void *data, int amount,
                      sqlite3_int64 offset)
{
	return __builtin_expect(wal_is_watched(thread_current, amount), 0)
	               ? wal_write(file, data, amount, offset, real->write)
	               : real->write(file, data, amount, offset);
}

static int truncate_with(const struct lock_methods *real, sqlite3_file *file, sqlite3_int64 size)
{
	wal_see_truncate(file, size, current_run(calling_current));
	return real->truncate(file, size);
}

static int sync_with(const struct lock_methods *real, sqlite3_file *file, int flags)
{
	return thread_current && thread_current->wait.is_checkpointing ? wal_sync(file, flags, real->sync)
	                                                               : real->sync(file, flags);
}

static int close_with(const struct lock_methods *real, sqlite3_file *file)
{
	wal_see_close(file);
	lock_file_remove(file);
	return real->close(file);
}

/* Each method knows its table, because a file's own table may be a copy. */
#define METHODS(number)                                                                                      \
	static int queryprof_lock_##number(sqlite3_file *file, int level)                                    \
	{                                                                                                    \
		return lock_with(&tables[number], file, level);                                              \
	}                                                                                                    \
	static int queryprof_unlock_##number(sqlite3_file *file, int level)                                  \
	{                                                                                                    \
		return unlock_with(&tables[number], file, level);                                            \
	}                                                                                                    \
	static int queryprof_shm_lock_##number(sqlite3_file *file, int first, int count, int flags)          \
	{                                                                                                    \
		return shm_lock_with(&tables[number], file, first, count, flags);                            \
	}                                                                                                    \
	static int queryprof_close_##number(sqlite3_file *file)                                              \
	{                                                                                                    \
		return close_with(&tables[number], file);                                                    \
	}                                                                                                    \
	static int queryprof_shm_unmap_##number(sqlite3_file *file, int removes)                             \
	{                                                                                                    \
		return shm_unmap_with(&tables[number], file, removes);                                       \
	}                                                                                                    \
	static int queryprof_write_##number(sqlite3_file *file, const void *data, int amount,                \
	                                    sqlite3_int64 offset)                                            \
	{                                                                                                    \
		return write_with(&tables[number], file, data, amount, offset);                              \
	}                                                                                                    \
	static int queryprof_truncate_##number(sqlite3_file *file, sqlite3_int64 size)                       \
	{                                                                                                    \
		return truncate_with(&tables[number], file, size);                                           \
	}                                                                                                    \
	static int queryprof_sync_##number(sqlite3_file *file, int flags)                                    \
	{                                                                                                    \
		return sync_with(&tables[number], file, flags);                                              \
	}
METHODS(0)
METHODS(1)
METHODS(2)
METHODS(3)
METHODS(4)
METHODS(5)
METHODS(6)
METHODS(7)

#define OURS(number)                                                                                         \
	{                                                                                                    \
		NULL, queryprof_close_##number, queryprof_lock_##number, queryprof_unlock_##number,          \
			queryprof_shm_lock_##number, queryprof_shm_unmap_##number, queryprof_write_##number, \
			queryprof_truncate_##number, queryprof_sync_##number                                 \
	}
static const struct lock_methods ours[TABLES_MAX] = { OURS(0), OURS(1), OURS(2), OURS(3),
	                                              OURS(4), OURS(5), OURS(6), OURS(7) };

static bool sees_unmap(const struct lock_methods *real, const sqlite3_file *file)
{
	return real->shm_unmap && file->pMethods->xShmUnmap == ours[real - tables].shm_unmap;
}

/* All that is replaced in a table, with these methods. Returns the number. When a file is closed, its entry
 * must be removed first, so this comes first. */
#define SLOTS 8
static int slots_of(const sqlite3_io_methods *table, const struct lock_methods *methods,
                    struct hook_slot slots[SLOTS])
{
	const struct hook_slot all[SLOTS] = {
		{ (void **)(uintptr_t)&table->xClose, (void *)methods->close },
		{ (void **)(uintptr_t)&table->xUnlock, (void *)methods->unlock },
		{ (void **)(uintptr_t)&table->xLock, (void *)methods->lock },
		{ (void **)(uintptr_t)&table->xWrite, (void *)methods->write },
		{ (void **)(uintptr_t)&table->xTruncate, (void *)methods->truncate },
		{ (void **)(uintptr_t)&table->xSync, (void *)methods->sync },
		{ (void **)(uintptr_t)&table->xShmUnmap, (void *)methods->shm_unmap },
		{ (void **)(uintptr_t)&table->xShmLock, (void *)methods->shm_lock },
	};

	memcpy(slots, all, sizeof(all));
	return table->iVersion >= 2 && table->xShmLock ? SLOTS : SLOTS - 2;
}

static bool is_replaced(const struct hook_slot *slots, int count)
{
	for (int i = 0; i < count; i++)
		if (*slots[i].at != slots[i].value)
			return false;
	return true;
}

/* Once an entry is used, the real methods are never read again: if a slot could not be written, or
 * in the child of a fork in between, some of them are already replaced. */
static void replace(const sqlite3_io_methods *table)
{
	struct hook_slot slots[SLOTS];
	int i = 0, count;

	while (i < TABLES_MAX && tables[i].table && tables[i].table != table)
		i++;
	if (i == TABLES_MAX)
		return;
	if (!tables[i].table) {
		tables[i] = (struct lock_methods){ NULL,
			                           table->xClose,
			                           table->xLock,
			                           table->xUnlock,
			                           table->iVersion >= 2 ? table->xShmLock : NULL,
			                           table->iVersion >= 2 ? table->xShmUnmap : NULL,
			                           table->xWrite,
			                           table->xTruncate,
			                           table->xSync };
		/* After the methods, also for the child of a fork. */
		__atomic_store_n(&tables[i].table, table, __ATOMIC_RELEASE);
	}
	count = slots_of(table, &ours[i], slots);
	if (!is_replaced(slots, count))
		hook_try_set(slots, count);
}

/* Names of databases beyond the two that each connection has. */
static const char *name_of(sqlite3 *db, int index)
{
	static const int has_names = 3039000;

	if (index == 0)
		return "main";
	return sqlite3_libversion_number() >= has_names && index != 1 ? sqlite3_db_name(db, index) : NULL;
}

/* False: the file is not one of SQLite's own. */
static bool replace_of(const struct session *session, const sqlite3_file *file)
{
	if (!file->pMethods || !host_is_within(session->library, file->pMethods))
		return false;
	lock_acquire(&lock);
	replace(file->pMethods);
	lock_release(&lock);
	return true;
}

/* The file of the WAL is a new one when the connection has opened the WAL again. */
static void follow_wal(const struct session *session, struct lock_file *entry, const sqlite3_file *database)
{
	const char *name;

	for (int i = 0; i == 0 || (i == 1 || name_of(session->db, i)); i++) {
		sqlite3_file *file = NULL, *wal = NULL;

		if (!(name = name_of(session->db, i)) ||
		    sqlite3_file_control(session->db, name, SQLITE_FCNTL_FILE_POINTER, &file) ||
		    file != database)
			continue;
		if (!sqlite3_file_control(session->db, name, SQLITE_FCNTL_JOURNAL_POINTER, &wal) && wal &&
		    replace_of(session, wal))
			wal_set_file(entry, wal);
		return;
	}
}

void locks_follow(struct session *session)
{
	sqlite3 *db = session->db;
	const char *name, *path;

	mutexes_follow(session);
	for (int i = 0; i == 0 || (i == 1 || name_of(db, i)); i++) {
		sqlite3_file *file = NULL;

		if (!(name = name_of(db, i)) ||
		    sqlite3_file_control(db, name, SQLITE_FCNTL_FILE_POINTER, &file) || !file ||
		    !replace_of(session, file))
			continue;
		path = sqlite3_db_filename(db, name);
		if (path && *path && !lock_file_find(file))
			lock_file_add(file, path, &session->transaction, session->number);
	}
}

void locks_restore(void)
{
	lock_acquire(&lock);
	for (int i = 0; i < TABLES_MAX && tables[i].table; i++) {
		const sqlite3_io_methods *table = tables[i].table;
		struct hook_slot slots[SLOTS];

		if (!is_replaced(slots, slots_of(table, &ours[i], slots)))
			continue;
		hook_try_set(slots, slots_of(table, &tables[i], slots));
	}
	lock_release(&lock);
}
