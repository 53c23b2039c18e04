/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/sample.h"

#include <sched.h>
#include <string.h>
#include <ucontext.h>

#include "handler/context.h"
#include "handler/labels.h"
#include "handler/opcode.h"
#include "handler/ring.h"
#include "handler/running.h"
#include "handler/timer.h"
#include "handler/unwind/stack_copy.h"

static volatile bool enabled;

void sample_enable(bool on)
{
	/* Sequentially consistent against the handler, which first says that it runs and then
	 * looks here. */
	__atomic_store_n(&enabled, on, __ATOMIC_SEQ_CST);
}

/* Where the thread's samples go now, NULL: nowhere. */
static struct ring *ring_of(const struct thread *thread)
{
	struct ring *ring = __atomic_load_n(&thread->ring, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&enabled, __ATOMIC_SEQ_CST) ? ring : NULL;
}

static void add(uint64_t *to, uint64_t by)
{
	__atomic_fetch_add(to, by, __ATOMIC_RELAXED);
}

/* The optional fields of a sample: gathered first, as its record is reserved with its exact size. */
struct fields {
	uint32_t count;
	size_t bytes;
	struct {
		uint32_t tag, size;
		const void *content;
	} list[SAMPLE_FIELDS];
	uint64_t span;
	uint32_t opcode;
};

#define FIELDS_BYTES_MAX                                                                                     \
	(SAMPLE_FIELD_BYTES(sizeof(int64_t)) + SAMPLE_FIELD_BYTES(sizeof(struct wait_field)) +               \
	 SAMPLE_FIELD_BYTES(sizeof(struct trace_context)) +                                                  \
	 SAMPLE_FIELD_BYTES(LABELS_MAX * sizeof(uint64_t)) + 3 * SAMPLE_FIELD_BYTES(sizeof(uint64_t)))

static void add_field(struct fields *fields, uint32_t tag, const void *content, size_t size)
{
	fields->list[fields->count].tag = tag;
	fields->list[fields->count].size = (uint32_t)size;
	fields->list[fields->count++].content = content;
	fields->bytes += SAMPLE_FIELD_BYTES(size);
}

/* The most frames that a record of this ring holds; a tiny ring takes fewer. */
static int max_depth(const struct ring *ring)
{
	size_t room = ring_max_payload(ring) - sizeof(struct sample_record) - FIELDS_BYTES_MAX;

	return room / sizeof(uint64_t) < TRACE_MAX_FRAMES ? (int)(room / sizeof(uint64_t)) : TRACE_MAX_FRAMES;
}

static void fill_record(struct sample_record *record, const struct thread *thread,
                        const struct query_tag *tag, const struct observation *seen,
                        const struct unwind_result *trace, const struct fields *fields)
{
	int cpu = sched_getcpu();

	record->timestamp_ns = seen->timestamp_ns;
	record->period_ns = seen->period_ns;
	record->query = tag->key;
	record->thread_id = thread->id;
	record->weight = seen->weight;
	record->generation = trace->generation;
	record->cpu_id = cpu < 0 ? 0 : (uint32_t)cpu;
	record->fields = 0;
	record->depth = (uint16_t)trace->depth;
	record->trace_type = (uint8_t)seen->type;
	record->flags = trace->truncated ? SAMPLE_TRUNCATED : 0;
	memcpy(record->trace, thread->handler.trace + seen->skipped, record->depth * sizeof(uint64_t));
	void *at = record->trace + record->depth;
	for (uint32_t i = 0; i < fields->count; i++)
		at = sample_field_put(record, at, fields->list[i].tag, fields->list[i].content,
		                      fields->list[i].size);
}

/* Behind the run's first sample, or a later one if the ring was full. */
static void tell_start(struct thread *thread, struct ring *ring, const struct query_tag *tag)
{
	struct run_start *start = &tag->counts->start;
	size_t size;
	/* Acquire: this may be a worker's sample, and the rest another thread's. */
	const enum start_state state = __atomic_load_n(&start->state, __ATOMIC_ACQUIRE);
	if (state != START_DUE && state != START_DUE_AGAIN)
		return;
	stack_copy_text(start->text, (char *)thread->handler.trace, START_TEXT_MAX, &size);
	struct start_record *record = ring_reserve(ring, sizeof(*record) + size);
	if (record == NULL)
		return;
	record->query = tag->key;
	record->run = *start;
	record->text_size = size;
	memcpy(record->text, thread->handler.trace, size);
	ring_commit(ring, record, RECORD_START);
	__atomic_store_n(&start->state, START_TOLD, __ATOMIC_RELAXED);
}

static void gather_fields(struct fields *fields, struct thread *thread, const struct query_tag *tag,
                          const struct observation *seen, const void *ucontext,
                          const struct unwind_result *trace)
{
	struct labels *labels = &thread->handler.labels;
	struct trace_context *context = &thread->handler.context;

	labels_collect(labels, thread_memo(thread), &thread->stack, thread->handler.trace, trace,
	               tag->counts->labels);
	context_read(thread, context);
	fields->opcode = opcode_running(thread, tag, ucontext, thread->handler.trace, trace);
	fields->span = span_current.id;
	if (!seen->is_timed)
		add_field(fields, FIELD_VALUE, &seen->value, sizeof(seen->value));
	if (seen->stretch > 1)
		add_field(fields, FIELD_STRETCH, &seen->stretch, sizeof(seen->stretch));
	if (seen->wait != NULL)
		add_field(fields, FIELD_WAIT, seen->wait, sizeof(*seen->wait));
	if (labels->count != 0)
		add_field(fields, FIELD_LABELS, labels->numbers, labels->count * sizeof(uint64_t));
	if (!context_is_none(context))
		add_field(fields, FIELD_TRACE_CONTEXT, context, sizeof(*context));
	if (fields->span != 0)
		add_field(fields, FIELD_SPAN, &fields->span, sizeof(fields->span));
	if (fields->opcode != OPCODE_UNKNOWN)
		add_field(fields, FIELD_OPCODE, &fields->opcode, sizeof(fields->opcode));
}

