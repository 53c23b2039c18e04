/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of queries: the rows that the writer knows, and the batch's data of each. query_rows.c writes them.
 */
#pragma once

#include <stdbool.h>

#include "base/hash_table.h"
#include "base/vector.h"
#include "store/write/prepared.h"
#include "wire/query_record.h"

struct writer;

/* The texts of a query record. */
struct query_texts {
	struct text {
		const char *bytes;
		size_t size;
	} query_id, query, database, exception, library, call_stack, expanded;
};

/* Rows that a query's row names. */
struct query_rows {
	int64_t query, initial, parent, statement, library, labels, context, call_stack;
};

/* One query in the batch: its first and last time, its samples, and its records. */
struct batch_query {
	struct query_key key;
	struct query_rows rows;
	bool is_new; /* not in the file yet */
	int64_t first_ns, last_ns;
	int64_t samples[SAMPLE_QUERY_TYPES], weights[SAMPLE_QUERY_TYPES];
	int64_t cpu_time_ns;
	int64_t labels, context;              /* of its first sample that has them */
	const struct start_record *start;     /* NULL: none */
	const struct start_record *seen_open; /* NULL: none by the flusher */
	const struct query_record *end;       /* NULL: none, because it continues */
	struct query_texts texts;             /* of the end */
	int64_t left; /* the statement that an earlier batch's start published; 0: none, or the same */
};

struct known_query {
	struct hash key;
	int64_t row;
	int64_t statement;       /* published by its start; 0: none */
	int64_t labels, context; /* of its first sample that has them; 0: none */
	uint32_t batch, entry;   /* its entry, valid in that batch only */
};

struct query_writer {
	struct hash_table known, earlier;    /* earlier: see queries_begin_batch() */
	VECTOR(struct batch_query) in_batch; /* of the batch */
	int64_t newest;                      /* rows of queries, including those of the batch */
	size_t ended;                        /* in the batch */
	struct {
		struct prepared find, find_own, add, start, running, end, range;
	} sql;
};

extern const struct query_writer query_writer_new;
void query_writer_free(struct query_writer *queries);

/* Forgets all rows. */
void query_writer_forget(struct query_writer *queries);

/* Forgets the rows up to `removed` that are no longer in the file. */
void query_writer_forget_removed(struct writer *writer, int64_t removed);

/* Limits the remembered queries before a batch. */
void queries_begin_batch(struct query_writer *queries);

/* The query's row, which may be written only at the batch's end, and in `*entry` its index in the batch. > 0,
 * or minus SQLite's code. */
int64_t intern_query(struct writer *writer, struct query_key key, uint32_t *entry);

/* The entry of an interned query; NULL: no memory for it. */
struct known_query *intern_known_query(const struct writer *writer, struct query_key key);

/* The batch has data of a query at these times. index: its entry; beyond them all: none. */
void queries_widen(struct query_writer *queries, uint32_t index, int64_t first_ns, int64_t last_ns);

/* The row of a query that another record names, without text if it has no record of its own. 0: the key is
 * empty; below 0: the error. */
int64_t queries_find(struct writer *writer, struct query_key query, int64_t first_ns, int64_t last_ns);
