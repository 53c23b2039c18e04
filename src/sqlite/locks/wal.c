/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/wal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "query/statement_stats.h"
#include "sqlite/locks/checkpoint.h"
#include "sqlite/locks/lock_holders.h"
#include "wire/wal_record.h"

/* The statements whose frames are added up before they are written to the ring, and for how long. */
#define SUMS 4
#define SUM_NS NS_PER_S

/* The statement to which the frames of a transaction count. */
struct author {
	struct query_key key;
	uint64_t statement; /* 0: not known */
	bool is_logged;
	uint32_t size;
	char text[LOCK_TEXT_MAX];
};

/* Transactions of one statement. */
struct appended {
	struct author author;
	uint64_t start_ns, end_ns, frames;
	uint32_t first, last, transactions;
};

struct wal {
	const sqlite3_file *file; /* atomic; NULL: not known */
	uint32_t page_size;       /* 0: not known */
	uint32_t session;
	const struct lock_file *entry;  /* it is used again for other files, with their paths */
	bool is_writing;                /* between the lock to write and its release */
	sqlite3_int64 first, committed; /* of the open transaction: where its first frame begins, and the one
	                                   that commits it; 0: none */
	uint32_t newest;                /* the last frame of a commit; 0: not known */
	bool needs_author;              /* BEGIN IMMEDIATE took the lock */
	struct author author;
	struct appended sums[SUMS];
	uint32_t used;
	uint64_t written_ns; /* when sums were written last */
	uint64_t recovery_ns;
	struct checkpoint checkpoint;
};

/* The entry's WAL, which is made at first; NULL: no memory. */
static struct wal *wal_of(struct lock_file *entry)
{
	struct wal **wal = lock_file_wal(entry);

	if (!*wal && (*wal = calloc(1, sizeof(**wal))))
		(*wal)->entry = entry;
	return *wal;
}

/* --- what happens to a WAL ------------------------------------------------------------------------- */

/* The thread that ends the process may have run no query. */
static uint64_t realtime_offset_ns(void)
{
	return thread_current ? thread_current->realtime_offset_ns
	                      : clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
}

static void write_event(const struct wal *wal, enum wal_event event, const struct appended *sum)
{
	const size_t path_size = strnlen(lock_file_path(wal->entry), 1024);
	struct ring *ring = sampler_ring();
	struct wal_record *record;

	if (!ring || !(record = ring_reserve(ring, sizeof(*record) + path_size + sum->author.size)))
		return;
	*record = (struct wal_record){
		.query = sum->author.key,
		.statement = sum->author.statement ? statement_stats_hash(sum->author.statement) : 0,
		.start_realtime_ns = sum->start_ns + realtime_offset_ns(),
		.duration_ns = query_since(sum->start_ns, sum->end_ns),
		.frames = sum->frames,
		.event = event,
		.first_frame = sum->first,
		.last_frame = sum->last,
		.transactions = sum->transactions,
		.page_size = wal->page_size,
		.session = wal->session,
		.thread_id = thread_current ? thread_current->id : sys_gettid(),
		.database_size = (uint32_t)path_size,
		.query_size = sum->author.size,
	};
	memcpy(record->text, lock_file_path(wal->entry), path_size);
	memcpy(record->text + path_size, sum->author.text, sum->author.size);
	ring_commit(ring, record, RECORD_WAL);
}

static void flush(struct wal *wal, uint64_t now)
{
	for (uint32_t i = 0; i < wal->used; i++) {
		/* A copy: at the process' end, another thread may change it. */
		const struct appended sum = wal->sums[i];

		write_event(wal, WAL_GROWS, &sum);
	}
	wal->used = 0;
	wal->written_ns = now;
}

static void write_change(struct wal *wal, enum wal_event event, const struct author *author, uint64_t start,
                         uint64_t frames)
{
	struct appended change = {
		.author = *author, .start_ns = start, .end_ns = lock_now_ns(), .frames = frames
	};

	flush(wal, change.end_ns);
	if (author->is_logged)
		write_event(wal, event, &change);
}

static void name(struct author *author, const struct run *run)
{
	const char *text = run && run->query.text ? run->query.text : "";

	author->key = run ? run->query.key : (struct query_key){ 0 };
	author->statement = run ? run->statement : 0;
	author->is_logged = run && run->settings.log;
	author->size = (uint32_t)strnlen(text, sizeof(author->text) - 1);
	memcpy(author->text, text, author->size);
	author->text[author->size] = 0;
}

