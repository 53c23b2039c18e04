/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of queries, as other threads see them.
 *
 * An inspecting thread must cost the running threads nothing: they take no lock for it, copy no text
 * and never wait. So a run becomes visible by one store, and another store ends that. The inspecting
 * thread makes a copy and keeps it only if the run was visible all the time.
 *
 * Texts belong to the host or to SQLite and may be freed while they are copied, so they are read like
 * unknown stacks (handler/unwind/stack_copy.h), up to unmapped memory. A run whose end was not seen
 * (a statement freed without queryprof's knowledge) stays visible, and its text may have any content.
 * It is used only while it begins as it did: an allocator, glibc's and SQLite's own, overwrites the
 * first eight bytes of a free block first.
 */
#include "query/inspect.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "collect/open_runs.h"
#include "collect/state.h"
#include "handler/opcode.h"
#include "handler/ring.h"
#include "handler/unwind/stack_copy.h"
#include "query/cpu_clock.h"

/* Every run that was ever shown; none is removed, as their memory stays. */
static struct query_run *listed;

static void list(struct query_run *run)
{
	run->listed = true;
	run->counts.start.run = run;
	run->next = __atomic_load_n(&listed, __ATOMIC_RELAXED);
	/* Release: a thread that finds the run also finds its `next`. */
	while (!__atomic_compare_exchange_n(&listed, &run->next, run, true, __ATOMIC_RELEASE,
	                                    __ATOMIC_RELAXED))
		;
}

/* A process that is killed meanwhile has no such run, because it is hidden. */
static void describe(struct query_run *run)
{
	const struct open_run_description text = {
		.text = run->text,
		.database = run->database,
		.library = run->library,
		.publish_after_ns = run->is_logged ? run->publish_after_ns : QUERY_NOT_PUBLISHED,
		.has_threads = run->counts.has_threads,
	};

	if (!run->open)
		query_find_frame(run);
	if (run->open == &run->own_open)
		return;
	query_key_copy(&run->open->key, &run->key);
	open_runs_describe(run->open, &run->counts.start, &text);
}

COLD_PATH void query_write_open_id(struct query_run *run)
{
	if (run->open != &run->own_open)
		open_runs_write_id(run->open, run->query_id);
}

void query_mark(struct query_run *run)
{
	uint64_t first = run->text ? query_first_word(run->text) : 0;
	/* The high bit of a zero byte; also of bytes after it, which do not count. */
	uint64_t end = (first - 0x0101010101010101u) & ~first & 0x8080808080808080u;

	describe(run);
	run->mark_of = end ? end ^ (end - 1) : UINT64_MAX;
	run->mark = first & run->mark_of;
	if (!run->listed)
		list(run);
}

void query_forget_bytecode(struct query_run *run)
{
	run->counts.start.bytecode = 0;
	if (run->open && run->open != &run->own_open)
		open_runs_forget_bytecode(run->open);
}

void query_show(struct query_run *run)
{
	if ((run->version & 1) != 0)
		return;
	query_mark(run);
	query_make_due(run);
	/* The handler's samples were here before the text. Publishing it twice does no harm. */
	if (run->counts.start.state == START_DUE && query_has_samples(run))
		query_publish_start(run);
	run->open->entered_ns = run->working ? run->entered_ns : 0;
	query_write_open(run);
	/* Release: a thread that sees it shown also sees its content. */
	__atomic_store_n(&run->version, run->version + 1, __ATOMIC_RELEASE);
}

void query_hand_over(struct query_run *to, const struct query_run *from)
{
	struct query_run *run = to->counts.start.run;
	struct open_run *open = to->open;

	/* A thread that inspects all runs may be at `to`, so the link to the next one must remain. */
	memcpy(to, from, offsetof(struct query_run, own_open));
	to->open = open;
	if (!open)
		query_find_frame(to);
	to->counts.open = to->open;
	to->counts.start.run = run;
}

/* --- looking ----------------------------------------------------------------------- */

#define TEXT_MAX (1u << 20)

/* At most TEXT_MAX bytes of a text that may be freed at any moment. NULL: it was freed, or memory ran out. */
static char *copy_text(const char *from)
{
	size_t size = 0, room = 0, part;
	char *text = NULL;

	while (from && size == room && room < TEXT_MAX) {
		room = room != 0 ? room * 4 : STACK_COPY_BYTES;
		char *larger = realloc(text, room + 1);
		if (larger)
			text = larger;
		if (!larger || !stack_copy_text(from + size, text + size, room - size, &part)) {
			free(text);
			return NULL;
		}
		size += part;
	}
	if (text)
		text[size] = '\0';
	return text;
}

void query_view_free(struct query_view *view)
{
	free(view->text);
	free(view->database);
	free(view->query_id);
	view->text = view->database = view->query_id = NULL;
}

/* Clocks of a query_run. If a call begins or ends meanwhile, the sum is inconsistent, and the next
 * look corrects it. */
struct query_clocks {
	uint64_t start_monotonic_ns, entered_cpu_ns, cpu_ns, execution_ns;
	bool is_always_inside;
};

static void read_clocks(struct query_view *view, const struct query_clocks *clocks)
{
	uint64_t monotonic = clock_ns(CLOCK_MONOTONIC), cpu = 0;
	/* Not in a forked child, where it belongs to a thread of the parent. */
	bool is_known = view->working != 0 && cpu_clock_of(view->working, &cpu);

	view->elapsed_ns =
		monotonic > clocks->start_monotonic_ns ? monotonic - clocks->start_monotonic_ns : 0;
	view->cpu_time_ns = clocks->cpu_ns;
	if (is_known && cpu > clocks->entered_cpu_ns)
		view->cpu_time_ns += cpu - clocks->entered_cpu_ns;
	/* The call's beginning was estimated. */
	if (view->cpu_time_ns > view->elapsed_ns)
		view->cpu_time_ns = view->elapsed_ns;
	if (!clocks->is_always_inside) {
		uint64_t call_ns = view->working != 0 ? query_since(view->entered_ns, monotonic) : 0;
		view->outside_ns = query_since(clocks->execution_ns + call_ns, view->elapsed_ns);
	}
	if (!is_known)
		view->working = 0;
}

/* As opcode_start(), of a statement that may go at any moment; 0 while a trigger runs. */
__attribute__((no_sanitize("thread"))) static uint64_t
read_bytecode(const volatile struct query_counts *counts)
{
	const struct opcode_locations *at = counts->opcodes;
	const uintptr_t statement = (uintptr_t)counts->statement;
	uintptr_t opcodes, frame;

	if (!counts->start.bytecode || !at || !statement ||
	    !stack_copy_part(statement + at->a_op, &opcodes, sizeof(opcodes)) ||
	    !stack_copy_part(statement + at->frame, &frame, sizeof(frame)) || frame ||
	    opcodes != (uintptr_t)counts->start.opcodes)
		return 0;
	return counts->start.bytecode;
}

/* A run may be written while it is read here; the copy is discarded then. */
__attribute__((no_sanitize("thread"))) static bool inspect_run(const struct query_run *run,
                                                               struct query_view *view)
{
	/* Acquire: with query_show(). */
	uint64_t version = __atomic_load_n(&run->version, __ATOMIC_ACQUIRE);
	uint64_t mark, mark_of;

	if ((version & 1) == 0)
		return false;
	const volatile struct query_run *seen = run;
	*view = (struct query_view){
		.key = { seen->key.hi, seen->key.lo },
		.initial = { seen->counts.start.initial.hi, seen->counts.start.initial.lo },
		.parent = { seen->counts.start.parent.hi, seen->counts.start.parent.lo },
		.run = seen->counts.start.run,
		.session = seen->session,
		.thread_id = seen->counts.start.thread_id,
		.working = seen->working,
		.start_realtime_ns = seen->counts.start.realtime_ns,
		.entered_ns = seen->entered_ns,
		.rows = seen->rows,
		.library = seen->library,
		.is_logged = seen->is_logged,
		.publish_after_ns = seen->publish_after_ns,
	};
	for (int type = 0; type < SAMPLE_QUERY_TYPES; type++)
		view->samples[type] = seen->counts.samples[type];
	struct query_clocks clocks = {
		.start_monotonic_ns = seen->start_monotonic_ns,
		.entered_cpu_ns = seen->entered_cpu_ns,
		.cpu_ns = seen->cpu_ns,
		.execution_ns = seen->execution_ns,
		.is_always_inside = seen->counts.has_threads,
	};
	mark = seen->mark;
	mark_of = seen->mark_of;
	view->bytecode = read_bytecode(&seen->counts);
	view->text = copy_text(seen->text);
	view->database = copy_text(seen->database);
	view->query_id = copy_text(seen->query_id);
	read_clocks(view, &clocks);
	/* All of the above came before this look at the version. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&run->version, __ATOMIC_RELAXED) != version) {
		query_view_free(view);
		return false;
	}
	if (view->text && ((query_first_word(view->text) ^ mark) & mark_of)) {
		free(view->text);
		view->text = NULL;
	}
	return true;
}

struct query_run *query_next_shown(struct query_run *last, struct query_view *view)
{
	struct query_run *run = last ? last->next : __atomic_load_n(&listed, __ATOMIC_ACQUIRE);

	while (run && !inspect_run(run, view))
		run = run->next;
	return run;
}

bool query_inspect(const struct query_run *run, struct query_key key, struct query_view *view)
{
	if (!inspect_run(run, view))
		return false;
	if (view->key.hi == key.hi && view->key.lo == key.lo)
		return true;
	query_view_free(view);
	return false;
}

/* --- runs that are open ------------------------------------------------------------- */

static bool is_to_be_logged(bool is_logged, uint64_t publish_after_ns)
{
	return is_logged && publish_after_ns != QUERY_NOT_PUBLISHED;
}

/* As the handler and query_publish_start() do. */
static void publish(const struct query_view *view)
{
	const size_t size = view->text ? strnlen(view->text, START_TEXT_MAX) : 0;
	struct ring *ring = sampler_ring();
	struct start_record *record = ring ? ring_try_reserve(ring, sizeof(*record) + size) : NULL;

	if (!record)
		return;
	*record = (struct start_record){ .query = view->key,
		                         .run = { .state = START_PUBLISHED,
		                                  .thread_id = view->thread_id,
		                                  .realtime_ns = view->start_realtime_ns,
		                                  .initial = view->initial,
		                                  .parent = view->parent,
		                                  .run = view->run,
		                                  .bytecode = view->bytecode },
		                         .open_until_ns = view->start_realtime_ns + view->elapsed_ns,
		                         .outside_ns = view->outside_ns,
		                         .text_size = size };
	if (size != 0)
		memcpy(record->text, view->text, size);
	ring_commit(ring, record, RECORD_START);
}

/* As query_next_shown(). Without its text it is one that was left unseen, if it is open at all. */
static struct query_run *next_open(struct query_run *run, struct query_view *view)
{
	while ((run = query_next_shown(run, view)) &&
	       (!is_to_be_logged(view->is_logged, view->publish_after_ns) || !view->text))
		query_view_free(view);
	return run;
}

void query_publish_open(void)
{
	struct query_view view;

	for (struct query_run *run = NULL; (run = next_open(run, &view)); query_view_free(&view))
		if (view.elapsed_ns >= view.publish_after_ns)
			publish(&view);
}

int64_t query_youngest_open_ns(void)
{
	uint64_t youngest_ns = UINT64_MAX;
	struct query_view view;

	for (struct query_run *run = NULL; (run = next_open(run, &view)); query_view_free(&view))
		if (view.elapsed_ns < youngest_ns)
			youngest_ns = view.elapsed_ns;
	return (int64_t)youngest_ns; /* UINT64_MAX: -1 */
}

__attribute__((no_sanitize("thread"))) /* as inspect_run() */
bool query_any_open(void)
{
	const struct query_run *run = __atomic_load_n(&listed, __ATOMIC_ACQUIRE);

	while (run && ((__atomic_load_n(&run->version, __ATOMIC_RELAXED) & 1) == 0 ||
	               !is_to_be_logged(run->is_logged, run->publish_after_ns)))
		run = run->next;
	return run != NULL;
}
