/*
 * Runs SQL and prints rows: as a table that fits the terminal, as CSV, as JSON.
 *
 * A table's widths come from its first rows (ROWS_MEASURED of them, so that any
 * number of rows can follow). Where it is too wide for the terminal, columns of text
 * are cut, or the last one gets lines of its own; numbers never are cut, and nothing is
 * where the output is no terminal. What a trace file contains is shown without its control
 * characters: a query's text must not be able to drive the terminal.
 */
#include "command.h"

#include <langinfo.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "progress.h"

#define ROWS_MEASURED 1000
#define TEXT_WIDTH_LONG 24
#define TEXT_WIDTH_LAST 12
#define TEXT_WIDTH_MIN 8
#define GAP 2
#define FOLD_INDENT 4

const char *output_format_at(size_t index)
{
	static const char *const names[] = { "table", "csv", "json", "line" };
	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

enum output_format output_format_find(const char *name)
{
	for (size_t i = 0; name && output_format_at(i); i++)
		if (strcmp(output_format_at(i), name) == 0)
			return (enum output_format)i;
	return OUTPUT_TABLE;
}

/* --- text on a terminal ------------------------------------------------------- */

/* Columns that fit, 0: any number. */
static int terminal_width(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");

	if (columns && atoi(columns) > 0)
		return atoi(columns);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 0;
}

static bool wants_bold(void)
{
	const char *term = getenv("TERM"), *refused = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && !(refused && refused[0]);
}

/* What comes now goes where progress is shown, perhaps. */
static void begin_output(void)
{
	if (isatty(STDOUT_FILENO))
		progress_end();
}

/* The next character of a line: its bytes, and its width on the terminal. What
 * cannot be shown is one wide, and `*shown` is false. */
static size_t next_character(const char *at, size_t left, int *width, bool *shown)
{
	mbstate_t state = { 0 };
	wchar_t character;
	size_t size = mbrtowc(&character, at, left, &state);

	if (size == 0 || size > left) {
		*width = 1;
		*shown = false;
		return 1;
	}
	*width = wcwidth(character);
	*shown = *width >= 0;
	if (!*shown)
		*width = 1;
	return size;
}

static int measure(const char *line, size_t size)
{
	int total = 0, width;
	bool shown;

	while (size) {
		size_t step = next_character(line, size, &width, &shown);
		total += width;
		line += step;
		size -= step;
	}
	return total;
}

/* Prints the characters from the column `from` on and before `to`, counted on the
 * terminal. Returns their width. */
static int print_columns(const char *line, size_t size, int from, int to)
{
	int at = 0, printed = 0, width;
	bool shown;

	for (size_t step; size; line += step, size -= step, at += width) {
		step = next_character(line, size, &width, &shown);
		if (at < from || at + width > to)
			continue;
		if (shown)
			fwrite(line, 1, step, stdout);
		else
			putchar(' ');
		printed += width;
	}
	return printed;
}

/* Prints a line of a cell; what is wider than `room` loses its end, or its middle:
 * names of functions begin alike. Returns its width. */
static int print_cut(const char *line, size_t size, int room, bool cuts_middle)
{
	const char *ellipsis = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "\xe2\x80\xa6" : "~";
	int width = measure(line, size);

	if (width <= room)
		return print_columns(line, size, 0, width);
	int end = cuts_middle ? (room - 1) / 2 : 0; /* of the text that stays */
	int printed = print_columns(line, size, 0, room - 1 - end);
	fputs(ellipsis, stdout);
	return printed + 1 + print_columns(line, size, width - end, width);
}

/* --- tables ------------------------------------------------------------------- */

struct column {
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

/* Digits, and what stands around them in print: for the alignment only. */
static bool looks_like_number(const char *text)
{
	static const char marks[] = "0123456789.,+-%\xc2\xb1 "; /* and plus-minus */
	return strpbrk(text, "0123456789") && text[strspn(text, marks)] == 0;
}

static void measure_cell(struct column *column, const char *text)
{
	if (!text[0])
		return;
	column->is_number = column->is_number && looks_like_number(text);
	while (text) {
		const char *end = strchr(text, '\n');
		int width = measure(text, end ? (size_t)(end - text) : strlen(text));
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

/* What is long loses first; then the last column stands below the others, or loses, as
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

static void print_padding(int width)
{
	if (width > 0)
		printf("%*s", width, "");
}

/* The last column's, below the row, in one line. */
static void print_folded(const struct table *table, const char *text)
{
	print_padding(FOLD_INDENT);
	print_cut(text, strcspn(text, "\n"), table->columns[table->count - 1].width, table->cuts_middle);
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
			int width = measure(text, size), printed = 0;
			if (width > column->width)
				width = column->width;
			if (size) {
				print_padding(owed + (column->is_number ? column->width - width : 0));
				printed = print_cut(text, size, column->width, table->cuts_middle);
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
	bool bold = wants_bold();

	if (bold)
		fputs("\033[1m", stdout);
	for (int i = 0; i < table->beside; i++) {
		const char *name = sqlite3_column_name(table->statement, i);
		const struct column *column = &table->columns[i];
		int width = measure(name, strlen(name));
		if (width > column->width)
			width = column->width;
		print_padding(column->is_number ? column->width - width : 0);
		print_cut(name, strlen(name), column->width, false);
		if (i + 1 < table->beside)
			print_padding(GAP + (column->is_number ? 0 : column->width - width));
	}
	if (table->beside < table->count) {
		putchar('\n');
		print_folded(table, sqlite3_column_name(table->statement, table->count - 1));
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
		table->columns[i].is_number = true;
	int code = measure_rows(table);
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		free(cells);
		return code;
	}
	for (int i = 0; i < table->count; i++) {
		const char *name = sqlite3_column_name(table->statement, i);
		int width = output->is_bare ? 0 : measure(name, strlen(name));
		if (width > table->columns[i].width)
			table->columns[i].width = width;
	}
	fit_columns(table);
	begin_output();
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

static int output_table(sqlite3_stmt *statement, const struct output *output)
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

/* --- CSV and JSON ------------------------------------------------------------- */

static void print_csv_cell(const char *text)
{
	if (!text)
		return;
	if (text[0] && !text[strcspn(text, ",\"\r\n")]) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

static int output_csv(sqlite3_stmt *statement)
{
	int count = sqlite3_column_count(statement), code;

	begin_output();
	for (int i = 0; i < count; i++) {
		fputs(i ? "," : "", stdout);
		print_csv_cell(sqlite3_column_name(statement, i));
	}
	putchar('\n');
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		for (int i = 0; i < count; i++) {
			fputs(i ? "," : "", stdout);
			print_csv_cell((const char *)sqlite3_column_text(statement, i));
		}
		putchar('\n');
	}
	return code;
}

static void print_json_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		if (byte == '"' || byte == '\\')
			printf("\\%c", byte);
		else if (byte < 0x20 || byte == 0x7f)
			printf("\\u%04x", byte);
		else
			putchar(byte);
	}
	putchar('"');
}

static void print_json_value(sqlite3_stmt *statement, int column)
{
	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_NULL: fputs("null", stdout); break;
	case SQLITE_INTEGER:
	case SQLITE_FLOAT: fputs((const char *)sqlite3_column_text(statement, column), stdout); break;
	default: print_json_text((const char *)sqlite3_column_text(statement, column));
	}
}

static int output_json(sqlite3_stmt *statement)
{
	int count = sqlite3_column_count(statement), code;
	bool first = true;

	begin_output();
	putchar('[');
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		fputs(first ? "\n{" : ",\n{", stdout);
		first = false;
		for (int i = 0; i < count; i++) {
			fputs(i ? "," : "", stdout);
			print_json_text(sqlite3_column_name(statement, i));
			putchar(':');
			print_json_value(statement, i);
		}
		putchar('}');
	}
	fputs("\n]\n", stdout);
	return code;
}

/* --- one value a line ----------------------------------------------------------- */

static void print_value(const char *text, int indent)
{
	for (;;) {
		size_t size = strcspn(text, "\n");
		print_columns(text, size, 0, INT_MAX);
		putchar('\n');
		text += size;
		if (!*text)
			return;
		text++;
		print_padding(indent);
	}
}

static int output_line(sqlite3_stmt *statement)
{
	int count = sqlite3_column_count(statement), widest = 0, code;
	bool first = true;

	for (int i = 0; i < count; i++) {
		const char *name = sqlite3_column_name(statement, i);
		int width = measure(name, strlen(name));
		if (width > widest)
			widest = width;
	}
	begin_output();
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!first)
			putchar('\n');
		first = false;
		for (int i = 0; i < count; i++) {
			const char *name = sqlite3_column_name(statement, i), *text = cell_text(statement, i);
			print_padding(widest - measure(name, strlen(name)));
			print_columns(name, strlen(name), 0, INT_MAX);
			fputs(text && text[0] ? " = " : " =", stdout);
			print_value(text ? text : "", widest + 3);
		}
	}
	return code;
}

