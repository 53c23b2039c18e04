/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/sample.h"

#include <string.h>
#include <ucontext.h>

#include "base/fast_clock.h"
#include "handler/budget.h"
#include "handler/context.h"
#include "handler/labels.h"
#include "handler/opcode.h"
#include "handler/outside.h"
#include "handler/ring.h"
#include "handler/running.h"
#include "handler/timer.h"
#include "handler/unwind/stack_copy.h"

static volatile bool enabled;

void sample_enable(bool on)
{
	/* Sequentially consistent with the handler, which first announces that it runs and then
	 * reads this. */
	__atomic_store_n(&enabled, on, __ATOMIC_SEQ_CST);
}

/* The destination of the thread's samples now, NULL: none. */
static struct ring *ring_of(const struct thread *thread)
{
	struct ring *ring = __atomic_load_n(&thread->ring, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&enabled, __ATOMIC_SEQ_CST) ? ring : NULL;
}

static void add(uint64_t *to, uint64_t by)
{
	__atomic_fetch_add(to, by, __ATOMIC_RELAXED);
}

/* The most frames that a record of this ring holds; a tiny ring takes fewer. */
static int max_depth(const struct ring *ring)
{
	size_t room = ring_max_payload(ring) - sizeof(struct sample_record) - SAMPLE_FIELDS_MAX;

	return room / sizeof(uint64_t) < STACK_FRAMES_MAX ? (int)(room / sizeof(uint64_t)) : STACK_FRAMES_MAX;
}

static struct sample_record *draft_of(struct thread *thread)
{
	return (struct sample_record *)(void *)thread->handler.draft;
}

/* What a sample is of: the running query, or else the open query and transaction. The query's key is in the
 * thread's draft, because the stack is small. */
struct subject {
	const struct query_tag *tag; /* NULL: the program's own code runs */
	struct query_counts *counts; /* NULL: of no query */
	uint32_t transaction;        /* 0: of none */
};

/* Not inlined, so that its stack is free again for the walk. */
__attribute__((noinline)) static bool find_subject(struct thread *thread, const struct query_tag *tag,
                                                   struct subject *subject)
{
	struct outside_work work = { .counts = NULL };
	bool is_found = true;

	if (tag) {
		work.counts = tag->counts;
		work.key = tag->key;
	} else {
		is_found = outside_find(thread, &work);
	}
	draft_of(thread)->query = work.key;
	*subject = (struct subject){ tag, work.counts, work.transaction };
	return is_found;
}

/* After the run's first sample, or a later one if the ring was full. */
static void publish_start(struct thread *thread, struct ring *ring, const struct query_tag *tag)
{
	struct run_start *start = &tag->counts->start;
	size_t size;
	/* Acquire: this may be a worker's sample, and the rest belong to another thread. */
	const enum start_state state = __atomic_load_n(&start->state, __ATOMIC_ACQUIRE);
	if (state != START_DUE && state != START_DUE_AGAIN)
		return;
	stack_copy_text(start->text, (char *)draft_of(thread)->addresses, START_TEXT_MAX, &size);
	struct start_record *record = ring_reserve(ring, sizeof(*record) + size);
	if (!record)
		return;
	record->query = tag->key;
	record->run = opcode_start(tag->counts);
	record->open_until_ns = record->outside_ns = 0;
	record->text_size = size;
	memcpy(record->text, draft_of(thread)->addresses, size);
	ring_commit(ring, record, RECORD_START);
	__atomic_store_n(&start->state, START_PUBLISHED, __ATOMIC_RELAXED);
}

/* After the addresses, which are in place. Returns the end. */
static void *put_fields(struct sample_record *draft, const struct observation *seen,
                        const struct labels *labels, const struct trace_context *context, uint64_t span,
                        uint64_t opcode, uint64_t transaction)
{
	void *at = draft->addresses + draft->depth;

	draft->fields = 0;
	if (!seen->is_timed)
		at = sample_field_put(draft, at, FIELD_VALUE, &seen->value, sizeof(seen->value));
	if (seen->stretch > 1)
		at = sample_field_put(draft, at, FIELD_STRETCH, &seen->stretch, sizeof(seen->stretch));
	if (seen->wait)
		at = sample_field_put(draft, at, FIELD_WAIT, seen->wait, sizeof(*seen->wait));
	if (labels->count != 0)
		at = sample_field_put(draft, at, FIELD_LABELS, labels->numbers,
		                      labels->count * (uint32_t)sizeof(uint64_t));
	if (!context_is_none(context))
		at = sample_field_put(draft, at, FIELD_TRACE_CONTEXT, context, sizeof(*context));
	if (seen->pointer != 0)
		at = sample_field_put(draft, at, FIELD_POINTER, &seen->pointer, sizeof(seen->pointer));
	if (span != 0)
		at = sample_field_put(draft, at, FIELD_SPAN, &span, sizeof(span));
	if (opcode != OPCODE_UNKNOWN)
		at = sample_field_put(draft, at, FIELD_OPCODE, &opcode, sizeof(opcode));
	if (transaction != 0)
		at = sample_field_put(draft, at, FIELD_TRANSACTION, &transaction, sizeof(transaction));
	return at;
}

