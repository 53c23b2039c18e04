/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records in the ring. The handler writes one per sample and per query that has samples; ordinary
 * code on the host's threads writes one per finished query and per new thread (wire/query_record.h,
 * wire/thread_record.h). The only reader, the flusher, gets them in their thread's order: a query's
 * own follows its samples, a name precedes them.
 *
 * A sample is a fixed head, its stack, and optional fields (enum sample_field_tag), each with its tag
 * and its size, so a reader skips unknown ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/sample_type.h"
#include "wire/wait.h"

enum record_kind {
	RECORD_SAMPLE = 1,
	RECORD_QUERY = 2,
	RECORD_THREAD = 3,
	RECORD_START = 4,
	RECORD_STATEMENTS = 5,  /* query/statement_stats.h has something to store; no content */
	RECORD_LOCK_WAIT = 6,   /* wire/lock_record.h */
	RECORD_TRANSACTION = 7, /* wire/transaction_record.h */
	RECORD_LABELS = 8,      /* wire/label_record.h */
	RECORD_SPANS = 10,      /* wire/span_record.h */
	RECORD_SPAN_SITE = 11,  /* the same */
	RECORD_BYTECODE = 12,
	RECORD_BYTECODE_ROWS = 13,
	RECORD_WAL = 14,             /* wire/wal_record.h */
	RECORD_CHECKPOINT = 15,      /* the same */
	RECORD_OPEN_STATEMENTS = 16, /* wire/open_statements_record.h */
	RECORD_CONNECTION = 17,      /* wire/connection_record.h */
	RECORD_PAGE_IO = 18,         /* wire/page_record.h */
};

#define STACK_FRAMES_MAX 512

/* Identifies one run of a query: the 128 bits of a UUID version 7. Both words zero: no query. */
struct query_key {
	uint64_t hi, lo;
};

static inline void query_key_set(struct query_key *key, uint64_t hi, uint64_t lo)
{
	__atomic_store_n(&key->hi, hi, __ATOMIC_RELAXED);
	__atomic_store_n(&key->lo, lo, __ATOMIC_RELAXED);
}

/* Word by word, because reading both with one load directly after two stores delays the processor. */
static inline void query_key_copy(struct query_key *to, const struct query_key *from)
{
	query_key_set(to, __atomic_load_n(&from->hi, __ATOMIC_RELAXED),
	              __atomic_load_n(&from->lo, __ATOMIC_RELAXED));
}

/* The first sample of a run publishes its start, in case that it never ends; so does the flusher if the run
 * lasts (query_publish_open()). */
enum start_state {
	START_KEPT,
	START_DUE,
	START_PUBLISHED,
	START_DUE_AGAIN, /* published, and its text has changed since */
};
struct run_start {
	enum start_state state; /* in a record START_KEPT: it is withdrawn */
	uint32_t thread_id;     /* that began the run */
	uint64_t realtime_ns;
	struct query_key initial, parent; /* as in struct query_record */
	const char *text;                 /* of the statement, NULL: not known */
	struct query_run *run;            /* whose start it is, in the process that published it */
	/* As in struct query_record, and the address of its opcodes; in a record 0 if the
	 * statement has others now. */
	uint64_t bytecode;
	const void *opcodes;
};
struct start_record {
	struct query_key query;
	struct run_start run;
	uint64_t open_until_ns; /* when it was seen open; 0: not yet */
	uint64_t outside_ns;    /* of the time until then: between its calls */
	uint32_t text_size;
	char text[];
};
#define START_TEXT_MAX 1920u /* a longer text is cut there: a record of the smallest ring */

enum sample_flags {
	SAMPLE_TRUNCATED = 1, /* the addresses do not reach the bottom of the stack */
};

struct sample_record {
	uint64_t timestamp_ns; /* CLOCK_REALTIME, read in the handler */
	uint64_t period_ns;
	struct query_key query;
	uint32_t thread_id;  /* kernel thread id */
	uint32_t weight;     /* periods that this sample represents */
	uint32_t generation; /* of the code map in force, see code_map.h */
	uint32_t cpu_id;
	uint32_t fields;      /* the number of optional fields after the stack */
	uint16_t depth;       /* entries of stack */
	uint8_t type;         /* enum sample_type_number */
	uint8_t flags;        /* enum sample_flags */
	uint64_t addresses[]; /* leaf first, see qp_unwind() in queryprof.h */
};

/* The optional fields of a sample: name, tag, and bytes at most, with so many numbers of label sets.
 * A tag keeps its meaning for ever. */
#define SAMPLE_FIELDS(FIELD, labels)                                                                         \
	/* int64_t: the value in the type's unit. A sample without this field represents weight ×           \
	 * period_ns, if a timer took it. */                                                                 \
	FIELD(FIELD_VALUE, 1, sizeof(int64_t))                                                               \
	/* The wait at whose end the sample was taken. */                                                    \
	FIELD(FIELD_WAIT, 2, sizeof(struct wait_field))                                                      \
	/* uint64_t[]: the numbers of the thread's label sets, innermost first, see labels.h. */             \
	FIELD(FIELD_LABELS, 3, (labels) * sizeof(uint64_t))                                                  \
	FIELD(FIELD_TRACE_CONTEXT, 4, sizeof(struct trace_context))                                          \
	/* The thread's running span. */                                                                     \
	FIELD(FIELD_SPAN, 5, sizeof(uint64_t))                                                               \
	/* The opcode that the statement executed, see handler/opcode.h. */                                  \
	FIELD(FIELD_OPCODE, 6, sizeof(uint64_t))                                                             \
	/* Periods from this signal to the next; none: 1. */                                                 \
	FIELD(FIELD_STRETCH, 7, sizeof(uint32_t))                                                            \
	/* The number of the thread's open transaction. */                                                   \
	FIELD(FIELD_TRANSACTION, 8, sizeof(uint64_t))                                                        \
	/* The address of the block that was allocated or freed; none: its free is not followed. */          \
	FIELD(FIELD_POINTER, 9, sizeof(uint64_t))                                                            \
	/* The program's own frames (call_frame.h), if its code was interrupted outside queries. Written     \
	 * into the ring directly, where there is room, so a draft needs none for it. */                     \
	FIELD(FIELD_CALL_STACK, 10, 0)

#define SAMPLE_FIELD_TAG(name, tag, bytes) name = tag,
enum sample_field_tag { SAMPLE_FIELDS(SAMPLE_FIELD_TAG, 0) };

/* OpenTelemetry's ids of what the thread works for; all zero: none. */
struct trace_context {
	unsigned char trace_id[16], span_id[8];
};

static inline bool context_is_none(const struct trace_context *context)
{
	uint64_t words[sizeof(*context) / sizeof(uint64_t)];

	memcpy(words, context, sizeof(words));
	return (words[0] | words[1] | words[2]) == 0;
}

struct sample_field {
	uint32_t tag, size; /* size: bytes of content */
	uint64_t content[]; /* filled up to whole words */
};

#define SAMPLE_FIELD_BYTES(content_size) (sizeof(struct sample_field) + ((content_size) + 7ul) / 8 * 8)

/* The bytes of all fields together. */
#define SAMPLE_FIELD_ROOM(name, tag, bytes) +SAMPLE_FIELD_BYTES(bytes)
#define SAMPLE_FIELDS_BYTES(labels) (0 SAMPLE_FIELDS(SAMPLE_FIELD_ROOM, labels))

/* Writes a field at `at`, which has SAMPLE_FIELD_BYTES(size) bytes, and counts it. The
 * first field belongs at record->stack + record->depth. Returns the place of the next
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
