/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/locks.h"

#include <stddef.h>
#include <string.h>

#include "collect/state.h"
#include "handler/ring.h"
#include "sqlite/locks/file_methods.h"
#include "sqlite/locks/lock_holders.h"
#include "sqlite/locks/mutexes.h"
#include "sqlite/locks/opened_files.h"
#include "sqlite/locks/transactions.h"
#include "sqlite/locks/wal.h"
#include "sqlite/pages/page_io.h"

/* SQLite's names for the slots of the WAL index. */
#define SLOT_CHECKPOINT 1

/* --- whose call it is ------------------------------------------------------------------- */

/* The file's entry, which is made at its first lock. */
static struct lock_file *entry_of(sqlite3_file *file, const struct run *run)
{
	struct lock_file *found = lock_file_find(file);
	const struct opened_file *opened = found ? NULL : opened_files_find(file);

	if (!opened || opened->role != OPENED_DATABASE || !run || !run->session || !run->session->db)
		return found;
	return lock_file_add(file, opened->path, &run->session->transaction, run->session->number);
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

/* The file has given locks back, in a call of the run. */
static void see_release(struct lock_file *file, unsigned before, const struct run *run)
{
	unsigned after = lock_file_locks(file);
	struct session *session = after != before ? session_of_file(file) : NULL;

	if (session)
		transaction_locks_change(session, before, after, file,
		                         run && run->session == session ? run : NULL);
}

static void see_result(struct lock_file *entry, const struct run *run, struct lock_request request, int rc)
{
	struct calling *calling = calling_current;
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

/* The file of the WAL is a new one when the connection has opened the WAL again. */
static void follow_wal(struct lock_file *entry, const sqlite3_file *database)
{
	const struct opened_file *opened = opened_files_find(database);

	if (opened && opened->other)
		wal_set_file(entry, opened->other);
}

static struct wal_call wal_call_of(const struct file_methods *real, sqlite3_file *file)
{
	return (struct wal_call){ lock_file_find(file), file, real->table,
		                  file_methods_run(calling_current) };
}

/* The same after SQLite has requested a lock. The file's first lock makes its entry. */
static struct wal_call see_request(const struct file_methods *real, sqlite3_file *file,
                                   struct lock_request request, int rc)
{
	const struct run *run = file_methods_run(calling_current);
	struct lock_file *entry = entry_of(file, run);

	see_result(entry, run, request, rc);
	return (struct wal_call){ entry, file, real->table, run };
}

int locks_lock_with(const struct file_methods *real, sqlite3_file *file, int level)
{
	struct lock_file *entry = level == SQLITE_LOCK_EXCLUSIVE ? lock_file_find(file) : NULL;
	/* Before SQLite's request, which a file without a WAL makes, too. */
	const bool may_close = entry && lock_file_has_wal(entry) && file_methods_see_unmap(real, file);
	struct wal_call call;
	int rc;

	if (thread_current)
		thread_current->wait.refused_by = 0;
	rc = real->lock(file, level);
	call = see_request(real, file, lock_of_level(level), rc);
	if (may_close && rc == SQLITE_OK)
		wal_see_exclusive(&call);
	return rc;
}

int locks_unlock_with(const struct file_methods *real, sqlite3_file *file, int level)
{
	struct lock_file *entry = lock_file_find(file);

	if (entry) {
		unsigned before = lock_file_locks(entry);

		wal_see_unlocked(entry);
		lock_file_lowered_level(entry, level);
		see_release(entry, before, file_methods_run(calling_current));
	}
	page_io_see_unlock();
	return real->unlock(file, level);
}

static void see_release_of_slots(const struct file_methods *real, sqlite3_file *file, int first, int count,
                                 bool is_exclusive)
{
	const struct wal_call call = wal_call_of(real, file);

	if (call.entry) {
		unsigned before = lock_file_locks(call.entry);

		if (is_exclusive)
			wal_see_unlock(&call, first, count);
		lock_file_released_slots(call.entry, first, count);
		see_release(call.entry, before, call.run);
	}
	page_io_see_unlock();
}

int locks_shm_lock_with(const struct file_methods *real, sqlite3_file *file, int first, int count, int flags)
{
	struct thread *thread = thread_current;
	bool locks = flags & SQLITE_SHM_LOCK, is_exclusive = flags & SQLITE_SHM_EXCLUSIVE;
	struct wal_call call;
	int rc;

	if (!locks)
		see_release_of_slots(real, file, first, count, is_exclusive);
	if (thread)
		thread->wait.refused_by = 0;
	rc = real->shm_lock(file, first, count, flags);
	if (locks) {
		call = see_request(real, file, lock_of_slot(first, is_exclusive), rc);
		if (call.entry && is_exclusive && !wal_has_file(call.entry))
			follow_wal(call.entry, file);
		if (call.entry && is_exclusive)
			wal_see_lock(&call, first, count, rc);
	}
	if (thread && first == SLOT_CHECKPOINT && is_exclusive && (!locks || rc == SQLITE_OK))
		thread->wait.is_checkpointing = locks;
	return rc;
}

int locks_shm_unmap_with(const struct file_methods *real, sqlite3_file *file, int removes)
{
	const struct wal_call call = wal_call_of(real, file);

	if (call.entry) {
		wal_see_unmap(&call);
		lock_file_lost_wal(call.entry);
	}
	page_io_see_unmap(file);
	return real->shm_unmap(file, removes);
}

int locks_truncate_with(const struct file_methods *real, sqlite3_file *file, sqlite3_int64 size)
{
	wal_see_truncate(file, size, file_methods_run(calling_current));
	return real->truncate(file, size);
}

int locks_sync_with(const struct file_methods *real, sqlite3_file *file, int flags)
{
	return thread_current && thread_current->wait.is_checkpointing ? wal_sync(file, flags, real->sync)
	                                                               : real->sync(file, flags);
}

int locks_close_with(const struct file_methods *real, sqlite3_file *file)
{
	wal_see_close(file);
	page_io_see_close(file);
	lock_file_remove(file);
	opened_files_remove(file);
	return real->close(file);
}

/* Names of databases beyond the two that each connection has. */
static const char *name_of(sqlite3 *db, int index)
{
	static const int has_names = 3039000;

	if (index == 0)
		return "main";
	return sqlite3_libversion_number() >= has_names && index != 1 ? sqlite3_db_name(db, index) : NULL;
}

/* The file was open before, and so may be its WAL or journal. Files of a shared cache that are known are not
 * asked for: another connection may just close that WAL. */
static void adopt(const struct session *session, const char *name, const char *path, sqlite3_file *file)
{
	sqlite3_file *journal = NULL;

	/* Only a table for files like the database's: with journal_mode=MEMORY the journal is none. */
	if (sqlite3_file_control(session->db, name, SQLITE_FCNTL_JOURNAL_POINTER, &journal) || !journal ||
	    !file_methods_are_alike(file, journal) || !file_methods_replace(session->library, journal))
		journal = NULL;
	/* What calls in flight have noted of them while nothing was followed. */
	for (int i = 0; i < (journal ? 2 : 1); i++) {
		page_io_see_open(i ? journal : file);
		lock_file_remove(i ? journal : file);
	}
	opened_files_adopt(file, path, journal);
}

void locks_follow(struct session *session)
{
	sqlite3 *db = session->db;
	const char *name, *path;

	mutexes_follow(session);
	file_methods_replace_open(session->library);
	for (int i = 0; i == 0 || (i == 1 || name_of(db, i)); i++) {
		sqlite3_file *file = NULL;

		if (!(name = name_of(db, i)) ||
		    sqlite3_file_control(db, name, SQLITE_FCNTL_FILE_POINTER, &file) || !file ||
		    !file_methods_replace(session->library, file))
			continue;
		path = sqlite3_db_filename(db, name);
		if (!path || !*path)
			continue;
		if (!opened_files_find(file))
			adopt(session, name, path, file);
		if (!lock_file_find(file))
			lock_file_add(file, path, &session->transaction, session->number);
	}
}

void locks_restore(void)
{
	file_methods_restore();
	opened_files_forget();
	wal_forget_all();
	lock_files_forget();
	page_io_forget();
}
