/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/programs.h"

#include "store/write/intern.h"
#include "wire/query_record.h"

static int run(struct writer *writer, enum writer_statement which)
{
	writer->bytes += 60;
	return writer_run(writer, which);
}

int programs_take(struct writer *writer, const struct program_record *record, size_t size)
{
	sqlite3_stmt *add = writer_statement(writer, WRITE_PROGRAM);
	sqlite3_stmt *add_plan = writer_statement(writer, WRITE_PLAN);
	int64_t statement, library;
	int code;

	if (size < sizeof *record ||
	    (uint64_t)record->query_size + record->library_size + record->plan_size > size - sizeof *record)
		return SQLITE_OK;
	statement = intern_statement(writer, record->text, record->query_size, record->flags & QUERY_TEXT_CUT,
	                             true, 0);
	if (statement < 0)
		return (int)-statement;
	library = intern_library(writer, record->text + record->query_size, record->library_size);
	if (library < 0)
		return (int)-library;
	sqlite3_bind_int64(add, 1, (int64_t)record->program);
	sqlite3_bind_int64(add, 2, statement);
	sqlite3_bind_int64(add, 3, library);
	sqlite3_bind_int64(add, 4, (int64_t)record->plan);
	sqlite3_bind_int64(add, 5, (int64_t)record->seen_ns);
	sqlite3_bind_int64(add, 6, (int64_t)record->layout);
	code = run(writer, WRITE_PROGRAM);
	if (code)
		return code;
	sqlite3_bind_int64(writer_statement(writer, WRITE_PLAN_FOUND), 1, (int64_t)record->program);
	code = writer_run(writer, WRITE_PLAN_FOUND);
	sqlite3_bind_int64(add_plan, 1, (int64_t)record->plan);
	writer_bind_text(add_plan, 2, record->text + record->query_size + record->library_size,
	                 record->plan_size);
	return code ? code : run(writer, WRITE_PLAN);
}

/* Each returns false if the row is shorter than what it says to have. */
static bool bind_node(sqlite3_stmt *add, const struct program_row *row)
{
	const struct node_row *node = (const struct node_row *)row;

	if (row->size < sizeof *node ||
	    row->size - sizeof *node < (size_t)node->detail_size + node->compared_size)
		return false;
	sqlite3_bind_int64(add, 3, node->parent);
	writer_bind_text(add, 4, node->text, node->detail_size);
	writer_bind_text(add, 5, node->text + node->detail_size, node->compared_size);
	return true;
}

static bool bind_opcode(sqlite3_stmt *add, const struct program_row *row)
{
	const struct opcode_row *opcode = (const struct opcode_row *)row;

	if (row->size < sizeof *opcode || row->size - sizeof *opcode < opcode->name_size)
		return false;
	sqlite3_bind_int64(add, 3, (int64_t)opcode->address);
	writer_bind_text(add, 4, opcode->name, opcode->name_size);
	sqlite3_bind_int64(add, 5, opcode->p1);
	sqlite3_bind_int64(add, 6, opcode->p2);
	sqlite3_bind_int64(add, 7, opcode->p3);
	sqlite3_bind_int64(add, 8, opcode->p5);
	return true;
}

static bool bind_loop(sqlite3_stmt *add, const struct program_row *row)
{
	const struct loop_row *loop = (const struct loop_row *)row;

	if (row->size < sizeof *loop)
		return false;
	sqlite3_bind_int64(add, 3, loop->loops);
	sqlite3_bind_int64(add, 4, loop->rows);
	return true;
}

static bool bind_missing(sqlite3_stmt *add, const struct program_row *row)
{
	const struct missing_plan_row *missing = (const struct missing_plan_row *)row;

	if (row->size < sizeof *missing || row->size - sizeof *missing < missing->reason_size)
		return false;
	writer_bind_text(add, 3, missing->reason, missing->reason_size);
	return true;
}

/* ?1 is the program or the query, ?2 the node. */
static const struct {
	bool is_of_query;
	enum writer_statement add;
	bool (*bind)(sqlite3_stmt *add, const struct program_row *row);
} kinds[] = {
	[ROW_NODE] = { false, WRITE_PLAN_NODE, bind_node },
	[ROW_OPCODE] = { false, WRITE_PROGRAM_OPCODE, bind_opcode },
	[ROW_LOOP] = { true, WRITE_PLAN_LOOP, bind_loop },
	[ROW_MISSING_PLAN] = { false, WRITE_PLAN_MISSING, bind_missing },
};

static int take_row(struct writer *writer, int64_t program, int64_t query, const struct program_row *row)
{
	sqlite3_stmt *add;

	if (!row->kind || row->kind >= sizeof kinds / sizeof *kinds ||
	    kinds[row->kind].is_of_query != (query != 0))
		return SQLITE_OK;
	add = writer_statement(writer, kinds[row->kind].add);
	sqlite3_bind_int64(add, 1, query ? query : program);
	sqlite3_bind_int64(add, 2, row->node);
	return kinds[row->kind].bind(add, row) ? run(writer, kinds[row->kind].add) : SQLITE_OK;
}

int programs_take_rows(struct writer *writer, const struct program_rows_record *record, size_t size)
{
	const struct program_row *row;
	int code = SQLITE_OK;
	int64_t query = 0;
	uint32_t span;

	if (size < sizeof *record || record->size > size - sizeof *record)
		return SQLITE_OK;
	if (record->query.hi || record->query.lo)
		query = intern_query(writer, record->query, &span);
	if (query < 0)
		return (int)-query;
	for (size_t at = 0; !code && at + sizeof *row <= record->size; at += row->size) {
		row = (const struct program_row *)(record->rows + at);
		if (row->size < sizeof *row || row->size % 8 || row->size > record->size - at)
			break;
		code = take_row(writer, (int64_t)record->program, query, row);
	}
	return code;
}

int programs_remove_unused(struct writer *writer)
{
	enum { MISSING_DELETED, LOOPS_DELETED, PROGRAMS_DELETED };
	/* Its statement's queries first, by their index: all others are looked at only when none of
	 * those has it. Nothing is left of a program whose row is gone. */
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

	for (size_t i = 0; !code && i < sizeof sql / sizeof *sql; i++) {
		code = writer_run_sql(writer, sql[i], 0, 0);
		if (i == PROGRAMS_DELETED && !sqlite3_changes(writer->database.db))
			break;
	}
	return code;
}
