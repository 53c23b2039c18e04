/* SPDX-License-Identifier: Apache-2.0 */
#include "span/context.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/free_later.h"
#include "base/lock.h"
#include "base/thread_key.h"
#include "span/chunk_pool.h"
#include "span/keep.h"
#include "span/site.h"
#include "timers/random.h"
#include "timers/threads.h"

#define HELD_MAX 4096  /* chunks of a context that wait for open spans */
#define UNUSED_MAX 2   /* chunks that a thread keeps */
#define LINKS_MAX 1000 /* of a context */

__thread struct qp_span_context *qp_span_here;
static __thread struct span_thread *here __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static struct once once;
static bool has_key;

/* --- chunks ----------------------------------------------------------------------------------- */

static struct span_chunk *acquire_chunk(struct span_thread *thread, struct span_chunk *older)
{
	struct span_chunk *chunk = thread->unused;

	if (chunk)
		thread->unused = chunk->older;
	else if (!(chunk = chunk_pool_acquire()))
		chunk = calloc(1, sizeof(*chunk)); /* zeroes, as chunk_clear() leaves them */
	if (!chunk)
		return NULL;
	chunk->first = thread->next;
	chunk->older = older;
	thread->next += CHUNK_ENTRIES;
	return chunk;
}

static void drop_chunk(struct span_chunk *chunk)
{
	if (!chunk_pool_give(chunk))
		free(chunk);
}

static void give_chunk(struct span_thread *thread, struct span_chunk *chunk)
{
	int kept = 0;

	chunk_clear(chunk);
	for (const struct span_chunk *at = thread->unused; at; at = at->older)
		kept++;
	if (kept >= UNUSED_MAX) {
		drop_chunk(chunk);
		return;
	}
	chunk_pool_withdraw(chunk);
	chunk->older = thread->unused;
	thread->unused = chunk;
}

static void give_chunks(struct span_thread *thread, struct span_chunk *chunk)
{
	while (chunk) {
		struct span_chunk *older = chunk->older;

		give_chunk(thread, chunk);
		chunk = older;
	}
}

/* --- the thread -------------------------------------------------------------------------------- */

static void on_thread_end(void *unused)
{
	struct span_thread *thread = here;

	(void)unused;
	if (!thread)
		return;
	/* Its slot may be another thread's by now. */
	for (uint32_t i = 0; i < thread->depth; i++)
		thread->contexts[i].clock = &thread->clock;
	context_end_to(0);
	here = NULL;
	while (thread->unused) {
		struct span_chunk *chunk = thread->unused;

		thread->unused = chunk->older;
		drop_chunk(chunk);
	}
	free(thread);
}

static void free_context_later(const struct qp_span_context *context)
{
	for (struct span_chunk *chunk = context->chunk, *older; chunk; chunk = older) {
		older = chunk->older;
		free_later(chunk, sizeof(*chunk));
	}
	free_later(context->links, context->link_count * sizeof(*context->links));
}

/* The parent hands over its records; the child begins without a trace. */
static void after_fork_in_child(void)
{
	sites_after_fork();
	keep_after_fork();
	span_current.id = 0;
	qp_span_here = NULL;
	if (!here)
		return;
	/* Memory that may belong to the parent is not even read. */
	if (chunk_pool_is_used())
		here->depth = 0, here->unused = NULL;
	for (; here->depth; here->depth--)
		if (&here->contexts[here->depth - 1] != here->changing)
			free_context_later(&here->contexts[here->depth - 1]);
	here->next = 0;
}

static void make_key(void)
{
	has_key = thread_key_create(&key, on_thread_end) == 0;
}

__attribute__((constructor)) static void follow_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

struct span_thread *span_thread_get(void)
{
	once_do(&once, make_key);
	if (!here && has_key) {
		here = calloc(1, sizeof(*here));
		if (here && pthread_setspecific(key, here)) {
			free(here);
			here = NULL;
		}
	}
	return here;
}

/* A thread's numbers rise from a random one, so those of all threads of all processes differ. */
static void start_numbers(struct span_thread *thread, struct thread *slot)
{
	thread->id = slot->id;
	if (!thread->next)
		thread->next = random_next(slot) >> 2 | 1ull << 61; /* so that SQL can add to it */
}

uint64_t span_thread_number(struct thread *slot)
{
	start_numbers(here, slot);
	return here->next++;
}

/* --- a context ------------------------------------------------------------------------------------ */

