/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label/comment.h"
#include "label/sets.h"
#include "settings/setting.h"
#include "store/control/counters.h"
#include "store/write/threads.h"
#include "store/write/writer.h"

#define SET_BYTES 100 /* of a row of label_sets in addition to its text, and its share of label_values */
#define USE_BYTES 40

struct known_labels {
	struct hash key; /* of a number, several combined numbers, or a trace context */
	int64_t row, epoch;
};

/* More sets than any program uses. */
#define TEXTS_MAX (1 << 14)

struct known_text {
	struct hash key;
	char *text; /* NULL: the set was freed */
};

const struct label_writer label_writer_new = {
	.known = HASH_TABLE_OF(struct known_labels, 1 << 16),
	.contexts = HASH_TABLE_OF(struct known_labels, 1 << 14),
	.texts = HASH_TABLE_OF(struct known_text, SIZE_MAX),
	.sql = {
		.find.sql = "SELECT id FROM label_sets WHERE hash = :hash",
		.add.sql = "INSERT INTO label_sets (hash, epoch, labels, units, otel_trace_id, otel_span_id) VALUES"
		           " (:hash, :epoch, :labels, :units, :otel_trace_id, :otel_span_id)",
		.text.sql = "SELECT labels || units FROM label_sets WHERE id = :id",
		.touch.sql = "UPDATE label_sets SET epoch = :epoch WHERE id = :id AND epoch <> :epoch",
		.add_value.sql = "INSERT OR IGNORE INTO label_values (labels, key, value, unit, member) VALUES"
		                 " (:labels, :key, :value, :unit, :member)",
		.add_use.sql = "INSERT OR IGNORE INTO label_uses"
		               " (process, trampoline, from_ns, until_ns, labels, address) VALUES"
		               " (:process, :trampoline, :from_ns, :until_ns, :labels, :address)",
		.end_use.sql = "UPDATE label_uses SET until_ns = :until_ns WHERE process = :process"
		               " AND trampoline = :trampoline AND from_ns = :from_ns",
		.find_context.sql = "SELECT id FROM trace_contexts WHERE otel_span_id = :otel_span_id"
		                    " AND otel_trace_id = :otel_trace_id",
		.add_context.sql = "INSERT INTO trace_contexts (otel_span_id, otel_trace_id, epoch) VALUES"
		                   " (:otel_span_id, :otel_trace_id, :epoch)",
		.touch_context.sql = "UPDATE trace_contexts SET epoch = :epoch WHERE id = :id AND epoch <> :epoch",
	},
};

static void free_text(void *context, void *known)
{
	(void)context;
	free(((struct known_text *)known)->text);
}

void label_writer_free(struct label_writer *labels)
{
	hash_table_each(&labels->texts, free_text, NULL);
	hash_table_free(&labels->texts);
	hash_table_free(&labels->known);
	hash_table_free(&labels->contexts);
}

void label_writer_forget(struct label_writer *labels)
{
	hash_table_clear(&labels->known);
	hash_table_clear(&labels->contexts);
}

/* --- sets ----------------------------------------------------------------------------- */

static int insert_value(struct writer *writer, int64_t row, const struct label_pair *pair)
{
	struct prepared *add = &writer->labels->sql.add_value;
	char *member = label_pair_member(pair);
	int code;

	if (!member)
		return SQLITE_NOMEM;
	writer_bind(writer, add);
	bind_number(add, "labels", row);
	bind_text(add, "key", pair->key, SIZE_MAX);
	if (pair->is_number)
		bind_number(add, "value", strtoll(pair->text, NULL, 10));
	else
		bind_text(add, "value", pair->text, SIZE_MAX);
	bind_text(add, "unit", pair->unit ? pair->unit : "", SIZE_MAX);
	bind_text(add, "member", member, SIZE_MAX);
	code = writer_run(writer, add);
	sqlite3_clear_bindings(add->statement);
	free(member);
	return code;
}

static bool is_hexadecimal(const char *text, size_t size)
{
	return strspn(text, "0123456789abcdef") >= size && strspn(text, "0") < size;
}

/* W3C's 00-TRACE-SPAN-FLAGS. */
static bool is_traceparent(const struct label_pair *pair)
{
	const char *text = pair->text;

	return strcmp(pair->key, "traceparent") == 0 && strlen(text) >= 55 && text[2] == '-' &&
	       text[35] == '-' && text[52] == '-' && is_hexadecimal(text + 3, 32) &&
	       is_hexadecimal(text + 36, 16);
}

