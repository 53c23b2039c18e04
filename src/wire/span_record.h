/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans in their thread's memory and in the ring: the array is the record.
 *
 * A span has no number of its own: the first entry of an array has one, and each following entry the
 * next. So a span's number, which is also its id in tables and exports, gives its position. Its
 * parent is usually on the same thread, and is given by the difference of the two numbers.
 *
 * A part of a span in addition to its times (a statement's key, an attribute, an event) is an entry
 * of another kind, and uses up a number.
 */
#pragma once

#include <stdint.h>

/* In the top byte of `duration`. */
#define SPAN_OPEN (1ull << 63)    /* it runs */
#define SPAN_UNENDED (1ull << 62) /* without an end of its own: it was closed with its enclosing span */
#define SPAN_STATUS_SHIFT 60      /* two bits: enum qp_span_status */
#define SPAN_STATUS (3ull << SPAN_STATUS_SHIFT)
#define SPAN_STATEMENT (1ull << 59) /* an entry ENTRY_STATEMENT follows */
#define SPAN_DURATION ((1ull << 56) - 1)

struct span_entry {
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t duration; /* ns, and the flags above */
	uint64_t children; /* ns, of its children that are not in the same array */
	uint32_t parent;   /* its number minus the parent's; 0: the parent is the array's */
	uint32_t site;     /* span/site.h, a wait (SITE_WAIT), or an enum entry_kind */
};

/* A wait's site. The bits below are its object << 8 and its cause (wire/wait.h). */
#define SITE_WAIT (1u << 30)

/* An entry that is not a span has this instead of a site. */
#define ENTRY_OTHER (1u << 31)
enum entry_kind {
	/* Follows a statement's span: start_ns and duration are its query key, zeroes if it has no
	 * row in query_log; children is the hash of the normalized text; parent is 1 if it is only
	 * the statement's preparation. */
	ENTRY_STATEMENT = ENTRY_OTHER,
	/* start_ns: the span's number. duration: an event's time, for an attribute 0. children:
	 * the size of the key in the upper half, that of the value in the lower half. `parent`
	 * entries of text follow. */
	ENTRY_ATTRIBUTE,
	ENTRY_NUMBER, /* an attribute whose value is a number as text */
	ENTRY_EVENT,
	ENTRY_TEXT,
};

enum span_batch_flags {
	BATCH_ROOT = 1,   /* of the thread that began the trace */
	BATCH_END = 2,    /* the trace ends with it: `began_ns` to `ended_ns` */
	BATCH_UNKEPT = 4, /* the trace is not kept; the record has no spans */
	BATCH_REMOTE = 8, /* the parent is another program's */
};

/* Another trace, or another parent, that the spans are part of, too. */
struct span_link {
	uint64_t trace_hi, trace_lo, parent;
};

struct span_batch {
	struct span_link of;
	uint64_t first;           /* number of the first entry */
	uint64_t realtime_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	uint64_t began_ns, ended_ns;
	uint64_t dropped; /* spans of this thread's part of the trace that were lost, so far */
	uint32_t thread_id;
	uint32_t flags;
	uint32_t entries, links;
	struct span_entry entry[]; /* the links follow */
};

/* The site of a number in spans. The texts follow each other, without zeros. */
struct span_site_record {
	uint32_t number, line;
	uint32_t name_size, file_size, function_size;
	char text[];
};

static inline int entry_is_wait(const struct span_entry *entry)
{
	return (entry->site & (ENTRY_OTHER | SITE_WAIT)) == SITE_WAIT;
}

static inline int entry_is_span(const struct span_entry *entry)
{
	return !(entry->site & ENTRY_OTHER);
}

/* Since the span began. The clock may be some ns earlier than at its reading before. */
static inline uint64_t entry_lasted(const struct span_entry *entry, uint64_t now_ns)
{
	return (int64_t)(now_ns - entry->start_ns) > 0 ? (now_ns - entry->start_ns) & SPAN_DURATION : 0;
}

/* Entries from this one to the next that is neither a part of it nor its text. */
static inline uint32_t entry_group(const struct span_entry *entry)
{
	if (entry_is_span(entry))
		return entry->duration & SPAN_STATEMENT ? 2 : 1;
	return entry->site == ENTRY_STATEMENT ? 1 : 1 + entry->parent;
}