static int copy_links(struct qp_span_context *context, const struct span_link *links, uint32_t count)
{
	if (!count)
		return QP_OK;
	context->links = malloc(count * sizeof(*links));
	if (!context->links)
		return QP_NOMEM;
	memcpy(context->links, links, count * sizeof(*links));
	context->link_count = count;
	return QP_OK;
}

static void enter(struct span_thread *thread)
{
	struct qp_span_context *innermost = thread->depth ? &thread->contexts[thread->depth - 1] : NULL;

	HANDLER_BARRIER();
	thread->changing = NULL;
	qp_span_here = innermost && innermost->chunk && !innermost->is_over ? innermost : NULL;
}

/* Nothing is recorded until enter(), and the chunks of this context change hands. */
static void detach(const struct qp_span_context *changing)
{
	qp_span_here = NULL;
	here->changing = changing;
	HANDLER_BARRIER();
}

static struct span_batch batch_of(const struct qp_span_context *context, uint64_t ended_ns, uint32_t flags)
{
	return (struct span_batch){
		.of = context->of,
		.realtime_offset = here->realtime_offset,
		.began_ns = context->began_ns,
		.ended_ns = ended_ns,
		.dropped = context->dropped,
		.thread_id = here->id,
		.flags = (context->flags & (BATCH_ROOT | BATCH_REMOTE)) | flags,
		.links = context->link_count,
	};
}

/* Sets the part of a trace to which the newest chunk belongs. */
static void set_part(const struct qp_span_context *context)
{
	const struct span_batch part = batch_of(context, 0, 0);

	if (context->chunk)
		chunk_pool_set_part(context->chunk, &part);
}

int context_begin(const struct span_link *of, const struct span_link *links, uint32_t link_count,
                  uint32_t flags)
{
	struct thread *slot = sampler_thread();
	struct span_thread *thread = slot ? span_thread_get() : NULL;
	struct qp_span_context *context;
	bool is_silent = !of->trace_hi && !of->trace_lo;

	if (!thread)
		return error_set(QP_NOMEM, "a trace cannot begin: no memory");
	if (thread->depth == SPAN_CONTEXTS)
		return error_set(QP_INVALID, "a trace cannot begin: this thread already has %d open traces",
		                 SPAN_CONTEXTS);
	start_numbers(thread, slot);
	thread->realtime_offset = slot->realtime_offset_ns = clock_offset_ns(slot->realtime_offset_ns);
	context = &thread->contexts[thread->depth];
	*context = (struct qp_span_context){
		.clock = &slot->clock, /* that of the thread's queries and waits */
		.of = *of,
		.flags = flags,
		.outer = span_current.id,
		.samples = span_current.samples,
	};
	if (!is_silent && (link_count > LINKS_MAX || copy_links(context, links, link_count) ||
	                   !(context->chunk = acquire_chunk(thread, NULL)))) {
		free(context->links);
		return error_set(link_count > LINKS_MAX ? QP_INVALID : QP_NOMEM, "a trace cannot begin: %s",
		                 link_count > LINKS_MAX ? "expected 1 to 1000 handles" : "no memory");
	}
	sites_publish(); /* a child of fork() may know numbers that are not in its ring */
	if (flags & BATCH_ROOT)
		context->is_chosen = keep_choose(slot);
	context->began_ns = fast_clock_ns(context->clock);
	set_part(context);
	HANDLER_BARRIER(); /* it is complete when it is published */
	thread->depth++;
	span_current.id = 0;
	enter(thread);
	return QP_OK;
}

static struct span_chunk *find_chunk(struct qp_span_context *context, uint64_t number)
{
	struct span_chunk *chunk = context->chunk;

	while (chunk && number - chunk->first >= chunk->count)
		chunk = chunk->older;
	return chunk;
}

struct span_entry *context_find(uint64_t number, struct span_chunk **chunk)
{
	for (uint32_t i = here ? here->depth : 0; i-- > 0;) {
		*chunk = find_chunk(&here->contexts[i], number);
		if (*chunk)
			return &(*chunk)->entry[number - (*chunk)->first];
	}
	return NULL;
}

bool context_has(uint64_t number)
{
	return qp_span_here && find_chunk(qp_span_here, number);
}

uint64_t context_now_ns(void)
{
	return fast_clock_ns(here->contexts[0].clock);
}

/* --- handing over ------------------------------------------------------------------------------ */

