/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/open_waits.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "collect/ring_reader.h"
#include "handler/opcode.h"
#include "handler/ring.h"
#include "handler/running.h"
#include "wire/record.h"

#define WAITS 4096u   /* untouched pages cost nothing */
#define ENGINES_MAX 5 /* HOST_LIBRARIES_MAX and queryprof's own */

struct open_wait {
	struct wait_now now;
	uint32_t thread_id;
	uint32_t text_size;
	uint64_t sample_period_ns; /* 0: none are taken */
	struct query_key query;    /* zero: none ran */
	struct run_start run;
	char text[START_TEXT_MAX];
};

struct engines {
	uint32_t count; /* atomic; all before it exist */
	struct {
		uintptr_t start, end;
	} list[ENGINES_MAX];
};

static struct open_waits {
	struct engines engines;
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: until the process's end */
	uint64_t until_ticks;
	uint32_t used; /* atomic: of the waits, those before it */
	struct open_wait waits[WAITS];
} * here; /* atomic */

static struct engines engines;
static uint32_t used; /* atomic: in all tables, because threads keep their waits when the memory is renewed */

size_t open_waits_bytes(void)
{
	return sizeof(struct open_waits);
}

void open_waits_attach(void *memory)
{
	struct open_waits *table = memory;

	table->engines = engines;
	table->used = __atomic_load_n(&used, __ATOMIC_RELAXED);
	/* Release: with open_waits_find(). */
	__atomic_store_n(&here, table, __ATOMIC_RELEASE);
}

void open_waits_detach_in_child(void)
{
	__atomic_store_n(&here, NULL, __ATOMIC_RELAXED);
}

