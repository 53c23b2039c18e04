/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table's widths come from its first rows (ROWS_MEASURED of them, so that any number of rows can follow).
 * If it is too wide for the terminal, spare columns are left out, columns of text are cut, or the last ones
 * get lines of their own. Numbers are never cut, and nothing is if the output is not a terminal. Content of a
 * trace file is shown without control characters, because a query's text must not control the terminal.
 *
 * libsmartcols would replace some 120 of these lines and need 50. It keeps all rows in memory, and has
 * neither columns that go below the others, nor paragraphs, nor cuts in the middle.
 */
#include "cmd/ui/output_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/ui/progress.h"
#include "cmd/ui/terminal.h"

#define ROWS_MEASURED 1000
#define TEXT_WIDTH_LONG 24
#define TEXT_WIDTH_LAST 12
#define TEXT_WIDTH_MIN 8
#define GAP 2
#define FOLD_INDENT 4
#define PARAGRAPHS_MAX 4

struct column {
	int index; /* of the column in SQL */
	const char *title;
	char in_unit[48]; /* a title that is not the name in SQL */
	char time[32];    /* the current row's text, if is_time */
	int width;
	bool is_number, has_values;
	bool is_time, may_be_time; /* in ms; in cells such as "1.0 ms" */
};

struct table {
	sqlite3_stmt *statement;
	int cells_a_row;
	int count, beside; /* columns shown, and those of them that are side by side */
	int paragraphs[PARAGRAPHS_MAX], paragraph_count; /* indexes in SQL */
	const struct table_style *style;
	struct column *columns;
	char **cells; /* of the measured rows, row by row; NULL is NULL */
	size_t rows;
};

#define AT_MOST "\xe2\x89\xa4 "

/* Digits with the marks of printed numbers, perhaps a unit of time. For the alignment only. */
static bool looks_like_number(const char *text)
{
	static const char marks[] = "0123456789.,+-%\xc2\xb1\xe2\x89\xa4 "; /* and plus-minus, at most */
	const char *rest = text + strspn(text, marks);

	if (!strpbrk(text, "0123456789"))
		return false;
	return !*rest || (rest > text && rest[-1] == ' ' &&
	                  (strcmp(rest, "us") == 0 || strcmp(rest, "ms") == 0 || strcmp(rest, "s") == 0 ||
	                   strcmp(rest, "min") == 0 || strcmp(rest, "h") == 0));
}

/* In SQL, a column of values is called self_ms, or ms, whatever their unit is. */
static void begin_column(struct column *column, int index, const char *name, const char *unit)
{
	size_t stem = strlen(name) >= 2 ? strlen(name) - 2 : 0;
	bool is_value = strcmp(name + stem, "ms") == 0 && (!stem || name[stem - 1] == '_');

	column->index = index;
	column->title = name;
	column->is_number = true;
	column->may_be_time = unit && strcmp(unit, "ns") == 0;
	if (!unit || !is_value)
		return;
	column->is_time = column->may_be_time;
	column->title = column->in_unit;
	if (!column->is_time)
		snprintf(column->in_unit, sizeof(column->in_unit), "%.*s%s", (int)stem, name, unit);
	else if (stem)
		snprintf(column->in_unit, sizeof(column->in_unit), "%.*s", (int)stem - 1, name);
	else
		column->title = "time";
}

/* "1250.0" or "1250.0 ms", with its sign or AT_MOST if it has one, in the unit that leaves two to four digits
 * before the point. Other text is returned unchanged. */
static const char *show_time(struct column *column, const char *text)
{
	static const struct {
		double ms; /* the first value that is easier to read in the next unit */
		double unit_ms;
		const char *unit;
		int digits;
	} units[] = {
		{ 0.1, 1e-3, "us", 1 },   { 10e3, 1, "ms", 1 },  { 600e3, 1e3, "s", 2 },
		{ 36e6, 60e3, "min", 1 }, { 0, 3600e3, "h", 1 },
	};
	const size_t mark = strncmp(text, AT_MOST, strlen(AT_MOST)) ? 0 : strlen(AT_MOST);
	char *end;
	double ms = strtod(text + mark, &end);
	size_t i = ms == 0; /* zero is 0 ms */

	if (!text[0] || (*end && strcmp(end, " ms") != 0))
		return text;
	while (units[i].ms > 0 && (ms < 0 ? -ms : ms) >= units[i].ms)
		i++;
	snprintf(column->time, sizeof(column->time), text[0] == '+' ? "%.*s%+.*f %s" : "%.*s%.*f %s",
	         (int)mark, text, units[i].digits, ms / units[i].unit_ms, units[i].unit);
	return column->time;
}

