/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of rows: CSV, JSON and lines here, tables in output_table.c.
 */
#include "cmd/ui/output.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd/ui/progress.h"
#include "cmd/ui/terminal.h"

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

const char *output_text_format_at(size_t index)
{
	return index ? output_format_at(index) : "text";
}

bool output_is_text(const char *name)
{
	return !name || !strcmp(name, "text");
}

/* --- CSV and JSON ------------------------------------------------------------- */

/* Computed once for the many cells of a file. stdout may be the pager's stream, which has no descriptor. */
static bool is_terminal(FILE *to)
{
	static FILE *last;
	static bool is_shown;

	if (to != last)
		is_shown = isatty(to == stdout ? STDOUT_FILENO : fileno(to));
	last = to;
	return is_shown;
}

/* On a terminal without characters that control it; in a file exactly. */
static void write_csv_text(FILE *to, const char *text, size_t size)
{
	bool is_shown = is_terminal(to);

	for (size_t step; size; text += step, size -= step) {
		step = text_character_size(text);
		bool is_blank = is_shown && *text != '\n' && (!step || text_control(text, step));

		step = step && step <= size ? step : 1;
		if (is_blank)
			putc(' ', to);
		else
			fwrite(text, 1, step, to);
	}
}

void output_csv_quoted(FILE *to, const char *text)
{
	putc('"', to);
	for (size_t size; *text; text += size) {
		size = strcspn(text, "\"") + 1;
		if (!text[size - 1])
			size--;
		write_csv_text(to, text, size);
		if (text[size - 1] == '"')
			putc('"', to);
	}
	putc('"', to);
}

static void print_csv_cell(const char *text)
{
	if (!text)
		return;
	if (text[0] && !text[strcspn(text, ",\"\r\n")])
		write_csv_text(stdout, text, strlen(text));
	else
		output_csv_quoted(stdout, text);
}

/* Prints the digits that SQL's hex() makes and unhex() reads. */
static void print_hex(const unsigned char *bytes, int size)
{
	for (int i = 0; i < size; i++)
		printf("%02X", bytes[i]);
}

static void print_csv_value(sqlite3_stmt *statement, int column)
{
	if (sqlite3_column_type(statement, column) == SQLITE_BLOB)
		print_hex(sqlite3_column_blob(statement, column), sqlite3_column_bytes(statement, column));
	else
		print_csv_cell((const char *)sqlite3_column_text(statement, column));
}

static int output_csv(sqlite3_stmt *statement)
{
	int count = sqlite3_column_count(statement), code;

	progress_clear();
	for (int i = 0; i < count; i++) {
		fputs(i ? "," : "", stdout);
		print_csv_cell(sqlite3_column_name(statement, i));
	}
	putchar('\n');
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		for (int i = 0; i < count; i++) {
			fputs(i ? "," : "", stdout);
			print_csv_value(statement, i);
		}
		putchar('\n');
	}
	return code;
}

/* JSON has no infinity. Readers turn a number that is too large into infinity, and the sqlite3 shell writes
 * the same. */
static void print_json_float(sqlite3_stmt *statement, int column)
{
	double number = sqlite3_column_double(statement, column);

	fputs(isinf(number) ? number > 0 ? "1e999" : "-1e999"
	                    : (const char *)sqlite3_column_text(statement, column),
	      stdout);
}

static void print_json_value(sqlite3_stmt *statement, int column)
{
	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_NULL: fputs("null", stdout); break;
	case SQLITE_INTEGER: printf("%lld", (long long)sqlite3_column_int64(statement, column)); break;
	case SQLITE_FLOAT: print_json_float(statement, column); break;
	case SQLITE_BLOB:
		putchar('"');
		print_hex(sqlite3_column_blob(statement, column), sqlite3_column_bytes(statement, column));
		putchar('"');
		break;
	default: json_write_text(stdout, (const char *)sqlite3_column_text(statement, column), "");
	}
}

static int output_json(sqlite3_stmt *statement)
{
	int count = sqlite3_column_count(statement), code;
	bool first = true;

	progress_clear();
	putchar('[');
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		fputs(first ? "\n{" : ",\n{", stdout);
		first = false;
		for (int i = 0; i < count; i++) {
			fputs(i ? "," : "", stdout);
			json_write_text(stdout, sqlite3_column_name(statement, i), "");
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
		terminal_print(text, size, 0, INT_MAX);
		putchar('\n');
		text += size;
		if (!*text)
			return;
		text++;
		terminal_print_padding(indent);
	}
}

static const char *value_text(sqlite3_stmt *statement, int column)
{
	return sqlite3_column_type(statement, column) == SQLITE_BLOB
	               ? "(blob)"
	               : (const char *)sqlite3_column_text(statement, column);
}

static int output_line(sqlite3_stmt *statement)
{
	int count = sqlite3_column_count(statement), widest = 0, code;
	bool first = true;

	for (int i = 0; i < count; i++) {
		const char *name = sqlite3_column_name(statement, i);
		int width = terminal_measure(name, strlen(name));
		if (width > widest)
			widest = width;
	}
	progress_clear();
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!first)
			putchar('\n');
		first = false;
		for (int i = 0; i < count; i++) {
			const char *name = sqlite3_column_name(statement, i),
				   *text = value_text(statement, i);
			terminal_print_padding(widest - terminal_measure(name, strlen(name)));
			terminal_print(name, strlen(name), 0, INT_MAX);
			fputs(text && text[0] ? " = " : " =", stdout);
			print_value(text ? text : "", widest + 3);
		}
	}
	return code;
}

int output_rows(sqlite3_stmt *statement, const struct output *output)
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
		code = output_table(statement, &output->table);
	progress_end();
	return code == SQLITE_DONE ? SQLITE_OK : code;
}
