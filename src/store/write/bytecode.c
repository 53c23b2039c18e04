/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/bytecode.h"

#include "store/write/queries.h"
#include "store/write/texts.h"
#include "store/write/writer.h"
#include "wire/query_record.h"

const struct bytecode_writer bytecode_writer_new = {
	.sql = {
		.add.sql = "INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns, layout) VALUES"
		           " (:id, :statement, :library, :plan_hash, :first_seen_ns, :layout)"
		           /* an older version stored none */
		           " ON CONFLICT DO UPDATE SET layout = excluded.layout WHERE layout = 0",
		.add_plan.sql = "INSERT OR IGNORE INTO plans (plan_hash, plan) VALUES (:plan_hash, :plan)",
		.add_node.sql = "INSERT OR IGNORE INTO plan_nodes (program, node, parent, detail, compared) VALUES"
		                " (:program, :node, :parent, :detail, :compared)",
		.add_opcode.sql =
			"INSERT OR IGNORE INTO program_opcodes (program, node, address, opcode, p1, p2, p3, p5)"
			" VALUES (:program, :node, :address, :opcode, :p1, :p2, :p3, :p5)",
		.add_loop.sql = "INSERT OR IGNORE INTO plan_loops (query, node, loops, rows, estimate) VALUES"
		                " (:query, :node, :loops, :rows, :estimate)",
		.add_module_loop.sql =
			"INSERT INTO plan_loops (query, node, loops, rows) SELECT :query, node, :loops, :rows"
			" FROM program_opcodes WHERE program = :program AND address = :address AND node > 0"
			" ON CONFLICT DO UPDATE SET loops = loops + excluded.loops, rows = rows + excluded.rows",
		.add_missing.sql = "INSERT OR REPLACE INTO missing_plans (program, reason)"
		                   " SELECT :program, :reason"
		                   " WHERE NOT EXISTS (SELECT 1 FROM programs WHERE id = :program)",
		.remove_missing.sql = "DELETE FROM missing_plans WHERE program = :program",
	},
};

static int run(struct writer *writer, struct prepared *prepared)
{
	writer->bytes += 60;
	return writer_run(writer, prepared);
}

int bytecode_add(struct writer *writer, const struct bytecode_record *record)
{
	struct bytecode_writer *bytecode = writer->bytecode;
	struct prepared *add, *remove, *add_plan;
	int64_t statement, library;
	int code;

	statement = intern_statement(writer, record->text, record->query_size, record->flags & QUERY_TEXT_CUT,
	                             true, 0);
	if (statement < 0)
		return (int)-statement;
	library = intern_library(writer, record->text + record->query_size, record->library_size);
	if (library < 0)
		return (int)-library;
	add = writer_bind(writer, &bytecode->sql.add);
	bind_number(add, "id", (int64_t)record->bytecode);
	bind_number(add, "statement", statement);
	bind_number(add, "library", library);
	bind_number(add, "plan_hash", (int64_t)record->plan);
	bind_number(add, "first_seen_ns", (int64_t)record->seen_ns);
	bind_number(add, "layout", (int64_t)record->layout);
	code = run(writer, add);
	if (code)
		return code;
	remove = writer_bind(writer, &bytecode->sql.remove_missing);
	bind_number(remove, "program", (int64_t)record->bytecode);
	code = writer_run(writer, remove);
	if (code)
		return code;
	add_plan = writer_bind(writer, &bytecode->sql.add_plan);
	bind_number(add_plan, "plan_hash", (int64_t)record->plan);
	bind_text(add_plan, "plan", record->text + record->query_size + record->library_size,
	          record->plan_size);
	return run(writer, add_plan);
}

/* `key`: the bytecode, for a loop the query. Each returns SQLITE_OK or the error; a row that is
 * shorter than its fields is omitted. */
static int add_node(struct writer *writer, int64_t key, const struct bytecode_row *row)
{
	const struct node_row *node = (const struct node_row *)row;
	struct prepared *add = &writer->bytecode->sql.add_node;

	if (row->size < sizeof(*node) ||
	    row->size - sizeof(*node) < (size_t)node->detail_size + node->compared_size)
		return SQLITE_OK;
	writer_bind(writer, add);
	bind_number(add, "program", key);
	bind_number(add, "node", row->node);
	bind_number(add, "parent", node->parent);
	bind_text(add, "detail", node->text, node->detail_size);
	bind_text(add, "compared", node->text + node->detail_size, node->compared_size);
	return run(writer, add);
}

static int add_opcode(struct writer *writer, int64_t key, const struct bytecode_row *row)
{
	const struct opcode_row *opcode = (const struct opcode_row *)row;
	struct prepared *add = &writer->bytecode->sql.add_opcode;

	if (row->size < sizeof(*opcode) || row->size - sizeof(*opcode) < opcode->name_size)
		return SQLITE_OK;
	writer_bind(writer, add);
	bind_number(add, "program", key);
	bind_number(add, "node", row->node);
	bind_number(add, "address", (int64_t)opcode->address);
	bind_text(add, "opcode", opcode->name, opcode->name_size);
	bind_number(add, "p1", opcode->p1);
	bind_number(add, "p2", opcode->p2);
	bind_number(add, "p3", opcode->p3);
	bind_number(add, "p5", opcode->p5);
	return run(writer, add);
}

