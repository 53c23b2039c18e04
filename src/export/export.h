/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The export formats: each is a writer that takes one stream of samples in the order of
 * time.
 *
 * The command (src/cmd/export/export.c) reads the trace file, makes each stack and label
 * once (names.h), and passes every sample to the writer. A writer sums up what its format
 * wants summed up (sums.h): all formats agree because all get the same stream.
 *
 * Texts are UTF-8, whatever the file has. Everything that a sample points to stays where
 * it is until the writer has ended, but labels only as flush() says. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vector.h"

/* `number`, here and below: counted from 0 as they come, for tables by number. */
struct export_module {
	uint32_t number;
	const char *path;
	const char *name;     /* the path's last part */
	const char *build_id; /* "" when the module has none */
	uint64_t start, end;  /* where it lies in the file's address space */
};

/* Puts what has a number into its table, a vector of pointers. False: no memory. */
#define EXPORT_KEEP(table, numbered)                                                                         \
	({                                                                                                   \
		__typeof__((table)->items) placed_ = vector_at((table), (numbered)->number);                 \
		if (placed_)                                                                                 \
			*placed_ = (numbered);                                                               \
		placed_ != NULL;                                                                             \
	})

/* A place in the source. */
struct export_line {
	const char *function; /* for people; module+0x12 or 0x12 when it has no name */
	const char *symbol;   /* as the symbol table has it, "" when it has no name */
	const char *file;     /* "" when lines are not known */
	int line;
};

/* A frame of the machine: one address. Functions that were inlined there come
 * before the one that they were inlined into; there is at least one line. */
struct export_frame {
	uint32_t number;
	uint64_t address;
	const struct export_module *module; /* NULL: in none */
	size_t line_count;
	const struct export_line *lines;
};

struct export_stack {
	uint32_t number;
	bool is_truncated; /* its root is missing */
	size_t count;
	const struct export_frame **frames; /* leaf first */
	/* The same without its leaf, which stands for a wait; of many waits there is one. NULL: there is
	 * none. */
	const struct export_stack *rest;
	bool has_numbers; /* its modules and frames have */
};

/* The strings are "" where nothing is known. */
struct export_labels {
	uint32_t number;
	uint32_t query;  /* the number of the query, from 0 as they come */
	int64_t last_ns; /* no sample after this has them; INT64_MAX: not known */
	uint32_t side;   /* 1: of the file that the first is compared with */
	const char *query_id, *thread, *database, *statement;
	int64_t process;               /* its number in the file: several may have one process_id */
	int64_t process_id, thread_id; /* the system's */
	int64_t statement_hash;        /* equal for statements that differ in literals only */
	int64_t statement_runs;        /* all of them, with samples or not; 0: not known */
	const char *labels;            /* a set of labels as label/pairs.h has it */
	const char *program, *host;    /* where the thread runs: the program's path */
	const char *script;            /* that the program, an interpreter, runs */
	const char *root;              /* what its stacks stand on, the command's --root */
	/* OpenTelemetry's ids of trace and span, 32 + 16 characters: where the format has_links of the span
	 * of span_log that the samples fell into, and else of others, as in trace_log. */
	const char *link;
};

struct export_sample {
	const struct export_stack *stack;
	const struct export_labels *labels;
	int64_t time_ns;   /* since 1970 */
	int64_t period_ns; /* 0: it has none */
	/* Neither negative nor, all those of a stream together, too large. */
	int64_t weight; /* periods, or events, that it stands for */
	int64_t value;  /* in the unit of the stream */
	const char *trace_type;
	bool is_other; /* not of the stream's type, see export_format.has_times */
};

/* A span of a request. Spans come behind the samples, by process and thread, as they began.
 * process: as of labels. attribute: a JSON object; otlp_…: JSON arrays as OTLP has them. The strings are
 * valid during the call, "" where nothing is known. */
struct export_span {
	const char *trace_id, *span_id, *parent_id; /* hexadecimal */
	const char *name, *thread_name, *host, *program, *query_id, *file;
	const char *attribute, *otlp_attributes, *otlp_events;
	int64_t start_ns, end_ns; /* since 1970 */
	int64_t process, process_id, thread_id, line;
	unsigned status; /* enum qp_span_status */
	bool is_server, is_unended;
};

/* A stream has samples of one type, and others where the format has_times; where two files are compared, all
 * of one come before those of the other. */
struct export_info {
	const char *trace_type;
	const char *unit;       /* of the values: "ns", "bytes", or another, which a format shows as it is */
	bool is_timed;          /* a timer took the samples: weights are periods */
	const char *title;      /* what was exported, for a heading */
	const char *compared;   /* the other file's title; NULL: there is none */
	const char *executable; /* of the process, or the first of several; "" unknown */
	int64_t first_ns;       /* when the first span or sample was, since 1970; 0 without spans */
	bool inlines;           /* functions that were inlined are lines of their own */
	const char *service;    /* what the resource is called; NULL: see resource.h */
	const struct resource
		*series; /* a server makes a series of each set of labels, with these; else NULL */
};

/* The first members of every format's writer. */
#define EXPORT_WRITER                                                                                        \
	FILE *out;                                                                                           \
	const struct export_info *info

struct export_format {
	const char *name;
	const char *summary; /* with the unit, for the help */
	bool is_binary;
	bool has_root; /* its stacks stand on export_labels.root */
	/* What it reads of export_labels, in addition to side and root: the rest may be missing, and there
	 * are fewer of them. Of a run: all but what its samples may differ in, which are `labels` and `link`.
	 * Of a statement: its text, hash and runs, and the query_id if it has no text. */
	enum export_labels_read {
		EXPORT_LABELS_ALL,
		EXPORT_LABELS_RUN,
		EXPORT_LABELS_STATEMENT,
		EXPORT_LABELS_NONE
	} labels_read;
	bool compares;       /* takes a second file, see export_labels.side */
	bool has_times;      /* samples of all types that are times come, not only the stream's */
	bool has_links;      /* of samples, to the spans that go to the same place */
	bool has_runs;       /* logged runs that no span stands for come as spans of no trace */
	bool has_arrays;     /* spans come with otlp_attributes and otlp_events, else with empty ones */
	const char *missing; /* why this build does not have it; NULL: it does */
	size_t writer_size;  /* of its writer, which starts zeroed but for EXPORT_WRITER */
	/* False: no memory. NULL: it takes no samples, or no spans. */
	bool (*add)(void *writer, const struct export_sample *sample);
	bool (*add_span)(void *writer, const struct export_span *span);
	/* What it would write now, in bytes, at most, but for resources. NULL: not known. */
	size_t (*size)(const void *writer);
	/* Now and then, if it is not NULL: the next sample is of that time. Labels whose last_ns is before it
	 * are dropped after the call, and their numbers, and those of their queries, are used again: what is
	 * theirs is written and forgotten. Adds to *left how many sums remain. False: as of end(). */
	bool (*flush)(void *writer, int64_t now_ns, size_t *left);
	/* Writes the rest where `complete`, frees what the writer holds in any case. False:
	 * no memory, or it could not be written (ferror(out), errno). */
	bool (*end)(void *writer, bool complete);
};

/* The formats, a file each, in the order of the help. */
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
