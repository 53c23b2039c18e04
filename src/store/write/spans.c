/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vector.h"
#include "span/note.h"
#include "store/write/foreign_spans.h"
#include "store/write/queries.h"
#include "store/write/span_rows.h"
#include "store/write/span_sites.h"
#include "store/write/threads.h"
#include "store/write/writer.h"
#include "wire/span_record.h"

#define BATCH_BYTES 60  /* of a row without its spans, approximately */
#define WAIT_BYTES 30   /* of a row of span_waits */
#define REMOVED_MAX 512 /* batches per transaction */

const struct span_writer span_writer_new = {
	.unkept = HASH_TABLE_OF(struct hash, 1 << 16),
	.sql = {
		.add_note.sql = "INSERT INTO span_notes (batch, span, is_event, note) VALUES"
		                " (:batch, :span, :is_event, :note)",
		.add_link.sql = "INSERT INTO span_links (batch, trace_hi, trace_lo, parent) VALUES"
		                " (:batch, :trace_hi, :trace_lo, :parent)",
		.add_wait.sql = "INSERT OR IGNORE INTO span_waits (start_ns, thread, duration_ns, span) VALUES"
		                " (:start_ns, :thread, :duration_ns, :span)",
	},
};

void span_writer_free(struct span_writer *spans)
{
	hash_table_free(&spans->unkept);
	vector_free(&spans->children);
}

static struct hash trace_key(const struct span_link *link)
{
	return hash_words((uint64_t[]){ link->trace_hi, link->trace_lo }, 2);
}

/* --- text ---------------------------------------------------------------------------------- */

static bool put_bytes(struct writer *writer, const char *bytes, size_t size)
{
	if (!vector_reserve(&writer->span_rows->text, writer->span_rows->text.count + size))
		return false;
	memcpy(writer->span_rows->text.items + writer->span_rows->text.count, bytes, size);
	writer->span_rows->text.count += size;
	return true;
}

#define NUMBER_MAX 24 /* characters, and a comma; three words */

/* Copies NUMBER_MAX bytes, for which there is room: a copy of fixed size is not a call. */
static void put_number(struct writer *writer, int64_t number)
{
	char digits[2 * NUMBER_MAX], *at = digits + NUMBER_MAX;
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

	*--at = ',';
	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (number < 0)
		*--at = '-';
	memcpy(writer->span_rows->text.items + writer->span_rows->text.count, at, NUMBER_MAX);
	writer->span_rows->text.count += (size_t)(digits + NUMBER_MAX - at);
}

/* Appends it as a JSON text, with quotes. */
static bool put_quoted(struct writer *writer, const char *text, size_t size)
{
	char *items;

	if (!vector_reserve(&writer->span_rows->text, writer->span_rows->text.count + JSON_TEXT_MAX(size)))
		return false;
	items = writer->span_rows->text.items;
	writer->span_rows->text.count =
		(size_t)(json_put_text(items + writer->span_rows->text.count, text, size) - items);
	return true;
}

/* --- a batch -------------------------------------------------------------------------------- */

/* The sums of a batch. */
struct batch_sums {
	uint64_t lasted_ns; /* from the context's begin to the last end */
	int64_t spans, statements, notes, waits;
};

static void add_up_span(struct batch_sums *sums, const struct span_batch *batch,
                        const struct span_entry *entry)
{
	uint64_t lasted = entry->start_ns - batch->began_ns + (entry->duration & SPAN_DURATION);

	if ((int64_t)lasted > (int64_t)sums->lasted_ns)
		sums->lasted_ns = lasted;
	sums->spans++;
	sums->statements += (entry->duration & SPAN_STATEMENT) != 0;
	sums->waits += entry_is_wait(entry);
}

/* False: no thread under queryprof wrote it. */
static bool read_batch(const struct span_batch *batch, size_t size, struct batch_sums *sums)
{
	size_t rest;

	*sums = (struct batch_sums){ 0 };
	rest = size - sizeof(*batch);
	if (batch->entries > rest / sizeof(batch->entry[0]))
		return false;
	rest -= batch->entries * sizeof(batch->entry[0]);
	if (batch->links > rest / sizeof(struct span_link))
		return false;
	/* Groups and texts must end within it. */
	for (uint32_t i = 0; i < batch->entries;) {
		const struct span_entry *entry = &batch->entry[i];
		bool is_note = !entry_is_span(entry) && entry->site != ENTRY_STATEMENT;
		uint64_t group = is_note ? 1ull + entry->parent : entry_group(entry);

		if (group > batch->entries - i ||
		    (is_note && (uint64_t)note_key_size(entry) + note_value_size(entry) >
		                        entry->parent * sizeof(*entry)))
			return false;
		sums->notes += is_note;
		if (entry_is_span(entry))
			add_up_span(sums, batch, entry);
		i += (uint32_t)group;
	}
	return true;
}