/* Not inlined: what the fields need of the stack is free again for the walk. */
__attribute__((noinline)) static bool record_trace(struct thread *thread, struct ring *ring,
                                                   const struct query_tag *tag,
                                                   const struct observation *seen, const void *ucontext,
                                                   struct unwind_result *trace)
{
	struct fields fields = { .count = 0 };

	gather_fields(&fields, thread, tag, seen, ucontext, trace);
	trace->depth = trace->depth > seen->skipped ? trace->depth - seen->skipped : 0;
	struct sample_record *record =
		ring_reserve(ring, sizeof(*record) + (size_t)trace->depth * sizeof(uint64_t) + fields.bytes);
	if (record == NULL)
		return false;
	fill_record(record, thread, tag, seen, trace, &fields);
	ring_commit(ring, record, RECORD_SAMPLE);
	span_current.samples += fields.span != 0;
	return true;
}

static bool store(struct thread *thread, struct ring *ring, const struct query_tag *tag,
                  const struct observation *seen, const void *ucontext)
{
	struct query_counts *counts = tag->counts;

	/* Unwound beside the ring: the record is reserved with its exact size. */
	struct unwind_result trace = unwind_trace(ucontext, &thread->stack, thread_memo(thread),
	                                          thread->handler.trace, max_depth(ring));
	if (!record_trace(thread, ring, tag, seen, ucontext, &trace)) {
		thread_count(thread, LEDGER_DROPPED, 1);
		add(&counts->dropped, 1);
		return false;
	}
	tell_start(thread, ring, tag);

	thread_count(thread, LEDGER_STORED, 1);
	if (seen->is_timed)
		thread_count(thread, LEDGER_OVERRUNS, seen->weight - 1);
	if (seen->type < TRACE_TYPES) {
		add(&counts->samples[seen->type], 1);
		add(&counts->weights[seen->type], seen->weight);
	}
	if (trace.truncated) {
		thread_count(thread, LEDGER_TRUNCATED, 1);
		add(&counts->truncated, 1);
	}
	return true;
}

/* A longer sample was interrupted by another thread's turn. */
#define COST_MOST_NS 100000

/* Returns the query whose sample it was, NULL: there was none. */
static const struct query_tag *take_timed(struct thread *thread, enum timer_clock clock, int overrun,
                                          uint64_t timestamp, const void *ucontext)
{
	static const enum trace_type types[TIMER_CLOCKS] = {
		[TIMER_CPU] = TRACE_CPU, [TIMER_REAL] = TRACE_REAL
	};
	struct thread_timer *timer = &thread->timers[clock];
	uint32_t stretch = timer->stretch;
	bool waits;
	const struct query_tag *tag = query_running(thread, interrupted_stack_pointer(ucontext), &waits);
	struct ring *ring = ring_of(thread);
	bool wanted = ring != NULL && tag != NULL && tag->period_ns[clock] != 0;

	thread->name_due = true;
	uint32_t points = timer_take_points(timer, clock, overrun);
	if (ring == NULL)
		timer_disarm(timer);
	else if (!wanted)
		timer_stay_idle(timer, clock, points, waits);
	else
		timer->idle_ns = 0;
	if (!wanted || points == 0) {
		thread_count(thread, LEDGER_IDLE, 1);
		return NULL;
	}
	if (timer_is_shared(timer)) {
		thread_count(thread, LEDGER_SHARED, 1);
		stretch = points;
	}
	const struct observation seen = { .type = types[clock],
		                          .is_timed = true,
		                          .weight = points,
		                          .period_ns = timer->period_ns,
		                          .stretch = stretch,
		                          .timestamp_ns = timestamp };
	store(thread, ring, tag, &seen, ucontext);
	if (clock == TIMER_CPU)
		thread_count(thread, LEDGER_CPU_NS, points * timer->period_ns);
	return tag;
}

void sample_on_timer(struct thread *thread, enum timer_clock clock, int overrun, const void *ucontext)
{
	uint64_t start = clock_ns(CLOCK_REALTIME);
	const struct query_tag *tag = take_timed(thread, clock, overrun, start, ucontext);
	uint64_t cost_ns = clock_ns(CLOCK_REALTIME) - start;

	if (cost_ns > COST_MOST_NS) /* or the clock was set */
		cost_ns = COST_MOST_NS;
	thread_count(thread, LEDGER_COST_NS, cost_ns);
	if (tag != NULL)
		add(&tag->counts->cost_ns, cost_ns);
}

bool sample_on_call(struct thread *thread, const struct observation *seen, const ucontext_t *context)
{
	bool waits;
	const struct query_tag *tag = query_running(thread, interrupted_stack_pointer(context), &waits);
	struct ring *ring = ring_of(thread);

	if (ring == NULL || tag == NULL)
		return false;
	thread_count(thread, LEDGER_TAKEN, 1);
	return store(thread, ring, tag, seen, context);
}
