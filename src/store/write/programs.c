/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/programs.h"

#include <string.h>

#include "store/write/intern.h"
#include "wire/query_record.h"

#define FIELDS_MAX 8

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

/* Splits a line at its tabs; the last field has what is left. Returns how many fields. */
static int split(const char *line, size_t size, int most, const char *fields[], size_t sizes[])
{
	int count = 0;

	for (;;) {
		const char *tab = count + 1 < most ? memchr(line, '\t', size) : NULL;
		size_t length = tab ? (size_t)(tab - line) : size;

		fields[count] = line;
		sizes[count++] = length;
		if (!tab)
			return count;
		line += length + 1;
		size -= length + 1;
	}
}

static const struct {
	char kind;
	bool is_of_query; /* else of the program */
	enum writer_statement add;
	int fields;
} rows[] = {
	{ 'N', false, WRITE_PLAN_NODE, 5 },
	{ 'O', false, WRITE_PROGRAM_OPCODE, 8 },
	{ 'L', true, WRITE_PLAN_LOOP, 4 },
	{ 'M', false, WRITE_PLAN_MISSING, 2 },
};
#define ROWS (sizeof rows / sizeof *rows)

/* The columns' types make numbers of the numbers. */
static int take_row(struct writer *writer, int64_t program, int64_t query, const char *line, size_t size)
{
	const char *fields[FIELDS_MAX];
	size_t sizes[FIELDS_MAX], row = 0;
	sqlite3_stmt *add;

	while (row < ROWS && (!size || line[0] != rows[row].kind))
		row++;
	if (row == ROWS || rows[row].is_of_query != (query != 0) ||
	    split(line, size, rows[row].fields, fields, sizes) != rows[row].fields)
		return SQLITE_OK;
	add = writer_statement(writer, rows[row].add);
	sqlite3_bind_int64(add, 1, query ? query : program);
	for (int i = 1; i < rows[row].fields; i++)
		writer_bind_text(add, i + 1, fields[i], sizes[i]);
	return run(writer, rows[row].add);
}

int programs_take_rows(struct writer *writer, const struct program_rows_record *record, size_t size)
{
	const char *at = record->text, *line_end;
	int code = SQLITE_OK;
	int64_t query = 0;
	uint32_t span;

	if (size < sizeof *record || record->size > size - sizeof *record)
		return SQLITE_OK;
	if (record->query.hi || record->query.lo)
		query = intern_query(writer, record->query, &span);
	if (query < 0)
		return (int)-query;
	for (const char *end = at + record->size; !code && at < end; at = line_end + 1) {
		line_end = memchr(at, '\n', (size_t)(end - at));
		if (!line_end)
			break;
		code = take_row(writer, (int64_t)record->program, query, at, (size_t)(line_end - at));
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
