/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run begins: query_start(), and the same for the next run of a statement, which is part of the
 * hot path and of its caller.
 *
 * The key is a UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 bits of their fraction, 32 bits
 * of the session's number and 30 random bits. Keys of one thread strictly increase; a counter ensures
 * that if the clock does not advance. Keys of different threads differ by chance. The key contains
 * the session, so that everything with a key, such as a sample, shows which session it belongs to.
 * The random bits are the state of the thread's random numbers, which takes a step of the same odd
 * size each time: they are as evenly distributed as random ones, and no two runs in a row have the same.
 */
#pragma once

#include "base/fast_clock.h"
#include "base/hot_path.h"
#include "handler/labels.h"
#include "query/account.h"
#include "query/cpu_clock.h"
#include "query/query.h"
#include "query/statement_stats.h"
#include "timers/random.h"
#include "wire/query_record.h"

#define QUERY_NS_PER_MS 1000000ull
#define QUERY_FRACTION_BITS 12
/* Fractions of a millisecond in a nanosecond, times 2^32. */
#define QUERY_FRACTION_SCALE ((1ull << (32 + QUERY_FRACTION_BITS)) / QUERY_NS_PER_MS)

#define QUERY_UUID_VERSION 7ull
#define QUERY_UUID_VARIANT 2ull
/* The bit of the version that a fraction sets if it does not fit. */
#define QUERY_KEY_CARRIED (1ull << (QUERY_FRACTION_BITS + 3))

/* Another millisecond begins: the thread's keys have its number. Returns the time since its beginning. */
COLD_PATH uint64_t query_begin_ms(struct thread *thread, uint64_t now_ns);

/* The key after the thread's newest one; the fraction of the millisecond is used up. */
COLD_PATH uint64_t query_carry_key(struct thread *thread);

HOT_INLINE struct query_key query_make_key(struct thread *thread, uint32_t session, uint64_t now_ns)
{
	uint64_t in_ms = now_ns - thread->key_ms_ns, hi;

	if (__builtin_expect(in_ms >= QUERY_NS_PER_MS, 0))
		in_ms = query_begin_ms(thread, now_ns);
	hi = thread->key_ms | in_ms * QUERY_FRACTION_SCALE >> 32;
	if (hi <= thread->newest_key)
		hi = thread->newest_key + 1;
	/* Out of the fraction into the version. */
	if (__builtin_expect((hi & QUERY_KEY_CARRIED) != 0, 0))
		hi = query_carry_key(thread);
	thread->newest_key = hi;
	return (struct query_key){
		.hi = hi,
		.lo = QUERY_UUID_VARIANT << 62 | (uint64_t)session << QUERY_SESSION_SHIFT |
		      random_step(thread) >> (64 - QUERY_SESSION_SHIFT),
	};
}

/* The account or the CPU clock is too old: reads it, and the time after that. */
COLD_PATH uint64_t query_renew_clocks(struct thread *thread, uint64_t now);

/* The time, with an account and a CPU clock that are good for a while. */
HOT_INLINE uint64_t query_read_clocks(struct thread *thread)
{
	uint64_t now = fast_clock_ns(&thread->clock);

	if (__builtin_expect(
		    now - thread->account.at_ns >= ACCOUNT_VALID_NS || !cpu_clock_is_valid(thread, now), 0))
		return query_renew_clocks(thread, now);
	return now;
}

/* All counts are 0 from now on. */
COLD_PATH void query_clear_counts(struct query_counts *counts);

/* For other processes: who began the run, and when; in a place that is hidden. */
HOT_INLINE void query_write_open_start(struct query_run *run, struct query_key key, uint64_t now)
{
	struct open_run *open = run->open;

	query_key_set(&open->key, key.hi, key.lo);
	open->start_ns = now;
	open->execution_ns = 0;
	open->thread_id = run->counts.start.thread_id;
	open->has_id = 0;
}

/* query_start(), of which `is_again` leaves out what the hidden, described place of the run has from the run
 * before: that had the same text, the same statement and the same settings. The caller sets the labels
 * before, and query_show_again() follows. */
HOT_INLINE void query_begin(struct query_run *run, struct thread *thread, bool is_again)
{
	struct run_start *start = &run->counts.start;
	struct query_key key;
	uint64_t now;

	if (run->is_logged)
		statement_stats_announce_new();
	if (__builtin_expect(run->counts.is_counted, 0))
		query_clear_counts(&run->counts);
	if (!is_again) {
		if (__builtin_expect(!run->open, 0))
			query_find_frame(run);
		start->state = START_KEPT;
		start->text = NULL;
		run->counts.labels = 0;
	}
	start->parent = (struct query_key){ 0 };
	run->counts.has_threads = run->counts.has_waits = false;
	run->execution_ns = run->cpu_ns = run->cpu_estimated_ns = run->prepare_ns = 0;
	run->labels = labels_entered;
	run->threads = 0;
	run->row_times.is_on = false;
	run->row_times.square = 0;
	run->row_times.from = ROWS_LEARNED_FROM;
	start->thread_id = thread->id;
	now = query_read_clocks(thread);
	run->account = thread->account;
	run->start_monotonic_ns = run->left_ns = now;
	start->realtime_ns = now + thread->realtime_offset_ns;
	key = query_make_key(thread, run->session, start->realtime_ns);
	query_key_set(&run->key, key.hi, key.lo);
	query_key_set(&start->initial, key.hi, key.lo);
	if (is_again)
		query_write_open_start(run, key, now);
	query_enter_at(run, thread, now);
	span_run_begin(&run->span, now, run->is_logged);
}
