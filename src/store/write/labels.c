/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label/comment.h"
#include "label/sets.h"
#include "store/counters.h"
#include "store/write/intern.h"
#include "wire/label_record.h"

#define SET_BYTES 100 /* of a row of label_sets beside its text, and its share of label_values */
#define USE_BYTES 40

static int64_t insert_row(struct writer *writer, enum writer_statement which)
{
	int code = writer_run(writer, which);

	return code ? -code : sqlite3_last_insert_rowid(writer->database.db);
}

/* --- sets ----------------------------------------------------------------------------- */

static int insert_value(struct writer *writer, int64_t row, const struct label_pair *pair)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_LABEL_VALUE);
	char *key = label_decode(pair->key), *text = label_decode(pair->value);
	char *unit = pair->unit ? label_decode(pair->unit) : NULL;
	char *member = sqlite3_mprintf("%s:%s", pair->key, pair->value);
	int code = SQLITE_NOMEM;

	if (key && member && (text || pair->value[0] != '"')) {
		sqlite3_bind_int64(statement, 1, row);
		writer_bind_text(statement, 2, key, SIZE_MAX);
		if (text)
			writer_bind_text(statement, 3, text, SIZE_MAX);
		else
			sqlite3_bind_int64(statement, 3, strtoll(pair->value, NULL, 10));
		writer_bind_text(statement, 4, unit ? unit : "", SIZE_MAX);
		writer_bind_text(statement, 5, member, SIZE_MAX);
		code = writer_run(writer, WRITE_LABEL_VALUE);
		sqlite3_clear_bindings(statement);
	}
	free(key);
	free(text);
	free(unit);
	sqlite3_free(member);
	return code;
}

static bool is_hexadecimal(const char *text, size_t size)
{
	return strspn(text, "0123456789abcdef") >= size && strspn(text, "0") < size;
}

/* W3C's 00-TRACE-SPAN-FLAGS, with its quotes around. */
static bool is_traceparent(const struct label_pair *pair)
{
	const char *value = pair->value;

	return strcmp(pair->key, "\"traceparent\"") == 0 && strlen(value) >= 57 && value[3] == '-' &&
	       value[36] == '-' && value[53] == '-' && is_hexadecimal(value + 4, 32) &&
	       is_hexadecimal(value + 37, 16);
}

static int64_t insert_set(struct writer *writer, const char *text, int64_t number)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_LABELS);
	struct label_pairs pairs = { .items = { 0 } };
	size_t object = label_set_object(text);
	int64_t row;
	int code = label_pairs_add_set(&pairs, text) ? SQLITE_OK : SQLITE_NOMEM;

	sqlite3_bind_int64(statement, 1, number);
	sqlite3_bind_int64(statement, 2, writer->epoch);
	writer_bind_text(statement, 3, text, object);
	writer_bind_text(statement, 4, text + object, SIZE_MAX);
	writer_bind_text(statement, 5, "", 0);
	writer_bind_text(statement, 6, "", 0);
	for (size_t i = 0; i < pairs.items.count; i++) {
		if (!is_traceparent(&pairs.items.items[i]))
			continue;
		writer_bind_text(statement, 5, pairs.items.items[i].value + 4, 32);
		writer_bind_text(statement, 6, pairs.items.items[i].value + 37, 16);
	}
	row = code ? -code : insert_row(writer, WRITE_LABELS);
	for (size_t i = 0; row > 0 && i < pairs.items.count; i++)
		if ((code = insert_value(writer, row, &pairs.items.items[i])))
			row = -code;
	sqlite3_clear_bindings(statement);
	label_pairs_free(&pairs);
	writer->bytes += SET_BYTES + 2 * strlen(text);
	return row;
}

/* `which`: the statement that sets the epoch of such a row. */
static int touch(struct writer *writer, enum writer_statement which, struct known_labels *known)
{
	sqlite3_stmt *statement = writer_statement(writer, which);

	if (known->epoch == writer->epoch)
		return SQLITE_OK;
	sqlite3_bind_int64(statement, 1, writer->epoch);
	sqlite3_bind_int64(statement, 2, known->row);
	known->epoch = writer->epoch;
	return writer_run(writer, which);
}

/* The row, remembered under `key`. */
static int64_t remember_as(struct writer *writer, struct hash_table *table, enum writer_statement which,
                           struct hash key, int64_t row)
{
	struct known_labels fresh = { .row = row }, *known;
	int code;