/* Reports children in this chunk to their parents in other chunks, before either goes.
 * `only` NULL: any parents. */
static void report_parents(struct qp_span_context *context, const struct span_chunk *chunk,
                           const struct span_chunk *only)
{
	struct span_chunk *parents = NULL;

	for (uint32_t i = 0; i < chunk->count; i += entry_group(&chunk->entry[i])) {
		const struct span_entry *entry = &chunk->entry[i];
		uint64_t parent = chunk->first + i - entry->parent;

		if (!entry_is_span(entry) || entry->parent <= i)
			continue;
		if (!parents || parent - parents->first >= parents->count)
			parents = find_chunk(context, parent);
		if (parents && (!only || parents == only))
			parents->entry[parent - parents->first].children += entry->duration & SPAN_DURATION;
	}
}

/* sites_publish() comes before. */
static void hand_over(struct qp_span_context *context, const struct span_chunk *chunk, uint64_t ended_ns,
                      uint32_t flags)
{
	struct span_batch batch = batch_of(context, ended_ns, flags);
	bool is_whole;

	chunk_pool_withdraw(chunk); /* if the thread is killed now, the ring has it, or nearly so */
	is_whole = entries_hand_over(chunk->entry, chunk->count, chunk->first, &batch, context->links);

	context->dropped = batch.dropped;
	context->handed_over = true;
	if (!is_whole && flags & BATCH_END) {
		batch.entries = batch.links = 0;
		batch_hand_over(&batch);
	}
}

void context_put_alone(struct qp_span_context *context, const struct span_entry *entry)
{
	struct span_batch batch = batch_of(context, 0, 0);
	struct span_chunk *chunk;
	struct span_entry *parent = span_current.id ? context_find(span_current.id, &chunk) : NULL;

	if (parent) {
		parent->children += entry->duration & SPAN_DURATION;
		batch.of.parent = span_current.id;
		batch.flags &= ~(uint32_t)BATCH_REMOTE;
	}
	batch.first = here->next++;
	if (!entry_hand_over(entry, &batch))
		context->dropped++;
	context->handed_over = true;
}

/* The newest chunk is full. It is reused immediately if none of its spans runs. */
static bool renew_chunk(struct qp_span_context *context)
{
	struct span_chunk *chunk = context->chunk, *fresh;

	sites_publish();
	chunk->open = chunk_open_spans(chunk);
	if (!chunk->open) {
		report_parents(context, chunk, NULL);
		hand_over(context, chunk, 0, 0);
		chunk_clear(chunk);
		chunk->first = here->next;
		here->next += CHUNK_ENTRIES;
		set_part(context);
		return true;
	}
	fresh = context->held < HELD_MAX ? acquire_chunk(here, chunk) : NULL;
	if (!fresh)
		return false;
	context->chunk = fresh;
	context->held++;
	set_part(context);
	return true;
}

struct span_entry *context_room(struct qp_span_context *context, uint32_t count, uint64_t *number)
{
	struct span_chunk *chunk = context->chunk;
	uint32_t at;

	if (chunk->count + count > CHUNK_ENTRIES) {
		bool is_renewed;

		detach(context);
		is_renewed = renew_chunk(context);
		enter(here);
		if (!is_renewed) {
			context->dropped++;
			keep_count(SPANS_DROPPED, 1);
			return NULL;
		}
		chunk = context->chunk;
	}
	at = chunk_acquire(chunk, count);
	*number = chunk->first + at;
	return &chunk->entry[at];
}

static struct qp_span_context *context_of(const struct span_chunk *chunk, struct span_chunk **newer)
{
	for (uint32_t i = here->depth; i-- > 0;) {
		*newer = NULL;
		for (struct span_chunk *at = here->contexts[i].chunk; at; at = at->older) {
			if (at == chunk)
				return &here->contexts[i];
			*newer = at;
		}
	}
	return NULL;
}

void context_remove_span(struct span_chunk *chunk, struct span_entry *span)
{
	const uint32_t index = (uint32_t)(span - chunk->entry);
	const uint64_t number = chunk->first + index, parent = span->parent ? number - span->parent : 0;
	struct span_chunk *newer;
	struct qp_span_context *context = context_of(chunk, &newer);

	/* Two entries without content. */
	span->site = ENTRY_STATEMENT;
	for (struct span_chunk *at = context ? context->chunk : NULL; at; at = at == chunk ? NULL : at->older)
		for (uint32_t i = at == chunk ? index : 0; i < at->count; i += entry_group(&at->entry[i])) {
			struct span_entry *entry = &at->entry[i];

			if (entry_is_span(entry) && entry->parent && at->first + i - entry->parent == number)
				entry->parent = span_distance(at->first + i, parent);
		}
}

