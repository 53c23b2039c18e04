/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/page_sums.h"

#include "store/write/threads.h"
#include "store/write/writer.h"

#define ROW_BYTES 60

const struct page_sum_writer page_sum_writer_new = {
	.sql = {
		.add.sql =
			"INSERT INTO page_sums (process, thread_id, start_ns, kind, root, statement, reads,"
			" read_bytes, wal_read_bytes, writes, rewritten, wal_bytes, database_bytes, journal_bytes,"
			" journal_read_bytes, database, btree, table_name) VALUES (:process, :thread_id,"
			" :start_ns, :kind, :root, :statement, :reads, :read_bytes, :wal_read_bytes, :writes,"
			" :rewritten, :wal_bytes, :database_bytes, :journal_bytes, :journal_read_bytes, :database,"
			" :btree, :table_name)",
	},
};

int page_sums_add(struct writer *writer, const struct page_record *record)
{
	static const char *const counts[PAGE_COUNTS] = {
		[PAGE_READS] = "reads",
		[PAGE_READ_BYTES] = "read_bytes",
		[PAGE_WAL_READ_BYTES] = "wal_read_bytes",
		[PAGE_WRITES] = "writes",
		[PAGE_REWRITTEN] = "rewritten",
		[PAGE_WAL_BYTES] = "wal_bytes",
		[PAGE_DATABASE_BYTES] = "database_bytes",
		[PAGE_JOURNAL_BYTES] = "journal_bytes",
		[PAGE_JOURNAL_READ_BYTES] = "journal_read_bytes",
	};
	const int64_t process = intern_process(writer);
	const char *text = record->text;
	struct prepared *add;

	if (process < 0)
		return (int)-process;
	add = writer_bind(writer, &writer->page_sums->sql.add);
	bind_number(add, "process", process);
	bind_number(add, "thread_id", record->thread_id);
	bind_number(add, "start_ns", (int64_t)record->start_realtime_ns);
	bind_number(add, "kind", record->kind);
	bind_number(add, "root", record->root);
	bind_number(add, "statement", (int64_t)record->statement);
	for (unsigned i = 0; i < PAGE_COUNTS; i++)
		bind_number(add, counts[i], (int64_t)record->counts[i]);
	bind_text(add, "database", text, record->database_size);
	bind_text(add, "btree", text += record->database_size, record->btree_size);
	bind_text(add, "table_name", text + record->btree_size, record->table_size);
	writer->bytes += ROW_BYTES + record->database_size + record->btree_size + record->table_size;
	return writer_run(writer, add);
}
