/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows that are new in a trace file since a position, for readers that follow it: a live page, a
 * shipper. A position holds across restarts of the follower and of the writers, and can be
 * kept anywhere as its four numbers.
 *
 *   struct follow_position at = { 0 };
 *   while (follow_look(file, &at, 10000, &news, &error)) {
 *           cursor = follow_select(file, &news, FOLLOW_SAMPLES, &error);
 *           ... store_step(cursor) ... store_close(cursor);
 *           at = news.until;
 *   }
 */
#ifndef QUERYPROF_STORE_READ_FOLLOW_H
#define QUERYPROF_STORE_READ_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "store/read/reader.h"

/* After so many transactions, samples and threads of a file. All zero: before everything. The
 * later of two positions in one file has the greater batch. */
struct follow_position {
	int64_t file; /* identifies the file */
	int64_t batch;
	int64_t samples;
	int64_t thread;
};

struct follow_news {
	struct follow_position since, until; /* equal: nothing is new */
	uint64_t samples;                    /* between the two, in the file still */
	uint64_t missed;    /* samples that were removed before they could be read (the size bound) */
	bool is_other_file; /* than the one of the position: it is followed from its beginning */
};

/* Says what came after `since`: at most about `most_samples`, but one transaction at least.
 * False: `*error` (free() it). A sample is stored after the ones of earlier transactions,
 * whatever its timestamp. Files that were begun by a version without batches are followed
 * from their first batch on. */
bool follow_look(struct store_file *file, const struct follow_position *since, int64_t most_samples,
                 struct follow_news *news, char **error);

enum follow_kind {
	/* sample_id (never the same in one file), then the columns of trace_log without symbols
	 * and lines. In the order of time. */
	FOLLOW_SAMPLES,
	/* finished, then the columns of query_log: queries that began or ended. A query that
	 * still runs (finished is 0) has most columns empty; it comes again when it has ended. */
	FOLLOW_QUERIES,
	/* hostname, process_id, thread_id, thread_name: threads that were not seen before. */
	FOLLOW_THREADS,
};

/* The rows; NULL: `*error` (free() it). Fewer samples than follow_look() promised may come,
 * when the size bound was quicker. */
struct store_cursor *follow_select(struct store_file *file, const struct follow_news *news,
                                   enum follow_kind kind, char **error);

#endif
