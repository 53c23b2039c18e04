/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/foreign_spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/normalize.h"
#include "queryprof.h"
#include "span/keep.h"
#include "store/write/span_rows.h"
#include "store/write/writer.h"

const struct foreign_span_writer foreign_span_writer_new = {
	.known = HASH_TABLE_OF(struct hash, 1 << 16),
	.sql = {
		/* The trace that query_log shows. */
		.find_trace.sql =
			"SELECT coalesce(c.otel_trace_id, nullif(h.otel_trace_id, ''), nullif(g.otel_trace_id, '')),"
			" coalesce(c.otel_span_id, nullif(h.otel_span_id, ''), g.otel_span_id) FROM (SELECT 1)"
			" LEFT JOIN trace_contexts AS c ON c.id = :context LEFT JOIN statements AS x ON x.id = :statement"
			" LEFT JOIN label_sets AS h ON h.id = x.labels LEFT JOIN label_sets AS g ON g.id = :labels",
		.remove.sql = "DELETE FROM span_batches WHERE trace_hi = :trace_hi AND"
		              " first_span = :first_span AND id < :id",
	},
};

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

/* False: it is in no trace, or `*code` has an error. */
static bool find_trace(struct writer *writer, const struct foreign_names *names, struct span_link *link,
                       int *code)
{
	struct prepared *find = writer_bind(writer, &writer->foreign_spans->sql.find_trace);
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

static void fill(struct foreign_span *span, const struct query_record *record, const struct span_link *link,
                 uint64_t shape)
{
	uint64_t status = record->exception_code ? QP_SPAN_ERROR : QP_SPAN_UNSET;
	struct span_batch *batch = (struct span_batch *)span->words;

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
}

bool foreign_spans_make(struct writer *writer, const struct query_record *record,
                        const struct foreign_names *names, const char *text, size_t size,
                        struct foreign_span *span, int *code)
{
	struct span_link link;

	*code = SQLITE_OK;
	/* The usual case, tested first because a look into the file is expensive. */
	if (!names->context && !names->labels && !memmem(text, size, "traceparent", 11))
		return false;
	if (!find_trace(writer, names, &link, code) || *code ||
	    !keep_decide_foreign(link.trace_lo, record->duration_ns,
	                         record->samples[SAMPLE_CPU] || record->samples[SAMPLE_REAL]))
		return false;
	fill(span, record, &link, normalize_hash(text, size));
	return true;
}

void foreign_spans_keep(struct writer *writer, const struct foreign_span *span, struct query_key query)
{
	struct hash key = key_of(&((const struct span_batch *)span->words)->of, query);

	if (!hash_table_find(&writer->foreign_spans->known, key))
		hash_table_add(&writer->foreign_spans->known, key);
}

int foreign_spans_release(struct writer *writer, const struct span_link *trace, struct query_key query,
                          int64_t row)
{
	struct prepared *remove;
	int code;

	if (!hash_table_find(&writer->foreign_spans->known, key_of(trace, query)))
		return SQLITE_OK;
	code = span_rows_write(writer);
	if (code)
		return code;
	remove = writer_bind(writer, &writer->foreign_spans->sql.remove);
	bind_number(remove, "trace_hi", (int64_t)trace->trace_hi);
	bind_number(remove, "first_span", (int64_t)span_of(query));
	bind_number(remove, "id", row);
	return writer_run(writer, remove);
}
