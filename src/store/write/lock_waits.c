/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/lock_waits.h"

#include "collect/transaction_states.h"
#include "store/write/other_process.h"
#include "store/write/queries.h"
#include "store/write/threads.h"
#include "store/write/writer.h"

#define ROW_BYTES 150

const struct lock_writer lock_writer_new = {
	.sql = {
		.add_wait.sql =
			"INSERT INTO waits_for_locks (query, start_ns, wait_ns, lock, refused, thread_id, process,"
			" database, holder, holder_query, holder_session, holder_process_id, holder_thread_id,"
			" holder_transaction, tries, code, own_transaction, own_age_ns, own_query,"
			" holder_program, holder_user) SELECT :query,"
			" :start_ns, :wait_ns, :lock, :refused, :thread_id, :process, :database, :holder,"
			" :holder_query, :holder_session, :holder_process_id, :holder_thread_id,"
			" :holder_transaction, :tries, :code, :own_transaction, :own_age_ns, :own_query,"
			" :holder_program, :holder_user"
			/* Open waits are copied before the records, and may have ended in one of these. */
			" WHERE :refused <> 2 OR NOT EXISTS (SELECT 1 FROM waits_for_locks WHERE process = :process"
			" AND thread_id = :thread_id AND start_ns = :start_ns)",
		.lengthen.sql = "UPDATE waits_for_locks SET wait_ns = max(wait_ns, :wait_ns) WHERE refused = 2 AND"
		                " process = :process AND thread_id = :thread_id AND start_ns = (SELECT max(start_ns)"
		                " FROM waits_for_locks WHERE process = :process AND thread_id = :thread_id)",
		.remove_open.sql = "DELETE FROM waits_for_locks WHERE process = :process AND"
		                   " thread_id = :thread_id AND start_ns = :start_ns AND refused = 2",
		.remove_open_transaction.sql =
			"DELETE FROM transactions WHERE process = :process AND number = :number AND outcome >= 3"
			" AND start_ns BETWEEN :start_ns - 5000000000 AND :start_ns + 5000000000",
		.add_transaction.sql =
			"INSERT INTO transactions (process, number, session, thread_id, start_ns, duration_ns,"
			" write_ns, exclusive_ns, idle_ns, statements, outcome, waited_for, first, last, database,"
			" first_query, last_query, pending_ns, cpu_ns, idle_cpu_ns, run_delay_ns) SELECT :process, :number, :session, :thread_id,"
			" :start_ns, :duration_ns, :write_ns, :exclusive_ns, :idle_ns, :statements, :outcome,"
			" :waited_for, :first, :last, :database, :first_query, :last_query, :pending_ns,"
			" :cpu_ns, :idle_cpu_ns, :run_delay_ns WHERE :outcome < 3 OR NOT EXISTS (SELECT 1 FROM"
			" transactions WHERE process = :process AND number = :number AND outcome < 3"
			" AND start_ns BETWEEN :start_ns - 5000000000 AND :start_ns + 5000000000)",
	},
};

/* Lengthens the row that was published for it. */
static int lengthen(struct writer *writer, int64_t process, const struct lock_wait_record *record)
{
	struct prepared *update = writer_bind(writer, &writer->locks->sql.lengthen);

	bind_number(update, "wait_ns", (int64_t)record->wait_ns);
	bind_number(update, "process", process);
	bind_number(update, "thread_id", record->thread_id);
	return writer_run(writer, update);
}

/* Removes the row that was published during the wait. */
static int remove_open(struct writer *writer, int64_t process, const struct lock_wait_record *record)
{
	struct prepared *remove;

	if (record->wait_ns < LOCK_WAIT_PUBLISHED_NS)
		return SQLITE_OK;
	remove = writer_bind(writer, &writer->locks->sql.remove_open);
	bind_number(remove, "process", process);
	bind_number(remove, "thread_id", record->thread_id);
	bind_number(remove, "start_ns", (int64_t)record->start_realtime_ns);
	return writer_run(writer, remove);
}