/* Time of each span's children, which follow it in the batch. */
static bool add_up_children(struct writer *writer, const struct span_batch *batch)
{
	uint64_t *children;

	if (!vector_reserve(&writer->spans->children, batch->entries + 1u))
		return false;
	children = writer->spans->children.items;
	for (uint32_t i = 0; i < batch->entries; i++)
		children[i] = 0;
	for (uint32_t i = 0; i < batch->entries; i += entry_group(&batch->entry[i])) {
		const struct span_entry *entry = &batch->entry[i];

		if (!entry_is_span(entry))
			continue;
		children[i] += entry->children;
		if (entry->parent && entry->parent <= i)
			children[i - entry->parent] += entry->duration & SPAN_DURATION;
	}
	return true;
}

/* 0: it has no row in query_log. The query's own record follows, or is lost, so a new row has the span's
 * times. An existing row is not written again. */
static int64_t find_query(struct writer *writer, const struct span_batch *batch,
                          const struct span_entry *entry)
{
	const struct query_key key = { entry[1].start_ns, entry[1].duration };
	const int64_t start_ns = (int64_t)(entry->start_ns + batch->realtime_offset);
	uint32_t at;
	int64_t row;

	if (!key.hi && !key.lo)
		return 0;
	row = intern_query(writer, key, &at);
	if (row > 0 && writer->queries->in_batch.items[at].is_new)
		queries_widen(writer->queries, at, start_ns,
		              start_ns + (int64_t)(entry->duration & SPAN_DURATION));
	return row;
}

/* `row`: of the batch. */
static int put_span(struct writer *writer, const struct span_batch *batch, uint32_t i, int64_t row)
{
	const struct span_entry *entry = &batch->entry[i];
	bool is_statement = entry->duration & SPAN_STATEMENT;
	int64_t site = span_sites_intern(writer, entry, row);
	int64_t query = is_statement ? find_query(writer, batch, entry) : 0;
	int64_t duration = (int64_t)(entry->duration & SPAN_DURATION);
	int64_t self = duration - (int64_t)writer->spans->children.items[i];
	int64_t flags = (entry->duration & SPAN_UNENDED ? 1 : 0) |
	                (int64_t)((entry->duration & SPAN_STATUS) >> SPAN_STATUS_SHIFT << 1);

	if (site < 0 || query < 0)
		return (int)-(site < 0 ? site : query);
	if (!vector_reserve(&writer->span_rows->text, writer->span_rows->text.count + 8 * NUMBER_MAX))
		return SQLITE_NOMEM;
	writer->span_rows->text.items[writer->span_rows->text.count++] = '[';
	put_number(writer, site);
	put_number(writer, entry->parent);
	put_number(writer, (int64_t)(entry->start_ns - batch->began_ns));
	put_number(writer, duration);
	if (self != duration || flags || query)
		put_number(writer, self > 0 ? self : 0);
	if (flags || query) {
		put_number(writer, flags);
		put_number(writer, query);
	}
	writer->span_rows->text.items[writer->span_rows->text.count - 1] = ']';
	writer->span_rows->text.items[writer->span_rows->text.count++] = ',';
	return SQLITE_OK;
}

/* An array whose item i is the span with the number `first` + i; 0: no such span. */
static int put_spans(struct writer *writer, const struct span_batch *batch)
{
	int64_t row = span_rows_next(writer);
	int code = SQLITE_OK;

	if (row < 0)
		return (int)-row;
	if (!add_up_children(writer, batch) || !put_bytes(writer, "[", 1))
		return SQLITE_NOMEM;
	for (uint32_t i = 0; !code && i < batch->entries;) {
		uint32_t group = entry_group(&batch->entry[i]), filled = group;

		if (entry_is_span(&batch->entry[i])) {
			code = put_span(writer, batch, i, row);
			filled--;
		}
		while (!code && filled--)
			code = put_bytes(writer, "0,", 2) ? SQLITE_OK : SQLITE_NOMEM;
		i += group;
	}
	if (batch->entries)
		writer->span_rows->text.count--; /* the last comma */
	if (!code && !put_bytes(writer, "]", 1))
		code = SQLITE_NOMEM;
	return code;
}

/* Bits of span_batches.flags. */
#define ROW_REMOTE 1
#define ROW_ROOT 2

