/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up the samples by type and stack. Then reads each stack once, and the rows of an address in the view
 * stack_frames once.
 */
#include "cmd/file/stack_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/interner.h"
#include "base/search.h"
#include "base/tally.h"
#include "base/vector.h"
#include "cmd/file/table_pages.h"
#include "frames/stack_text.h"
#include "sql_top_views.h"
#include "store/file/made_table.h"

enum column { TRACE_TYPE, UNIT, WHOLE, OF_TYPE };
/* The columns after these. */
enum { FUNCTION_ID, MODULE_ID, SELF, TOTAL };
enum { STACK, SAMPLES, VALUE };
#define TYPE_COLUMNS "trace_type TEXT, unit TEXT, whole INTEGER, "

struct type {
	uint32_t name, unit; /* texts */
	int64_t whole;
};

struct series {
	int64_t id, period_ns;
	uint32_t type;
};

/* A row of stack_frames. */
struct line {
	uint32_t function, text;
	bool is_innermost;
};

struct address {
	size_t first;
	uint32_t count; /* number of lines */
	bool is_known;
};

struct function {
	uint32_t place; /* its index on the stack, from 1 */
	size_t stack;   /* the number of the last stack that had it */
};

/* The stack that is being read. */
struct stack {
	size_t number;
	VECTOR(uint32_t) functions;
	VECTOR(bool) is_leaf; /* of the functions */
	VECTOR(char) text;
};

/* The state of a scan. */
struct sums {
	struct interner texts;
	VECTOR(struct type) types;
	VECTOR(struct series) series; /* by id */
	struct tally samples;         /* stack, type; samples, value */
	struct tally addresses;       /* each is a row */
	VECTOR(struct address) known; /* by number */
	VECTOR(struct line) lines;    /* of addresses */
	struct tally function_ids;    /* function_id, module_id: each is a row */
	VECTOR(struct function) functions;
	struct stack stack;
	struct tally rows; /* of the result: type, function or text, and two sums */
	sqlite3_stmt *trace_of, *lines_of;
	bool has_overflown;
};

static void free_sums(void *of)
{
	struct sums *sums = of;

	interner_free(&sums->texts);
	vector_free(&sums->types);
	vector_free(&sums->series);
	tally_free(&sums->samples);
	tally_free(&sums->addresses);
	vector_free(&sums->known);
	vector_free(&sums->lines);
	tally_free(&sums->function_ids);
	vector_free(&sums->functions);
	vector_free(&sums->stack.functions);
	vector_free(&sums->stack.is_leaf);
	vector_free(&sums->stack.text);
	tally_free(&sums->rows);
}

static uint32_t number_of_text(struct sums *sums, sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return interner_number(&sums->texts, text ? text : "");
}

static void add(struct sums *sums, int64_t *sum, int64_t value)
{
	sums->has_overflown |= __builtin_add_overflow(*sum, value, sum);
}

/* --- samples ------------------------------------------------------------------------------------------ */

static int read_series(sqlite3 *db, struct sums *sums)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db, "SELECT id, period_ns, trace_type, unit FROM series ORDER BY id",
	                              -1, &row, NULL);

	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const struct type type = { number_of_text(sums, row, 2), number_of_text(sums, row, 3), 0 };
		uint32_t i = 0;

		while (i < sums->types.count &&
		       (sums->types.items[i].name != type.name || sums->types.items[i].unit != type.unit))
			i++;
		code = type.name != INTERNER_NO_MEMORY && type.unit != INTERNER_NO_MEMORY &&
		                       (i < sums->types.count || vector_push(&sums->types, type)) &&
		                       vector_push(&sums->series,
		                                   (struct series){ sqlite3_column_int64(row, 0),
		                                                    sqlite3_column_int64(row, 1), i })
		               ? SQLITE_OK
		               : SQLITE_NOMEM;
	}
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static const char *const sample_columns[] = { "timestamp_ns", "series", "stack", "weight", "size" };
enum { SAMPLE_TIME, SAMPLE_SERIES, SAMPLE_STACK, SAMPLE_WEIGHT, SAMPLE_SIZE, SAMPLE_COLUMNS };

