/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The export formats. Each is a writer that gets one stream of samples in the order of time.
 *
 * The command (src/cmd/export/export.c) reads the trace file, makes each stack and label once (names.h), and
 * passes every sample to the writer. A writer computes the sums that its format needs (sums.h). The formats
 * agree because all get the same stream.
 *
 * All texts are UTF-8, even if those in the file are not. The data that a sample points to stays valid until
 * the writer has ended; labels only until flush() drops them. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vector.h"

/* Here and below, `number` counts from 0 in the order of arrival, so it can index a table. */
struct export_module {
	uint32_t number;
	const char *path;
	const char *name;     /* the path's last part */
	const char *build_id; /* "" when the module has none */
	uint64_t start, end;  /* in the file's address space */
};

/* Stores a numbered item in its table, a vector of pointers. False: no memory. */
#define EXPORT_KEEP(table, numbered)                                                                         \
	({                                                                                                   \
		__typeof__((table)->items) placed_ = vector_at((table), (numbered)->number);                 \
		if (placed_)                                                                                 \
			*placed_ = (numbered);                                                               \
		placed_ != NULL;                                                                             \
	})

/* A place in the source. */
struct export_line {
	const char *function; /* for people; module+0x12 or 0x12 if it has no name */
	const char *symbol;   /* as the symbol table has it, "" if it has no name */
	const char *file;     /* "" if lines are not known */
	int line;
};

/* A machine frame: one address. Inlined functions come before the function that contains them. There is at
 * least one line. */
struct export_frame {
	uint32_t number;
	uint64_t address;
	const struct export_module *module; /* NULL: not in a module */
	size_t line_count;
	const struct export_line *lines;
};

struct export_stack {
	uint32_t number;
	bool is_truncated; /* its root is missing */
	size_t count;
	const struct export_frame **frames; /* leaf first; NULL: see `rest` */
	/* The same stack without its leaf, which represents a wait. Many waits share one. NULL: the leaf is
	 * not a wait. */
	const struct export_stack *rest;
	const struct export_frame *leaf;
	bool has_numbers; /* its modules and frames are numbered */
};

/* From the leaf, 0, to the root. */
static inline const struct export_frame *export_stack_frame(const struct export_stack *stack, size_t i)
{
	return !stack->rest ? stack->frames[i] : i ? stack->rest->frames[i - 1] : stack->leaf;
}

/* Strings are "" if nothing is known. */
struct export_labels {
	uint32_t number;
	uint32_t query;  /* the query's number */
	int64_t last_ns; /* no sample after this has them; INT64_MAX: not known */
	uint32_t side;   /* 1: from the file that the first one is compared with */
	const char *query_id, *thread, *database, *statement;
	int64_t process;               /* its number in the file: several may have one process_id */
	int64_t process_id, thread_id; /* the system's */
	int64_t statement_hash;        /* equal for statements that differ in literals only */
	int64_t statement_runs;        /* including those without samples; 0: not known */
	const char *labels;            /* a set of labels as label/pairs.h has it */
	const char *program, *host;    /* where the thread runs: the program's path */
	const char *script;            /* an interpreter's script */
	const char *root;              /* the root frame of its stacks, from --root */
	/* OpenTelemetry's ids of trace and span, 32 + 16 characters. With has_links, those of the span in
	 * span_log that contains the samples; otherwise those of the host's tracer, as in trace_log. */
	const char *link;
};

struct export_sample {
	const struct export_stack *stack;
	const struct export_labels *labels;
	int64_t time_ns;   /* since 1970 */
	int64_t period_ns; /* 0: none */
	/* Not negative, and the sum over a stream does not overflow. */
	int64_t weight; /* the number of periods or events that it represents */
	int64_t value;  /* in the stream's unit */
	const char *trace_type;
	bool is_other; /* not of the stream's type, see export_format.has_times and has_live */
};

/* A span of a request. Spans follow the samples, by process and thread, in the order of their beginning.
 * process: see export_labels. attribute: a JSON object; otlp_…: JSON arrays in OTLP's form. The strings are
 * valid during the call, and "" if nothing is known. */
