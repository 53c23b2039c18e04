/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/wal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/own_calls.h"
#include "base/text.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "query/cpu_clock.h"
#include "query/statement_stats.h"
#include "sqlite/locks/lock_holders.h"
#include "wire/wal_record.h"

/* SQLite's slots of the WAL index. */
#define SLOT_WRITE 0
#define SLOT_CHECKPOINT 1
#define SLOT_RECOVER 2
#define SLOT_READ 3 /* of the read mark 0, which readers of the database file have */
#define READ_MARKS 5

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

/* The head of the WAL's index. */
struct index_head {
	bool is_read;
	uint32_t page_size, frames, copied, salt, marks[READ_MARKS];
};

struct checkpoint {
	bool is_open;
	uint64_t start_ns, start_cpu_ns;
	uint64_t write_ns, wal_sync_ns, database_sync_ns, bytes;
	uint64_t refused_ns; /* since when it is stopped; 0: it is not */
	uint64_t stopped_ns;
	struct index_head begin, restart; /* and when all frames were copied, before the WAL begins again */
	bool wants_writer, wants_restart, is_truncating;
	uint32_t origin, obstacle, mark, mark_frame;
	int result;
	struct lock_holder holder;
	uint64_t holder_since_ns;
	char holder_text[LOCK_TEXT_MAX];
};

struct wal {
	const sqlite3_file *file; /* NULL: not known */
	uint32_t page_size;       /* 0: not known */
	uint32_t session;
	const struct lock_file *entry; /* it is used again for other files, with their paths */
	bool is_writing;               /* between the lock to write and its release */
	uint32_t first, committed; /* of the open transaction: its first frame, and the one that commits it;
	                              0: none */
	uint32_t newest;           /* the last frame of a commit; 0: not known */
	bool needs_author;         /* BEGIN IMMEDIATE took the lock */
	struct author author;
	struct appended sums[SUMS];
	uint32_t used;
	uint64_t written_ns; /* when sums were written last */
	uint64_t recovery_ns;
	struct checkpoint checkpoint;
};

static uint64_t now_ns(void)
{
	return thread_current ? fast_clock_ns(&thread_current->clock) : 0;
}

static uint64_t realtime_of(uint64_t ns)
{
	return ns + thread_current->realtime_offset_ns;
}

/* The entry's WAL, which is made at first; NULL: no memory. */
static struct wal *wal_of(struct lock_file *entry)
{
	struct wal **wal = lock_file_wal(entry);

	if (!*wal && (*wal = calloc(1, sizeof(**wal))))
		(*wal)->entry = entry;
	return *wal;
}

/* --- the index ------------------------------------------------------------------------------------ */

/* Places in its head, in words of 32 bits. */
enum {
	WORD_VERSION,
	WORD_SIZES = 3,
	WORD_FRAMES,
	WORD_SALT = 8,
	WORD_COPIED = 24,
	WORD_MARKS,
	HEAD_WORDS = 30
};
#define INDEX_VERSION 3007000u
#define REGION_BYTES 32768

static bool copy_head(const volatile void *from, uint32_t words[HEAD_WORDS])
{
	const struct iovec local = { words, HEAD_WORDS * sizeof(*words) };
	const struct iovec remote = { (void *)(uintptr_t)from, local.iov_len };
	const int saved_errno = errno;
	const bool is_read = !own_call_is_forbidden(SYS_process_vm_readv) &&
	                     process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)local.iov_len;

	errno = saved_errno;
	return is_read;
}

/* The connection has mapped it, so its method only tells where. */
static struct index_head read_head(const struct wal_call *call)
{
	volatile void *region = NULL;
	struct index_head head = { .is_read = false };
	uint32_t words[HEAD_WORDS];
	const unsigned char *sizes = (const unsigned char *)&words[WORD_SIZES];
	uint16_t page;

	if (call->methods->iVersion < 2 ||
	    call->methods->xShmMap(call->file, 0, REGION_BYTES, 0, &region) != SQLITE_OK || !region ||
	    !copy_head(region, words) || words[WORD_VERSION] != INDEX_VERSION || !sizes[0])
		return head;
	memcpy(&page, sizes + 2, sizeof(page));
	head.is_read = true;
	head.page_size = page == 1 ? 65536 : page;
	head.frames = words[WORD_FRAMES];
	head.salt = words[WORD_SALT];
	head.copied = words[WORD_COPIED];
	memcpy(head.marks, &words[WORD_MARKS], sizeof(head.marks));
	return head;
}

