/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/connections.h"

#include "store/write/threads.h"
#include "store/write/writer.h"

#define ROW_BYTES 60

const struct connection_writer connection_writer_new = {
	.sql = {
		.add.sql =
			"INSERT INTO connection_counts (process, session, thread_id, timestamp_ns, is_closing, hits,"
			" misses, writes, spills, cache_bytes, database_bytes, database) VALUES (:process, :session,"
			" :thread_id, :timestamp_ns, :is_closing, :hits, :misses, :writes, :spills, :cache_bytes,"
			" :database_bytes, :database)",
		.add_statements.sql =
			"INSERT INTO open_statement_counts (process, session, thread_id, timestamp_ns, statements,"
			" measured, texts, bytes, cache_bytes, statement, text_statements, text_bytes, database, text)"
			" VALUES (:process, :session, :thread_id, :timestamp_ns, :statements, :measured, :texts,"
			" :bytes, :cache_bytes, :statement, :text_statements, :text_bytes, :database, :text)",
	},
};

int connections_add(struct writer *writer, const struct connection_record *record)
{
	static const char *const counts[PAGE_CACHE_COUNTS] = {
		[PAGE_CACHE_HITS] = "hits",
		[PAGE_CACHE_MISSES] = "misses",
		[PAGE_CACHE_WRITES] = "writes",
		[PAGE_CACHE_SPILLS] = "spills",
	};
	const int64_t process = intern_process(writer);
	struct prepared *add;

	if (process < 0)
		return (int)-process;
	add = writer_bind(writer, &writer->connections->sql.add);
	bind_number(add, "process", process);
	bind_number(add, "session", record->session);
	bind_number(add, "thread_id", record->thread_id);
	bind_number(add, "timestamp_ns", (int64_t)record->realtime_ns);
	bind_number(add, "is_closing", record->is_closing != 0);
	for (unsigned i = 0; i < PAGE_CACHE_COUNTS; i++)
		if (record->unknown >> i & 1)
			bind_null(add, counts[i]);
		else
			bind_number(add, counts[i], (int64_t)record->counts[i]);
	bind_number(add, "cache_bytes", (int64_t)record->cache_bytes);
	if (record->database_bytes == CONNECTION_NO_FILE)
		bind_null(add, "database_bytes");
	else
		bind_number(add, "database_bytes", (int64_t)record->database_bytes);
	bind_text(add, "database", record->text, record->database_size);
	writer->bytes += ROW_BYTES + record->database_size;
	return writer_run(writer, add);
}

int open_statements_add(struct writer *writer, const struct open_statements_record *record, size_t size)
{
	const int64_t process = intern_process(writer);
	struct prepared *add;

	if (process < 0)
		return (int)-process;
	add = writer_bind(writer, &writer->connections->sql.add_statements);
	bind_number(add, "process", process);
	bind_number(add, "session", record->session);
	bind_number(add, "thread_id", record->thread_id);
	bind_number(add, "timestamp_ns", (int64_t)record->realtime_ns);
	bind_number(add, "statements", record->statements);
	bind_number(add, "measured", record->measured);
	bind_number(add, "texts", record->texts);
	bind_number(add, "bytes", (int64_t)record->bytes);
	bind_number(add, "cache_bytes", (int64_t)record->cache_bytes);
	bind_number(add, "statement", (int64_t)record->statement);
	bind_number(add, "text_statements", record->text_statements);
	bind_number(add, "text_bytes", (int64_t)record->text_bytes);
	bind_text(add, "database", record->text, record->database_size);
	bind_text(add, "text", record->text + record->database_size, record->query_size);
	writer->bytes += ROW_BYTES + size - sizeof(*record);
	return writer_run(writer, add);
}