/* Relaxed: the command reads it after all of them have ended. */
static void raise_to(uint32_t *number, uint32_t least)
{
	uint32_t now = __atomic_load_n(number, __ATOMIC_RELAXED);

	while (now < least &&
	       !__atomic_compare_exchange_n(number, &now, least, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

struct wait_now *open_waits_find(struct thread *thread)
{
	struct open_waits *table = __atomic_load_n(&here, __ATOMIC_ACQUIRE);
	const uint32_t needed = thread->index + 1;

	if (!table || needed > WAITS)
		return &thread->own_wait;
	raise_to(&used, needed);
	raise_to(&table->used, needed);
	return &table->waits[thread->index].now;
}

void open_waits_before_exec(void)
{
	struct open_waits *table = __atomic_load_n(&here, __ATOMIC_ACQUIRE);

	if (!table)
		return;
	__atomic_store_n(&table->until_ticks, fast_clock_moment().at, __ATOMIC_RELAXED);
	__atomic_store_n(&table->until_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
}

/* The text exists as long as the thread is inside the call that runs it. Without a frame that
 * proves this, the host may already have freed its statement. */
static void copy_text(struct open_wait *wait, const struct query_tag *tag)
{
	const char *text = tag->mutex_owner ? NULL : tag->counts->start.text;

	wait->text_size = text ? (uint32_t)strnlen(text, sizeof(wait->text)) : 0;
	if (text)
		memcpy(wait->text, text, wait->text_size);
}

__attribute__((noinline)) void open_waits_describe(struct thread *thread)
{
	struct open_waits *table = __atomic_load_n(&here, __ATOMIC_ACQUIRE);
	struct open_wait *wait = (struct open_wait *)thread->waiting;
	const struct query_tag *tag;
	bool is_between;

	thread->waiting->query = thread_newest_query(thread);
	if (thread->waiting == &thread->own_wait)
		return;
	if (__atomic_load_n(&table->until_ns, __ATOMIC_RELAXED)) /* it did not become one */
		__atomic_store_n(&table->until_ns, 0, __ATOMIC_RELAXED);
	tag = query_running(thread, (uintptr_t)__builtin_frame_address(0), &is_between);
	wait->query = tag ? tag->key : (struct query_key){ 0 };
	if (!tag)
		return;
	wait->thread_id = thread->id;
	wait->sample_period_ns = tag->off_cpu_period_ns;
	wait->run = opcode_start(tag->counts);
	if (wait->run.state != START_KEPT)
		copy_text(wait, tag);
}

/* --- whose code waits ----------------------------------------------------------------------- */

static void add_engine(struct engines *to, uintptr_t start, uintptr_t end)
{
	uint32_t count = to->count;

	for (uint32_t i = 0; i < count; i++)
		if (to->list[i].start == start)
			return;
	if (count == ENGINES_MAX)
		return;
	to->list[count].start = start;
	to->list[count].end = end;
	/* Release: with is_hosts(). */
	__atomic_store_n(&to->count, count + 1, __ATOMIC_RELEASE);
}

void open_waits_add_engine(uintptr_t start, uintptr_t end)
{
	struct open_waits *table = __atomic_load_n(&here, __ATOMIC_ACQUIRE);

	add_engine(&engines, start, end);
	if (table)
		add_engine(&table->engines, start, end);
}

static bool is_hosts(const struct engines *known, const void *caller)
{
	uint32_t count = __atomic_load_n(&known->count, __ATOMIC_ACQUIRE);

	count = count < ENGINES_MAX ? count : ENGINES_MAX;
	for (uint32_t i = 0; i < count; i++)
		if ((uintptr_t)caller >= known->list[i].start && (uintptr_t)caller < known->list[i].end)
			return false;
	return count != 0;
}

bool open_waits_is_hosts(const void *caller)
{
	return is_hosts(&engines, caller);
}

/* --- remains: written by a process that was killed at any moment ----------------------------------- */

static bool is_open(const struct open_wait *wait)
{
	/* Outside queries the one that is described is an earlier one. */
	return wait->now.since && wait->thread_id && wait->now.query && (wait->query.hi || wait->query.lo) &&
	       wait->now.cause && (wait->now.cause < WAIT_PAGE_FAULT || wait->now.cause == WAIT_PROCESS);
}

static uint32_t count_of(const struct open_waits *left)
{
	return left->used < WAITS ? left->used : WAITS;
}

bool open_waits_has_remains(const void *memory)
{
	const struct open_waits *left = memory;

	for (uint32_t i = 0; i < count_of(left); i++)
		if (is_open(&left->waits[i]))
			return true;
	return false;
}

uint64_t open_waits_until(const void *memory)
{
	const struct open_waits *left = memory;

	return left->until_ns ? left->until_ns : clock_ns(CLOCK_MONOTONIC);
}

/* How long it has waited; 0: it began after the end. */
static uint64_t length_of(const struct open_waits *left, const struct wait_now *now)
{
	const struct fast_moment since = { now->since, now->scale };

	return left->until_ns ? fast_clock_between(since, left->until_ticks, left->until_ns)
	                      : fast_clock_since(since);
}

bool open_waits_next_lock(const void *memory, uint32_t *from, struct open_lock *lock)
{
	const struct open_waits *left = memory;
	uint64_t until = open_waits_until(left);

	while (*from < count_of(left)) {
		const struct open_wait *wait = &left->waits[(*from)++];

		if (!wait->now.lock || !wait->thread_id || wait->now.lock_since_ns >= until)
			continue;
		*lock = (struct open_lock){ wait->thread_id, until - wait->now.lock_since_ns };
		return true;
	}
	return false;
}

/* The field that the thread itself would have recorded, except files and mutexes, which only the
 * process knew. */
static struct wait_field describe(const struct open_waits *left, const struct wait_now *now, uint64_t ns)
{
	if (now->lock && !wait_is_of_file(now->cause) && now->cause != WAIT_MUTEX)
		return (struct wait_field){ .ns = ns, .cause = WAIT_LOCK, .object = now->lock };
	if (is_hosts(&left->engines, now->caller))
		return (struct wait_field){ .ns = ns,
			                    .cause = WAIT_USER_FUNCTION,
			                    .object = WAIT_ON_CAUSE + now->cause };
	return (struct wait_field){ .ns = ns, .cause = now->cause };
}

size_t open_waits_front_bytes(void)
{
	return offsetof(struct open_waits, waits);
}

size_t open_waits_used_bytes(const void *memory)
{
	return open_waits_front_bytes() + count_of(memory) * sizeof(struct open_wait);
}

/* The key changes with the waiting query, the others with the wait or with the lock. */
static bool is_steady(const struct open_wait *a, const struct open_wait *b)
{
	return a->now.since == b->now.since && a->now.lock == b->now.lock &&
	       a->now.lock_since_ns == b->now.lock_since_ns && a->query.lo == b->query.lo;
}

uint32_t open_waits_keep_steady(void *copy, const void *earlier, const void *later)
{
	const struct open_waits *before = earlier, *after = later;
	struct open_waits *kept = copy;
	uint32_t changed = 0;

	for (uint32_t i = 0; i < count_of(kept); i++) {
		struct open_wait *wait = &kept->waits[i];
		bool is_same = i < count_of(before) && i < count_of(after) &&
		               is_steady(&before->waits[i], &after->waits[i]);

		changed += !is_same;
		if (is_same)
			continue;
		/* SQLite sleeps again and again for one lock. */
		if (i >= count_of(before) || i >= count_of(after) ||
		    before->waits[i].now.lock_since_ns != after->waits[i].now.lock_since_ns ||
		    before->waits[i].now.lock != after->waits[i].now.lock)
			wait->now.lock = 0;
		wait->now.since = 0;
	}
	return changed;
}

bool open_waits_find_run(const void *memory, struct query_key key, struct open_wait_view *view)
{
	const struct open_waits *table = memory;

	for (uint32_t i = 0; i < count_of(table); i++) {
		const struct open_wait *wait = &table->waits[i];
		struct wait_field field = { .cause = 0 };

		if (wait->query.hi != key.hi || wait->query.lo != key.lo || wait->now.query != key.lo ||
		    !wait->thread_id)
			continue;
		if (wait->now.since)
			field = describe(table, &wait->now, length_of(table, &wait->now));
		*view = (struct open_wait_view){ .thread_id = wait->thread_id,
			                         .cause = field.cause,
			                         .wait_ns = field.ns,
			                         .lock = wait->now.lock,
			                         .lock_since_ns = wait->now.lock_since_ns,
			                         .holder_session = wait->now.holder_session,
			                         .holder_process = wait->now.holder_process,
			                         .holder_thread = wait->now.holder_thread };
		if (field.cause == WAIT_USER_FUNCTION && field.object > WAIT_ON_CAUSE)
			view->caused = field.object - WAIT_ON_CAUSE;
		return true;
	}
	return false;
}

/* The period that runs may not have begun, because it begins at random, by the key's random bits. */
static uint64_t periods_in(const struct open_wait *wait, uint64_t ns)
{
	uint64_t period = wait->sample_period_ns;
	uint64_t due = wait->now.period_ns == period ? wait->now.due_ns : 1 + wait->query.lo % period;

	return ns < due ? 0 : 1 + (ns - due) / period;
}

static void write_start(const struct open_wait *wait, struct ring *ring)
{
	uint32_t size = wait->text_size < sizeof(wait->text) ? wait->text_size : (uint32_t)sizeof(wait->text);
	struct start_record *record;

	if (wait->run.state == START_KEPT || !(record = ring_reserve(ring, sizeof(*record) + size)))
		return;
	*record = (struct start_record){ .query = wait->query, .run = wait->run, .text_size = size };
	memcpy(record->text, wait->text, size);
	ring_commit(ring, record, RECORD_START);
}

/* Only the caller is left of the stack. */
static void write_sample(const struct open_wait *wait, const struct wait_field *field, struct ring *ring,
                         uint32_t generation)
{
	uint64_t periods = periods_in(wait, field->ns);
	int64_t value = (int64_t)(periods * wait->sample_period_ns);
	struct sample_record *record;
	void *end;

	if (!periods)
		return;
	record = ring_reserve(ring, sizeof(*record) + sizeof(record->addresses[0]) +
	                                    SAMPLE_FIELD_BYTES(sizeof(value)) +
	                                    SAMPLE_FIELD_BYTES(sizeof(*field)));
	if (!record)
		return;
	*record = (struct sample_record){
		.timestamp_ns = clock_ns(CLOCK_REALTIME),
		.period_ns = wait->sample_period_ns,
		.query = wait->query,
		.thread_id = wait->thread_id,
		.weight = periods < UINT32_MAX ? (uint32_t)periods : UINT32_MAX,
		.generation = generation,
		.depth = 1,
		.type = SAMPLE_OFF_CPU,
		.flags = SAMPLE_TRUNCATED,
	};
	record->addresses[0] = (uintptr_t)wait->now.caller;
	end = sample_field_put(record, record->addresses + record->depth, FIELD_VALUE, &value, sizeof(value));
	sample_field_put(record, end, FIELD_WAIT, field, sizeof(*field));
	ring_commit(ring, record, RECORD_SAMPLE);
}

void open_waits_hand_over(void *memory, struct ring *ring, uint32_t generation)
{
	struct open_waits *left = memory;
	uint64_t ns;

	for (uint32_t i = 0; i < count_of(left); i++) {
		struct open_wait *wait = &left->waits[i];

		if (is_open(wait) && (ns = length_of(left, &wait->now)) != 0) {
			struct wait_field field = describe(left, &wait->now, ns);

			write_start(wait, ring);
			if (wait->sample_period_ns)
				write_sample(wait, &field, ring, generation);
		}
		wait->now.since = wait->now.lock = 0;
	}
}