/* The text of the label with this key; NULL: none. */
static const char *find_traceparent(const struct label_pairs *pairs)
{
	const char *found = NULL;

	for (size_t i = 0; i < pairs->items.count; i++)
		if (is_traceparent(&pairs->items.items[i]))
			found = pairs->items.items[i].text;
	return found;
}

static int64_t insert_set(struct writer *writer, const char *text, int64_t number)
{
	struct prepared *add = writer_bind(writer, &writer->labels->sql.add);
	struct label_pairs pairs = { .items = { 0 } };
	size_t object = label_set_object(text);
	int code = label_pairs_add_set(&pairs, text) ? SQLITE_OK : SQLITE_NOMEM;
	const char *parent = find_traceparent(&pairs);
	int64_t row;

	bind_number(add, "hash", number);
	bind_number(add, "epoch", writer->epoch);
	bind_text(add, "labels", text, object);
	bind_text(add, "units", text + object, SIZE_MAX);
	bind_text(add, "otel_trace_id", parent ? parent + 3 : "", parent ? 32 : 0);
	bind_text(add, "otel_span_id", parent ? parent + 36 : "", parent ? 16 : 0);
	row = code ? -code : writer_insert(writer, add);
	for (size_t i = 0; row > 0 && i < pairs.items.count; i++)
		if ((code = insert_value(writer, row, &pairs.items.items[i])))
			row = -code;
	sqlite3_clear_bindings(add->statement);
	label_pairs_free(&pairs);
	writer->bytes += SET_BYTES + 2 * strlen(text);
	return row;
}

/* sql: the statement that sets the epoch of such a row. */
static int touch(struct writer *writer, struct prepared *sql, struct known_labels *known)
{
	if (known->epoch == writer->epoch)
		return SQLITE_OK;
	writer_bind(writer, sql);
	bind_number(sql, "epoch", writer->epoch);
	bind_number(sql, "id", known->row);
	known->epoch = writer->epoch;
	return writer_run(writer, sql);
}

/* The row, remembered under `key`. */
static int64_t remember_as(struct writer *writer, struct hash_table *table, struct prepared *sql,
                           struct hash key, int64_t row)
{
	struct known_labels fresh = { .row = row }, *known;
	int code;

	if (row <= 0)
		return row;
	if ((code = touch(writer, sql, &fresh)))
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
	return remember_as(writer, &writer->labels->known, &writer->labels->sql.touch, key, row);
}

/* The row of the set in the file; 0: none. */
static int64_t find_in_file(struct writer *writer, int64_t number)
{
	struct prepared *find = writer_bind(writer, &writer->labels->sql.find);

	bind_number(find, "hash", number);
	return writer_number(writer, find);
}

static struct hash key_of(const uint64_t *numbers, size_t count)
{
	return hash_words(numbers, count);
}

/* The row that is known under `key`, 0: none. */
static int64_t find_known(struct writer *writer, struct hash key)
{
	struct known_labels *known = hash_table_find(&writer->labels->known, key);
	int code;

	if (!known)
		return 0;
	code = touch(writer, &writer->labels->sql.touch, known);
	return code ? -code : known->row;
}

/* The set with this text; the result is like that of labels_combine(). */
static int64_t labels_intern(struct writer *writer, const char *text)
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

/* malloc'ed; NULL: none is known. */
static char *find_text(struct writer *writer, struct hash key)
{
	const struct known_text *known = hash_table_find(&writer->labels->texts, key);

	return known && known->text ? strdup(known->text) : NULL;
}

static int64_t find_one(struct writer *writer, uint64_t number)
{
	struct hash key = key_of(&number, 1);
	int64_t row = find_known(writer, key);
	char *text;

	if (!row)
		row = remember(writer, key, find_in_file(writer, (int64_t)number));
	if (row)
		return row;
	/* Its record was lost, will still arrive, or arrived while another file was open. */
	text = writer->other ? find_text(writer, key) : label_set_text(number);
	if (text)
		row = labels_intern(writer, text);
	else
		store_count(STORE_LABELS_UNKNOWN, 1);
	free(text);
	return row;
}