static bool begins_with(const char *text, const char *const *words)
{
	for (text = text_skip_comments(text); *words; words++) {
		const size_t size = strlen(*words);

		if ((*text & ~0x20) == **words && !strncasecmp(text, *words, size) &&
		    !text_is_word(text[size]))
			return true;
	}
	return false;
}

void wal_name_author(struct wal *wal, const struct run *run)
{
	static const char *const words[] = { "BEGIN",     "COMMIT",  "END",    "ROLLBACK",
		                             "SAVEPOINT", "RELEASE", "SELECT", "VALUES",
		                             "EXPLAIN",   "PRAGMA",  NULL };

	if (!wal->needs_author || !run->query.text || begins_with(run->query.text, words))
		return;
	wal->needs_author = false;
	name(&wal->author, run);
}

static bool is_by(const struct appended *sum, const struct author *author)
{
	return author->statement ? sum->author.statement == author->statement
	                         : sum->author.size == author->size &&
	                                   !memcmp(sum->author.text, author->text, author->size);
}

/* A transaction has committed, from the frame `first` on. The first one after a second is written
 * immediately, so that a quiet program's is. */
static void add(struct wal *wal, uint32_t first)
{
	const uint64_t now = lock_now_ns();
	struct appended *sum = wal->sums;

	while (sum < wal->sums + wal->used && !is_by(sum, &wal->author))
		sum++;
	if (sum == wal->sums + SUMS) {
		flush(wal, now);
		sum = wal->sums;
	}
	if (sum == wal->sums + wal->used) {
		*sum = (struct appended){ .author = wal->author, .start_ns = now, .first = first };
		wal->used++;
	}
	if (first < sum->first) /* the WAL was restarted */
		sum->first = first;
	sum->author.key = wal->author.key;
	sum->end_ns = now;
	sum->last = wal->newest;
	sum->frames += wal->newest - first + 1;
	sum->transactions++;
	if (now - wal->written_ns >= SUM_NS)
		flush(wal, now);
}

static void begin_write(struct wal *wal, const struct wal_call *call)
{
	static const char *const words[] = { "BEGIN", NULL };

	if (!wal->page_size)
		wal->page_size = wal_index_read(call).page_size;
	wal->first = wal->committed = 0;
	name(&wal->author, call->run);
	wal->needs_author = call->run && call->run->query.text && begins_with(call->run->query.text, words);
	if (call->run && call->run->session) {
		wal->session = call->run->session->number;
		call->run->session->transaction.author = wal->needs_author ? wal : NULL;
	}
	wal->is_writing = true;
}

/* The number of the frame that begins there. */
static uint32_t frame_at(const struct wal *wal, sqlite3_int64 offset)
{
	return (uint32_t)((offset - WAL_HEADER_BYTES) / (wal->page_size + WAL_FRAME_BYTES)) + 1;
}

static void end_write(struct wal *wal)
{
	wal->is_writing = wal->needs_author = false;
	if (!wal->first || wal->committed < wal->first || !thread_current)
		return;
	wal->newest = frame_at(wal, wal->committed);
	if (wal->author.is_logged)
		add(wal, frame_at(wal, wal->first));
}

static uint32_t word_at(const void *data, int at)
{
	uint32_t word;

	memcpy(&word, (const char *)data + at, sizeof(word));
	return __builtin_bswap32(word); /* the file is in big-endian order, and the machine is not */
}

static void see_header(struct wal *wal, const void *data, sqlite3_int64 offset)
{
	enum { AT_PAGE_SIZE = 8 };
	uint64_t frames = wal->newest;

	if (offset != 0)
		return;
	wal->page_size = word_at(data, AT_PAGE_SIZE);
	wal->newest = 0;
	write_change(wal, WAL_RESTARTS, &wal->author, lock_now_ns(), frames);
}

static void see_frame(struct wal *wal, const void *data, sqlite3_int64 offset)
{
	enum { AT_COMMIT = 4 };

	if (!wal->page_size || offset < WAL_HEADER_BYTES)
		return;
	if (!wal->first || offset < wal->first)
		wal->first = offset;
	if (word_at(data, AT_COMMIT))
		wal->committed = offset;
}

