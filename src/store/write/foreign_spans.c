/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/foreign_spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/normalize.h"
#include "queryprof.h"
#include "span/keep.h"
#include "store/write/spans.h"
#include "store/write/writer.h"
#include "wire/span_record.h"

static struct hash key_of(const struct span_link *trace, struct query_key query)
{
	return hash_words((uint64_t[]){ trace->trace_hi, trace->trace_lo, query.hi, query.lo }, 4);
}

/* The span's id: a hash of the key, so the code that removes the span can compute it, too.
 * Positive, because SQL adds to it. */
static uint64_t span_of(struct query_key query)
{
	return hash_words((uint64_t[]){ query.hi, query.lo }, 2).first >> 1 | 1;
}

static uint64_t read_hexadecimal(const char *text, size_t digits)
{
	char part[17] = "";

	memcpy(part, text, digits);
	return strtoull(part, NULL, 16);
}

/* False: it is in none, or an error, which is in `*code`. */
static bool find_trace(struct writer *writer, const struct foreign_names *names, struct span_link *link,
                       int *code)
{
	struct prepared *find = writer_bind(writer, &writer->spans->sql.find_trace);
	const char *trace, *span;
	bool is_found = false;
	int step;

	bind_number(find, "context", names->context);
	bind_number(find, "statement", names->statement);
	bind_number(find, "labels", names->labels);
	step = writer_step(writer, find);
	trace = step == SQLITE_ROW ? (const char *)sqlite3_column_text(find->statement, 0) : NULL;
	span = trace ? (const char *)sqlite3_column_text(find->statement, 1) : NULL;
	if (span && strlen(trace) == 32 && strlen(span) == 16) {
		*link = (struct span_link){ read_hexadecimal(trace, 16), read_hexadecimal(trace + 16, 16),
			                    read_hexadecimal(span, 16) };
		is_found = true;
	}
	sqlite3_reset(find->statement);
	*code = step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : step;
	return is_found;
}

static int write_span(struct writer *writer, const struct query_record *record, const struct span_link *link,
                      uint64_t shape)
{
	uint64_t status = record->exception_code ? QP_SPAN_ERROR : QP_SPAN_UNSET;
	uint64_t words[(sizeof(struct span_batch) + 2 * sizeof(struct span_entry)) / sizeof(uint64_t)];
	struct span_batch *batch = (struct span_batch *)words;

	*batch = (struct span_batch){
		.of = *link,
		.first = span_of(record->query),
		.began_ns = record->start_realtime_ns,
		.ended_ns = record->start_realtime_ns + record->duration_ns,
		.thread_id = record->thread_id,
		.flags = BATCH_ROOT | BATCH_END,
		.entries = 2,
	};
	batch->entry[0] = (struct span_entry){
		.start_ns = record->start_realtime_ns,
		.duration =
			SPAN_STATEMENT | status << SPAN_STATUS_SHIFT | (record->duration_ns & SPAN_DURATION),
	};
	batch->entry[1] = (struct span_entry){
		.start_ns = record->query.hi,
		.duration = record->query.lo,
		.children = shape,
		.site = ENTRY_STATEMENT,
	};
	return spans_add(writer, batch, sizeof(words));
}

int foreign_spans_add(struct writer *writer, const struct query_record *record,
                      const struct foreign_names *names, const char *text, size_t size)
{
	struct span_link link;
	struct hash key;
	int code;

	/* The usual case, tested first because a look into the file is expensive. */
	if (!names->context && !names->labels && !memmem(text, size, "traceparent", 11))
		return SQLITE_OK;
	if (!find_trace(writer, names, &link, &code) || code)
		return code;
	if (!keep_decide_foreign(link.trace_lo, record->duration_ns,
	                         record->samples[SAMPLE_CPU] || record->samples[SAMPLE_REAL]))
		return SQLITE_OK;
	code = write_span(writer, record, &link, normalize_hash(text, size));
	key = key_of(&link, record->query);
	if (!code && !hash_table_find(&writer->spans->foreign, key))
		hash_table_add(&writer->spans->foreign, key);
	return code;
}

int foreign_spans_release(struct writer *writer, const struct span_link *trace, struct query_key query,
                          int64_t row)
{
	struct prepared *remove;
	int code;

	if (!hash_table_find(&writer->spans->foreign, key_of(trace, query)))
		return SQLITE_OK;
	code = span_rows_write(writer);
	if (code)
		return code;
	remove = writer_bind(writer, &writer->spans->sql.remove_foreign);
	bind_number(remove, "trace_hi", (int64_t)trace->trace_hi);
	bind_number(remove, "first_span", (int64_t)span_of(query));
	bind_number(remove, "id", row);
	return writer_run(writer, remove);
}
