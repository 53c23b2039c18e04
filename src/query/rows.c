/* SPDX-License-Identifier: Apache-2.0 */
#include "query/rows.h"

#include <string.h>

#include "base/fast_clock.h"

/* A part that is disturbed is long if it takes so much more than twice the usual; one that is not disturbed,
 * if it is that much more. */
#define LONG_NS 1000
#define LONG_WHOLE_NS 50000

#define ERROR_MOST 0.01
#define DISTURBED_MOST 4 /* rows of which one is */
#define LEARNED_PART 4   /* rows of which one is learned from, while all are measured */

/* --- what a reading takes --------------------------------------------------------------------- */

#define TRIES 8
#define READINGS 16

/* The fastest of several tries: ns of a reading that is followed by another one. */
static double measure_reading(void)
{
	struct fast_clock clock = { 0 };
	double least = 0;

	fast_clock_ns(&clock);
	for (int i = 0; i < TRIES; i++) {
		uint64_t start = fast_clock_ns(&clock), took;
		for (int reading = 1; reading < READINGS; reading++)
			fast_clock_ns(&clock);
		took = fast_clock_ns(&clock) - start;
		if (i == 0 || (double)took < least)
			least = (double)took;
	}
	return least / READINGS;
}

static double reading_ns(void)
{
	/* Atomic; of the kernel's clock, and of the processor's counter. */
	static double known[2];
	double *ns = &known[__atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED) != 0], now;

	__atomic_load(ns, &now, __ATOMIC_RELAXED);
	if (now == 0) {
		now = measure_reading();
		__atomic_store(ns, &now, __ATOMIC_RELAXED);
	}
	return now;
}

/* --- measured rows ------------------------------------------------------------------------------- */

static double mean(const struct row_times *rows, enum rows_part part)
{
	return rows->sum[part] / rows->count;
}

static double variance(const struct row_times *rows, enum rows_part part)
{
	double square = rows->squares[part] / rows->count - mean(rows, part) * mean(rows, part);

	return square > 0 ? square : 0;
}

/* As it would have been without the readings. */
static void add_measured(struct row_times *rows, double program_ns, double inside_ns)
{
	const double parts[ROWS_PARTS] = {
		[ROWS_PROGRAM] = program_ns - rows->reading_ns, [ROWS_INSIDE] = inside_ns - rows->reading_ns
	};

	rows->count++;
	for (int part = 0; part < ROWS_PARTS; part++) {
		rows->sum[part] += parts[part];
		rows->squares[part] += parts[part] * parts[part];
	}
}

/* Which part is estimated, and the largest N that keeps the error small, as a number of halves. The run is
 * twice as long when it is chosen again. So the error is at most half of the allowed one at that moment, and
 * never exceeds it in between. */
static uint8_t choose_halves(struct row_times *rows, uint64_t count, double duration_ns)
{
	double program = variance(rows, ROWS_PROGRAM), inside = variance(rows, ROWS_INSIDE);
	double room = ERROR_MOST * duration_ns,
	       of_all = (double)count * (program < inside ? program : inside);
	uint8_t halves = 0;

	rows->has_program = program < inside;
	room = room * room - rows->square;
	while (2u << halves <= ROWS_MOST && (double)((2u << halves) - 1) * of_all <= room)
		halves++;
	return 1u << halves < ROWS_LEAST ? 0 : halves;
}

/* All rows are measured, and learned from again when the number of rows has doubled. */
static void measure_all(struct row_times *rows, uint64_t count)
{
	rows->is_on = false;
	rows->from = 2 * count;
	rows->planned_at = rows->from + rows->from / LEARNED_PART;
}

bool rows_learn(struct row_times *rows, uint64_t count, double duration_ns, const double parts_ns[ROWS_PARTS])
{
	if (count == ROWS_LEARNED_FROM) {
		rows->planned_at = 2 * ROWS_EXACT;
		rows->count = 0;
		rows->reading_ns = reading_ns();
		memset(rows->sum, 0, sizeof(rows->sum));
		memset(rows->squares, 0, sizeof(rows->squares));
	}
	if (parts_ns)
		add_measured(rows, parts_ns[ROWS_PROGRAM], parts_ns[ROWS_INSIDE]);
	if (count + 1 < rows->planned_at)
		return false;
	if (rows->count >= ROWS_LEARNED_LEAST && choose_halves(rows, count + 1, duration_ns))
		return true;
	measure_all(rows, count + 1);
	return false;
}

static void set_usual(struct row_times *rows)
{
	for (enum rows_part part = ROWS_PROGRAM; part < ROWS_PARTS; part++)
		rows->usual[part] = mean(rows, part);
}

