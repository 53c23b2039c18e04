/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/outside.h"

#include <string.h>

#include "settings/setting.h"
#include "wire/open_run.h"

bool outside_is_on;
static bool base;

SETTING_LIST(
	outside, .is_process_wide = true, .value = &outside_is_on, .base = &base, SETTING_ON_OFF(false),
	.name = "query_profiler_outside",
	.description =
		"Samples of the program's own code, too, while a query or a transaction of its thread is "
		"open: between rows, and between the statements of a transaction");

/* Relaxed, here and below: other threads end runs and transactions at any moment, and what is read is only
 * compared. */
static bool is_open(const struct thread *thread, const struct query_counts *counts,
                    const struct query_key *key)
{
	const struct open_run *open = counts ? counts->open : NULL;

	return open && (__atomic_load_n(&open->shown, __ATOMIC_RELAXED) & 1) != 0 &&
	       __atomic_load_n(&open->key.lo, __ATOMIC_RELAXED) == key->lo &&
	       __atomic_load_n(&open->key.hi, __ATOMIC_RELAXED) == key->hi &&
	       __atomic_load_n(&counts->slot, __ATOMIC_RELAXED) == thread;
}

static bool is_tag_open(const struct thread *thread, const struct query_tag *tag)
{
	return (tag->key.lo | tag->key.hi) != 0 && is_open(thread, tag->counts, &tag->key);
}

static void find_run(const struct thread *thread, struct outside_work *work)
{
	const struct query_tag *tag = &thread->queries[0];
	const struct outside_run *run = thread->outside.runs;

	if (is_tag_open(thread, tag)) {
		work->counts = tag->counts;
		work->key = tag->key;
		return;
	}
	for (int i = 0; i < OUTSIDE_RUNS && run[i].counts; i++) {
		if (!is_open(thread, run[i].counts, &run[i].key))
			continue;
		work->counts = run[i].counts;
		work->key = run[i].key;
		return;
	}
}

static void find_transaction(const struct thread *thread, struct outside_work *work)
{
	const struct open_transaction *const *list = thread->outside.transactions;

	for (int i = 0; i < OUTSIDE_TRANSACTIONS && list[i] && work->transaction == 0; i++)
		if (__atomic_load_n(&list[i]->slot, __ATOMIC_RELAXED) == thread && !list[i]->has_ended)
			work->transaction = __atomic_load_n(&list[i]->number, __ATOMIC_RELAXED);
}

bool outside_find(const struct thread *thread, struct outside_work *work)
{
	*work = (struct outside_work){ .counts = NULL };
	if (!__atomic_load_n(&outside_is_on, __ATOMIC_RELAXED) || thread->nesting != 0)
		return false;
	find_run(thread, work);
	find_transaction(thread, work);
	return work->counts || work->transaction != 0;
}

/* A handler in between finds one twice, or one whose key does not fit, which is not open. */
void outside_keep_run(struct thread *thread, const struct query_tag *tag)
{
	struct outside_run *runs = thread->outside.runs;
	int place = 0;

	if (!is_tag_open(thread, tag))
		return;
	while (place < OUTSIDE_RUNS - 1 && runs[place].counts && runs[place].counts != tag->counts)
		place++;
	memmove(&runs[1], &runs[0], (size_t)place * sizeof(runs[0]));
	HANDLER_BARRIER();
	runs[0].key = tag->key;
	runs[0].counts = tag->counts;
}

void outside_add_transaction(struct thread *thread, struct open_transaction *transaction)
{
	const struct open_transaction **list = thread->outside.transactions;
	int place = 0;

	while (place < OUTSIDE_TRANSACTIONS - 1 && list[place] && list[place] != transaction)
		place++;
	memmove(&list[1], &list[0], (size_t)place * sizeof(list[0]));
	list[0] = transaction;
	HANDLER_BARRIER();
	__atomic_store_n(&transaction->slot, thread, __ATOMIC_RELAXED);
}

static const struct outside_callers *callers; /* atomic; NULL: not set */

void outside_set_callers(const struct outside_callers *set)
{
	__atomic_store_n(&callers, set, __ATOMIC_RELEASE);
}

size_t outside_acquire_callers(const struct thread *thread, const char **bytes)
{
	const struct outside_callers *set = __atomic_load_n(&callers, __ATOMIC_ACQUIRE);

	return set && thread->outside.language != 0 ? set->acquire(&thread->outside, bytes) : 0;
}

void outside_release_callers(void)
{
	__atomic_load_n(&callers, __ATOMIC_ACQUIRE)->release();
}

void outside_forget(struct thread *thread)
{
	outside_forget_work(thread);
	thread->outside.language = 0;
}

void outside_forget_work(struct thread *thread)
{
	memset(thread->outside.runs, 0, sizeof(thread->outside.runs));
	memset(thread->outside.transactions, 0, sizeof(thread->outside.transactions));
	/* Its counts are pushed again with another key. */
	thread->queries[0].key = (struct query_key){ 0 };
}