static int add_row(struct writer *writer, struct label_pairs *pairs, int64_t row)
{
	struct prepared *find = writer_bind(writer, &writer->labels->sql.text);
	const char *text;
	int code = SQLITE_OK;

	bind_number(find, "id", row);
	if (writer_step(writer, find) == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(find->statement, 0);
		if (!text || !label_pairs_add_set(pairs, text))
			code = SQLITE_NOMEM;
	}
	sqlite3_reset(find->statement);
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

static int begin_use(struct writer *writer, const struct label_record *record, int64_t process, int64_t row)
{
	struct prepared *add = writer_bind(writer, &writer->labels->sql.add_use);

	bind_number(add, "process", process);
	bind_number(add, "trampoline", record->trampoline);
	bind_number(add, "from_ns", (int64_t)record->from_ns);
	bind_number(add, "until_ns", (int64_t)record->until_ns);
	bind_number(add, "labels", row);
	bind_number(add, "address", (int64_t)record->address);
	writer->bytes += USE_BYTES;
	return writer_run(writer, add);
}

static int end_use(struct writer *writer, const struct label_record *record, int64_t process)
{
	struct prepared *update = writer_bind(writer, &writer->labels->sql.end_use);

	bind_number(update, "until_ns", (int64_t)record->until_ns);
	bind_number(update, "process", process);
	bind_number(update, "trampoline", record->trampoline);
	bind_number(update, "from_ns", (int64_t)record->from_ns);
	return writer_run(writer, update);
}

static int store_use(struct writer *writer, const struct label_record *record, int64_t row)
{
	int64_t process = intern_process(writer);

	if (process < 0)
		return (int)-process;
	return record->until_ns ? end_use(writer, record, process) : begin_use(writer, record, process, row);
}

void labels_remember(struct writer *writer, const struct label_record *record)
{
	struct hash_table *texts = &writer->labels->texts;
	struct known_text *known;
	struct hash key;

	if (!writer->other)
		return;
	key = key_of(&record->number, 1);
	known = hash_table_find(texts, key);
	if (!known && texts->count >= TEXTS_MAX) {
		hash_table_each(texts, free_text, NULL);
		hash_table_clear(texts);
	}
	if (!known && record->size)
		known = hash_table_add(texts, key);
	if (!known)
		return;
	free(known->text);
	known->text = record->size ? strndup(record->text, record->size) : NULL;
}

int labels_add(struct writer *writer, const struct label_record *record)
{
	int64_t row = 0;

	labels_remember(writer, record);
	if (record->size) {
		char *text = strndup(record->text, record->size);

		row = text ? labels_intern(writer, text) : -SQLITE_NOMEM;
		free(text);
	}
	if (row < 0)
		return (int)-row;
	return record->trampoline ? store_use(writer, record, row) : SQLITE_OK;
}

static void write_hexadecimal(char *to, const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sprintf(to + 2 * i, "%02x", bytes[i]);
}

static struct prepared *bind_context(struct writer *writer, struct prepared *prepared, const char *span_id,
                                     const char *trace_id)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_text(bind, "otel_span_id", span_id, 16);
	bind_text(bind, "otel_trace_id", trace_id, 32);
	return bind;
}

int64_t labels_intern_context(struct writer *writer, const struct trace_context *context)
{
	struct label_writer *labels = writer->labels;
	uint64_t words[4] = { 0, 0, 0, 1 };
	char trace_id[33], span_id[17];
	struct prepared *add;
	int64_t row;

	memcpy(words, context, sizeof(*context));
	if (!(words[0] | words[1] | words[2]))
		return 0;
	struct hash key = hash_words(words, 4);
	struct known_labels *known = hash_table_find(&labels->contexts, key);
	if (known) {
		int code = touch(writer, &labels->sql.touch_context, known);
		return code ? -code : known->row;
	}
	write_hexadecimal(trace_id, context->trace_id, sizeof(context->trace_id));
	write_hexadecimal(span_id, context->span_id, sizeof(context->span_id));
	row = writer_number(writer, bind_context(writer, &labels->sql.find_context, span_id, trace_id));
	if (!row) {
		add = bind_context(writer, &labels->sql.add_context, span_id, trace_id);
		bind_number(add, "epoch", writer->epoch);
		row = writer_insert(writer, add);
		writer->bytes += 2 * sizeof(trace_id) + sizeof(span_id);
	}
	return remember_as(writer, &labels->contexts, &labels->sql.touch_context, key, row);
}

/* Takes effect with the next statement. */
SETTING_SWITCH(
	reads_comments, true, .name = "query_comment_labels",
	.description =
		"Reads comments that frameworks write into SQL (sqlcommenter, Rails, Marginalia) as labels");

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
	int64_t process = intern_process(writer); /* an earlier step may have forgotten it */

	if (process < 0)
		return (int)-process;
	/* Batches before `time_ns` were removed; the writers of the others may still run. */
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