void rows_start(struct row_times *rows, uint64_t random, uint64_t execution_ns, uint64_t cpu_ns)
{
	rows->is_on = rows->is_measured = true;
	rows->halves = 0;
	rows->left = rows->left_then = rows->rest = 0;
	rows->random = random | 1;
	set_usual(rows);
	rows->tried_from = rows->planned_at;
	rows->planned_at += ROWS_TRIED;
	rows->disturbed = 0;
	rows->exact_ns = execution_ns;
	rows->exact_cpu_ns = cpu_ns;
	rows->inside_ns = rows->off_ns = rows->program_ns = 0;
}

/* Assumes that each row is like those measured before it. */
static void add_rows(struct row_times *rows, uint32_t count)
{
	if (rows->has_program)
		rows->inside_ns -= count * rows->usual[ROWS_PROGRAM];
	else
		rows->inside_ns += count * rows->usual[ROWS_INSIDE];
}

/* The total deviation of a measured row, which represents N rows, of which the others have no readings. */
static void use_measured(struct row_times *rows, double program_ns, double inside_ns)
{
	enum rows_part part = rows->has_program ? ROWS_PROGRAM : ROWS_INSIDE;
	double n = (double)(1u << rows->halves), ns = rows->has_program ? program_ns : inside_ns;
	double off = ns - rows->reading_ns - rows->usual[part], of_n = n * off + rows->reading_ns;

	rows->inside_ns += rows->has_program ? -of_n : of_n;
	rows->square += n * (n - 1) * off * off;
	add_measured(rows, program_ns, inside_ns);
}

/* --- what has passed -------------------------------------------------------------------------- */

/* Belongs to the part, and represents nothing else. */
static void add_once(struct row_times *rows, enum rows_part part, double ns)
{
	if (rows->has_program && part == ROWS_PROGRAM)
		rows->inside_ns -= ns;
	else if (!rows->has_program && part == ROWS_INSIDE)
		rows->inside_ns += ns;
}

void rows_pass(struct row_times *rows, const struct rows_passed *passed)
{
	const bool is_measured = rows->is_measured, is_end = passed->part == ROWS_INSIDE;
	const double row_ns = rows->usual[ROWS_PROGRAM] + rows->usual[ROWS_INSIDE];
	/* Rows that have ended since the newest reading. */
	const uint32_t ended = is_measured ? is_end : rows->left_then - (rows->left -= is_end);
	double usual_ns = is_measured ? rows->usual[passed->part] : (ended + !is_end) * row_ns;
	double ns = passed->ns, beyond = ns - usual_ns;
	bool is_long = ns > 2 * usual_ns + (passed->is_whole ? LONG_WHOLE_NS : LONG_NS);

	if (rows->has_program)
		rows->inside_ns += ns;
	rows->disturbed += !passed->is_whole;
	add_rows(rows, ended);
	rows->left_then = rows->left;
	if (!is_measured) /* this one is in no other row of the part */
		add_once(rows, passed->part, rows->reading_ns);
	if (is_long && (!passed->is_whole || passed->is_likely)) {
		add_once(rows, passed->part, beyond);
		ns = usual_ns;
	}
	if (is_long && passed->is_whole && !is_measured)
		rows->square += beyond * beyond;
	if (is_measured && !is_end)
		rows->program_ns = ns;
	else if (is_measured)
		use_measured(rows, rows->program_ns, ns);
}

static void plan(struct row_times *rows, uint64_t count, double duration_ns)
{
	if (rows->disturbed * DISTURBED_MOST > count - rows->tried_from) {
		rows->is_on = false;
		rows->from = ROWS_ALL;
		return;
	}
	rows->disturbed = 0;
	rows->tried_from = count;
	rows->planned_at = 2 * count;
	rows->halves = choose_halves(rows, count, duration_ns);
	rows->rest = 0; /* as if these rows had ended: too few to matter */
	set_usual(rows);
	if (!rows->halves)
		measure_all(rows, count);
}

/* Each row is chosen with a probability of 1/N. */
static void choose_next(struct row_times *rows)
{
	uint32_t n = 1u << rows->halves, before;
	uint64_t x = rows->random;

	/* Xorshift: three steps. */
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	rows->random = x;
	before = x >> 32 & (n - 1);
	rows->left = rows->left_then = rows->rest + before;
	rows->rest = n - 1 - before;
}

void rows_next(struct row_times *rows, uint64_t count, double duration_ns)
{
	if (rows->is_measured && count >= rows->planned_at)
		plan(rows, count, duration_ns);
	if (rows->is_measured)
		choose_next(rows);
	rows->is_measured = !rows->left;
}

/* --- sums ------------------------------------------------------------------------------------- */

static uint64_t at_least_none(double ns)
{
	return ns > 0 ? (uint64_t)(int64_t)ns : 0;
}

uint64_t rows_execution_ns(const struct row_times *rows)
{
	return rows->exact_ns + at_least_none(rows->inside_ns);
}

uint64_t rows_cpu_ns(const struct row_times *rows)
{
	return rows->exact_cpu_ns + at_least_none(rows->inside_ns - rows->off_ns);
}

uint64_t rows_error_ns(const struct row_times *rows)
{
	return at_least_none(__builtin_sqrt(rows->square));
}
