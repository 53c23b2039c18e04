/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table's widths come from its first rows (ROWS_MEASURED of them, so that any
 * number of rows can follow). Where it is too wide for the terminal, columns of text
 * are cut, or the last one gets lines of its own; numbers are never cut, and where
 * the output is no terminal nothing is. Content of a trace file is shown without control
 * characters: a query's text must not be able to drive the terminal.
 */
#include "output_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "terminal.h"

#define ROWS_MEASURED 1000
#define TEXT_WIDTH_LONG 24
#define TEXT_WIDTH_LAST 12
#define TEXT_WIDTH_MIN 8
#define GAP 2
#define FOLD_INDENT 4

struct column {
	const char *title;
	char in_unit[48]; /* a title that is not the name in SQL */
	int width;
	bool is_number;
};

struct table {
	sqlite3_stmt *statement;
	int count, beside; /* columns, and those of them that stand side by side */
	bool cuts_middle, folds_last;
	struct column *columns;
	char **cells; /* of the rows measured, row by row; NULL is NULL */
	size_t rows;
};

/* Digits with the marks of printed numbers; for the alignment only. */
static bool looks_like_number(const char *text)
{
	static const char marks[] = "0123456789.,+-%\xc2\xb1 "; /* and plus-minus */
	return strpbrk(text, "0123456789") && text[strspn(text, marks)] == 0;
}

/* SQL calls a column of values self_ms, or ms, whatever their unit. */
static void begin_column(struct column *column, const char *name, const char *unit)
{
	size_t stem = strlen(name) >= 2 ? strlen(name) - 2 : 0;
	bool is_value = strcmp(name + stem, "ms") == 0 && (!stem || name[stem - 1] == '_');

	column->title = name;
	if (unit && strcmp(unit, "ns") != 0 && is_value) {
		snprintf(column->in_unit, sizeof(column->in_unit), "%.*s%s", (int)stem, name, unit);
		column->title = column->in_unit;
	}
	column->is_number = true;
}

static void measure_cell(struct column *column, const char *text)
{
	if (!text[0])
		return;
	column->is_number = column->is_number && looks_like_number(text);
	while (text) {
		const char *end = strchr(text, '\n');
		int width = terminal_measure(text, end ? (size_t)(end - text) : strlen(text));
		if (width > column->width)
			column->width = width;
		text = end ? end + 1 : NULL;
	}
}

/* The widest column of text beyond `width`; NULL: none is. */
static struct column *widest_text(struct table *table, int width)
{
	struct column *widest = NULL;

	for (int i = 0; i < table->beside; i++) {
		struct column *column = &table->columns[i];
		if (!column->is_number && column->width > width && (!widest || column->width > widest->width))
			widest = column;
	}
	return widest;
}

static struct column *last_text(struct table *table, int width)
{
	for (int i = table->beside; i-- > 0;)
		if (!table->columns[i].is_number)
			return table->columns[i].width > width ? &table->columns[i] : NULL;
	return NULL;
}

/* Long columns lose first; then the last column stands below the others, or loses, as
 * dates and ids, which stand before it, say nothing when they are cut. */
static void fit_columns(struct table *table)
{
	int room = terminal_width(), total = GAP * (table->count - 1);
	struct column *column, *last = &table->columns[table->count - 1];

	table->beside = table->count;
	for (int i = 0; i < table->count; i++)
		total += table->columns[i].width;
	while (room && total > room && (column = widest_text(table, TEXT_WIDTH_LONG)) != NULL) {
		column->width--;
		total--;
	}
	if (room && total > room && table->folds_last && table->count > 1) {
		table->beside--;
		total -= GAP + last->width;
		last->width = room > FOLD_INDENT + TEXT_WIDTH_MIN ? room - FOLD_INDENT : TEXT_WIDTH_MIN;
	}
	while (room && total > room &&
	       ((column = last_text(table, TEXT_WIDTH_LAST)) != NULL ||
	        (column = widest_text(table, TEXT_WIDTH_MIN)) != NULL)) {
		column->width--;
		total--;
	}
}

/* The last column's, below the row, in one line. */
static void print_folded(const struct table *table, const char *text)
{
	terminal_print_padding(FOLD_INDENT);
	terminal_print_cut(text, strcspn(text, "\n"), table->columns[table->count - 1].width,
	                   table->cuts_middle);
}

