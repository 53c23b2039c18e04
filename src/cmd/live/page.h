/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `queryprof top` shows, as lines, for a whole recording or for one statement. For a screen of any size,
 * or for plain text.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "cmd/live/processes.h"
#include "cmd/live/snapshot.h"

#define PAGE_SECONDS 10   /* whose statements and waits a page shows */
#define DETAIL_SECONDS 60 /* whose times a statement's page shows */

enum page_order { ORDER_WALL, ORDER_CPU, ORDER_LOCK, ORDER_RUNS, PAGE_ORDERS };

struct page_line {
	char *text;
	bool is_statement; /* it can be opened */
	int64_t hash;      /* normalized_query_hash; 0: not known */
	char *query;       /* its text; NULL: not known */
};

struct page {
	VECTOR(struct page_line) lines;
};

void page_clear(struct page *page);

/* `rows`, `columns`: the size of the screen; rows 0: plain text, whose lines are not cut. An SQLite result.
 */
int page_of_recording(struct page *page, sqlite3 *db, const struct live *live,
                      const struct snapshot *snapshot, enum page_order order, int rows, int columns);
int page_of_statement(struct page *page, sqlite3 *db, const struct snapshot *snapshot, int64_t hash,
                      const char *query, int columns);
