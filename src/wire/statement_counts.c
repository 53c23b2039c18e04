/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/statement_counts.h"

#include <string.h>

#include "base/bounded_wait.h"
#include "base/hot_path.h"

static void fill_mosts(const struct statement_run *run, uint64_t most[STATEMENT_MOSTS])
{
	uint64_t ns = run->sums[STATEMENT_EXECUTION_NS];
	bool has_run = run->sums[STATEMENT_CALLS] != 0;

	most[MOST_EXECUTION_NS] = has_run ? ns : 0;
	most[LEAST_EXECUTION_NS] = has_run ? ~ns : 0;
	most[MOST_SEEN_NS] = run->seen_ns;
	most[LEAST_SEEN_NS] = ~run->seen_ns;
}

static double square_of(const struct statement_run *run, enum statement_square which)
{
	/* Signed, so that the conversion is one instruction. */
	double ns =
		(double)(int64_t)run->sums[which == SQUARE_CPU ? STATEMENT_CPU_NS : STATEMENT_EXECUTION_NS];

	return ns * ns;
}

/* --- adding ----------------------------------------------------------------------------- */

/* Another thread may be reading: statement_counter_read(). */
__attribute__((no_sanitize("thread"))) static void add(struct statement_counts *restrict to,
                                                       const struct statement_run *restrict run)
{
	uint64_t most[STATEMENT_MOSTS];

	fill_mosts(run, most);
	for (int i = 0; i < STATEMENT_MOSTS; i++)
		if (__builtin_expect(most[i] > to->most[i], i == MOST_SEEN_NS))
			to->most[i] = most[i];
#pragma GCC unroll 8
	for (int i = 0; i < STATEMENT_PLAIN_SUMS; i++)
		to->sums[i] += run->sums[i];
	for (int i = STATEMENT_PLAIN_SUMS; i < STATEMENT_SUMS && !run->is_plain; i++)
		to->sums[i] += run->sums[i];
	if (!run->sums[STATEMENT_CALLS])
		return;
	to->runs[statement_bucket_of(run->sums[STATEMENT_EXECUTION_NS])]++;
	for (int i = 0; i < STATEMENT_SQUARES; i++)
		to->squares[i] += square_of(run, i);
}

