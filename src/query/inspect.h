/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of queries, as other threads see them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "query/query.h"

/* Makes the run visible to query_next_shown(), and hides it again. Both are idempotent. The next
 * sample of a run that is_logged puts its text into the ring. Its texts must not change while it
 * is visible, and no thread waits for their readers, so hide the run before they are freed. Only
 * its fields rows and working, the counts and the clocks of its calls may change meanwhile. */
void query_show(struct query_run *run);

__attribute__((no_sanitize("thread"))) /* it knows no fences, nor what look() reads */
static inline void
query_hide(struct query_run *run)
{
	if ((run->version & 1) == 0)
		return;
	run->open->shown = run->version + 1;
	__atomic_store_n(&run->version, run->version + 1, __ATOMIC_RELAXED);
	/* Before the visible content is overwritten. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The first part of query_show(), which is as good for the runs that follow with the same text;
 * the next part; and whether the text, which must be there, begins as it did. */
void query_mark(struct query_run *run);
static inline void query_make_due(struct query_run *run)
{
	struct run_start *start = &run->counts.start;
	bool is_published = start->state == START_PUBLISHED || start->state == START_DUE_AGAIN;
	enum start_state due = is_published ? START_DUE_AGAIN : START_DUE;

	start->text = run->text;
	/* Release: a worker's handler that finds it due also reads the rest. */
	__atomic_store_n(&start->state, run->is_logged ? due : START_KEPT, __ATOMIC_RELEASE);
}

void query_write_open_id(struct query_run *run);

/* For other processes, which have the description of query_mark(). The call that began the run works for it.
 */
static inline void query_write_open(struct query_run *run)
{
	struct open_run *open = run->open;

	query_key_copy(&open->key, &run->key);
	open->start_ns = run->start_monotonic_ns;
	open->execution_ns = run->execution_ns;
	open->thread_id = run->counts.start.thread_id;
	open->has_id = run->query_id != NULL;
	if (__builtin_expect(open->has_id != 0, 0))
		query_write_open_id(run);
	/* Release: the process may be killed, or another one may read it, at any moment. */
	__atomic_store_n(&open->shown, run->version + 1, __ATOMIC_RELEASE);
}

/* The rest of query_begin(). */
static inline void query_show_again(struct query_run *run)
{
	struct run_start *start = &run->counts.start;
	uint64_t version = run->version + 1;

	start->text = run->text;
	/* Release: as in query_make_due(), query_write_open() and query_show(). */
	__atomic_store_n(&start->state, run->is_logged ? START_DUE : START_KEPT, __ATOMIC_RELEASE);
	__atomic_store_n(&run->open->shown, version, __ATOMIC_RELEASE);
	__atomic_store_n(&run->version, version, __ATOMIC_RELEASE);
}

/* The first bytes of a text, and after its end any. Reads a whole word, which may be more than the text but
 * is in its page. */
__attribute__((no_sanitize("address"))) static inline uint64_t query_first_word(const char *text)
{
	typedef uint64_t __attribute__((may_alias)) word;
	uint64_t first = 0;

	if (__builtin_expect(!((uintptr_t)text % sizeof(word)), 1))
		return *(const word *)text;
	memcpy(&first, text, strnlen(text, sizeof(first)));
	return first;
}

static inline bool query_is_marked(const struct query_run *run)
{
	return !((query_first_word(run->text) ^ run->mark) & run->mark_of);
}

/* Its statement's bytecode differs from the published one. */
void query_forget_bytecode(struct query_run *run);

/* Makes `to` the run that `from` was; hidden both. */
void query_hand_over(struct query_run *to, const struct query_run *from);

#define QUERY_NOT_PUBLISHED UINT64_MAX /* in publish_after_ns */

/* A run as it was at one moment. Texts but the library's are malloc'ed copies; NULL:
 * none, or the kernel does not permit it. */
struct query_view {
	struct query_key key, initial, parent;
	struct query_run *run;
	uint32_t session, thread_id, working;
	uint64_t start_realtime_ns, elapsed_ns;
	uint64_t entered_ns; /* its present call, CLOCK_MONOTONIC */
	uint64_t cpu_time_ns;
	uint64_t rows, samples[SAMPLE_QUERY_TYPES];
	char *text, *database, *query_id;
	const char *library;
	bool is_logged;
	uint64_t publish_after_ns;
	uint64_t outside_ns; /* of elapsed_ns: between its calls */
	uint64_t bytecode;   /* as in struct query_record */
};
void query_view_free(struct query_view *view);

/* Iterates over the visible runs: start with NULL, continue with the last result; NULL ends.
 * Lock-free, and never delays the threads that run them. */
struct query_run *query_next_shown(struct query_run *last, struct query_view *view);

/* A run that never ends has a row if a sample published it. This publishes the other ones, as far as the ring
 * has room, and how long each has been open. Only runs whose end would be logged by now. */
void query_publish_open(void);

/* The age of the youngest run that is open and will have to be published if it lasts; negative: none is. */
int64_t query_youngest_open_ns(void);

/* Whether there is one. Async-signal-safe. */
bool query_any_open(void);

/* This one, if it is shown and its run has this key. */
bool query_inspect(const struct query_run *run, struct query_key key, struct query_view *view);