int lock_waits_add(struct writer *writer, const struct lock_wait_record *record, size_t size)
{
	const char *text = record->text;
	struct prepared *add;
	int64_t start = (int64_t)record->start_realtime_ns, end = start + (int64_t)record->wait_ns;
	int64_t query, holder, process = intern_process(writer);
	struct other_process other = { .program = "" };
	int code;

	if (process < 0)
		return (int)-process;
	if (record->outcome == LOCK_LASTED)
		return lengthen(writer, process, record);
	query = queries_find(writer, record->query, start, end);
	if (query < 0)
		return (int)-query;
	holder = queries_find(writer, record->holder.query, start, start);
	if (holder < 0)
		return (int)-holder;
	code = remove_open(writer, process, record);
	if (code)
		return code;
	add = writer_bind(writer, &writer->locks->sql.add_wait);
	bind_number(add, "query", query);
	bind_number(add, "start_ns", start);
	bind_number(add, "wait_ns", (int64_t)record->wait_ns);
	bind_number(add, "lock", record->lock);
	bind_number(add, "refused", record->outcome);
	bind_number(add, "thread_id", record->thread_id);
	bind_number(add, "process", process);
	bind_text(add, "database", text, record->database_size);
	bind_number(add, "holder", holder);
	bind_text(add, "holder_query", text += record->database_size, record->holder_size);
	bind_number(add, "holder_session", record->holder.session);
	bind_number(add, "holder_process_id", record->holder.process_id);
	bind_number(add, "holder_thread_id", record->holder.thread_id);
	bind_number(add, "holder_transaction", record->holder.transaction);
	bind_number(add, "tries", record->tries);
	bind_number(add, "code", record->code);
	bind_number(add, "own_transaction", record->transaction);
	bind_number(add, "own_age_ns", (int64_t)record->age_ns);
	bind_text(add, "own_query", text + record->holder_size, record->first_size);
	if (record->holder.process_id && record->holder.process_id != writer->identity.process_id)
		other = other_process_describe(&writer->identity, record->holder.process_id, start);
	bind_text(add, "holder_program", other.program, SIZE_MAX);
	bind_text(add, "holder_user", other.user, SIZE_MAX);
	writer->bytes += ROW_BYTES + size - sizeof(*record);
	return writer_run(writer, add);
}

/* Removes the row that was published while the transaction was open. Its start was computed from another
 * clock. */
static int remove_open_transaction(struct writer *writer, int64_t process,
                                   const struct transaction_record *record)
{
	struct prepared *remove;

	if (record->duration_ns < OPEN_TRANSACTION_PUBLISHED_NS)
		return SQLITE_OK;
	remove = writer_bind(writer, &writer->locks->sql.remove_open_transaction);
	bind_number(remove, "process", process);
	bind_number(remove, "number", record->number);
	bind_number(remove, "start_ns", (int64_t)record->start_realtime_ns);
	return writer_run(writer, remove);
}

int transactions_add(struct writer *writer, const struct transaction_record *record, size_t size)
{
	const char *text = record->text;
	struct prepared *add;
	int64_t start = (int64_t)record->start_realtime_ns;
	int64_t end = (int64_t)(record->start_realtime_ns + record->duration_ns);
	int64_t first, last, process = intern_process(writer);
	int code;

	if (process < 0)
		return (int)-process;
	first = queries_find(writer, record->first, start, start);
	last = first < 0 ? first : queries_find(writer, record->last, end, end);
	if (last < 0)
		return (int)-last;
	code = remove_open_transaction(writer, process, record);
	if (code)
		return code;
	add = writer_bind(writer, &writer->locks->sql.add_transaction);
	bind_number(add, "process", process);
	bind_number(add, "number", record->number);
	bind_number(add, "session", record->session);
	bind_number(add, "thread_id", record->thread_id);
	bind_number(add, "start_ns", start);
	bind_number(add, "duration_ns", (int64_t)record->duration_ns);
	bind_number(add, "write_ns", (int64_t)record->write_ns);
	bind_number(add, "exclusive_ns", (int64_t)record->exclusive_ns);
	bind_number(add, "idle_ns", (int64_t)record->idle_ns);
	bind_number(add, "statements", record->statements);
	bind_number(add, "outcome", record->outcome);
	bind_number(add, "waited_for", record->was_waited_for);
	bind_number(add, "first", first);
	bind_number(add, "last", last);
	bind_text(add, "database", text, record->database_size);
	bind_text(add, "first_query", text += record->database_size, record->first_size);
	bind_text(add, "last_query", text += record->first_size, record->last_size);
	bind_number(add, "pending_ns", (int64_t)record->pending_ns);
	if (record->has_cpu) {
		bind_number(add, "cpu_ns", (int64_t)record->cpu_ns);
		bind_number(add, "idle_cpu_ns", (int64_t)record->idle_cpu_ns);
		bind_number(add, "run_delay_ns", (int64_t)record->run_delay_ns);
	} else {
		bind_null(add, "cpu_ns");
		bind_null(add, "idle_cpu_ns");
		bind_null(add, "run_delay_ns");
	}
	writer->bytes += ROW_BYTES + size - sizeof(*record);
	return writer_run(writer, add);
}