void context_ended(struct span_chunk *chunk)
{
	struct span_chunk *newer;
	struct qp_span_context *context;

	/* The newest chunk counts them when it is full. */
	if (!chunk->open || --chunk->open)
		return;
	context = context_of(chunk, &newer);
	if (!context || !newer)
		return;
	detach(context);
	for (struct span_chunk *at = context->chunk; at != chunk; at = at->older)
		report_parents(context, at, chunk);
	report_parents(context, chunk, NULL);
	sites_publish();
	hand_over(context, chunk, 0, 0);
	newer->older = chunk->older;
	context->held--;
	give_chunk(here, chunk);
	enter(here);
}

/* --- the end --------------------------------------------------------------------------------------- */

/* So that they are handed over in the order in which they began. */
static struct span_chunk *reverse(struct span_chunk *chunk)
{
	struct span_chunk *reversed = NULL;

	while (chunk) {
		struct span_chunk *older = chunk->older;

		chunk->older = reversed;
		reversed = chunk;
		chunk = older;
	}
	return reversed;
}

static bool is_kept(const struct qp_span_context *context, uint64_t now_ns)
{
	bool is_sampled = span_current.samples != context->samples;

	if (!(context->flags & BATCH_ROOT)) {
		if (is_sampled)
			keep_note_sample(context->of.trace_lo);
		return true; /* the root decides */
	}
	is_sampled = is_sampled || (context->is_elsewhere && keep_was_sampled(context->of.trace_lo));
	return context->is_chosen || keep_decide(now_ns - context->began_ns, is_sampled);
}

static void discard_trace(struct qp_span_context *context)
{
	const struct span_batch batch = {
		.of = context->of,
		.thread_id = here->id,
		.flags = BATCH_ROOT | BATCH_END | BATCH_UNKEPT,
	};

	keep_count(TRACES_UNKEPT, 1);
	if (context->handed_over || context->is_elsewhere)
		batch_hand_over(&batch);
}

static void end_recording(struct qp_span_context *context)
{
	uint64_t now = fast_clock_ns(context->clock);
	bool is_root = context->flags & BATCH_ROOT;

	for (struct span_chunk *chunk = context->chunk; chunk; chunk = chunk->older)
		keep_count(SPANS_UNENDED, chunk_close_spans(chunk, now));
	if (!is_kept(context, now)) {
		discard_trace(context);
		return;
	}
	for (struct span_chunk *chunk = context->chunk; chunk; chunk = chunk->older)
		report_parents(context, chunk, NULL);
	keep_count(TRACES_KEPT, is_root);
	context->chunk = reverse(context->chunk);
	for (struct span_chunk *chunk = context->chunk; chunk; chunk = chunk->older)
		if (chunk->count || (is_root && !chunk->older))
			hand_over(context, chunk, now, is_root && !chunk->older ? BATCH_END : 0);
}

void context_end(void)
{
	struct qp_span_context context;

	if (!here || !here->depth)
		return;
	/* First of all: code in between, in a signal handler, has the enclosing contexts. */
	context = here->contexts[here->depth - 1];
	detach(NULL);
	here->depth--;
	HANDLER_BARRIER();
	if (context.chunk && !context.is_over) {
		sites_publish();
		end_recording(&context);
	}
	give_chunks(here, context.chunk);
	free(context.links);
	span_current.id = context.outer;
	enter(here);
}

uint32_t context_depth(void)
{
	return here ? here->depth : 0;
}

void context_end_to(uint32_t depth)
{
	while (context_depth() > depth)
		context_end();
}

void contexts_before_end(void)
{
	qp_span_here = NULL;
	HANDLER_BARRIER();
	for (uint32_t i = here ? here->depth : 0; i-- > 0;) {
		struct qp_span_context *context = &here->contexts[i];

		if (context == here->changing || context->is_over)
			continue;
		context->is_over = true;
		HANDLER_BARRIER();
		if (!context->chunk)
			continue;
		sites_try_publish();
		context->chunk->count = entries_whole(context->chunk->entry, context->chunk->count);
		end_recording(context);
	}
}
