/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/checkpoint.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "query/cpu_clock.h"
#include "query/statement_stats.h"
#include "sqlite/session/run.h"
#include "wire/wal_record.h"

void checkpoint_begin(struct checkpoint *checkpoint, const struct wal_call *call, uint32_t origin)
{
	*checkpoint = (struct checkpoint){ .is_open = true, .origin = origin, .start_ns = lock_now_ns() };
	checkpoint->start_cpu_ns = cpu_clock_until(thread_current, checkpoint->start_ns);
	checkpoint->begin = wal_index_read(call);
}

void checkpoint_refused(struct checkpoint *checkpoint, const struct wal_call *call, int first, int count)
{
	bool found = false;

	checkpoint->obstacle = first == SLOT_CHECKPOINT ? OBSTACLE_CHECKPOINT
	                       : first == SLOT_WRITE    ? OBSTACLE_WRITER
	                       : count == 1             ? OBSTACLE_READER
	                                                : OBSTACLE_READERS;
	checkpoint->mark = first >= SLOT_READ ? (uint32_t)(first - SLOT_READ) : 0;
	checkpoint->mark_frame = 0;
	if (!checkpoint->refused_ns)
		checkpoint->refused_ns = lock_now_ns();
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
		struct wal_index head = wal_index_read(call);

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

void checkpoint_locked(struct checkpoint *checkpoint, const struct wal_call *call, int first, int count,
                       int rc)
{
	checkpoint->wants_writer |= first == SLOT_WRITE;
	if (first > SLOT_READ && count > 1) {
		checkpoint->wants_restart = true;
		checkpoint->restart = wal_index_read(call);
	}
	if ((rc & 0xff) == SQLITE_BUSY) {
		checkpoint_refused(checkpoint, call, first, count);
		return;
	}
	if (rc == SQLITE_OK)
		end_refusal(checkpoint, lock_now_ns());
	/* The header that SQLite is about to read. */
	if (rc == SQLITE_OK && first == SLOT_WRITE)
		checkpoint->begin = wal_index_read(call);
}

static bool is_same_wal(const struct wal_index *one, const struct wal_index *other)
{
	return one->salt == other->salt;
}

/* What was copied, when all is done: a restart clears the number. */
static uint32_t copied_after(const struct checkpoint *checkpoint, const struct wal_index *end)
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

static void write_record(const struct checkpoint *checkpoint, const struct wal_call *call,
                         const struct wal_index *end, bool is_stopped, uint32_t page_size, uint32_t session)
{
	const struct run *run = call->run;
	const char *path = lock_file_path(call->entry);
	const char *text = run && run->query.text ? run->query.text : "";
	const size_t sizes[] = { strnlen(path, 1024), strnlen(text, LOCK_TEXT_MAX - 1),
		                 strlen(checkpoint->holder_text) };
	const uint64_t now = lock_now_ns();
	struct ring *ring = sampler_ring();
	struct checkpoint_record *record =
		ring ? ring_reserve(ring, sizeof(*record) + sizes[0] + sizes[1] + sizes[2]) : NULL;

	if (!record)
		return;
	*record = (struct checkpoint_record){
		.query = run ? run->query.key : (struct query_key){ 0 },
		.statement = run && run->statement ? statement_stats_hash(run->statement) : 0,
		.start_realtime_ns = checkpoint->start_ns + thread_current->realtime_offset_ns,
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
			checkpoint->holder_since_ns
				? checkpoint->holder_since_ns + thread_current->realtime_offset_ns
				: 0,
		.page_size = page_size,
		.session = session,
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
	memcpy(record->text, path, sizes[0]);
	memcpy(record->text + sizes[0], text, sizes[1]);
	memcpy(record->text + sizes[0] + sizes[1], checkpoint->holder_text, sizes[2]);
	ring_commit(ring, record, RECORD_CHECKPOINT);
}

void checkpoint_end(struct checkpoint *checkpoint, const struct wal_call *call, const struct wal_index *end,
                    uint32_t page_size, uint32_t session)
{
	const bool is_stopped = checkpoint->refused_ns != 0;

	checkpoint->is_open = false;
	end_refusal(checkpoint, lock_now_ns());
	/* The last connection closes without anything to copy. */
	if (checkpoint->origin == CHECKPOINT_BY_CLOSE && !checkpoint->begin.frames)
		return;
	if (call->run && call->run->settings.log)
		write_record(checkpoint, call, end, is_stopped, page_size, session);
}
