/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records that travel through the ring: one per sample, per finished query and
 * per thread seen for the first time.
 *
 * The signal handler writes samples. Ordinary code on the host's threads writes the
 * other kinds (query/query_record.h, sampler/thread_record.h). The flusher (src/store) is
 * the only reader. It reads the records of one thread in the order in which the thread
 * wrote them, so a query's own record follows its samples and a thread's name precedes them.
 *
 * A sample is a fixed head, its trace, and optional fields (a value; later labels, a
 * span, a plan node). Each field carries its tag and its size, so that a reader skips
 * the fields that it does not know and reads those behind them.
 */
#ifndef QUERYPROF_HANDLER_RECORD_H
#define QUERYPROF_HANDLER_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/sample_type.h"

enum record_kind {
	RECORD_SAMPLE = 1,
	RECORD_QUERY = 2,
	RECORD_THREAD = 3,
	RECORD_STATEMENTS = 5, /* no content: query/statement_stats.h has something to store */
};

#define TRACE_MAX_FRAMES 512

/* Identifies one run of a query: the 128 bits of a UUID version 7. Both words
 * zero: no query. */
struct query_key {
	uint64_t hi, lo;
};

enum sample_flags {
	SAMPLE_TRUNCATED = 1, /* the trace does not reach the bottom of the stack */
};

struct sample_record {
	uint64_t timestamp_ns; /* CLOCK_REALTIME, read in the handler */
	uint64_t period_ns;
	struct query_key query;
	uint32_t thread_id;  /* kernel thread id */
	uint32_t weight;     /* periods this sample stands for */
	uint32_t generation; /* of the code map in force, see code_map.h */
	uint32_t cpu_id;
	uint32_t fields;    /* optional fields behind the trace: how many */
	uint16_t depth;     /* entries of trace */
	uint8_t trace_type; /* enum trace_type */
	uint8_t flags;      /* enum sample_flags */
	uint64_t trace[];   /* leaf first, see qp_unwind() in queryprof.h */
};

/* The tags of optional fields. A number keeps its meaning for ever. */
enum sample_field_tag {
	/* int64_t: the value in the type's unit. A sample without this field stands for
	 * weight × period_ns, if a timer took it. */
	FIELD_VALUE = 1,
};

struct sample_field {
	uint32_t tag, size; /* size: bytes of content */
	uint64_t content[]; /* filled up to whole words */
};

#define SAMPLE_FIELD_BYTES(content_size) (sizeof(struct sample_field) + ((content_size) + 7ul) / 8 * 8)

/* Writes a field at `at`, which has SAMPLE_FIELD_BYTES(size) bytes, and counts it. The
 * first field belongs at record->trace + record->depth. Returns the place of the next
 * one. */
static inline void *sample_field_put(struct sample_record *record, void *at, uint32_t tag,
                                     const void *content, uint32_t size)
{
	struct sample_field *field = at;

	field->tag = tag;
	field->size = size;
	memcpy(field->content, content, size);
	record->fields++;
	return (char *)at + SAMPLE_FIELD_BYTES(size);
}

#endif