static void measure_cell(struct column *column, const char *text)
{
	if (!text[0])
		return;
	column->has_values = true;
	column->is_number = column->is_number && looks_like_number(text);
	while (text) {
		const char *end = strchr(text, '\n');
		int width = terminal_measure(text, end ? (size_t)(end - text) : strlen(text));
		if (width > column->width)
			column->width = width;
		text = end ? end + 1 : NULL;
	}
}

/* Call it after moving columns, because a title may be inside its column. */
static void point_to_titles(struct table *table)
{
	for (int i = 0; i < table->count; i++)
		if (table->columns[i].in_unit[0])
			table->columns[i].title = table->columns[i].in_unit;
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

static int total_width(const struct table *table)
{
	int total = GAP * (table->count - 1);

	for (int i = 0; i < table->count; i++)
		total += table->columns[i].width;
	return total;
}

/* Returns its index in SQL; -1: not shown. */
static int drop_column(struct table *table, const char *name, size_t size)
{
	int kept = 0, dropped = -1;

	for (int i = 0; i < table->count; i++) {
		const char *other = sqlite3_column_name(table->statement, table->columns[i].index);
		if (strlen(other) != size || memcmp(other, name, size) != 0)
			table->columns[kept++] = table->columns[i];
		else
			dropped = table->columns[i].index;
	}
	table->count = kept;
	point_to_titles(table);
	return dropped;
}

static void take_paragraphs(struct table *table)
{
	const char *name = table->style->paragraphs;

	while (name && *name && table->paragraph_count < PARAGRAPHS_MAX) {
		size_t size = strcspn(name, " ");
		int index = drop_column(table, name, size);

		if (index >= 0)
			table->paragraphs[table->paragraph_count++] = index;
		name += size + strspn(name + size, " ");
	}
}

static void drop_spare_columns(struct table *table)
{
	const char *name = table->style->spare;

	while (name && *name && terminal_width() && total_width(table) > terminal_width()) {
		size_t size = strcspn(name, " ");
		drop_column(table, name, size);
		name += size + strspn(name + size, " ");
	}
}

/* First cuts long columns, but only the last one if others can go below with it. Then the last columns go
 * below the others, or are cut. The columns before them, such as dates, are useless when they are cut. */
static void fit_columns(struct table *table)
{
	int room = terminal_width(), total = total_width(table);
	struct column *column;

	table->beside = table->count;
	while (room && total > room &&
	       (column = table->style->folds_last ? last_text(table, TEXT_WIDTH_LONG)
	                                          : widest_text(table, TEXT_WIDTH_LONG))) {
		column->width--;
		total--;
	}
	while (room && total > room && table->beside > 1 &&
	       table->count - table->beside < table->style->folds_last)
		total -= GAP + table->columns[--table->beside].width;
	while (room && total > room &&
	       ((column = last_text(table, TEXT_WIDTH_LAST)) ||
	        (column = widest_text(table, TEXT_WIDTH_MIN)))) {
		column->width--;
		total--;
	}
}

/* Prints the non-empty columns below the row, in one line, or in several if a column would lose more than
 * half a line. */
static void print_folded(const struct table *table, const char *const *texts)
{
	int at = FOLD_INDENT, owed = FOLD_INDENT, room = terminal_width();

	for (int i = table->beside; i < table->count; i++) {
		size_t size = texts[i] ? strcspn(texts[i], "\n") : 0;
		int left = room > at + TEXT_WIDTH_MIN ? room - at : TEXT_WIDTH_MIN;
		if (!size)
			continue;
		if (room && at > FOLD_INDENT && left < room / 2 && terminal_measure(texts[i], size) > left) {
			putchar('\n');
			at = owed = FOLD_INDENT;
			left = room > at + TEXT_WIDTH_MIN ? room - at : TEXT_WIDTH_MIN;
		}
		terminal_print_padding(owed);
		at += GAP + terminal_print_cut(texts[i], size, left, table->style->cuts_middle);
		owed = GAP;
	}
	putchar('\n');
}

/* One row, whose cells may have several lines. */
static void print_row(const struct table *table, const char *const *cells)
{
	bool more = true;

	for (int line = 0; more; line++) {
		int owed = 0; /* padding, delayed so that no line ends in blanks */
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
				printed = terminal_print_cut(text, size, column->width,
				                             table->style->cuts_middle);
				owed = column->is_number ? 0 : column->width - printed;
			} else {
				owed += column->width;
			}
			owed += GAP;
		}
		putchar('\n');
	}
	if (table->beside < table->count)
		print_folded(table, cells);
}

