/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a run with many rows, most of which are not measured.
 *
 * Two clock readings per row are half the cost of following a scan. So only the first 2 * ROWS_EXACT
 * rows of a run are all measured. After that, the times between any two readings are still exact,
 * however many rows were in between; only the split between SQLite and the program is estimated. Of
 * each N rows in a row a random one is measured, both the program's part before it and SQLite's part,
 * and represents them. The part that varies less, usually the program's, is estimated, and the other
 * one is the rest. So the sum is unbiased for any distribution of rows. N is a power of two, at most
 * ROWS_MOST. It is chosen again each time that the number of rows has doubled, such that the standard
 * error stays below 1 % of the run's time; the error is stated as if the measured rows were
 * independent, so it is rather too large. A measured row among others costs several times as much as
 * one of a run of which all are measured. So below ROWS_LEAST all rows are measured, exactly, until the
 * number of rows has doubled again.
 *
 * Long events must neither be missed nor represent others, such as a sleep between two rows. A thread
 * that sleeps, or has a signal, loses its flag (base/switch_flag.h). Then the call that begins or
 * ends next reads the clock, and the time in excess of a usual row belongs to the part that has just
 * ended. The same happens if other code of queryprof has read the clock: a wait, a run of another
 * statement, a span. If the flag is still set and a reading finds a long time nevertheless, a part
 * was slow without interruption. It is unknown which one, so that time increases the error.
 *
 * If no flag is ever set, all rows are measured.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/switch_flag.h"

#define ROWS_EXACT 64
#define ROWS_LEARNED_FROM 32 /* the first rows of a run are slow: caches are cold */
#define ROWS_LEARNED_LEAST 16
#define ROWS_LEAST 8 /* smaller N would save nothing */
#define ROWS_MOST 64
#define ROWS_TRIED 64 /* with N = 1, to see whether other statements run between the rows */

enum rows_part { ROWS_PROGRAM, ROWS_INSIDE, ROWS_PARTS };

/* All rows are measured. */
#define ROWS_ALL UINT64_MAX

struct row_times {
	uint64_t from;      /* the number of rows from which on query_leave_row() has more to do; or these */
	double square;      /* of the standard error; 0 when the run begins */
	bool is_on;         /* rows may pass unmeasured */
	bool is_measured;   /* the present row represents others; `left` is 0 */
	bool has_program;   /* the program's part is estimated, and SQLite's is the rest */
	uint8_t halves;     /* N is 2 to the power of this */
	uint32_t left;      /* rows up to the next measured one, with the present row */
	uint32_t left_then; /* at the newest reading */
	uint32_t rest;      /* of the N rows of the newest measured one, those after it */
	uint64_t random;
	/* From here on they are set when the learning begins. */
	uint64_t planned_at;             /* the number of rows at which N is chosen (again) */
	uint64_t tried_from;             /* the number of rows at which it was chosen, */
	uint64_t disturbed;              /* readings since then that had to be made */
	uint64_t exact_ns, exact_cpu_ns; /* of the rows that were all measured */
	double inside_ns, off_ns;        /* of the others: SQLite's part, and its part that was not CPU
	                                  * time */
	double program_ns;               /* of the measured row: the program's part */
	double reading_ns;               /* what a reading adds to each part of a measured row */
	double usual[ROWS_PARTS];        /* what a row is assumed to take; chosen with N */
	/* Of measured rows. */
	double count, sum[ROWS_PARTS], squares[ROWS_PARTS];
};

/* At the end of a row: whether neither it nor the next one is measured, which needs no reading. */
static inline bool rows_may_pass(const struct row_times *rows)
{
	return rows->left > 1;
}

/* The time since the newest reading, up to a reading at the beginning or end of a call. */
struct rows_passed {
	double ns;
	enum rows_part part; /* that has just ended */
	bool is_whole;       /* the flag was there, and nobody else has read the clock */
	bool is_likely;      /* if it is long, that is most likely this part */
};

/* Row number `count` of the run (from ROWS_LEARNED_FROM on), measured as all are: its parts, or NULL if it
 * was disturbed, because such a row will be measured anyway, and says nothing of the others. `duration_ns`:
 * the run's until now. Returns whether rows may pass unmeasured from the next one on: then call rows_start().
 */
bool rows_learn(struct row_times *rows, uint64_t count, double duration_ns,
                const double parts_ns[ROWS_PARTS]);

/* `random` chooses which rows are measured. The times are the sums of the rows until now. */
void rows_start(struct row_times *rows, uint64_t random, uint64_t execution_ns, uint64_t cpu_ns);

/* A reading was made. At the end of a call rows_next() must follow. */
void rows_pass(struct row_times *rows, const struct rows_passed *passed);

/* After `count` rows in `duration_ns`: chooses the next row that is measured, and N if it is time. It is off
 * if N would be small, and for the rest of the run if other statements run between the rows, where estimating
 * saves nothing. */
void rows_next(struct row_times *rows, uint64_t count, double duration_ns);

/* SQLite's part and what of it was CPU time, of all rows so far; and the standard error of both. */
uint64_t rows_execution_ns(const struct row_times *rows);
uint64_t rows_cpu_ns(const struct row_times *rows);
uint64_t rows_error_ns(const struct row_times *rows);