static int take_sample(void *context, const int64_t *row)
{
	struct sums *sums = context;
	const struct series *series = sums->series.items;
	const size_t at = SEARCH_COUNT(sums->series.count, i, series[i].id < row[SAMPLE_SERIES]);
	int64_t value;

	if (at == sums->series.count || series[at].id != row[SAMPLE_SERIES])
		return SQLITE_OK;
	const size_t number =
		tally_row(&sums->samples, (const int64_t[]){ row[SAMPLE_STACK], series[at].type });
	if (number == TALLY_NONE)
		return SQLITE_NOMEM;
	int64_t *words = tally_at(&sums->samples, number);
	sums->has_overflown |= __builtin_mul_overflow(row[SAMPLE_WEIGHT], series[at].period_ns, &value);
	add(sums, &value, row[SAMPLE_SIZE]);
	words[2]++;
	add(sums, &words[3], value);
	add(sums, &sums->types.items[series[at].type].whole, value);
	return SQLITE_OK;
}

static int read_samples(sqlite3 *db, struct sums *sums)
{
	return table_pages_each(db,
	                        &(struct table_rows){ .table = "samples",
	                                              .columns = sample_columns,
	                                              .count = SAMPLE_COLUMNS,
	                                              .first = INT64_MIN,
	                                              .last = INT64_MAX },
	                        take_sample, sums);
}

/* --- stacks ------------------------------------------------------------------------------------------- */

/* The frame with that number on a stack, at the address. */
static int read_lines(struct sums *sums, int64_t stack, int64_t frame, struct address *address)
{
	sqlite3_stmt *row = sums->lines_of;
	int code = SQLITE_OK;

	address->first = sums->lines.count;
	sqlite3_bind_int64(row, 1, stack);
	sqlite3_bind_int64(row, 2, frame);
	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const int64_t ids[] = { sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2) };
		const size_t function = tally_row(&sums->function_ids, ids);
		const uint32_t text = number_of_text(sums, row, 3);

		code = function != TALLY_NONE && text != INTERNER_NO_MEMORY &&
		                       vector_at(&sums->functions, function) &&
		                       vector_push(&sums->lines,
		                                   (struct line){ (uint32_t)function, text,
		                                                  sqlite3_column_int64(row, 0) == 0 })
		               ? SQLITE_OK
		               : SQLITE_NOMEM;
	}
	sqlite3_reset(row);
	address->count = (uint32_t)(sums->lines.count - address->first);
	address->is_known = true;
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int add_function(struct sums *sums, uint32_t number, bool is_leaf)
{
	struct stack *stack = &sums->stack;
	struct function *function = &sums->functions.items[number];

	if (function->stack != stack->number) {
		if (!vector_push(&stack->functions, number) || !vector_push(&stack->is_leaf, false))
			return SQLITE_NOMEM;
		*function = (struct function){ (uint32_t)stack->functions.count, stack->number };
	}
	stack->is_leaf.items[function->place - 1] |= is_leaf;
	return SQLITE_OK;
}

static int add_text(struct stack *stack, const char *text)
{
	static const char between[] = " < ";
	const size_t size = strlen(text), gap = stack->text.count ? strlen(between) : 0;

	if (!vector_reserve(&stack->text, stack->text.count + gap + size + 1))
		return SQLITE_NOMEM;
	memcpy(stack->text.items + stack->text.count, between, gap);
	memcpy(stack->text.items + stack->text.count + gap, text, size + 1);
	stack->text.count += gap + size;
	return SQLITE_OK;
}

static int add_frame(struct sums *sums, int64_t id, int64_t frame, uint64_t of, bool has_text)
{
	const size_t number = tally_row(&sums->addresses, (const int64_t *)&of);
	struct address *address = number == TALLY_NONE ? NULL : vector_at(&sums->known, number);
	int code = !address            ? SQLITE_NOMEM
	           : address->is_known ? SQLITE_OK
	                               : read_lines(sums, id, frame, address);

	for (size_t i = 0; !code && i < address->count; i++) {
		const struct line *line = &sums->lines.items[address->first + i];

		code = has_text ? add_text(&sums->stack, sums->texts.texts.items[line->text])
		                : add_function(sums, line->function, frame == 0 && line->is_innermost);
	}
	return code;
}