/* Copies the draft into the ring, with the program's own frames if it is a sample of the program. */
static bool write_draft(struct thread *thread, struct ring *ring, size_t size, bool is_programs)
{
	const char *callers;
	size_t callers_size = is_programs ? outside_acquire_callers(thread, &callers) : 0, room = 0;

	if (callers_size != 0 && size + SAMPLE_FIELD_BYTES(callers_size) <= ring_max_payload(ring))
		room = SAMPLE_FIELD_BYTES(callers_size);
	void *record = ring_reserve(ring, size + room);
	if (record) {
		memcpy(record, draft_of(thread), size);
		if (room != 0)
			sample_field_put(record, (char *)record + size, FIELD_CALL_STACK, callers,
			                 (uint32_t)callers_size);
		ring_commit(ring, record, RECORD_SAMPLE);
	}
	if (callers_size != 0)
		outside_release_callers();
	return record;
}

/* Written outside the ring, whose record is reserved with its exact size. Not inlined, so that its
 * stack is free again for the walk. */
__attribute__((noinline)) static bool record_stack(struct thread *thread, struct ring *ring,
                                                   const struct subject *subject,
                                                   const struct observation *seen, const void *ucontext,
                                                   const struct unwind_result *unwound)
{
	struct sample_record *draft = draft_of(thread);
	struct labels *labels = &thread->handler.labels;
	struct trace_context *context = &thread->handler.context;
	const uint64_t span = span_current.id;
	const int depth = unwound->depth > seen->skipped ? unwound->depth - seen->skipped : 0;
	const int cpu = fast_clock_processor();

	labels_collect(labels, &thread->stack, draft->addresses, unwound,
	               subject->counts ? subject->counts->labels : 0);
	context_read(thread, context);
	const uint64_t opcode =
		subject->tag ? opcode_running(thread, subject->tag, ucontext, unwound) : OPCODE_UNKNOWN;
	if (seen->skipped != 0)
		memmove(draft->addresses, draft->addresses + seen->skipped, (size_t)depth * sizeof(uint64_t));
	draft->timestamp_ns = seen->timestamp_ns;
	draft->period_ns = seen->period_ns;
	draft->thread_id = thread->id;
	draft->weight = seen->weight;
	draft->generation = unwound->generation;
	draft->cpu_id = cpu < 0 ? 0 : (uint32_t)cpu;
	draft->depth = (uint16_t)depth;
	draft->type = (uint8_t)seen->type;
	draft->flags = unwound->truncated ? SAMPLE_TRUNCATED : 0;
	const char *end = put_fields(draft, seen, labels, context, span, opcode, subject->transaction);
	const bool is_stored =
		write_draft(thread, ring, (size_t)(end - (const char *)draft),
	                    seen->type == SAMPLE_PROGRAM_CPU || seen->type == SAMPLE_PROGRAM_OFF_CPU);
	span_current.samples += is_stored && span != 0;
	return is_stored;
}

static void count_stored(const struct subject *subject, const struct observation *seen, bool is_truncated)
{
	struct query_counts *counts = subject->counts;

	if (!counts)
		return;
	query_counts_begin(counts);
	add(&counts->taken, 1);
	if (subject->tag && seen->type < SAMPLE_QUERY_TYPES) {
		add(&counts->samples[seen->type], 1);
		add(&counts->weights[seen->type], seen->weight);
	}
	if (is_truncated)
		add(&counts->truncated, 1);
}

