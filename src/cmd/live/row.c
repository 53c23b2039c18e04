/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/row.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/file/words.h"
#include "cmd/file/run_sql.h"

static int column_of(sqlite3_stmt *row, const char *name)
{
	for (int i = 0; i < sqlite3_column_count(row); i++)
		if (strcmp(sqlite3_column_name(row, i), name) == 0)
			return i;
	return -1;
}

const char *row_text(sqlite3_stmt *row, const char *name)
{
	return run_sql_text(row, column_of(row, name));
}

int64_t row_number(sqlite3_stmt *row, const char *name)
{
	return sqlite3_column_int64(row, column_of(row, name));
}

bool row_has(sqlite3_stmt *row, const char *name)
{
	return row_text(row, name)[0] != '\0';
}

const char *row_duration(sqlite3_stmt *row, const char *name, char words[ROW_DURATION])
{
	if (row_has(row, name))
		words_duration((double)row_number(row, name), words, ROW_DURATION);
	else
		words[0] = '\0';
	return words;
}

const char *row_doing(sqlite3_stmt *row, char words[ROW_WORDS])
{
	const char *cause = row_text(row, "wait_cause"), *object = row_text(row, "wait_object");
	char ns[ROW_DURATION];

	if (!row_number(row, "is_running"))
		snprintf(words, ROW_WORDS, "between two rows");
	else if (*cause)
		snprintf(words, ROW_WORDS, "waits%s%s: %s%s%s%s", row_has(row, "wait_ns") ? " " : "",
		         row_duration(row, "wait_ns", ns), cause, *object ? " (" : "", object,
		         *object ? ")" : "");
	else if (strcmp(row_text(row, "state"), "sleeping") == 0)
		snprintf(words, ROW_WORDS, "sleeps, cause not known");
	else
		snprintf(words, ROW_WORDS, "%s",
		         row_has(row, "state") ? row_text(row, "state") : "not known");
	return words;
}

const char *row_access(sqlite3_stmt *row)
{
	if (row_has(row, "write_lock_ns"))
		return "writes";
	return row_number(row, "is_oldest_reader") ? "oldest reader" : "reads";
}

static void append(char words[ROW_WORDS], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char words[ROW_WORDS], const char *format, ...)
{
	const size_t size = strlen(words);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words + size, ROW_WORDS - size, format,
	          arguments); /* NOLINT: of callers that the compiler checks */
	va_end(arguments);
}

const char *row_holder(sqlite3_stmt *row, char words[ROW_WORDS])
{
	char ns[ROW_DURATION];

	words[0] = '\0';
	if (strcmp(row_text(row, "wait_cause"), "lock") != 0)
		return words;
	if (!row_has(row, "holder_process_id")) {
		append(words, "not known");
		return words;
	}
	if (row_has(row, "holder_thread_id"))
		append(words, "thread %s%s%.60s of ", row_text(row, "holder_thread_id"),
		       row_has(row, "holder_thread_name") ? " " : "", row_text(row, "holder_thread_name"));
	append(words, "process %s", row_text(row, "holder_process_id"));
	if (!row_has(row, "holder_program"))
		append(words, ", which is not recorded: what it does is not known");
	else if (!row_has(row, "holder_transaction_ns"))
		append(words, " (%.80s): which of its transactions is not known, or it has ended",
		       row_text(row, "holder_program"));
	if (row_has(row, "holder_transaction_ns")) {
		append(words, " (%.80s), transaction of %s", row_text(row, "holder_program"),
		       row_duration(row, "holder_transaction_ns", ns));
		if (row_has(row, "holder_write_lock_ns"))
			append(words, ", write lock for %s", row_duration(row, "holder_write_lock_ns", ns));
		if (row_has(row, "holder_first_query"))
			append(words, ", began with %.100s", row_text(row, "holder_first_query"));
		if (row_has(row, "holder_query"))
			append(words, "; runs for %s (%s): %.120s",
			       row_duration(row, "holder_elapsed_ns", ns), row_text(row, "holder_state"),
			       row_text(row, "holder_query"));
		else
			append(words, "; none of its statements runs (%s)",
			       row_has(row, "holder_state") ? row_text(row, "holder_state") : "not known");
	}
	return words;
}
