/* SPDX-License-Identifier: Apache-2.0 */
#include "span/run.h"

#include <string.h>

#include "base/clock.h"
#include "queryprof.h"
#include "settings/setting.h"
#include "span/context.h"
#include "span/keep.h"
#include "span/span.h"
#include "timers/random.h"
#include "timers/threads.h"

#define NO_SITE 0 /* the statement has the description */

uint32_t span_statements = STATEMENTS_INSIDE;

static int set_statements(const struct setting_value *value, char **reason)
{
	static const char *const words[] = {
		[STATEMENTS_OFF] = "off", [STATEMENTS_INSIDE] = "inside", [STATEMENTS_ALL] = "all"
	};

	(void)reason;
	for (uint32_t which = 0; which < sizeof(words) / sizeof(*words); which++)
		if (!strcmp(value->text, words[which])) {
			__atomic_store_n(&span_statements, which, __ATOMIC_RELAXED);
			return QP_OK;
		}
	return QP_INVALID;
}

SETTING_TEXT(statements_text, SETTING_IS_TEXT, SETTING_WORDS_BYTES, "inside", .name = "trace_statements",
             .apply = set_statements, .allowed = "off, inside or all",
             .description = "Which runs of statements are spans: off: none; inside: those inside a trace; "
                            "all: all, and a run outside a trace is a trace of its own");

static struct span_entry entry_of(const struct span_run_end *end)
{
	return (struct span_entry){
		.start_ns = end->key.hi,
		.duration = end->key.lo,
		.children = end->hash,
		.parent = end->is_preparation,
		.site = ENTRY_STATEMENT,
	};
}

static uint64_t duration_of(const struct span_run_end *end, uint64_t start_ns)
{
	uint64_t status = end->is_failed ? QP_SPAN_ERROR : QP_SPAN_UNSET;
	uint64_t lasted = end->duration_ns - (start_ns - end->start_ns);

	return SPAN_STATEMENT | status << SPAN_STATUS_SHIFT | (lasted & SPAN_DURATION);
}

void span_run_put(struct span_run *run, uint64_t start_ns)
{
	struct span_entry *entry;

	if (__atomic_load_n(&span_statements, __ATOMIC_RELAXED) == STATEMENTS_OFF)
		return;
	entry = context_room(qp_span_here, 2, &run->id);
	if (!entry)
		return;
	entry[0] = (struct span_entry){
		.start_ns = start_ns,
		.duration = SPAN_OPEN | SPAN_STATEMENT,
		.parent = span_distance(run->id, span_current.id),
		.site = NO_SITE,
	};
	entry[1] = (struct span_entry){ .site = ENTRY_STATEMENT };
}

/* The span may be of a trace that has ended, that is around the present one, or that is another thread's:
 * nothing that is recorded now may have it as its parent. */
void span_run_enter_slowly(struct span_run *run)
{
	/* A call before may have left spans running inside of it: so it was not left. */
	if (!context_has(run->id) || span_is_running(run->id))
		return;
	run->outer = span_current.id;
	span_current.id = run->id;
}

void span_run_join_slowly(struct span_run *run, uint64_t start_ns)
{
	if (run->id && context_has(run->id))
		return;
	span_run_abandon(run, false);
	if (qp_span_here)
		span_run_put(run, start_ns);
}

/* A trace of one span, if the thread has none. */
static void put_alone(const struct span_run_end *end)
{
	struct thread *slot = sampler_thread();
	struct span_thread *thread = slot ? span_thread_get() : NULL;
	const struct span_entry entries[] = {
		{ .start_ns = end->start_ns, .duration = duration_of(end, end->start_ns) }, entry_of(end)
	};
	struct span_batch batch = { .flags = BATCH_ROOT | BATCH_END };
	uint64_t first;

	if (!thread)
		return;
	if (!keep_choose(slot) && !keep_decide(end->duration_ns, end->key.hi || end->key.lo)) {
		keep_count(TRACES_UNKEPT, 1);
		return;
	}
	first = span_thread_number(slot);
	batch.realtime_offset = slot->realtime_offset_ns; /* as query_log has it */
	batch.of = (struct span_link){ end->start_ns + batch.realtime_offset, random_next(slot) | 1, 0 };
	batch.began_ns = end->start_ns;
	batch.ended_ns = end->start_ns + end->duration_ns;
	batch.thread_id = slot->id;
	keep_count(TRACES_KEPT, 1);
	entries_hand_over(entries, 2, first, &batch, NULL);
}

/* After its last call: spans left running inside it end with it, or now (`end` NULL). */
static void stop_running(const struct span_run *run, const struct span_run_end *end)
{
	if (!span_is_running(run->id))
		return;
	span_close_inner(run->id, end ? end->start_ns + end->duration_ns : context_now_ns());
	span_current.id = run->outer;
}

void span_run_finish(struct span_run *run, const struct span_run_end *end)
{
	struct span_chunk *chunk;
	struct span_entry *entry;
	bool was_open;

	if (!run->id) {
		if (!qp_span_here)
			put_alone(end);
		return;
	}
	stop_running(run, end);
	entry = context_find(run->id, &chunk);
	run->id = 0;
	/* It may have been closed with a span around it that ended before. */
	if (!entry || !(entry->duration & (SPAN_OPEN | SPAN_UNENDED)))
		return;
	was_open = entry->duration & SPAN_OPEN;
	/* The run's start is later than the span's where the host waited between its preparation and its
	 * step. It is earlier where the preparation has a span of its own, or was in no trace: no span
	 * begins before its trace. */
	if (end->start_ns > entry[0].start_ns)
		entry[0].start_ns = end->start_ns;
	entry[0].duration = duration_of(end, entry[0].start_ns);
	entry[1] = entry_of(end);
	if (was_open)
		context_ended(chunk);
}

void span_run_close(struct span_run *run, bool is_hosts)
{
	struct span_chunk *chunk;
	struct span_entry *entry;

	stop_running(run, NULL);
	entry = context_find(run->id, &chunk);
	run->id = 0;
	if (!entry || !(entry->duration & SPAN_OPEN))
		return;
	if (is_hosts) {
		span_close(chunk, entry);
		keep_count(SPANS_UNENDED, 1);
		return;
	}
	context_remove_span(chunk, entry);
	context_ended(chunk);
}