/* --- checkpoints ------------------------------------------------------------------------------------ */

static void begin_checkpoint(struct wal *wal, const struct wal_call *call, uint32_t origin)
{
	checkpoint_begin(&wal->checkpoint, call, origin);
	if (wal->checkpoint.begin.is_read)
		wal->page_size = wal->checkpoint.begin.page_size;
	if (call->run && call->run->session)
		wal->session = call->run->session->number;
}

static void end_checkpoint(struct wal *wal, const struct wal_call *call)
{
	const struct wal_index end = wal_index_read(call);

	/* The rows of frames that were copied are not those of frames that are appended later. */
	if (end.copied != wal->checkpoint.begin.copied)
		flush(wal, lock_now_ns());
	checkpoint_end(&wal->checkpoint, call, &end, wal->page_size, wal->session);
}

/* --- the methods ------------------------------------------------------------------------------------ */

bool wal_has_file(struct lock_file *entry)
{
	const struct wal *wal = *lock_file_wal(entry);
	const struct lock_file *known = wal && wal->file ? lock_file_find(wal->file) : NULL;

	return known && lock_file_database(known) == entry;
}

void wal_set_file(struct lock_file *entry, const sqlite3_file *file)
{
	struct wal *wal = wal_of(entry);

	if (!wal)
		return;
	lock_file_add_wal(entry, file);
	__atomic_store_n(&wal->file, file, __ATOMIC_RELAXED);
}

static bool includes(int first, int count, int slot)
{
	return first <= slot && slot < first + count;
}

void wal_see_lock(const struct wal_call *call, int first, int count, int rc)
{
	struct wal *wal = wal_of(call->entry);

	if (!wal || !thread_current)
		return;
	if (includes(first, count, SLOT_RECOVER)) {
		wal->recovery_ns = rc == SQLITE_OK ? lock_now_ns() : 0;
	} else if (first == SLOT_CHECKPOINT) {
		begin_checkpoint(wal, call, CHECKPOINT_BY_COMMIT);
		if (rc == SQLITE_OK)
			return;
		if ((rc & 0xff) == SQLITE_BUSY)
			checkpoint_refused(&wal->checkpoint, call, first, count);
		end_checkpoint(wal, call);
	} else if (wal->checkpoint.is_open) {
		checkpoint_locked(&wal->checkpoint, call, first, count, rc);
	} else if (first == SLOT_WRITE && rc == SQLITE_OK) {
		begin_write(wal, call);
	}
}

void wal_see_unlock(const struct wal_call *call, int first, int count)
{
	struct wal *wal = *lock_file_wal(call->entry);

	if (!wal || !thread_current)
		return;
	if (includes(first, count, SLOT_RECOVER) && wal->recovery_ns) {
		const struct wal_index head = wal_index_read(call);
		struct author author;

		name(&author, call->run);
		if (head.frames)
			write_change(wal, WAL_RECOVERS, &author, wal->recovery_ns, head.frames);
		wal->recovery_ns = 0;
	} else if (first == SLOT_CHECKPOINT && wal->checkpoint.is_open) {
		end_checkpoint(wal, call);
	} else if (first == SLOT_WRITE && wal->is_writing) {
		end_write(wal);
	}
}

void wal_see_exclusive(const struct wal_call *call)
{
	struct wal *wal = wal_of(call->entry);

	if (!wal || !thread_current)
		return;
	begin_checkpoint(wal, call, CHECKPOINT_BY_CLOSE);
	thread_current->wait.is_checkpointing = true;
}

static bool ends_exclusive(struct wal *wal)
{
	if (!wal || !wal->checkpoint.is_open || wal->checkpoint.origin != CHECKPOINT_BY_CLOSE ||
	    !thread_current)
		return false;
	thread_current->wait.is_checkpointing = false;
	return true;
}

void wal_see_unmap(const struct wal_call *call)
{
	struct wal *wal = *lock_file_wal(call->entry);

	if (ends_exclusive(wal))
		end_checkpoint(wal, call);
}

void wal_see_unlocked(struct lock_file *entry)
{
	struct wal *wal = *lock_file_wal(entry);

	if (ends_exclusive(wal))
		wal->checkpoint.is_open = false;
}