/* One row, whose cells may have several lines. */
static void print_row(const struct table *table, const char *const *cells)
{
	bool more = true;

	for (int line = 0; more; line++) {
		int owed = 0; /* padding, held back so that no line ends in blanks */
		more = false;
		for (int i = 0; i < table->beside; i++) {
			const struct column *column = &table->columns[i];
			const char *text = cells[i] ? cells[i] : "";
			for (int skip = 0; skip < line && text; skip++) {
				text = strchr(text, '\n');
				text = text ? text + 1 : NULL;
			}
			if (!text)
				text = "";
			size_t size = strcspn(text, "\n");
			more = more || text[size] == '\n';
			int width = terminal_measure(text, size), printed = 0;
			if (width > column->width)
				width = column->width;
			if (size) {
				terminal_print_padding(owed +
				                       (column->is_number ? column->width - width : 0));
				printed = terminal_print_cut(text, size, column->width, table->cuts_middle);
				owed = column->is_number ? 0 : column->width - printed;
			} else {
				owed += column->width;
			}
			owed += GAP;
		}
		putchar('\n');
	}
	if (table->beside < table->count && cells[table->count - 1]) {
		print_folded(table, cells[table->count - 1]);
		putchar('\n');
	}
}

static void print_heading(const struct table *table)
{
	bool bold = terminal_is_bold();

	if (bold)
		fputs("\033[1m", stdout);
	for (int i = 0; i < table->beside; i++) {
		const char *name = table->columns[i].title;
		const struct column *column = &table->columns[i];
		int width = terminal_measure(name, strlen(name));
		if (width > column->width)
			width = column->width;
		terminal_print_padding(column->is_number ? column->width - width : 0);
		terminal_print_cut(name, strlen(name), column->width, false);
		if (i + 1 < table->beside)
			terminal_print_padding(GAP + (column->is_number ? 0 : column->width - width));
	}
	if (table->beside < table->count) {
		putchar('\n');
		print_folded(table, table->columns[table->count - 1].title);
	}
	if (bold)
		fputs("\033[0m", stdout);
	putchar('\n');
}

static const char *cell_text(sqlite3_stmt *statement, int column)
{
	if (sqlite3_column_type(statement, column) == SQLITE_BLOB)
		return "(blob)";
	return (const char *)sqlite3_column_text(statement, column);
}

static int measure_rows(struct table *table)
{
	size_t width = (size_t)table->count;
	int code = SQLITE_ROW;

	table->cells = calloc(ROWS_MEASURED * width, sizeof(*table->cells));
	if (!table->cells)
		return SQLITE_NOMEM;
	while (table->rows < ROWS_MEASURED && (code = sqlite3_step(table->statement)) == SQLITE_ROW) {
		for (size_t i = 0; i < width; i++) {
			const char *text = cell_text(table->statement, (int)i);
			char *copy = text ? strdup(text) : NULL;
			if (text && !copy)
				return SQLITE_NOMEM;
			table->cells[table->rows * width + i] = copy;
			if (copy)
				measure_cell(&table->columns[i], copy);
		}
		table->rows++;
	}
	return code;
}

static int print_table(struct table *table, const struct output *output)
{
	const char **cells = calloc((size_t)table->count, sizeof(*cells));

	table->columns = calloc((size_t)table->count, sizeof(*table->columns));
	if (!table->columns || !cells) {
		free(cells);
		return SQLITE_NOMEM;
	}
	for (int i = 0; i < table->count; i++)
		begin_column(&table->columns[i], sqlite3_column_name(table->statement, i), output->unit);
	int code = measure_rows(table);
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		free(cells);
		return code;
	}
	for (int i = 0; i < table->count; i++) {
		const char *name = table->columns[i].title;
		int width = output->is_bare ? 0 : terminal_measure(name, strlen(name));
		if (width > table->columns[i].width)
			table->columns[i].width = width;
	}
	fit_columns(table);
	progress_make_way();
	if (table->rows == 0 && output->if_empty)
		puts(output->if_empty);
	else if (!output->is_bare)
		print_heading(table);
	for (size_t row = 0; row < table->rows; row++)
		print_row(table, (const char *const *)&table->cells[row * (size_t)table->count]);
	while (code == SQLITE_ROW && (code = sqlite3_step(table->statement)) == SQLITE_ROW) {
		for (int i = 0; i < table->count; i++)
			cells[i] = cell_text(table->statement, i);
		print_row(table, cells);
	}
	free(cells);
	return code;
}

int output_table(sqlite3_stmt *statement, const struct output *output)
{
	struct table table = {
		.statement = statement,
		.count = sqlite3_column_count(statement),
		.cuts_middle = output->cuts_middle,
		.folds_last = output->folds_last,
	};
	int code = print_table(&table, output);

	for (size_t i = 0; i < table.rows * (size_t)table.count; i++)
		free(table.cells[i]);
	free(table.cells);
	free(table.columns);
	return code;
}