static int add_loop(struct writer *writer, int64_t key, const struct bytecode_row *row)
{
	const struct loop_row *loop = (const struct loop_row *)row;
	struct prepared *add = &writer->bytecode->sql.add_loop;

	if (row->size < sizeof(*loop))
		return SQLITE_OK;
	writer_bind(writer, add);
	bind_number(add, "query", key);
	bind_number(add, "node", row->node);
	bind_number(add, "loops", loop->loops);
	bind_number(add, "rows", loop->rows);
	if (loop->estimate >= 0)
		bind_real(add, "estimate", loop->estimate);
	else
		bind_null(add, "estimate");
	return run(writer, add);
}

static int add_module_loop(struct writer *writer, int64_t bytecode, int64_t query,
                           const struct bytecode_row *row)
{
	const struct module_loop_row *loop = (const struct module_loop_row *)row;
	struct prepared *add = &writer->bytecode->sql.add_module_loop;

	if (row->size < sizeof(*loop))
		return SQLITE_OK;
	writer_bind(writer, add);
	bind_number(add, "query", query);
	bind_number(add, "loops", loop->loops);
	bind_number(add, "rows", loop->rows);
	bind_number(add, "program", bytecode);
	bind_number(add, "address", (int64_t)loop->address);
	return run(writer, add);
}

static int add_missing(struct writer *writer, int64_t key, const struct bytecode_row *row)
{
	const struct missing_plan_row *missing = (const struct missing_plan_row *)row;
	struct prepared *add = &writer->bytecode->sql.add_missing;

	if (row->size < sizeof(*missing) || row->size - sizeof(*missing) < missing->reason_size)
		return SQLITE_OK;
	writer_bind(writer, add);
	bind_number(add, "program", key);
	bind_text(add, "reason", missing->reason, missing->reason_size);
	return run(writer, add);
}

static int add_row(struct writer *writer, int64_t bytecode, int64_t query, const struct bytecode_row *row)
{
	if ((row->kind == ROW_LOOP || row->kind == ROW_MODULE_LOOP) != (query != 0))
		return SQLITE_OK;
	switch (row->kind) {
	case ROW_NODE: return add_node(writer, bytecode, row);
	case ROW_OPCODE: return add_opcode(writer, bytecode, row);
	case ROW_LOOP: return add_loop(writer, query, row);
	case ROW_MISSING_PLAN: return add_missing(writer, bytecode, row);
	case ROW_MODULE_LOOP: return add_module_loop(writer, bytecode, query, row);
	default: return SQLITE_OK;
	}
}

int bytecode_add_rows(struct writer *writer, const struct bytecode_rows_record *record)
{
	const struct bytecode_row *row;
	int code = SQLITE_OK;
	int64_t query = 0;
	uint32_t entry;

	if (record->query.hi || record->query.lo)
		query = intern_query(writer, record->query, &entry);
	if (query < 0)
		return (int)-query;
	for (size_t at = 0; !code && at + sizeof(*row) <= record->size; at += row->size) {
		row = (const struct bytecode_row *)(record->rows + at);
		if (row->size < sizeof(*row) || row->size % 8 || row->size > record->size - at)
			break;
		code = add_row(writer, (int64_t)record->bytecode, query, row);
	}
	return code;
}

int bytecode_remove_unused(struct writer *writer)
{
	enum { MISSING_DELETED, LOOPS_DELETED, BYTECODE_DELETED };
	/* The queries of its statement first, by their index; all others are checked only if none
	 * of those has it. Removes everything about bytecode without a row. */
	static const char *const sql[] = {
		"DELETE FROM missing_plans WHERE program NOT IN (SELECT program FROM queries)",
		"DELETE FROM plan_loops WHERE query NOT IN (SELECT id FROM queries)",
		"DELETE FROM programs WHERE iif(EXISTS (SELECT 1 FROM queries AS q"
		" WHERE q.statement = programs.statement AND q.program = programs.id),"
		" 0, id NOT IN (SELECT program FROM queries))",
		"DELETE FROM plan_nodes WHERE program NOT IN (SELECT id FROM programs)",
		"DELETE FROM program_opcodes WHERE program NOT IN (SELECT id FROM programs)",
		"DELETE FROM plans WHERE plan_hash NOT IN (SELECT plan_hash FROM programs)",
		"UPDATE state SET program_removals = program_removals + 1",
	};
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < sizeof(sql) / sizeof(*sql); i++) {
		code = writer_run_sql(writer, sql[i], 0, 0);
		if (i == BYTECODE_DELETED && !sqlite3_changes(writer->database.db))
			break;
	}
	return code;
}