static bool store(struct thread *thread, struct ring *ring, const struct subject *subject,
                  const struct observation *seen, const void *ucontext)
{
	struct unwind_result unwound = unwind_addresses(ucontext, &thread->stack, thread_memo(thread),
	                                                draft_of(thread)->addresses, max_depth(ring));
	if (!record_stack(thread, ring, subject, seen, ucontext, &unwound)) {
		thread_count(thread, LEDGER_DROPPED, 1);
		if (subject->counts) {
			query_counts_begin(subject->counts);
			add(&subject->counts->dropped, 1);
		}
		return false;
	}
	/* Outside its calls another thread may finalize the statement. */
	if (subject->tag)
		publish_start(thread, ring, subject->tag);

	thread_count(thread, LEDGER_STORED, 1);
	if (seen->is_timed)
		thread_count(thread, LEDGER_OVERRUNS, seen->weight - 1);
	if (unwound.truncated)
		thread_count(thread, LEDGER_TRUNCATED, 1);
	count_stored(subject, seen, unwound.truncated);
	return true;
}

/* A longer sample was interrupted by another thread's turn. Reading the program's frames takes longer. */
#define COST_MOST_NS 100000
#define COST_CALLERS_MOST_NS 500000

/* Returns the query to which the sample belongs, NULL: none. */
static const struct query_tag *consume_timed(struct thread *thread, enum timer_clock clock, int overrun,
                                             uint64_t timestamp, const void *ucontext)
{
	struct thread_timer *timer = &thread->timers[clock];
	const uint32_t stretch = timer->stretch;
	bool waits;
	const struct query_tag *tag = query_running(thread, interrupted_stack_pointer(ucontext), &waits);
	struct ring *ring = ring_of(thread);
	struct subject subject = { .tag = NULL };
	bool wanted = false;

	if (ring && (tag ? tag->period_ns[clock] != 0 : clock == TIMER_CPU))
		wanted = find_subject(thread, tag, &subject);
	thread->name_due = true;
	uint32_t points = timer_consume_points(timer, clock, overrun);
	if (!ring)
		timer_disarm(timer);
	else if (!wanted)
		timer_stay_idle(timer, clock, points, waits);
	else
		timer->idle_ns = 0;
	if (!wanted || points == 0) {
		thread_count(thread, LEDGER_IDLE, 1);
		return NULL;
	}
	const enum sample_type_number type = !tag                 ? SAMPLE_PROGRAM_CPU
	                                     : clock == TIMER_CPU ? SAMPLE_CPU
	                                                          : SAMPLE_REAL;
	const struct observation seen = { .type = type,
		                          .is_timed = true,
		                          .weight = points,
		                          .period_ns = timer->period_ns,
		                          .stretch = stretch,
		                          .timestamp_ns = timestamp };
	store(thread, ring, &subject, &seen, ucontext);
	if (clock == TIMER_CPU)
		thread_count(thread, LEDGER_CPU_NS, points * timer->period_ns);
	return tag;
}

void sample_on_timer(struct thread *thread, enum timer_clock clock, int overrun, const void *ucontext)
{
	uint64_t start = clock_ns(CLOCK_REALTIME);
	const struct query_tag *tag = consume_timed(thread, clock, overrun, start, ucontext);
	uint64_t cost_ns = clock_ns(CLOCK_REALTIME) - start;

	const uint64_t most_ns = tag ? COST_MOST_NS : COST_CALLERS_MOST_NS;
	if (cost_ns > most_ns) /* or the clock was set */
		cost_ns = most_ns;
	thread_count(thread, LEDGER_COST_NS, cost_ns);
	if (tag) {
		query_counts_begin(tag->counts);
		add(&tag->counts->cost_ns, cost_ns);
	}
	budget_check(thread->ring, start);
}

bool sample_on_call(struct thread *thread, const struct observation *seen, const ucontext_t *context)
{
	bool waits;
	const struct query_tag *tag = query_running(thread, interrupted_stack_pointer(context), &waits);
	struct ring *ring = ring_of(thread);

	struct subject subject = { .tag = NULL };

	if (!ring)
		return false;
	/* Memory is that of a call of SQLite, and never of what the program's own code works for. */
	if (!tag && seen->type == SAMPLE_MEMORY)
		draft_of(thread)->query = (struct query_key){ 0 };
	else if (!find_subject(thread, tag, &subject))
		return false;
	thread_count(thread, LEDGER_TAKEN, 1);
	return store(thread, ring, &subject, seen, context);
}