static int64_t add_row(struct writer *writer, const struct span_batch *batch, const struct batch_sums *sums,
                       size_t text)
{
	int64_t thread = intern_thread(writer, batch->thread_id);
	const int64_t numbers[SPAN_ROW_NUMBERS] = {
		(int64_t)batch->of.trace_hi,
		(int64_t)batch->of.trace_lo,
		(int64_t)batch->of.parent,
		(int64_t)batch->first,
		thread,
		(int64_t)(batch->began_ns + batch->realtime_offset),
		(int64_t)batch->dropped,
		(batch->flags & BATCH_REMOTE ? ROW_REMOTE : 0) | (batch->flags & BATCH_ROOT ? ROW_ROOT : 0),
		(int64_t)sums->lasted_ns,
		sums->spans,
		sums->statements,
		batch->flags & BATCH_END ? (int64_t)(batch->ended_ns - batch->began_ns) : -1,
	};

	if (thread < 0)
		return thread;
	writer->bytes += BATCH_BYTES + writer->span_rows->text.count - text;
	return span_rows_add(writer, numbers, text);
}

/* "key":value of an attribute, an object of an event. */
static int put_note(struct writer *writer, const struct span_batch *batch, const struct span_entry *note)
{
	uint32_t key_size = note_key_size(note), value_size = note_value_size(note);
	const char *key = note_text(note), *value = key + key_size;
	bool is_put;
	char time[48];

	if (note->site == ENTRY_EVENT) {
		snprintf(time, sizeof(time), ",\"time_ns\":%" PRId64 "}",
		         (int64_t)(note->duration + batch->realtime_offset));
		is_put = put_bytes(writer, "{\"name\":", 8) && put_quoted(writer, key, key_size) &&
		         put_bytes(writer, time, strlen(time));
	} else {
		is_put = put_quoted(writer, key, key_size) && put_bytes(writer, ":", 1) &&
		         (note->site == ENTRY_NUMBER ? put_bytes(writer, value, value_size)
		                                     : put_quoted(writer, value, value_size));
	}
	return is_put ? SQLITE_OK : SQLITE_NOMEM;
}

static int write_notes(struct writer *writer, const struct span_batch *batch, int64_t row)
{
	struct prepared *add = &writer->spans->sql.add_note;
	size_t text = writer->span_rows->text.count, size; /* after those of the rows */
	int code = SQLITE_OK;

	for (uint32_t i = 0; !code && i < batch->entries; i += entry_group(&batch->entry[i])) {
		const struct span_entry *note = &batch->entry[i];

		if (entry_is_span(note) || note->site == ENTRY_STATEMENT)
			continue;
		code = put_note(writer, batch, note);
		if (code)
			break;
		size = writer->span_rows->text.count - text;
		writer->span_rows->text.count = text;
		writer_bind(writer, add);
		bind_number(add, "batch", row);
		bind_number(add, "span", (int64_t)note->start_ns);
		bind_number(add, "is_event", note->site == ENTRY_EVENT);
		bind_text(add, "note", writer->span_rows->text.items + text, size);
		writer->bytes += size;
		code = writer_run(writer, add);
	}
	return code;
}

static int write_links(struct writer *writer, const struct span_batch *batch, int64_t row)
{
	const struct span_link *links = (const struct span_link *)(batch->entry + batch->entries);
	struct prepared *add = &writer->spans->sql.add_link;
	int code = SQLITE_OK;

	for (uint32_t i = 0; !code && i < batch->links; i++) {
		writer_bind(writer, add);
		bind_number(add, "batch", row);
		bind_number(add, "trace_hi", (int64_t)links[i].trace_hi);
		bind_number(add, "trace_lo", (int64_t)links[i].trace_lo);
		bind_number(add, "parent", (int64_t)links[i].parent);
		code = writer_run(writer, add);
	}
	return code;
}

/* Makes the waits within a time searchable. */
static int write_waits(struct writer *writer, const struct span_batch *batch)
{
	struct prepared *add = &writer->spans->sql.add_wait;
	int64_t thread = intern_thread(writer, batch->thread_id);
	int code = thread < 0 ? (int)-thread : SQLITE_OK;

	for (uint32_t i = 0; !code && i < batch->entries; i += entry_group(&batch->entry[i])) {
		const struct span_entry *entry = &batch->entry[i];

		if (!entry_is_wait(entry))
			continue;
		writer_bind(writer, add);
		bind_number(add, "start_ns", (int64_t)(entry->start_ns + batch->realtime_offset));
		bind_number(add, "thread", thread);
		bind_number(add, "duration_ns", (int64_t)(entry->duration & SPAN_DURATION));
		bind_number(add, "span", (int64_t)(batch->first + i));
		writer->bytes += WAIT_BYTES;
		code = writer_run(writer, add);
	}
	return code;
}