/* A missing stack has no frames, and no text. */
static int read_stack(struct sums *sums, int64_t id, bool has_text)
{
	struct address_reader reader = { .at = "[]" };
	uint64_t address;
	int next = 0;

	sums->stack.number++;
	sums->stack.functions.count = sums->stack.is_leaf.count = sums->stack.text.count = 0;
	if (!vector_reserve(&sums->stack.text, 1))
		return SQLITE_NOMEM;
	sums->stack.text.items[0] = 0;
	sqlite3_bind_int64(sums->trace_of, 1, id);
	int code = sqlite3_step(sums->trace_of);
	const char *trace = code == SQLITE_ROW ? (const char *)sqlite3_column_text(sums->trace_of, 0) : NULL;
	if (trace)
		reader.at = trace;
	code = code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
	for (int64_t frame = 0; !code && (next = address_reader_next(&reader, &address)) > 0; frame++)
		code = add_frame(sums, id, frame, address, has_text);
	sqlite3_reset(sums->trace_of);
	return next < 0 ? SQLITE_MISMATCH : code;
}

/* --- the tables --------------------------------------------------------------------------------------- */

static int compare_rows(const void *left, const void *right, void *of)
{
	const struct tally *samples = of;
	const int64_t one = tally_at(samples, *(const uint32_t *)left)[0],
		      other = tally_at(samples, *(const uint32_t *)right)[0];

	return one < other ? -1 : one > other;
}

static int add_row(struct sums *sums, int64_t type, int64_t key, int64_t first, int64_t second)
{
	const size_t row = tally_row(&sums->rows, (const int64_t[]){ type, key });

	if (row == TALLY_NONE)
		return SQLITE_NOMEM;
	int64_t *words = tally_at(&sums->rows, row);
	add(sums, &words[2], first);
	add(sums, &words[3], second);
	return SQLITE_OK;
}

/* Adds the samples of a type and the stack that was read. */
static int add_stack(struct sums *sums, const int64_t *words, bool has_text)
{
	const struct stack *stack = &sums->stack;
	int code = SQLITE_OK;

	if (has_text) {
		const uint32_t text = interner_number(&sums->texts, stack->text.items);

		return text == INTERNER_NO_MEMORY ? SQLITE_NOMEM
		                                  : add_row(sums, words[1], text, words[2], words[3]);
	}
	for (size_t i = 0; !code && i < stack->functions.count; i++)
		code = add_row(sums, words[1], stack->functions.items[i],
		               stack->is_leaf.items[i] ? words[3] : 0, words[3]);
	return code;
}

static int add_stacks(struct sums *sums, bool has_text)
{
	const size_t count = sums->samples.count;
	uint32_t *order = malloc((count + 1) * sizeof(*order));
	int64_t newest = 0;
	int code = order ? SQLITE_OK : SQLITE_NOMEM;

	for (uint32_t i = 0; order && i < count; i++)
		order[i] = i;
	if (order)
		qsort_r(order, count, sizeof(*order), compare_rows, &sums->samples);
	for (size_t i = 0; !code && i < count; i++) {
		const int64_t *words = tally_at(&sums->samples, order[i]);

		if (!i || words[0] != newest)
			code = read_stack(sums, words[0], has_text);
		newest = words[0];
		if (!code)
			code = add_stack(sums, words, has_text);
	}
	free(order);
	return code;
}

