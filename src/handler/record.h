/*
 * The records that travel through the ring: one per sample, per finished query and
 * per thread seen for the first time.
 *
 * The signal handler writes samples, ordinary code on the host's threads writes the
 * other kinds; the flusher (src/store) is the only reader. It reads the records of
 * one thread in the order in which the thread wrote them, so a query's own record
 * follows its samples and a thread's name precedes them.
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
};

#define TRACE_MAX_FRAMES 512

/* Identifies one run of a query: the 128 bits of a UUID version 7. Both words
 * zero: no query. */
struct query_key {
	uint64_t hi, lo;
};

/* The number of the session that the key was made for, 0: none. */
#define QUERY_SESSION_SHIFT 30
static inline uint32_t query_key_session(struct query_key key)
{
	return (uint32_t)(key.lo >> QUERY_SESSION_SHIFT);
}

/* The key as text: 36 characters and a zero. */
static inline void query_key_text(struct query_key key, char text[37])
{
	static const char digits[] = "0123456789abcdef";
	char *to = text;

	for (int nibble = 0; nibble < 32; nibble++) {
		uint64_t word = nibble < 16 ? key.hi : key.lo;
		if (nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20)
			*to++ = '-';
		*to++ = digits[word >> (60 - nibble % 16 * 4) & 15];
	}
	*to = '\0';
}

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

/* The field at `*at`, which moves on to the next one; NULL when none is left before
 * `end`. */
static inline const struct sample_field *sample_field_next(const void **at, const void *end)
{
	const struct sample_field *field = *at;
	size_t left = (size_t)((const char *)end - (const char *)*at);

	if (left < sizeof(*field) || field->size > left - sizeof(*field))
		return NULL;
	size_t size = SAMPLE_FIELD_BYTES(field->size);
	*at = (const char *)*at + (size < left ? size : left);
	return field;
}

/* One finished run of a query. Times in ns. The texts stand one behind the
 * other in `text`, without terminators, in the order of their lengths. */
struct query_record {
	struct query_key query;
	struct query_key initial; /* the outermost query around it, or itself */
	struct query_key parent;  /* the query right around it; zero: none */
	uint64_t start_realtime_ns;
	uint64_t duration_ns;        /* CLOCK_MONOTONIC, first step to the end */
	uint64_t cpu_time_ns;        /* the threads' CPU clocks over the same span, see query.h */
	uint64_t prepare_time_ns;    /* the part of the duration before the first step */
	uint64_t worker_cpu_time_ns; /* of threads that SQLite made for the query */
	uint64_t result_rows;
	uint64_t vm_steps, fullscan_steps, sorts, autoindexes, memory_usage;
	uint64_t samples[TRACE_TYPES]; /* records committed to the ring */
	uint64_t weights[TRACE_TYPES]; /* their weights added up */
	uint64_t samples_dropped;      /* ring full */
	uint64_t samples_truncated;
	int64_t exception_code; /* 0: finished well */
	uint32_t thread_id;
	uint32_t flags;         /* enum query_flags */
	uint32_t query_id_size; /* the user's own id; 0: the key as UUID text */
	uint32_t query_size;
	uint32_t database_size;
	uint32_t exception_size;
	uint32_t library_size; /* version, a space, path */
	uint32_t expanded_size;
	char text[];
};

enum query_flags {
	QUERY_TEXT_CUT = 1, /* the statement's text was longer than a record holds */
};

struct thread_record {
	uint32_t thread_id;
	char name[20]; /* as pthread_getname_np gives it, zero-terminated */
};

#endif