/* --- traces that are not kept ------------------------------------------------------------------ */

/* Removes the trace's spans from the file; later ones are omitted. */
static int remove_trace(struct writer *writer, const struct span_batch *batch)
{
	struct hash key = trace_key(&batch->of);

	if (!hash_table_find(&writer->spans->unkept, key))
		hash_table_add(&writer->spans->unkept, key);
	return span_rows_remove(writer, &batch->of);
}

uint64_t spans_in(const void *record, size_t size)
{
	struct batch_sums sums;

	return read_batch(record, size, &sums) ? (uint64_t)sums.spans : 0;
}

/* The query's record may have arrived first, and have made its own span. */
static int release_foreign(struct writer *writer, const struct span_batch *batch, int64_t row)
{
	int code = SQLITE_OK;

	for (uint32_t i = 0; !code && i < batch->entries; i += entry_group(&batch->entry[i])) {
		const struct span_entry *entry = &batch->entry[i];

		if (entry_is_span(entry) && entry->duration & SPAN_STATEMENT)
			code = foreign_spans_release(
				writer, &batch->of,
				(struct query_key){ entry[1].start_ns, entry[1].duration }, row);
	}
	return code;
}

int spans_add(struct writer *writer, const void *record, size_t size)
{
	const struct span_batch *batch = record;
	struct batch_sums sums;
	size_t text;
	int64_t row;
	int code;

	if (!read_batch(batch, size, &sums))
		return SQLITE_OK;
	if (batch->flags & BATCH_UNKEPT)
		return remove_trace(writer, batch);
	/* A batch of several traces is stored, because another one may be kept. */
	if (!batch->links && hash_table_find(&writer->spans->unkept, trace_key(&batch->of)))
		return SQLITE_OK;
	writer->spans->stored += (size_t)sums.spans; /* or lost, with the whole batch */
	code = span_rows_bound(writer);
	text = writer->span_rows->text.count;
	if (!code)
		code = put_spans(writer, batch);
	if (code)
		return code;
	row = add_row(writer, batch, &sums, text);
	if (row < 0)
		return (int)-row;
	if (sums.notes)
		code = write_notes(writer, batch, row);
	if (!code && sums.waits)
		code = write_waits(writer, batch);
	if (!code)
		code = write_links(writer, batch, row);
	if (!code && sums.statements && writer->foreign_spans->known.count)
		code = release_foreign(writer, batch, row);
	return code;
}

/* --- the bound --------------------------------------------------------------------------------- */

/* Rows arrive when their part of a trace ends, so a row that began before ?1 may follow some later ones, but
 * not so many that all rows must be searched. The newest row remains, because the next one gets the number
 * after it. */
#define OLDEST                                                                                               \
	"(SELECT id FROM (SELECT id, start_ns FROM span_batches ORDER BY id LIMIT 2048) WHERE start_ns < ?1" \
	" AND id < (SELECT max(id) FROM span_batches) ORDER BY id LIMIT ?2)"

int spans_remove(struct writer *writer, int64_t time_ns, int64_t bytes, bool *left)
{
	/* The oldest rows show the size: a row may be a span or a thousand. */
	int64_t size = BATCH_BYTES + writer_ask_sql(writer,
	                                            "SELECT avg(length(spans)) FROM (SELECT spans FROM"
	                                            " span_batches ORDER BY id LIMIT 16)",
	                                            0, 0);
	int64_t batches = bytes / size < REMOVED_MAX ? 1 + bytes / size : REMOVED_MAX;
	int code = writer_run_sql(writer, "DELETE FROM span_notes WHERE batch IN " OLDEST, time_ns, batches);

	if (!code)
		code = writer_run_sql(writer, "DELETE FROM span_links WHERE batch IN " OLDEST, time_ns,
		                      batches);
	if (!code)
		code = writer_run_sql(writer, "DELETE FROM span_batches WHERE id IN " OLDEST, time_ns,
		                      batches);
	/* Those of removed rows, approximately: the oldest rows began first, except across threads. */
	if (!code)
		code = writer_run_sql(
			writer,
			"DELETE FROM span_waits WHERE start_ns < coalesce((SELECT min(start_ns) FROM"
			" (SELECT start_ns FROM span_batches ORDER BY id LIMIT 512)), 1 << 62)",
			0, 0);
	*left = !code && writer_ask_sql(writer, "SELECT 1 FROM span_batches LIMIT 1 OFFSET 1", 0, 0);
	return code;
}