static uint64_t hash_of(uint64_t statement)
{
	return statement ? statement_stats_hash(statement) : 0;
}

/* --- what happens to a WAL ------------------------------------------------------------------------- */

static void write_event(const struct wal *wal, enum wal_event event, const struct appended *sum)
{
	const size_t path_size = strnlen(lock_file_path(wal->entry), 1024);
	struct ring *ring = sampler_ring();
	struct wal_record *record;

	if (!ring || !thread_current ||
	    !(record = ring_reserve(ring, sizeof(*record) + path_size + sum->author.size)))
		return;
	*record = (struct wal_record){
		.query = sum->author.key,
		.statement = hash_of(sum->author.statement),
		.start_realtime_ns = realtime_of(sum->start_ns),
		.duration_ns = query_since(sum->start_ns, sum->end_ns),
		.frames = sum->frames,
		.event = event,
		.first_frame = sum->first,
		.last_frame = sum->last,
		.transactions = sum->transactions,
		.page_size = wal->page_size,
		.session = wal->session,
		.thread_id = thread_current->id,
		.database_size = (uint32_t)path_size,
		.query_size = sum->author.size,
	};
	memcpy(record->text, lock_file_path(wal->entry), path_size);
	memcpy(record->text + path_size, sum->author.text, sum->author.size);
	ring_commit(ring, record, RECORD_WAL);
}

static void flush(struct wal *wal, uint64_t now)
{
	for (uint32_t i = 0; i < wal->used; i++)
		write_event(wal, WAL_GROWS, &wal->sums[i]);
	wal->used = 0;
	wal->written_ns = now;
}