static void raise_atomically(uint64_t *most, uint64_t value)
{
	uint64_t now = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (now < value &&
	       !__atomic_compare_exchange_n(most, &now, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void add_square_atomically(double *to, double square)
{
	double now, sum;

	__atomic_load(to, &now, __ATOMIC_RELAXED);
	do
		sum = now + square;
	while (!__atomic_compare_exchange(to, &now, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Release: a thread that reads a sum also sees the statement to which it belongs. */
static void add_atomically(struct statement_counts *to, const struct statement_run *run)
{
	uint64_t most[STATEMENT_MOSTS];

	fill_mosts(run, most);
	for (int i = 0; i < (run->is_plain ? STATEMENT_PLAIN_SUMS : STATEMENT_SUMS); i++)
		if (run->sums[i])
			__atomic_fetch_add(&to->sums[i], run->sums[i], __ATOMIC_RELEASE);
	for (int i = 0; i < STATEMENT_MOSTS; i++)
		raise_atomically(&to->most[i], most[i]);
	if (!run->sums[STATEMENT_CALLS])
		return;
	__atomic_fetch_add(&to->runs[statement_bucket_of(run->sums[STATEMENT_EXECUTION_NS])], 1,
	                   __ATOMIC_RELAXED);
	for (int i = 0; i < STATEMENT_SQUARES; i++)
		add_square_atomically(&to->squares[i], square_of(run, i));
}

/* The guest is counted before it looks at the generation, and statement_counter_renew()
 * changes the generation before it looks at the guests: sequentially consistent, so that
 * one of the two sees the other. */
static bool add_as_guest(struct statement_counter *counter, uint32_t generation,
                         const struct statement_run *run)
{
	bool is_current;

	__atomic_fetch_add(&counter->guests, 1, __ATOMIC_SEQ_CST);
	is_current = __atomic_load_n(&counter->generation, __ATOMIC_SEQ_CST) == generation;
	if (is_current)
		add_atomically(&counter->shared, run);
	/* Release: after the additions. */
	__atomic_fetch_sub(&counter->guests, 1, __ATOMIC_RELEASE);
	return is_current;
}

bool statement_counter_add(struct statement_counter *counter, uint32_t generation, uint32_t thread,
                           const struct statement_run *run)
{
	bool is_current;

	if (__builtin_expect(thread && biased_lock_acquire(&counter->biased, thread), 1)) {
		is_current = __atomic_load_n(&counter->generation, __ATOMIC_RELAXED) == generation;
		if (is_current)
			add(&counter->own, run);
		biased_lock_release(&counter->biased);
		return is_current;
	}
	/* A thread without an id counts as another one, too. */
	biased_lock_revoke(&counter->biased);
	/* Acquire and release: as any lock. */
	if (__atomic_exchange_n(&counter->lock, 1, __ATOMIC_ACQUIRE))
		return add_as_guest(counter, generation, run);
	is_current = __atomic_load_n(&counter->generation, __ATOMIC_RELAXED) == generation;
	if (is_current)
		add(&counter->own, run);
	__atomic_store_n(&counter->lock, 0, __ATOMIC_RELEASE);
	return is_current;
}

/* --- reading ------------------------------------------------------------------------------ */

/* A thread may have been taken away while it was at the counter (a signal handler of the host's that jumps),
 * and will never leave it. */
BOUNDED_WAIT_DEFINE(for_counter, "a reader of statements: a thread that counts a run", BOUND_MS(250),
                    "nothing, so it looks every 50 us; that thread takes nanoseconds");
#define NAP_NS 50000

/* False: no thread can release it. Its counts do not change then. */
static bool lock(struct statement_counter *counter)
{
	struct bounded_wait wait = bounded_wait_begin(&for_counter);

	while (__atomic_exchange_n(&counter->lock, 1, __ATOMIC_ACQUIRE))
		if (!bounded_wait_nap(&wait, NAP_NS))
			return false;
	return true;
}

/* With the lock held and a new generation: threads with the old one leave. */
static bool drain_guests(const struct statement_counter *counter)
{
	struct bounded_wait wait = bounded_wait_begin(&for_counter);

	while (__atomic_load_n(&counter->guests, __ATOMIC_SEQ_CST))
		if (!bounded_wait_nap(&wait, NAP_NS))
			return false;
	return true;
}

static void unlock(struct statement_counter *counter)
{
	__atomic_store_n(&counter->lock, 0, __ATOMIC_RELEASE);
}

static void load_shared(const struct statement_counter *counter, struct statement_counts *counts)
{
	const struct statement_counts *from = &counter->shared;

	for (int i = 0; i < STATEMENT_SUMS; i++)
		counts->sums[i] = __atomic_load_n(&from->sums[i], __ATOMIC_ACQUIRE);
	for (int i = 0; i < STATEMENT_BUCKETS; i++)
		counts->runs[i] = __atomic_load_n(&from->runs[i], __ATOMIC_RELAXED);
	for (int i = 0; i < STATEMENT_MOSTS; i++)
		counts->most[i] = __atomic_load_n(&from->most[i], __ATOMIC_RELAXED);
	for (int i = 0; i < STATEMENT_SQUARES; i++)
		__atomic_load(&from->squares[i], &counts->squares[i], __ATOMIC_RELAXED);
}

/* The only thread's sums are whole words that grow: each is as good as it was at some moment. */
__attribute__((no_sanitize("thread"))) void statement_counter_read(struct statement_counter *counter,
                                                                   struct statement_counts *counts)
{
	bool is_locked;

	load_shared(counter, counts);
	is_locked = biased_lock_is_revoked(&counter->biased) && lock(counter);
	statement_counts_add(counts, &counter->own);
	if (is_locked)
		unlock(counter);
}

bool statement_counter_renew(struct statement_counter *counter, struct statement_counts *counts)
{
	uint32_t generation;

	biased_lock_revoke(&counter->biased);
	if (!lock(counter))
		return false;
	generation = counter->generation;
	__atomic_store_n(&counter->generation, generation + 1, __ATOMIC_SEQ_CST);
	if (!drain_guests(counter)) {
		/* Threads that came meanwhile have counted elsewhere. */
		__atomic_store_n(&counter->generation, generation, __ATOMIC_RELAXED);
		unlock(counter);
		return false;
	}
	*counts = counter->shared;
	statement_counts_add(counts, &counter->own);
	counter->own = counter->shared = (struct statement_counts){ .sums = { 0 } };
	unlock(counter);
	return true;
}

void statement_counter_merge(struct statement_counter *counter, const struct statement_counts *counts)
{
	struct statement_counts *to = &counter->shared;

	for (int i = 0; i < STATEMENT_SUMS; i++)
		__atomic_fetch_add(&to->sums[i], counts->sums[i], __ATOMIC_RELEASE);
	for (int i = 0; i < STATEMENT_BUCKETS; i++)
		__atomic_fetch_add(&to->runs[i], counts->runs[i], __ATOMIC_RELAXED);
	for (int i = 0; i < STATEMENT_MOSTS; i++)
		raise_atomically(&to->most[i], counts->most[i]);
	for (int i = 0; i < STATEMENT_SQUARES; i++)
		add_square_atomically(&to->squares[i], counts->squares[i]);
}

void statement_counts_add(struct statement_counts *to, const struct statement_counts *from)
{
	for (int i = 0; i < STATEMENT_SUMS; i++)
		to->sums[i] += from->sums[i];
	for (int i = 0; i < STATEMENT_BUCKETS; i++)
		to->runs[i] += from->runs[i];
	for (int i = 0; i < STATEMENT_MOSTS; i++)
		to->most[i] = from->most[i] > to->most[i] ? from->most[i] : to->most[i];
	for (int i = 0; i < STATEMENT_SQUARES; i++)
		to->squares[i] += from->squares[i];
}

bool statement_counts_are_same(const struct statement_counts *a, const struct statement_counts *b)
{
	bool is_same =
		!memcmp(a->sums, b->sums, sizeof(a->sums)) && !memcmp(a->runs, b->runs, sizeof(a->runs));

	for (int i = 0; i < STATEMENT_SQUARES; i++)
		is_same = is_same && a->squares[i] == b->squares[i];
	return is_same;
}

void statement_counts_subtract(struct statement_counts *counts, const struct statement_counts *before)
{
	for (int i = 0; i < STATEMENT_SUMS; i++)
		counts->sums[i] -= before->sums[i];
	for (int i = 0; i < STATEMENT_BUCKETS; i++)
		counts->runs[i] -= before->runs[i];
	for (int i = 0; i < STATEMENT_SQUARES; i++)
		counts->squares[i] -= before->squares[i];
}
