/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/lock_waits.h"

#include "store/write/intern.h"
#include "store/write/writer.h"

#define ROW_BYTES 150

/* The row of a query that the wait is about, 0: of none. Its text comes with its own record, if
 * it has one. */
static int64_t find_query(struct writer *writer, struct query_key query, int64_t first_ns, int64_t last_ns)
{
	uint32_t span;
	int64_t row;

	if (!query.hi && !query.lo)
		return 0;
	row = intern_query(writer, query, &span);
	if (row > 0)
		writer_widen_span(writer, span, first_ns, last_ns);
	return row;
}

/* The row that was published of it stays. */
static int lengthen(struct writer *writer, int64_t process, const struct lock_wait_record *record)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_LOCK_WAITED);

	sqlite3_bind_int64(statement, 1, process);
	sqlite3_bind_int64(statement, 2, record->thread_id);
	sqlite3_bind_int64(statement, 3, (int64_t)record->wait_ns);
	return writer_run(writer, WRITE_LOCK_WAITED);
}

int lock_waits_take(struct writer *writer, const struct lock_wait_record *record, size_t size)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_LOCK_WAIT);
	int64_t start = (int64_t)record->start_realtime_ns, end = start + (int64_t)record->wait_ns;
	int64_t query, holder, process = intern_process(writer);

	if (size < sizeof *record ||
	    (uint64_t)record->database_size + record->holder_size > size - sizeof *record)
		return SQLITE_OK;
	if (process < 0)
		return (int)-process;
	if (record->outcome == LOCK_LASTED)
		return lengthen(writer, process, record);
	query = find_query(writer, record->query, start, end);
	if (query < 0)
		return (int)-query;
	holder = find_query(writer, record->holder.query, start, start);
	if (holder < 0)
		return (int)-holder;
	if (record->wait_ns >= LOCK_WAIT_PUBLISHED_NS) {
		sqlite3_stmt *open = writer_statement(writer, WRITE_REMOVE_OPEN_WAIT);

		sqlite3_bind_int64(open, 1, process);
		sqlite3_bind_int64(open, 2, record->thread_id);
		sqlite3_bind_int64(open, 3, start);
		int code = writer_run(writer, WRITE_REMOVE_OPEN_WAIT);
		if (code)
			return code;
	}
	const int64_t values[] = { query,        start,           (int64_t)record->wait_ns,
		                   record->lock, record->outcome, record->thread_id,
		                   process };
	for (int i = 0; i < (int)(sizeof values / sizeof *values); i++)
		sqlite3_bind_int64(statement, i + 1, values[i]);
	writer_bind_text(statement, 8, record->text, record->database_size);
	sqlite3_bind_int64(statement, 9, holder);
	writer_bind_text(statement, 10, record->text + record->database_size, record->holder_size);
	sqlite3_bind_int64(statement, 11, record->holder.session);
	sqlite3_bind_int64(statement, 12, record->holder.process_id);
	sqlite3_bind_int64(statement, 13, record->holder.thread_id);
	sqlite3_bind_int64(statement, 14, record->holder.transaction);
	writer->bytes += ROW_BYTES + record->database_size + record->holder_size;
	return writer_run(writer, WRITE_LOCK_WAIT);
}

int transactions_take(struct writer *writer, const struct transaction_record *record, size_t size)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_TRANSACTION);
	int64_t start = (int64_t)record->start_realtime_ns;
	int64_t end = (int64_t)(record->start_realtime_ns + record->duration_ns);
	int64_t first, last, process = intern_process(writer);

	if (size < sizeof *record ||
	    (uint64_t)record->database_size + record->first_size + record->last_size > size - sizeof *record)
		return SQLITE_OK;
	if (process < 0)
		return (int)-process;
	first = find_query(writer, record->first, start, start);
	last = first < 0 ? first : find_query(writer, record->last, end, end);
	if (last < 0)
		return (int)-last;
	const int64_t values[] = { process,
		                   record->number,
		                   record->session,
		                   record->thread_id,
		                   start,
		                   (int64_t)record->duration_ns,
		                   (int64_t)record->write_ns,
		                   (int64_t)record->exclusive_ns,
		                   (int64_t)record->idle_ns,
		                   record->statements,
		                   record->outcome,
		                   record->was_waited_for,
		                   first,
		                   last };
	const uint32_t sizes[] = { record->database_size, record->first_size, record->last_size };
	const char *text = record->text;
	int index = 0;

	for (; index < (int)(sizeof values / sizeof *values); index++)
		sqlite3_bind_int64(statement, index + 1, values[index]);
	for (int i = 0; i < 3; text += sizes[i++])
		writer_bind_text(statement, ++index, text, sizes[i]);
	sqlite3_bind_int64(statement, ++index, (int64_t)record->pending_ns);
	writer->bytes += ROW_BYTES + size - sizeof *record;
	return writer_run(writer, WRITE_TRANSACTION);
}