/* Runs the statement to its end and prints its rows. An SQLite result. */
static int output_rows(sqlite3_stmt *statement, const struct output *output)
{
	int code;

	progress_begin(output->doing ? output->doing : "working");
	if (sqlite3_column_count(statement) == 0)
		while ((code = sqlite3_step(statement)) == SQLITE_ROW)
			;
	else if (output->format == OUTPUT_CSV)
		code = output_csv(statement);
	else if (output->format == OUTPUT_JSON)
		code = output_json(statement);
	else if (output->format == OUTPUT_LINE)
		code = output_line(statement);
	else
		code = output_table(statement, output);
	progress_end();
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* --- SQL ---------------------------------------------------------------------- */

void sql_bind(sqlite3_stmt *statement, const struct sql_parameter *parameters)
{
	for (; parameters && parameters->name; parameters++) {
		int index = sqlite3_bind_parameter_index(statement, parameters->name);
		if (index && parameters->value)
			sqlite3_bind_text(statement, index, parameters->value, -1, SQLITE_TRANSIENT);
	}
}

int sql_run(sqlite3 *db, const char *sql, const struct sql_parameter *parameters, const struct output *output)
{
	while (*sql) {
		sqlite3_stmt *statement;
		int code = sqlite3_prepare_v2(db, sql, -1, &statement, &sql);
		if (code == SQLITE_OK && statement) {
			sql_bind(statement, parameters);
			code = output_rows(statement, output);
		}
		if (code != SQLITE_OK) {
			complain("%s", sqlite3_errmsg(db));
			sqlite3_finalize(statement);
			return COMMAND_FAILED;
		}
		sqlite3_finalize(statement);
	}
	return COMMAND_FINE;
}