/* The WAL to which a file belongs, as its database or itself. */
static struct wal *wal_of_file(const sqlite3_file *file, bool *is_database)
{
	struct lock_file *entry = lock_file_find(file), *database;

	if (!entry)
		return NULL;
	database = lock_file_database(entry);
	*is_database = !database;
	return *lock_file_wal(database ? database : entry);
}

int wal_write(sqlite3_file *file, const void *data, int amount, sqlite3_int64 offset,
              int (*real)(sqlite3_file *, const void *, int, sqlite3_int64))
{
	struct calling *calling = calling_current;
	struct wal *wal = calling ? calling->wal : NULL;
	bool is_database = false;
	uint64_t start;
	int rc;

	/* Mostly it is the same as before. It is never freed, but may be of another file now, and change
	 * meanwhile. */
	if (!wal || __atomic_load_n(&wal->file, __ATOMIC_RELAXED) != file) {
		wal = wal_of_file(file, &is_database);
		if (calling && wal && !is_database)
			calling->wal = wal;
	}
	if (!wal || !(is_database ? wal->checkpoint.is_open : wal->is_writing))
		return real(file, data, amount, offset);
	if (!is_database) {
		if (amount == WAL_HEADER_BYTES)
			see_header(wal, data, offset);
		else if (amount == WAL_FRAME_BYTES)
			see_frame(wal, data, offset);
		return real(file, data, amount, offset);
	}
	start = lock_now_ns();
	rc = real(file, data, amount, offset);
	wal->checkpoint.write_ns += query_since(start, lock_now_ns());
	wal->checkpoint.bytes += (uint64_t)amount;
	wal->checkpoint.result = rc ? rc : wal->checkpoint.result;
	return rc;
}

int wal_sync(sqlite3_file *file, int flags, int (*real)(sqlite3_file *, int))
{
	bool is_database = false;
	struct wal *wal = wal_of_file(file, &is_database);
	uint64_t start, *sum;
	int rc;

	if (!wal || !wal->checkpoint.is_open)
		return real(file, flags);
	sum = is_database ? &wal->checkpoint.database_sync_ns : &wal->checkpoint.wal_sync_ns;
	start = lock_now_ns();
	rc = real(file, flags);
	*sum += query_since(start, lock_now_ns());
	wal->checkpoint.result = rc ? rc : wal->checkpoint.result;
	return rc;
}

void wal_see_truncate(const sqlite3_file *file, sqlite3_int64 size, const struct run *run)
{
	bool is_database = true;
	struct author author;
	struct wal *wal = thread_current ? wal_of_file(file, &is_database) : NULL;

	if (!wal || is_database)
		return;
	if (wal->checkpoint.is_open && wal->checkpoint.wants_restart)
		wal->checkpoint.is_truncating = true;
	name(&author, run);
	write_change(wal, WAL_TRUNCATES, &author, lock_now_ns(),
	             size > WAL_HEADER_BYTES && wal->page_size
	                     ? (uint64_t)(size - WAL_HEADER_BYTES) / (wal->page_size + WAL_FRAME_BYTES)
	                     : 0);
}

static void forget(struct wal *wal)
{
	__atomic_store_n(&wal->file, NULL, __ATOMIC_RELAXED);
	wal->used = 0;
	wal->is_writing = wal->checkpoint.is_open = false;
	wal->page_size = wal->newest = 0;
}

void wal_see_close(const sqlite3_file *file)
{
	bool is_database = false;
	struct wal *wal = wal_of_file(file, &is_database);

	if (!wal)
		return;
	if (thread_current)
		flush(wal, lock_now_ns());
	if (is_database)
		forget(wal);
	else
		__atomic_store_n(&wal->file, NULL, __ATOMIC_RELAXED);
}

void wal_forget_all(void)
{
	lock_files_visit_wals(forget);
}

static void flush_if_idle(struct wal *wal)
{
	if (!wal->is_writing)
		flush(wal, lock_now_ns());
}

void wal_flush_all(void)
{
	lock_files_visit_wals(flush_if_idle);
}

static void forget_sums(struct wal *wal)
{
	wal->used = 0;
	wal->is_writing = false;
}

void wal_forget_sums(void)
{
	lock_files_visit_wals(forget_sums);
}
