/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/checkpoints.h"

#include "store/write/queries.h"
#include "store/write/threads.h"
#include "store/write/writer.h"

#define ROW_BYTES 120

const struct checkpoint_writer checkpoint_writer_new = {
	.sql = {
		.add_event.sql =
			"INSERT INTO wal_events (process, session, thread_id, start_ns, duration_ns, event, "
			"frames, first_frame, last_frame, transactions, page_size, query, statement, database, "
			"text) VALUES "
			"(:process, :session, :thread_id, :start_ns, :duration_ns, :event, :frames, :first_frame, "
			":last_frame, :transactions, :page_size, :query, :statement, :database, :text)",
		.add_checkpoint.sql =
			"INSERT INTO wal_checkpoints (process, session, thread_id, start_ns, duration_ns, cpu_ns, "
			"write_ns, wal_sync_ns, database_sync_ns, stopped_ns, bytes, result, mode, origin, "
			"frames, copied_before, copied_after, page_size, obstacle, mark, mark_frame, holder, "
			"holder_session, holder_process_id, holder_thread_id, holder_transaction, "
			"holder_since_ns, query, statement, database, text, holder_query) VALUES (:process, :session, "
			":thread_id, :start_ns, :duration_ns, :cpu_ns, :write_ns, :wal_sync_ns, "
			":database_sync_ns, :stopped_ns, :bytes, :result, :mode, :origin, :frames, "
			":copied_before, :copied_after, :page_size, :obstacle, :mark, :mark_frame, :holder, "
			":holder_session, :holder_process_id, :holder_thread_id, :holder_transaction, "
			":holder_since_ns, :query, :statement, :database, :text, :holder_query)",
	},
};

int wal_events_add(struct writer *writer, const struct wal_record *record, size_t size)
{
	const int64_t start = (int64_t)record->start_realtime_ns, end = start + (int64_t)record->duration_ns;
	int64_t query, process = intern_process(writer);
	struct prepared *add;

	if (process < 0)
		return (int)-process;
	query = queries_find(writer, record->query, start, end);
	if (query < 0)
		return (int)-query;
	add = writer_bind(writer, &writer->checkpoints->sql.add_event);
	bind_number(add, "process", process);
	bind_number(add, "session", record->session);
	bind_number(add, "thread_id", record->thread_id);
	bind_number(add, "start_ns", start);
	bind_number(add, "duration_ns", (int64_t)record->duration_ns);
	bind_number(add, "event", record->event);
	bind_number(add, "frames", (int64_t)record->frames);
	bind_number(add, "first_frame", record->first_frame);
	bind_number(add, "last_frame", record->last_frame);
	bind_number(add, "transactions", record->transactions);
	bind_number(add, "page_size", record->page_size);
	bind_number(add, "query", query);
	bind_number(add, "statement", (int64_t)record->statement);
	bind_text(add, "database", record->text, record->database_size);
	bind_text(add, "text", record->text + record->database_size, record->query_size);
	writer->bytes += ROW_BYTES + size - sizeof(*record);
	return writer_run(writer, add);
}

static void bind_frames(struct prepared *add, const struct checkpoint_record *record)
{
	if (!record->has_frames) {
		bind_null(add, "frames");
		bind_null(add, "copied_before");
		bind_null(add, "copied_after");
		return;
	}
	bind_number(add, "frames", record->frames);
	bind_number(add, "copied_before", record->copied_before);
	bind_number(add, "copied_after", record->copied_after);
}

static void bind_holder(struct prepared *add, const struct checkpoint_record *record, int64_t holder)
{
	bind_number(add, "obstacle", record->obstacle);
	bind_number(add, "mark", record->mark);
	bind_number(add, "mark_frame", record->mark_frame);
	bind_number(add, "holder", holder);
	bind_number(add, "holder_session", record->holder.session);
	bind_number(add, "holder_process_id", record->holder.process_id);
	bind_number(add, "holder_thread_id", record->holder.thread_id);
	bind_number(add, "holder_transaction", record->holder.transaction);
	bind_number(add, "holder_since_ns", (int64_t)record->holder_since_realtime_ns);
}

int checkpoints_add(struct writer *writer, const struct checkpoint_record *record, size_t size)
{
	const int64_t start = (int64_t)record->start_realtime_ns, end = start + (int64_t)record->duration_ns;
	int64_t query, holder, process = intern_process(writer);
	const char *text = record->text;
	struct prepared *add;

	if (process < 0)
		return (int)-process;
	query = queries_find(writer, record->query, start, end);
	holder = query < 0 ? query : queries_find(writer, record->holder.query, start, start);
	if (holder < 0)
		return (int)-holder;
	add = writer_bind(writer, &writer->checkpoints->sql.add_checkpoint);
	bind_number(add, "process", process);
	bind_number(add, "session", record->session);
	bind_number(add, "thread_id", record->thread_id);
	bind_number(add, "start_ns", start);
	bind_number(add, "duration_ns", (int64_t)record->duration_ns);
	bind_number(add, "cpu_ns", (int64_t)record->cpu_ns);
	bind_number(add, "write_ns", (int64_t)record->write_ns);
	bind_number(add, "wal_sync_ns", (int64_t)record->wal_sync_ns);
	bind_number(add, "database_sync_ns", (int64_t)record->database_sync_ns);
	bind_number(add, "stopped_ns", (int64_t)record->stopped_ns);
	bind_number(add, "bytes", (int64_t)record->bytes);
	bind_number(add, "result", record->result);
	bind_number(add, "mode", record->mode);
	bind_number(add, "origin", record->origin);
	bind_frames(add, record);
	bind_number(add, "page_size", record->page_size);
	bind_holder(add, record, holder);
	bind_number(add, "query", query);
	bind_number(add, "statement", (int64_t)record->statement);
	bind_text(add, "database", text, record->database_size);
	bind_text(add, "text", text += record->database_size, record->query_size);
	bind_text(add, "holder_query", text + record->query_size, record->holder_size);
	writer->bytes += ROW_BYTES + size - sizeof(*record);
	return writer_run(writer, add);
}
