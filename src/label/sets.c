/* SPDX-License-Identifier: Apache-2.0 */
#include "label/sets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "collect/state.h"
#include "handler/labels.h"
#include "handler/ring.h"
#include "queryprof.h"
#include "wire/label_record.h"
#include "wire/record.h"

extern char label_trampolines[], label_trampolines_end[];

#define BUCKETS 4096u /* a power of two */

LOCK_DEFINE(lock, LOCK_LABELS, .in_child = label_sets_publish); /* a child has a ring of its own */
static struct qp_label_set *buckets[BUCKETS];
static uint64_t counters[LABEL_COUNTERS];

/* A queue of the free trampolines. The one that has been free longest is reused first, which helps
 * other programs that join stacks by time. Number i + 1 starts at position i. */
static uint16_t unused[LABEL_TRAMPOLINES];
static uint32_t taken, given; /* ever */

static void count(enum label_counter which, int64_t by)
{
	__atomic_fetch_add(&counters[which], (uint64_t)by, __ATOMIC_RELAXED);
}

uint64_t label_counter(enum label_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}

/* --- trampolines, under the lock ---------------------------------------------------------- */

static void begin_trampolines(void)
{
	if (labels_code)
		return;
	for (uint32_t i = 0; i < LABEL_TRAMPOLINES; i++)
		unused[i] = (uint16_t)(i + 1);
	given = LABEL_TRAMPOLINES;
	/* Release: in this order, for handlers on other threads. */
	__atomic_store_n(&labels_code, (uintptr_t)label_trampolines, __ATOMIC_RELEASE);
	__atomic_store_n(&labels_code_bytes, (uintptr_t)(label_trampolines_end - label_trampolines),
	                 __ATOMIC_RELEASE);
}

static uint32_t acquire_trampoline(void)
{
	if (taken == given) {
		count(LABEL_SETS_WITHOUT, 1);
		return 0;
	}
	return unused[taken++ % LABEL_TRAMPOLINES];
}

static void give_trampoline(uint32_t trampoline)
{
	if (trampoline)
		unused[given++ % LABEL_TRAMPOLINES] = (uint16_t)trampoline;
}

/* --- the table, under the lock --------------------------------------------------------- */

static struct qp_label_set **slot_of(uint64_t number)
{
	struct qp_label_set **at = &buckets[number % BUCKETS];

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

static void publish(const struct qp_label_set *set, uint64_t until_ns)
{
	struct ring *ring = sampler_ring();
	size_t size = until_ns ? 0 : strlen(set->text);
	struct label_record *record = ring ? ring_reserve(ring, sizeof(*record) + size) : NULL;

	if (!record)
		return;
	*record = (struct label_record){ .number = set->number,
		                         .from_ns = set->from_ns,
		                         .until_ns = until_ns,
		                         .address = (uintptr_t)set->run,
		                         .trampoline = set->trampoline,
		                         .size = (uint32_t)size };
	memcpy(record->text, set->text, size);
	ring_commit(ring, record, RECORD_LABELS);
}

static struct qp_label_set *make(const char *text, size_t size, uint64_t number)
{
	struct qp_label_set *set = calloc(1, sizeof(*set) + size + 1);

	if (!set)
		return NULL;
	memcpy(set->text, text, size);
	set->number = number;
	set->from_ns = clock_ns(CLOCK_REALTIME);
	count(LABEL_SETS, 1);
	return set;
}

static void set_trampoline(struct qp_label_set *set)
{
	begin_trampolines();
	set->trampoline = acquire_trampoline();
	set->run = (__typeof__(set->run))(uintptr_t)(label_trampolines +
	                                             (size_t)set->trampoline * LABEL_TRAMPOLINE_BYTES);
}

struct qp_label_set *label_set_of(struct label_pairs *pairs, bool runs)
{
	char *text = label_pairs_text(pairs);
	size_t size = text ? strlen(text) : 0;
	uint64_t number = size ? label_set_number(text, size) : 0;
	struct qp_label_set **at, *set = NULL;
	bool is_new;

	if (size) {
		lock_acquire(&lock);
		at = slot_of(number);
		is_new = !*at;
		if (is_new)
			*at = make(text, size, number);
		set = *at;
		if (set && runs && !set->run) {
			set_trampoline(set);
			is_new = true;
		}
		if (set && is_new)
			publish(set, 0);
		if (set)
			set->count++;
		lock_release(&lock);
	}
	free(text);
	return set;
}

void label_set_release(struct qp_label_set *set)
{
	uint64_t now;

	if (!set)
		return;
	lock_acquire(&lock);
	if (--set->count == 0) {
		now = clock_ns(CLOCK_REALTIME);
		*slot_of(set->number) = set->next;
		give_trampoline(set->trampoline);
		publish(set, now > set->from_ns ? now : set->from_ns);
		count(LABEL_SETS, -1);
		free(set);
	}
	lock_release(&lock);
}

char *label_set_text(uint64_t number)
{
	struct qp_label_set *set;
	char *text;

	lock_acquire(&lock);
	set = *slot_of(number);
	text = set ? strdup(set->text) : NULL;
	lock_release(&lock);
	return text;
}

void label_sets_publish(void)
{
	lock_acquire(&lock);
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (const struct qp_label_set *set = buckets[i]; set; set = set->next)
			publish(set, 0);
	lock_release(&lock);
}

/* --- queryprof.h -------------------------------------------------------------------------- */

qp_label_set *qp_labels_new(const qp_label *labels, size_t count_of_labels)
{
	struct label_pairs pairs = { .items = { 0 } };
	struct qp_label_set *set = NULL;
	bool has_memory = true;

	for (size_t i = 0; i < count_of_labels; i++) {
		if (!labels[i].key || !labels[i].key[0]) {
			error_set(QP_INVALID, "qp_labels_new: label %zu has no key; expected a text", i);
			label_pairs_free(&pairs);
			return NULL;
		}
	}
	for (size_t i = 0; has_memory && i < count_of_labels; i++) {
		const qp_label *label = &labels[i];

		has_memory = label->text
		                     ? label_pairs_add(&pairs, label->key, strlen(label->key), label->text,
		                                       strlen(label->text))
		                     : label_pairs_add_number(&pairs, label->key, label->number, label->unit);
	}
	if (has_memory)
		set = label_set_of(&pairs, true);
	if (!set)
		error_set(count_of_labels ? QP_NOMEM : QP_INVALID,
		          count_of_labels ? "qp_labels_new: no memory"
		                          : "qp_labels_new: 0 labels; expected one or more");
	label_pairs_free(&pairs);
	return set;
}

void qp_labels_free(qp_label_set *set)
{
	label_set_release(set);
}

void qp_labels_run(const qp_label_set *set, void (*function)(void *), void *argument)
{
	if (set)
		set->run(argument, function, set->number, labels_entered);
	else
		function(argument);
}

uint64_t qp_labels_enter(const qp_label_set *set)
{
	uint64_t before = labels_entered;

	labels_entered = set ? set->number : 0;
	return before;
}

void qp_labels_leave(uint64_t before)
{
	labels_entered = before;
}