	if (row <= 0)
		return row;
	if ((code = touch(writer, which, &fresh)))
		return -code;
	if (hash_table_find(table, key))
		return row;
	known = hash_table_add(table, key);
	if (known) {
		known->row = row;
		known->epoch = fresh.epoch;
	}
	return row;
}

static int64_t remember(struct writer *writer, struct hash key, int64_t row)
{
	return remember_as(writer, &writer->labels, WRITE_LABELS_EPOCH, key, row);
}

/* The row of the set in the file, 0: it has none. */
static int64_t find_in_file(struct writer *writer, int64_t number)
{
	sqlite3_bind_int64(writer_statement(writer, WRITE_FIND_LABELS), 1, number);
	return writer_number(writer, WRITE_FIND_LABELS);
}

static struct hash key_of(const uint64_t *numbers, size_t count)
{
	return hash_words(numbers, count);
}

/* The row that is known under `key`, 0: none. */
static int64_t find_known(struct writer *writer, struct hash key)
{
	struct known_labels *known = hash_table_find(&writer->labels, key);
	int code;

	if (!known)
		return 0;
	code = touch(writer, WRITE_LABELS_EPOCH, known);
	return code ? -code : known->row;
}

int64_t labels_intern(struct writer *writer, const char *text)
{
	uint64_t number = *text ? label_set_number(text, strlen(text)) : 0;
	struct hash key = key_of(&number, 1);
	int64_t row = number ? find_known(writer, key) : 0;

	if (!number || row)
		return row;
	row = find_in_file(writer, (int64_t)number);
	if (!row)
		row = insert_set(writer, text, (int64_t)number);
	return remember(writer, key, row);
}

static int64_t find_one(struct writer *writer, uint64_t number)
{
	struct hash key = key_of(&number, 1);
	int64_t row = find_known(writer, key);
	char *text;

	if (!row)
		row = remember(writer, key, find_in_file(writer, (int64_t)number));
	if (row || writer->other)
		return row;
	/* Its record was lost, or is still to come. */
	text = label_set_text(number);
	if (text)
		row = labels_intern(writer, text);
	else
		store_count(STORE_LABELS_UNKNOWN, 1);
	free(text);
	return row;
}

static int add_row(struct writer *writer, struct label_pairs *pairs, int64_t row)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_LABELS_TEXT);
	const char *text;
	int code = SQLITE_OK;

	sqlite3_bind_int64(statement, 1, row);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(statement, 0);
		if (!text || !label_pairs_add_set(pairs, text))
			code = SQLITE_NOMEM;
	}
	sqlite3_reset(statement);
	return code;
}

int64_t labels_combine(struct writer *writer, const uint64_t *numbers, size_t count)
{
	struct label_pairs pairs = { .items = { 0 } };
	struct hash key;
	int64_t row, unknown = 0;
	char *text;

	if (count <= 1)
		return count ? find_one(writer, numbers[0]) : 0;
	key = key_of(numbers, count);
	row = find_known(writer, key);
	if (row)
		return row;
	for (size_t i = 0; row >= 0 && i < count; i++) {
		int code;

		row = find_one(writer, numbers[i]);
		unknown += row == 0;
		if (row > 0 && (code = add_row(writer, &pairs, row)))
			row = -code;
	}
	text = row >= 0 ? label_pairs_text(&pairs) : NULL;
	if (row >= 0)
		row = text ? labels_intern(writer, text) : -SQLITE_NOMEM;
	free(text);
	label_pairs_free(&pairs);
	return unknown ? row : remember(writer, key, row);
}

/* --- what comes with records -------------------------------------------------------------- */

static int take_use(struct writer *writer, const struct label_record *record, int64_t row)
{
	bool ended = record->until_ns != 0;
	sqlite3_stmt *statement = writer_statement(writer, ended ? WRITE_LABEL_USE_END : WRITE_LABEL_USE);
	int64_t process = intern_process(writer);

	if (process < 0)
		return (int)-process;
	sqlite3_bind_int64(statement, 1, process);
	sqlite3_bind_int64(statement, 2, record->trampoline);
	sqlite3_bind_int64(statement, 3, (int64_t)record->from_ns);
	sqlite3_bind_int64(statement, 4, (int64_t)record->until_ns);
	if (!ended) {
		sqlite3_bind_int64(statement, 5, row);
		sqlite3_bind_int64(statement, 6, (int64_t)record->address);
		writer->bytes += USE_BYTES;
	}
	return writer_run(writer, ended ? WRITE_LABEL_USE_END : WRITE_LABEL_USE);
}