struct export_span {
	const char *trace_id, *span_id, *parent_id; /* hexadecimal */
	const char *name, *thread_name, *host, *program, *query_id, *file;
	const char *attribute, *otlp_attributes, *otlp_events;
	int64_t start_ns, end_ns; /* since 1970 */
	int64_t process, process_id, thread_id, line;
	unsigned status; /* enum qp_span_status */
	bool is_server, is_unended;
};

/* A stream has samples of one type, and of others for formats with has_times. If two files are compared, the
 * samples of one precede those of the other. */
struct export_info {
	const char *trace_type;
	const char *unit;       /* of the values: "ns", "bytes", or another, which is shown unchanged */
	bool is_timed;          /* a timer took the samples: weights are periods */
	bool has_live;          /* of allocated memory: samples of live memory follow, as others */
	const char *title;      /* what was exported, for a heading */
	const char *compared;   /* the other file's title; NULL: nothing is compared */
	const char *executable; /* of the first process; "" if it is not known */
	int64_t first_ns;       /* of the first span or sample, since 1970; 0 without spans */
	bool inlines;           /* inlined functions are separate lines */
	const char *service;    /* the resource's name; NULL: see resource.h */
	const struct resource
		*series; /* a server makes a series of each set of labels, including these; otherwise NULL */
};

/* The first members of every format's writer. */
#define EXPORT_WRITER                                                                                        \
	FILE *out;                                                                                           \
	const struct export_info *info

struct export_format {
	const char *name;
	const char *summary; /* with the unit, for the help */
	bool is_binary;
	bool has_root; /* its stacks begin with export_labels.root */
	/* The part of export_labels that it uses, in addition to side and root. The rest may be missing, so
	 * fewer labels differ. Of a run: all except `labels` and `link`, which may differ between samples. Of
	 * a statement: its text, hash and runs, and the query_id if it has no text. */
	enum export_labels_read {
		EXPORT_LABELS_ALL,
		EXPORT_LABELS_RUN,
		EXPORT_LABELS_STATEMENT,
		EXPORT_LABELS_NONE
	} labels_read;
	bool compares;       /* accepts a second file, see export_labels.side */
	bool has_live;       /* also gets the samples of live memory, see export_info */
	bool has_times;      /* also gets the samples of all other types whose values are times */
	bool has_links;      /* samples link to the spans that are sent to the same place */
	bool has_runs;       /* gets logged runs without a span as spans without a trace */
	bool has_arrays;     /* spans have otlp_attributes and otlp_events; otherwise these are empty */
	const char *missing; /* why this build lacks it; NULL: it has it */
	size_t writer_size;  /* of its writer, which is zeroed except for EXPORT_WRITER */
	/* False: no memory. NULL: it ignores samples, or spans. */
	bool (*add)(void *writer, const struct export_sample *sample);
	bool (*add_span)(void *writer, const struct export_span *span);
	/* Upper bound of the bytes that it would write now, without resources. NULL: not known. */
	size_t (*size)(const void *writer);
	/* NULL, or called occasionally: the next sample has that time. Labels with an earlier last_ns are
	 * dropped after the call, and their numbers and their queries' numbers are reused. So the writer must
	 * write and forget their data. Adds the number of remaining sums to *left. False: as for end(). */
	bool (*flush)(void *writer, int64_t now_ns, size_t *left);
	/* Writes the rest if `complete`; always frees the writer's memory. False: no memory, or writing
	 * failed (ferror(out), errno). */
	bool (*end)(void *writer, bool complete);
};

/* The formats in the order of the help. Each has a file. */
#define EXPORT_FORMATS(FORMAT)                                                                               \
	FORMAT(collapsed)                                                                                    \
	FORMAT(pprof)                                                                                        \
	FORMAT(speedscope)                                                                                   \
	FORMAT(flamegraph)                                                                                   \
	FORMAT(json)                                                                                         \
	FORMAT(perfetto)                                                                                     \
	FORMAT(otlp_traces)                                                                                  \
	FORMAT(otlp)
#define EXPORT_FORMAT_DECLARE(name) extern const struct export_format export_##name;
EXPORT_FORMATS(EXPORT_FORMAT_DECLARE)