static int make(sqlite3 *db, void *rows, bool has_text, char **error)
{
	struct sums *sums = rows;

	*sums = (struct sums){
		.samples = { .keys = 2, .width = 4 },
		.addresses = { .keys = 1, .width = 1 },
		.function_ids = { .keys = 2, .width = 2 },
		.rows = { .keys = 2, .width = 4 },
	};
	int code = read_series(db, sums);
	if (!code)
		code = read_samples(db, sums);
	if (!code) /* the same limit as in stack_frames */
		code = sqlite3_prepare_v2(
			db, "SELECT iif(length(trace) <= 10755, trace, '[]') FROM stacks WHERE id = ?", -1,
			&sums->trace_of, NULL);
	if (!code)
		code = sqlite3_prepare_v2(db,
		                          "SELECT level, function_id, module_id, function FROM stack_frames"
		                          " WHERE stack_id = ? AND frame = ?",
		                          -1, &sums->lines_of, NULL);
	if (!code)
		code = add_stacks(sums, has_text);
	sqlite3_finalize(sums->trace_of);
	sqlite3_finalize(sums->lines_of);
	if (code == SQLITE_MISMATCH)
		*error = sqlite3_mprintf("malformed JSON");
	else if (!code && sums->has_overflown)
		*error = sqlite3_mprintf("integer overflow");
	return *error ? SQLITE_ERROR : code;
}

static int make_functions(sqlite3 *db, void *data, void *memory, void *rows, uint64_t used, char **error)
{
	(void)data, (void)memory, (void)used;
	return make(db, rows, false, error);
}

static int make_texts(sqlite3 *db, void *data, void *memory, void *rows, uint64_t used, char **error)
{
	(void)data, (void)memory, (void)used;
	return make(db, rows, true, error);
}

static size_t count_rows(const void *rows)
{
	return ((const struct sums *)rows)->rows.count;
}

static void set_text(const struct sums *sums, size_t text, sqlite3_context *result)
{
	sqlite3_result_text(result, sums->texts.texts.items[text], -1, SQLITE_STATIC);
}

/* False: the column is one of its own. */
static bool read_of_type(const struct sums *sums, const int64_t *words, int column, sqlite3_context *result)
{
	const struct type *type = &sums->types.items[words[0]];

	if (column == WHOLE)
		sqlite3_result_int64(result, type->whole);
	else if (column < WHOLE)
		set_text(sums, column == UNIT ? type->unit : type->name, result);
	return column < OF_TYPE;
}

static void read_function(const void *memory, const void *rows, size_t row, int column,
                          sqlite3_context *result)
{
	const struct sums *sums = rows;
	const int64_t *words = tally_at(&sums->rows, row);

	(void)memory;
	if (read_of_type(sums, words, column, result))
		return;
	column -= OF_TYPE;
	sqlite3_result_int64(
		result, column < SELF ? tally_at(&sums->function_ids, (size_t)words[1])[column - FUNCTION_ID]
				      : words[2 + column - SELF]);
}

static void read_text(const void *memory, const void *rows, size_t row, int column, sqlite3_context *result)
{
	const struct sums *sums = rows;
	const int64_t *words = tally_at(&sums->rows, row);

	(void)memory;
	if (read_of_type(sums, words, column, result))
		return;
	if (column == OF_TYPE + STACK)
		set_text(sums, (size_t)words[1], result);
	else
		sqlite3_result_int64(result, words[2 + column - OF_TYPE - SAMPLES]);
}

int stack_sums_add(sqlite3 *db)
{
	static const struct made_table tables[] = {
		{ .name = "function_times",
		  .columns =
		          TYPE_COLUMNS "function_id INTEGER, module_id INTEGER, self INTEGER, total INTEGER",
		  .needs_create = true,
		  .rows_size = sizeof(struct sums),
		  .make = make_functions,
		  .count = count_rows,
		  .read = read_function,
		  .free_rows = free_sums },
		{ .name = "text_times",
		  .columns = TYPE_COLUMNS "stack TEXT, samples INTEGER, value INTEGER",
		  .needs_create = true,
		  .rows_size = sizeof(struct sums),
		  .make = make_texts,
		  .count = count_rows,
		  .read = read_text,
		  .free_rows = free_sums },
	};
	int code = made_table_add(db, &tables[0], NULL);

	if (!code)
		code = made_table_add(db, &tables[1], NULL);
	return code ? code : sqlite3_exec(db, sql_top_views, NULL, NULL, NULL);
}