int labels_take(struct writer *writer, const void *bytes, size_t size)
{
	const struct label_record *record = bytes;
	int64_t row = 0;

	if (size < sizeof *record || record->size > size - sizeof *record)
		return SQLITE_OK;
	if (record->size) {
		char *text = strndup(record->text, record->size);

		row = text ? labels_intern(writer, text) : -SQLITE_NOMEM;
		free(text);
	}
	if (row < 0)
		return (int)-row;
	return record->trampoline ? take_use(writer, record, row) : SQLITE_OK;
}

static void write_hexadecimal(char *to, const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sprintf(to + 2 * i, "%02x", bytes[i]);
}

int64_t labels_intern_context(struct writer *writer, const struct trace_context *context)
{
	uint64_t words[4] = { 0, 0, 0, 1 };
	char trace_id[33], span_id[17];
	int64_t row = 0;

	memcpy(words, context, sizeof *context);
	if (!(words[0] | words[1] | words[2]))
		return 0;
	struct hash key = hash_words(words, 4);
	struct known_labels *known = hash_table_find(&writer->contexts, key);
	if (known) {
		int code = touch(writer, WRITE_CONTEXT_EPOCH, known);
		return code ? -code : known->row;
	}
	write_hexadecimal(trace_id, context->trace_id, sizeof context->trace_id);
	write_hexadecimal(span_id, context->span_id, sizeof context->span_id);
	for (int which = WRITE_FIND_CONTEXT; which <= WRITE_CONTEXT && !row; which++) {
		sqlite3_stmt *statement = writer_statement(writer, which);

		writer_bind_text(statement, 1, span_id, 16);
		writer_bind_text(statement, 2, trace_id, 32);
		if (which == WRITE_CONTEXT)
			sqlite3_bind_int64(statement, 3, writer->epoch);
		row = which == WRITE_CONTEXT ? insert_row(writer, which) : writer_number(writer, which);
		writer->bytes += which == WRITE_CONTEXT ? 2 * sizeof trace_id + sizeof span_id : 0;
	}
	return remember_as(writer, &writer->contexts, WRITE_CONTEXT_EPOCH, key, row);
}

static bool reads_comments = true; /* atomic */

void labels_read_comments(bool on)
{
	__atomic_store_n(&reads_comments, on, __ATOMIC_RELAXED); /* from the next statement on */
}

int64_t labels_of_comments(struct writer *writer, const char *sql, size_t size)
{
	char *text;
	int64_t row;

	if (!__atomic_load_n(&reads_comments, __ATOMIC_RELAXED) || !(text = comment_labels(sql, size)))
		return 0;
	row = labels_intern(writer, text);
	free(text);
	return row;
}

/* --- retention --------------------------------------------------------------------------- */

#define UNUSED_LABELS                                                                                        \
	" AND id NOT IN (SELECT labels FROM queries) AND id NOT IN (SELECT labels FROM statements)"          \
	" AND id NOT IN (SELECT labels FROM label_uses) AND id NOT IN (SELECT labels FROM statement_parts)"

int labels_remove(struct writer *writer, int64_t epoch, int64_t time_ns, bool all)
{
	int64_t process = intern_process(writer); /* a step before this one may have forgotten it */

	if (process < 0)
		return (int)-process;
	/* Of the batches those before `time_ns` have gone: who wrote the others may run still. */
	char *sql =
		sqlite3_mprintf("DELETE FROM label_uses WHERE iif(until_ns, until_ns, iif(process = %lld OR"
	                        " process IN (SELECT process FROM batches), %lld, from_ns)) < %lld;"
	                        "DELETE FROM label_sets WHERE (epoch < %lld OR (%d AND id NOT IN (SELECT "
	                        "labels FROM samples)))" UNUSED_LABELS ";"
	                        "DELETE FROM label_values WHERE labels NOT IN (SELECT id FROM label_sets);"
	                        "DELETE FROM trace_contexts WHERE (epoch < %lld OR (%d AND id NOT IN (SELECT "
	                        "context FROM samples)))"
	                        " AND id NOT IN (SELECT context FROM queries)",
	                        (long long)process, (long long)INT64_MAX, (long long)time_ns,
	                        (long long)epoch, all, (long long)epoch, all);
	int code = sql ? sqlite3_exec(writer->database.db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return code;
}
