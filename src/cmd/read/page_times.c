/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/page_times.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hash_table.h"
#include "base/tally.h"
#include "cmd/file/selected_samples.h"
#include "cmd/ui/complain.h"
#include "store/file/database.h"

#define POINTS_MAX 100000 /* a page for a million samples has at most 3 MB */
#define ORIGINS_MAX 1000  /* later ones are row 0 */
#define EXACT_NS 1000     /* the unit of values if each sample has a point */
#define REST_OF_STACKS (-1)

struct stack_row {
	struct hash key;
	uint32_t row;
};

struct times {
	struct selected_samples *samples;
	struct hash_table stacks;
	struct tally origins; /* thread, labels */
	int64_t unit_ns, left_ns, last_ms;
	bool is_thinned;
};

/* trace_type: its first letter identifies it among the types of page_stacks. */
static struct hash key_of(int64_t hash, const char *trace_type, int64_t wait, int64_t stack)
{
	return hash_words((uint64_t[]){ (uint64_t)hash, (uint64_t)(unsigned char)*trace_type, (uint64_t)wait,
	                                (uint64_t)stack },
	                  4);
}

static int read_stacks(sqlite3 *db, struct times *times)
{
	static const char sql[] =
		"SELECT hash, trace_type, wait, coalesce(stack, -1), rowid - 1 FROM temp.page_stacks";
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &row, NULL);

	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const struct hash key =
			key_of(sqlite3_column_int64(row, 0), (const char *)sqlite3_column_text(row, 1),
		               sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3));
		struct stack_row *stack = hash_table_find(&times->stacks, key);

		if (!stack)
			stack = hash_table_add(&times->stacks, key);
		code = stack ? SQLITE_OK : SQLITE_NOMEM;
		if (stack)
			stack->row = (uint32_t)sqlite3_column_int64(row, 4);
	}
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void put(uint64_t number)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	do {
		const unsigned digit = number & 31;

		number >>= 5;
		putchar(digits[digit + (number ? 32 : 0)]);
	} while (number);
}

/* Row 0: the origins beyond the limit. UINT32_MAX: no memory. */
static uint32_t origin_of(struct times *times, int64_t thread, int64_t labels)
{
	const size_t row = tally_row(&times->origins, (int64_t[]){ thread, labels });

	if (row == TALLY_NONE)
		return UINT32_MAX;
	return row < ORIGINS_MAX ? (uint32_t)row : 0;
}

static bool add_point(void *context, const struct selected_sample *sample)
{
	struct times *times = context;
	const struct selected_series *series = sample->series;
	const char *type = selected_samples_type(times->samples, series->type);
	const int64_t ms = sample->time_ns / 1000000, hash = sample->run->hash;
	const struct stack_row *stack =
		hash_table_find(&times->stacks, key_of(hash, type, sample->wait, sample->stack));
	int64_t units;
	uint32_t origin;

	if (!stack)
		stack = hash_table_find(&times->stacks, key_of(hash, type, 0, REST_OF_STACKS));
	if (!stack)
		return true; /* a type that the page does not show */
	times->left_ns += sample->size + sample->weight * series->period_ns;
	units = times->left_ns / times->unit_ns;
	if (units <= 0)
		return true;
	times->left_ns -= units * times->unit_ns;
	origin = origin_of(times, series->thread, sample->labels ? sample->labels : sample->run->comment);
	if (origin == UINT32_MAX)
		return false;
	if (!times->last_ms) {
		times->last_ms = ms;
		printf(",\"times\":{\"from_ms\":%" PRId64 ",\"unit_ms\":%.6f,\"thinned\":%s,\"points\":\"",
		       ms, (double)times->unit_ns / 1e6, times->is_thinned ? "true" : "false");
	}
	put(ms > times->last_ms ? (uint64_t)(ms - times->last_ms) : 0);
	put(stack->row);
	put(origin);
	put((uint64_t)units);
	times->last_ms = ms > times->last_ms ? ms : times->last_ms;
	return true;
}

static int make_origins(sqlite3 *db, const struct tally *origins)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_exec(
		db,
		"DROP TABLE IF EXISTS temp.page_origins;"
		"CREATE TEMP TABLE page_origins (id INTEGER PRIMARY KEY, thread INTEGER, labels INTEGER)",
		NULL, NULL, NULL);

	if (!code)
		code = sqlite3_prepare_v2(db, "INSERT INTO temp.page_origins VALUES (?, ?, ?)", -1, &row,
		                          NULL);
	for (size_t i = 0; !code && i < origins->count && i < ORIGINS_MAX; i++) {
		const int64_t *words = tally_at(origins, i);

		sqlite3_bind_int64(row, 1, (int64_t)i);
		sqlite3_bind_int64(row, 2, words[0]);
		sqlite3_bind_int64(row, 3, words[1]);
		sqlite3_step(row);
		code = sqlite3_reset(row);
	}
	sqlite3_finalize(row);
	return code;
}

int page_times_print(sqlite3 *db)
{
	const int64_t count = database_number(db, "SELECT sum(samples) FROM temp.page_stacks", 0);
	const int64_t sum_ns = database_number(db, "SELECT sum(value) FROM temp.page_stacks", 0);
	struct times times = { .samples = selected_samples_create(db),
		               .stacks = HASH_TABLE_OF(struct stack_row, SIZE_MAX),
		               .origins = { .keys = 2, .width = 2 },
		               .is_thinned = count > POINTS_MAX,
		               .unit_ns = EXACT_NS };
	int code = times.samples ? read_stacks(db, &times) : SQLITE_NOMEM;

	if (times.is_thinned && sum_ns / POINTS_MAX > EXACT_NS)
		times.unit_ns = sum_ns / POINTS_MAX;
	/* Row 0. */
	if (!code && tally_row(&times.origins, (int64_t[]){ 0, 0 }) == TALLY_NONE)
		code = SQLITE_NOMEM;
	if (!code)
		code = selected_samples_each(times.samples, SELECTED_STACK | SELECTED_LABELS | SELECTED_WAIT,
		                             add_point, &times);
	printf(times.last_ms ? "\"}" : ",\"times\":null");
	if (!code)
		code = make_origins(db, &times.origins);
	selected_samples_free(times.samples);
	hash_table_free(&times.stacks);
	tally_free(&times.origins);
	return code ? complain("the times of the samples: %s",
	                       code == SQLITE_ABORT ? "out of memory" : sqlite3_errmsg(db))
	            : COMMAND_FINE;
}