static void write_change(struct wal *wal, enum wal_event event, const struct author *author, uint64_t start,
                         uint64_t frames)
{
	struct appended change = {
		.author = *author, .start_ns = start, .end_ns = now_ns(), .frames = frames
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

		if (!strncasecmp(text, *words, size) && !text_is_word(text[size]))
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

/* A transaction has committed. The first one after a second is written immediately, so that a quiet program's
 * is. */
static void add(struct wal *wal)
{
	const uint64_t now = now_ns();
	struct appended *sum = wal->sums;

	while (sum < wal->sums + wal->used && !is_by(sum, &wal->author))
		sum++;
	if (sum == wal->sums + SUMS) {
		flush(wal, now);
		sum = wal->sums;
	}
	if (sum == wal->sums + wal->used) {
		*sum = (struct appended){ .author = wal->author, .start_ns = now, .first = wal->first };
		wal->used++;
	}
	if (wal->first < sum->first) /* the WAL was restarted */
		sum->first = wal->first;
	sum->author.key = wal->author.key;
	sum->end_ns = now;
	sum->last = wal->committed;
	sum->frames += wal->committed - wal->first + 1;
	sum->transactions++;
	if (now - wal->written_ns >= SUM_NS)
		flush(wal, now);
}

static void begin_write(struct wal *wal, const struct wal_call *call)
{
	static const char *const words[] = { "BEGIN", NULL };

	if (!wal->page_size)
		wal->page_size = read_head(call).page_size;
	wal->first = wal->committed = 0;
	name(&wal->author, call->run);
	wal->needs_author = call->run && call->run->query.text && begins_with(call->run->query.text, words);
	if (call->run && call->run->session) {
		wal->session = call->run->session->number;
		call->run->session->transaction.author = wal->needs_author ? wal : NULL;
	}
	wal->is_writing = true;
}

static void end_write(struct wal *wal)
{
	wal->is_writing = wal->needs_author = false;
	if (!wal->first || wal->committed < wal->first || !thread_current)
		return;
	wal->newest = wal->committed;
	if (wal->author.is_logged)
		add(wal);
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
	write_change(wal, WAL_RESTARTS, &wal->author, now_ns(), frames);
}

static void see_frame(struct wal *wal, const void *data, sqlite3_int64 offset)
{
	enum { AT_COMMIT = 4 };
	uint32_t frame;

	if (!wal->page_size || offset < WAL_HEADER_BYTES)
		return;
	frame = (uint32_t)((offset - WAL_HEADER_BYTES) / (wal->page_size + WAL_FRAME_BYTES)) + 1;
	if (!wal->first || frame < wal->first)
		wal->first = frame;
	if (word_at(data, AT_COMMIT))
		wal->committed = frame;
}

/* --- checkpoints ------------------------------------------------------------------------------------ */

static void begin_checkpoint(struct wal *wal, const struct wal_call *call, uint32_t origin)
{
	struct checkpoint *checkpoint = &wal->checkpoint;

	*checkpoint = (struct checkpoint){ .is_open = true, .origin = origin, .start_ns = now_ns() };
	checkpoint->start_cpu_ns = cpu_clock_until(thread_current, checkpoint->start_ns);
	checkpoint->begin = read_head(call);
	if (checkpoint->begin.is_read)
		wal->page_size = checkpoint->begin.page_size;
	if (call->run && call->run->session)
		wal->session = call->run->session->number;
}

static void see_refusal(struct wal *wal, const struct wal_call *call, int first, int count)
{
	struct checkpoint *checkpoint = &wal->checkpoint;
	bool found = false;

	checkpoint->obstacle = first == SLOT_CHECKPOINT ? OBSTACLE_CHECKPOINT
	                       : first == SLOT_WRITE    ? OBSTACLE_WRITER
	                       : count == 1             ? OBSTACLE_READER
	                                                : OBSTACLE_READERS;
	checkpoint->mark = first >= SLOT_READ ? (uint32_t)(first - SLOT_READ) : 0;
	checkpoint->mark_frame = 0;
	if (!checkpoint->refused_ns)
		checkpoint->refused_ns = now_ns();
	checkpoint->holder = (struct lock_holder){ 0 };
	checkpoint->holder_text[0] = 0;
	checkpoint->holder_since_ns = 0;
	for (int slot = first; slot < first + count && !found; slot++)
		found = lock_file_find_holder(call->entry, lock_of_slot(slot, true), &checkpoint->holder,
		                              checkpoint->holder_text);
	if (found)
		checkpoint->holder_since_ns = lock_holder_since(&checkpoint->holder);
	else
		checkpoint->holder.process_id = thread_current->wait.refused_by;
	if (checkpoint->obstacle == OBSTACLE_READER && checkpoint->mark > 0) {
		struct index_head head = read_head(call);

		checkpoint->mark_frame =
			head.is_read && checkpoint->mark < READ_MARKS ? head.marks[checkpoint->mark] : 0;
	}
}

static void end_refusal(struct checkpoint *checkpoint, uint64_t now)
{
	if (checkpoint->refused_ns)
		checkpoint->stopped_ns += query_since(checkpoint->refused_ns, now);
	checkpoint->refused_ns = 0;
}

/* Further locks of a checkpoint. */
static void see_locked(struct wal *wal, const struct wal_call *call, int first, int count, int rc)
{
	struct checkpoint *checkpoint = &wal->checkpoint;

	checkpoint->wants_writer |= first == SLOT_WRITE;
	if (first > SLOT_READ && count > 1) {
		checkpoint->wants_restart = true;
		checkpoint->restart = read_head(call);
	}
	if ((rc & 0xff) == SQLITE_BUSY) {
		see_refusal(wal, call, first, count);
		return;
	}
	if (rc == SQLITE_OK)
		end_refusal(checkpoint, now_ns());
	/* The header that SQLite is about to read. */
	if (rc == SQLITE_OK && first == SLOT_WRITE)
		checkpoint->begin = read_head(call);
}

static bool is_same_wal(const struct index_head *one, const struct index_head *other)
{
	return one->salt == other->salt;
}

/* What was copied, when all is done: a restart clears the number. */
static uint32_t copied_after(const struct checkpoint *checkpoint, const struct index_head *end)
{
	if (checkpoint->restart.is_read)
		return checkpoint->restart.copied;
	return is_same_wal(&checkpoint->begin, end) ? end->copied : checkpoint->begin.frames;
}

static const char *word_of(const char *text, const char *word)
{
	const size_t size = strlen(word);

	return !strncasecmp(text, word, size) ? text + size : NULL;
}

/* Of PRAGMA [schema.]wal_checkpoint(mode), as SQLite reads it: any other word is PASSIVE. */
static enum checkpoint_mode mode_of(const char *text)
{
	static const char *const names[] = { "FULL", "RESTART", "TRUNCATE" };

	text = strpbrk(text, "(=");
	for (text = text ? text + 1 : ""; *text && strchr(" \t\r\n\"'`[", *text); text++)
		;
	for (int i = 0; i < 3; i++) {
		const char *end = word_of(text, names[i]);

		if (end && !text_is_word(*end))
			return CHECKPOINT_FULL + (enum checkpoint_mode)i;
	}
	return CHECKPOINT_PASSIVE;
}

static bool is_pragma(const char *text)
{
	const char *word = text ? word_of(text_skip_comments(text), "PRAGMA") : NULL;

	while (word && *word && *word != '(' && *word != '=') {
		if (word_of(word, "wal_checkpoint"))
			return true;
		word++;
	}
	return false;
}

static void describe(struct checkpoint_record *record, const struct checkpoint *checkpoint,
                     const struct run *run)
{
	const char *text = run ? run->query.text : NULL;
	const struct calling *calling = calling_current;

	record->origin = checkpoint->origin;
	if (checkpoint->origin == CHECKPOINT_BY_CLOSE) {
		record->mode = CHECKPOINT_PASSIVE;
	} else if (calling && calling->checkpoint_mode) {
		record->mode = calling->checkpoint_mode - 1;
		record->origin =
			run && run->kind == RUN_STATEMENT ? CHECKPOINT_BY_COMMIT : CHECKPOINT_BY_FUNCTION;
	} else if (is_pragma(text)) {
		record->mode = mode_of(text);
		record->origin = CHECKPOINT_BY_PRAGMA;
	}
	/* What was requested shows more than what was read. */
	if (checkpoint->is_truncating)
		record->mode = CHECKPOINT_TRUNCATE;
	else if (checkpoint->wants_restart && record->mode < CHECKPOINT_RESTART)
		record->mode = CHECKPOINT_RESTART;
	else if (checkpoint->wants_writer && record->mode < CHECKPOINT_FULL)
		record->mode = CHECKPOINT_FULL;
}

static int result_of(const struct checkpoint *checkpoint, const struct checkpoint_record *record,
                     bool is_stopped)
{
	if (checkpoint->result)
		return checkpoint->result;
	if (checkpoint->obstacle == OBSTACLE_CHECKPOINT)
		return SQLITE_BUSY;
	return record->mode != CHECKPOINT_PASSIVE && (is_stopped || record->copied_after < record->frames)
	               ? SQLITE_BUSY
	               : SQLITE_OK;
}

static void write_checkpoint(const struct wal *wal, const struct run *run, const struct index_head *end,
                             bool is_stopped)
{
	const struct checkpoint *checkpoint = &wal->checkpoint;
	const char *text = run && run->query.text ? run->query.text : "";
	const size_t sizes[] = { strnlen(lock_file_path(wal->entry), 1024), strnlen(text, LOCK_TEXT_MAX - 1),
		                 strlen(checkpoint->holder_text) };
	const uint64_t now = now_ns();
	struct ring *ring = sampler_ring();
	struct checkpoint_record *record =
		ring ? ring_reserve(ring, sizeof(*record) + sizes[0] + sizes[1] + sizes[2]) : NULL;

	if (!record)
		return;
	*record = (struct checkpoint_record){
		.query = run ? run->query.key : (struct query_key){ 0 },
		.statement = hash_of(run ? run->statement : 0),
		.start_realtime_ns = realtime_of(checkpoint->start_ns),
		.duration_ns = query_since(checkpoint->start_ns, now),
		.cpu_ns = query_since(checkpoint->start_cpu_ns, cpu_clock_until(thread_current, now)),
		.write_ns = checkpoint->write_ns,
		.wal_sync_ns = checkpoint->wal_sync_ns,
		.database_sync_ns = checkpoint->database_sync_ns,
		.stopped_ns = checkpoint->stopped_ns,
		.bytes = checkpoint->bytes,
		.has_frames = checkpoint->begin.is_read && end->is_read,
		.frames = checkpoint->begin.frames,
		.copied_before = checkpoint->begin.copied,
		.copied_after = copied_after(checkpoint, end),
		.obstacle = checkpoint->obstacle,
		.mark = checkpoint->mark,
		.mark_frame = checkpoint->mark_frame,
		.holder = checkpoint->holder,
		.holder_since_realtime_ns =
			checkpoint->holder_since_ns ? realtime_of(checkpoint->holder_since_ns) : 0,
		.page_size = wal->page_size,
		.session = wal->session,
		.thread_id = thread_current->id,
		.database_size = (uint32_t)sizes[0],
		.query_size = (uint32_t)sizes[1],
		.holder_size = (uint32_t)sizes[2],
	};
	/* A commit between the two readings at the beginning. */
	if (record->copied_after > record->frames)
		record->frames = record->copied_after;
	describe(record, checkpoint, run);
	record->result = result_of(checkpoint, record, is_stopped);
	memcpy(record->text, lock_file_path(wal->entry), sizes[0]);
	memcpy(record->text + sizes[0], text, sizes[1]);
	memcpy(record->text + sizes[0] + sizes[1], checkpoint->holder_text, sizes[2]);
	ring_commit(ring, record, RECORD_CHECKPOINT);
}

static void end_checkpoint(struct wal *wal, const struct wal_call *call)
{
	struct checkpoint *checkpoint = &wal->checkpoint;
	const struct index_head end = read_head(call);
	const bool is_stopped = checkpoint->refused_ns != 0;

	checkpoint->is_open = false;
	end_refusal(checkpoint, now_ns());
	/* The rows of frames that were copied are not those of frames that are appended later. */
	if (end.copied != checkpoint->begin.copied)
		flush(wal, now_ns());
	/* The last connection closes without anything to copy. */
	if (checkpoint->origin == CHECKPOINT_BY_CLOSE && !checkpoint->begin.frames)
		return;
	if (call->run && call->run->settings.log)
		write_checkpoint(wal, call->run, &end, is_stopped);
}

/* --- the methods ------------------------------------------------------------------------------------ */

bool wal_has_file(struct lock_file *entry)
{
	const struct wal *wal = *lock_file_wal(entry);

	return wal && wal->file && lock_file_of_wal(wal->file) == entry;
}

void wal_set_file(struct lock_file *entry, const sqlite3_file *file)
{
	struct wal *wal = wal_of(entry);

	if (!wal)
		return;
	lock_file_add_wal(entry, file);
	wal->file = file;
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
		wal->recovery_ns = rc == SQLITE_OK ? now_ns() : 0;
	} else if (first == SLOT_CHECKPOINT) {
		begin_checkpoint(wal, call, CHECKPOINT_BY_COMMIT);
		if (rc == SQLITE_OK)
			return;
		if ((rc & 0xff) == SQLITE_BUSY)
			see_refusal(wal, call, first, count);
		end_checkpoint(wal, call);
	} else if (wal->checkpoint.is_open) {
		see_locked(wal, call, first, count, rc);
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
		const struct index_head head = read_head(call);
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
	database = lock_file_of_wal(file);
	*is_database = !database;
	return *lock_file_wal(database ? database : entry);
}

int wal_write(sqlite3_file *file, const void *data, int amount, sqlite3_int64 offset,
              int (*real)(sqlite3_file *, const void *, int, sqlite3_int64))
{
	bool is_database = false;
	struct wal *wal = wal_of_file(file, &is_database);
	uint64_t start;
	int rc;

	if (!wal || !(is_database ? wal->checkpoint.is_open : wal->is_writing))
		return real(file, data, amount, offset);
	if (!is_database) {
		if (amount == WAL_HEADER_BYTES)
			see_header(wal, data, offset);
		else if (amount == WAL_FRAME_BYTES)
			see_frame(wal, data, offset);
		return real(file, data, amount, offset);
	}
	start = now_ns();
	rc = real(file, data, amount, offset);
	wal->checkpoint.write_ns += query_since(start, now_ns());
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
	start = now_ns();
	rc = real(file, flags);
	*sum += query_since(start, now_ns());
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
	write_change(wal, WAL_TRUNCATES, &author, now_ns(),
	             size > WAL_HEADER_BYTES && wal->page_size
	                     ? (uint64_t)(size - WAL_HEADER_BYTES) / (wal->page_size + WAL_FRAME_BYTES)
	                     : 0);
}

void wal_see_close(const sqlite3_file *file)
{
	bool is_database = false;
	struct wal *wal = wal_of_file(file, &is_database);

	if (!wal)
		return;
	if (thread_current)
		flush(wal, now_ns());
	wal->file = NULL;
	if (is_database) {
		wal->used = 0;
		wal->is_writing = wal->checkpoint.is_open = false;
		wal->page_size = wal->newest = 0;
	}
}

void wal_flush_all(void)
{
	struct wal *wal;

	if (!thread_current)
		return;
	for (uint32_t at = 0; (wal = lock_file_next_wal(&at));)
		if (!wal->is_writing)
			flush(wal, now_ns());
}
