/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread that is in no query works for: see wire/outside.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

/* The setting; atomic. */
extern bool outside_is_on __attribute__((visibility("hidden")));

struct outside_work {
	struct query_counts *counts; /* of the open run that the thread called last; NULL: none is open */
	struct query_key key;        /* of the run */
	uint32_t transaction;        /* the number of the open transaction, 0: none */
};

/* False: of nothing that is open, as far as is known, or the setting is off. Then `work` is zero. On the
 * thread itself, which is in no query. Async-signal-safe. */
bool outside_find(const struct thread *thread, struct outside_work *work);

/* The run of the thread's newest tag loses its place to another run. */
void outside_keep_run(struct thread *thread, const struct query_tag *tag);

/* The calling thread works in the transaction. */
void outside_add_transaction(struct thread *thread, struct open_transaction *transaction);

static inline void outside_enter_transaction(struct thread *thread, struct open_transaction *transaction)
{
	if (__builtin_expect(transaction->slot != thread || thread->outside.transactions[0] != transaction,
	                     0))
		outside_add_transaction(thread, transaction);
}

/* Reads the program's own frames of the calling thread: see interpreter/call_stack.h. */
struct outside_callers {
	size_t (*acquire)(const struct outside *outside, const char **bytes);
	void (*release)(void);
};

/* The one that there is; from then on also a handler may call it. */
void outside_set_callers(const struct outside_callers *callers);

/* In the form of wire/call_frame.h. 0: not known, or another thread reads; else the caller has `*bytes` until
 * outside_release_callers(). On the thread itself. Async-signal-safe. */
size_t outside_acquire_callers(const struct thread *thread, const char **bytes);
void outside_release_callers(void);

/* The slot gets another thread. */
void outside_forget(struct thread *thread);

/* The slot becomes a forked child's, whose thread has the same frames. */
void outside_forget_work(struct thread *thread);