static const char *cell_text(sqlite3_stmt *statement, int column)
{
	if (sqlite3_column_type(statement, column) == SQLITE_BLOB)
		return "(blob)";
	return (const char *)sqlite3_column_text(statement, column);
}

/* The displayed text, valid until the column's next one. NULL stays NULL. */
static const char *shown(struct column *column, const char *text)
{
	bool is_time = text && (column->is_time || (column->may_be_time && strstr(text, " ms")));

	return is_time ? show_time(column, text) : text;
}

static int measure_rows(struct table *table)
{
	size_t width = (size_t)table->cells_a_row;
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
				measure_cell(&table->columns[i], shown(&table->columns[i], copy));
		}
		table->rows++;
	}
	return code;
}

static void hide_empty(struct table *table)
{
	int kept = 0;

	for (int i = 0; i < table->count; i++)
		if (table->columns[i].has_values)
			table->columns[kept++] = table->columns[i];
	table->count = kept;
	point_to_titles(table);
}

static void measure_titles(struct table *table)
{
	for (int i = 0; i < table->count; i++) {
		struct column *column = &table->columns[i];
		int width = terminal_measure(column->title, strlen(column->title));
		if (width > column->width)
			column->width = width;
	}
}

static void print_heading(const struct table *table, const char **cells)
{
	bool bold = terminal_is_bold();

	for (int i = 0; i < table->count; i++)
		cells[i] = table->columns[i].title;
	if (bold)
		fputs("\033[1m", stdout);
	print_row(table, cells);
	if (bold)
		fputs("\033[0m", stdout);
}

static void print_paragraph(const char *text)
{
	if (!text || !*text)
		return;
	terminal_print_padding(FOLD_INDENT);
	terminal_print_words(text, FOLD_INDENT, FOLD_INDENT);
	putchar('\n');
}

/* The text of a measured row, or of the statement's current one. */
static const char *text_at(const struct table *table, size_t row, int column)
{
	return row < table->rows ? table->cells[row * (size_t)table->cells_a_row + (size_t)column]
	                         : cell_text(table->statement, column);
}

static void print_values(struct table *table, size_t row, const char **cells)
{
	for (int i = 0; i < table->count; i++)
		cells[i] = shown(&table->columns[i], text_at(table, row, table->columns[i].index));
	print_row(table, cells);
	for (int i = 0; i < table->paragraph_count; i++)
		print_paragraph(text_at(table, row, table->paragraphs[i]));
}

/* `cells`: room for a row. */
static int print_table(struct table *table, const char **cells)
{
	for (int i = 0; i < table->count; i++)
		begin_column(&table->columns[i], i, sqlite3_column_name(table->statement, i),
		             table->style->unit);
	int code = measure_rows(table);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return code;
	if (table->style->hides_empty && table->rows)
		hide_empty(table);
	if (!table->style->is_bare)
		measure_titles(table);
	take_paragraphs(table);
	drop_spare_columns(table);
	fit_columns(table);
	progress_clear();
	if (table->rows == 0 && table->style->if_empty)
		puts(table->style->if_empty);
	else if (!table->style->is_bare)
		print_heading(table, cells);
	for (size_t row = 0; row < table->rows; row++)
		print_values(table, row, cells);
	while (code == SQLITE_ROW && (code = sqlite3_step(table->statement)) == SQLITE_ROW)
		print_values(table, table->rows, cells);
	return code;
}

int output_table(sqlite3_stmt *statement, const struct table_style *style)
{
	int count = sqlite3_column_count(statement);
	struct table table = {
		.statement = statement,
		.cells_a_row = count,
		.count = count,
		.style = style,
		.columns = calloc((size_t)count, sizeof(*table.columns)),
	};
	const char **cells = calloc((size_t)count, sizeof(*cells));
	int code = table.columns && cells ? print_table(&table, cells) : SQLITE_NOMEM;

	for (size_t i = 0; i < table.rows * (size_t)count; i++)
		free(table.cells[i]);
	free(table.cells);
	free(table.columns);
	free(cells);
	return code;
}
