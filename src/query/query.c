/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of queries: clocks, record.
 */
#include "query/query.h"

#include <string.h>

#include "base/text.h"
#include "base/hot_path.h"
#include "collect/open_runs.h"
#include "collect/ring_reader.h"
#include "collect/state.h"
#include "handler/context.h"
#include "handler/labels.h"
#include "handler/opcode.h"
#include "handler/ring.h"
#include "handler/running.h"
#include "query/account.h"
#include "query/begin.h"
#include "query/cpu_clock.h"
#include "query/statement_stats.h"
#include "query/turn.h"
#include "query/watch_cost.h"
#include "handler/budget.h"
#include "timers/random.h"
#include "wire/query_record.h"

/* Texts other than the statement are short by nature; a longer one is cut. */
#define SIDE_TEXT_MAX 4096u
#define RING_SHARE 16

void query_find_frame(struct query_run *run)
{
	struct open_run *shared = shared_entries_acquire(&open_runs);

	run->open = shared ? shared : &run->own_open;
	run->counts.open = run->open;
}

/* --- a run ----------------------------------------------------------------------------- */

void query_start(struct query_run *run, struct thread *thread)
{
	query_begin(run, thread, false);
}

void query_find_around(struct query_run *run, const struct thread *thread, const void *frame)
{
	bool waits;
	const struct query_tag *tag = query_running(thread, (uintptr_t)frame, &waits);

	/* A query of queryprof's own has no key. */
	if (tag && (tag->key.hi || tag->key.lo))
		query_set_around(run, tag->counts->start.initial, tag->key);
}

void query_start_clocks(struct query_run *run, struct thread *thread)
{
	query_enter_clocks(run, thread);
	run->start_monotonic_ns = run->left_ns = run->entered_ns;
}

void query_enter_slowly(struct query_run *run, struct thread *thread)
{
	cpu_clock_before(thread, NULL);
	query_enter_at(run, thread, fast_clock_ns(&thread->clock));
}

/* The CPU clock of the thread that entered the call, which a coroutine may have left; it may
 * have ended. */
static uint64_t cpu_time_at(const struct query_run *run, struct thread *thread, uint64_t now)
{
	uint64_t cpu_ns = run->entered_cpu_ns;

	if (run->working != thread->id) {
		cpu_clock_of(run->working, &cpu_ns);
		return cpu_ns;
	}
	return cpu_clock_until(thread, now);
}

void query_leave_slowly(struct query_run *run, struct thread *thread, uint64_t now)
{
	uint64_t took = query_since(run->entered_ns, now);
	uint64_t cpu_ns = query_since(run->entered_cpu_ns, cpu_time_at(run, thread, now));

	cpu_ns = cpu_ns < took ? cpu_ns : took;
	query_leave_at(run, took, cpu_ns);
	if (thread->cpu_read_at_ns < now)
		run->cpu_estimated_ns += cpu_ns;
}

/* --- rows that are not all measured --------------------------------------------------------- */

/* Reads the clock at the end of a part, which may be interrupted at any point: between the two the thread has
 * its flag, and so what the reading has of an interruption makes the part that ends a disturbed one. */
static uint64_t read_part(const struct query_run *run, struct thread *thread, bool *is_whole)
{
	bool was_set = turn_renew(thread), was_alone = thread->clock.newest == run->entered_ns;
	uint64_t now = fast_clock_ns(&thread->clock);

	*is_whole = was_set && was_alone && switch_flag_is_set();
	/* A thread that still has its flag has not given its processor up since. */
	if (*is_whole)
		thread->seen_ns = now;
	return now;
}

/* The next part begins with the newest reading: what a reading of the CPU clock took is of none. */
static void start_part(struct query_run *run, const struct thread *thread)
{
	run->entered_ns = thread->clock.newest;
	run->entered_cpu_ns = cpu_clock_estimate(thread, run->entered_ns);
}

void query_enter_among_rows(struct query_run *run, struct thread *thread, bool is_step)
{
	bool is_whole;
	uint64_t now = read_part(run, thread, &is_whole);

	if (!cpu_clock_is_valid(thread, now)) {
		cpu_clock_before(thread, NULL);
		now = fast_clock_ns(&thread->clock);
	}
	rows_pass(&run->row_times, &(struct rows_passed){ .ns = (double)query_since(run->entered_ns, now),
	                                                  .part = ROWS_PROGRAM,
	                                                  .is_whole = is_whole,
	                                                  .is_likely = !is_step });
	query_enter_at(run, thread, now);
}

/* The sums of all rows until now. */
static void sum_rows(struct query_run *run)
{
	uint64_t most = run->left_ns - run->start_monotonic_ns, cpu_ns;

	run->execution_ns = rows_execution_ns(&run->row_times);
	if (run->execution_ns > most)
		run->execution_ns = most;
	cpu_ns = rows_cpu_ns(&run->row_times);
	if (cpu_ns > run->execution_ns)
		cpu_ns = run->execution_ns;
	run->cpu_estimated_ns += cpu_ns - run->cpu_ns;
	run->cpu_ns = cpu_ns;
}

void query_leave_among_rows(struct query_run *run, struct thread *thread)
{
	struct row_times *rows = &run->row_times;
	bool is_whole;
	uint64_t now = read_part(run, thread, &is_whole), took = query_since(run->entered_ns, now), cpu_ns;

	span_run_leave(&run->span);
	cpu_ns = query_since(run->entered_cpu_ns, cpu_time_at(run, thread, now));
	rows_pass(rows,
	          &(struct rows_passed){ .ns = (double)took, .part = ROWS_INSIDE, .is_whole = is_whole });
	rows->off_ns += cpu_ns < took ? (double)(took - cpu_ns) : 0;
	run->left_ns = now;
	rows_next(rows, run->rows + 1, (double)(now - run->start_monotonic_ns));
	sum_rows(run);
	run->open->entered_ns = 0;
	run->open->execution_ns = run->execution_ns;
	__atomic_store_n(&run->working, 0, __ATOMIC_RELAXED);
	start_part(run, thread);
}

/* A run has had ROWS_LEARNED_FROM rows, and all of them are measured. */
static void leave_learning(struct query_run *run, struct thread *thread)
{
	struct row_times *rows = &run->row_times;
	uint64_t program_ns = query_since(run->left_ns, run->entered_ns), before_ns = run->execution_ns;
	bool is_whole;

	query_leave(run, thread);
	if (run->span.id || run->counts.has_threads || !switch_flag_is_possible()) {
		rows->from = ROWS_ALL;
		return;
	}
	is_whole = turn_renew(thread);
	const double parts_ns[ROWS_PARTS] = {
		[ROWS_PROGRAM] = (double)program_ns, [ROWS_INSIDE] = (double)(run->execution_ns - before_ns)
	};
	if (!rows_learn(rows, run->rows, (double)(run->left_ns - run->start_monotonic_ns),
	                is_whole ? parts_ns : NULL))
		return;
	rows_start(rows, random_next(thread), run->execution_ns, run->cpu_ns);
	turn_renew(thread);
	fast_clock_ns(&thread->clock);
	start_part(run, thread);
}

void query_leave_row(struct query_run *run, struct thread *thread)
{
	if (run->row_times.is_on || run->rows < run->row_times.from)
		query_leave(run, thread);
	else
		leave_learning(run, thread);
}

/* While it is paused a run holds how long it has run instead of when it began. */
void query_pause(struct query_run *run)
{
	run->prepare_ns = run->start_monotonic_ns = run->left_ns - run->start_monotonic_ns;
}

void query_resume(struct query_run *run, struct thread *thread)
{
	run->left_ns = fast_clock_ns(&thread->clock);
	run->start_monotonic_ns = run->left_ns - run->start_monotonic_ns;
	run->counts.start.thread_id = thread->id;
}

/* False: there is no ring, or it is full. */
static bool put_start(const struct query_run *run, const char *text)
{
	size_t size = text ? strnlen(text, START_TEXT_MAX) : 0;
	struct ring *ring = sampler_ring();
	struct start_record *record = ring ? ring_reserve(ring, sizeof(*record) + size) : NULL;

	if (!record)
		return false;
	*record = (struct start_record){ .query = run->key,
		                         .run = opcode_start(&run->counts),
		                         .text_size = size };
	if (size != 0)
		memcpy(record->text, text, size);
	ring_commit(ring, record, RECORD_START);
	return true;
}

void query_publish_start(struct query_run *run)
{
	struct run_start *start = &run->counts.start;

	if (put_start(run, start->text))
		__atomic_store_n(&start->state, START_PUBLISHED, __ATOMIC_RELAXED);
}

void query_withdraw(struct query_run *run)
{
	enum start_state state = __atomic_exchange_n(&run->counts.start.state, START_KEPT, __ATOMIC_RELAXED);

	if (state == START_PUBLISHED || state == START_DUE_AGAIN)
		put_start(run, NULL);
}

/* Most runs have nothing else, but adding zeroes takes no longer. */
static bool is_plain(const struct query_run *run, const struct query_work *work)
{
	uint64_t rest = run->counts.start.parent.hi | run->counts.start.parent.lo | run->prepare_ns;

	return work &&
	       !(rest | (uint64_t)work->exception_code | work->sorts | work->autoindexes | work->reprepares);
}

static void sum_rest(const struct query_run *run, const struct query_work *work, uint64_t *sums)
{
	bool is_nested = run->counts.start.parent.hi || run->counts.start.parent.lo;

	sums[STATEMENT_NESTED_NS] = is_nested ? run->execution_ns : 0;
	sums[STATEMENT_NESTED_CPU_NS] = is_nested ? run->cpu_ns : 0;
	sums[STATEMENT_PREPARES] = !work || run->prepare_ns;
	sums[STATEMENT_PREPARE_NS] = work ? run->prepare_ns : sums[STATEMENT_DURATION_NS];
	sums[STATEMENT_ERRORS] = work && work->exception_code;
	sums[STATEMENT_SORTS] = work ? work->sorts : 0;
	sums[STATEMENT_AUTOINDEXES] = work ? work->autoindexes : 0;
	sums[STATEMENT_REPREPARES] = work ? work->reprepares : 0;
}

void query_count(const struct query_run *run, uint64_t statement, uint32_t thread,
                 const struct query_work *work)
{
	struct statement_run counted;
	uint64_t *sums = counted.sums;

	sums[STATEMENT_CALLS] = work != NULL;
	sums[STATEMENT_ROWS] = work ? work->rows : 0;
	sums[STATEMENT_EXECUTION_NS] = run->execution_ns;
	sums[STATEMENT_CPU_NS] = run->cpu_ns;
	sums[STATEMENT_CPU_ESTIMATED_NS] = run->cpu_estimated_ns;
	sums[STATEMENT_DURATION_NS] = run->left_ns - run->start_monotonic_ns;
	sums[STATEMENT_VM_STEPS] = work ? work->vm_steps : 0;
	sums[STATEMENT_FULLSCAN_STEPS] = work ? work->fullscan_steps : 0;
	counted.seen_ns = run->counts.start.realtime_ns;
	counted.is_plain = is_plain(run, work);
	if (!counted.is_plain)
		sum_rest(run, work, sums);
	statement_stats_add(statement, thread, &counted);
}

/* Another thread may be reading the sums. */
__attribute__((no_sanitize("thread"))) HOT_PATH bool query_count_plain(const struct query_run *run,
                                                                       uint64_t statement, uint32_t thread,
                                                                       uint64_t vm_steps,
                                                                       uint64_t fullscan_steps)
{
	struct statement_counts *to = NULL;

	if (!(run->counts.start.parent.hi | run->counts.start.parent.lo | run->prepare_ns))
		to = statement_stats_enter(statement, thread);
	if (!to)
		return false;
	statement_counts_add_plain(to, &(const struct statement_plain_run){
					       .rows = run->rows,
					       .execution_ns = run->execution_ns,
					       .cpu_ns = run->cpu_ns,
					       .cpu_estimated_ns = run->cpu_estimated_ns,
					       .duration_ns = run->left_ns - run->start_monotonic_ns,
					       .vm_steps = vm_steps,
					       .fullscan_steps = fullscan_steps,
					       .seen_ns = run->counts.start.realtime_ns,
				       });
	statement_stats_detach(to);
	return true;
}

bool query_end_run(struct query_run *run, const struct query_ending *ending)
{
	const int64_t code = ending->exception_code;
	const bool is_logged = ending->is_wanted || query_is_worth_a_row(run, ending->least_ns) ||
	                       (code && statement_stats_is_first_failure(ending->statement, (int)code));
	const struct query_span_end span = { ending->statement, is_logged, ending->is_preparation,
		                             code != 0 };

	if (!ending->is_without_span)
		query_end_span(run, &span);
	return is_logged;
}

void query_finish_span(struct query_run *run, const struct query_span_end *end)
{
	const struct query_key none = { 0 };
	const struct span_run_end of_run = {
		.start_ns = run->start_monotonic_ns,
		.duration_ns = run->left_ns - run->start_monotonic_ns,
		.key = end->is_logged ? run->key : none,
		.hash = statement_stats_hash(end->statement),
		.is_preparation = end->is_preparation,
		.is_failed = end->is_failed,
	};

	span_run_finish(&run->span, &of_run);
}

/* --- the record ------------------------------------------------------------------- */

enum {
	TEXT_QUERY_ID,
	TEXT_QUERY,
	TEXT_DATABASE,
	TEXT_EXCEPTION,
	TEXT_LIBRARY,
	TEXT_CALL_STACK,
	TEXT_EXPANDED,
	TEXTS
};

struct text {
	const char *start;
	size_t size;
};

/* Cuts to at most `size` bytes, not inside a UTF-8 character. */
static void cut_text(struct text *text, size_t size, uint32_t *flags)
{
	if (text->size <= size)
		return;
	text->size = text_cut(text->start, size);
	*flags |= QUERY_TEXT_CUT;
}

static void fit_texts(struct text texts[TEXTS], size_t room, uint32_t *flags)
{
	static const int side[] = { TEXT_QUERY_ID, TEXT_DATABASE, TEXT_EXCEPTION, TEXT_LIBRARY };
	uint32_t side_flags = 0; /* the flag is about the statement's text */

	for (size_t i = 0; i < sizeof(side) / sizeof(side[0]); i++) {
		struct text *text = &texts[side[i]];
		/* Each leaves as much to the others and to the statement. */
		cut_text(text, room / 4 < SIDE_TEXT_MAX ? room / 4 : SIDE_TEXT_MAX, &side_flags);
		room -= text->size;
	}
	cut_text(&texts[TEXT_QUERY], room, flags);
	room -= texts[TEXT_QUERY].size;
	/* These are whole, or not there. */
	for (int i = TEXT_CALL_STACK; i <= TEXT_EXPANDED; i++) {
		if (texts[i].size > room)
			texts[i].size = 0;
		room -= texts[i].size;
	}
}

static struct text text_of(const char *start)
{
	return (struct text){ start, start ? strlen(start) : 0 };
}

static uint64_t load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* How the time inside SQLite was spent. Time that is neither CPU time nor waits was spent in a run
 * queue, as far as the kernel counts it. If a wait ended late because no processor was free, that
 * delay is part of the wait. The rest is not measured: page faults, other waits, processors that a
 * hypervisor took. */
static void fill_waits(struct query_record *record, const struct query_run *run)
{
	struct thread *thread = thread_current;
	uint64_t left = query_since(run->cpu_ns, run->execution_ns);

	for (int sum = 0; sum < WAIT_SUMS; sum++)
		record->waits[sum] = run->counts.has_waits ? run->counts.waits[sum] : 0;
	for (int sum = 0; sum < WAIT_TIMES; sum++)
		left = query_since(record->waits[sum], left);
	record->account = (struct thread_account){ 0 };
	if (thread && thread->id == run->counts.start.thread_id &&
	    run->left_ns - run->start_monotonic_ns >= ACCOUNT_VALID_NS) {
		account_read(thread);
		record->account = account_since(&run->account, &thread->account);
		if (record->account.run_delay_ns > left)
			record->account.run_delay_ns = left;
	}
	record->rest_ns = left - record->account.run_delay_ns;
}

static void fill_record(struct query_record *record, const struct query_run *run, const struct query_end *end)
{
	record->query = run->key;
	record->initial = run->counts.start.initial;
	record->parent = run->counts.start.parent;
	record->start_realtime_ns = run->counts.start.realtime_ns;
	record->result_rows = end->work.rows;
	record->vm_steps = end->work.vm_steps;
	record->fullscan_steps = end->work.fullscan_steps;
	record->sorts = end->work.sorts;
	record->autoindexes = end->work.autoindexes;
	record->memory_usage = end->memory_usage;
	record->bytecode = end->bytecode;
	record->off_cpu_period_ns = end->off_cpu_period_ns;
	for (int type = 0; type < SAMPLE_QUERY_TYPES; type++) {
		record->samples[type] = load(&run->counts.samples[type]);
		record->weights[type] = load(&run->counts.weights[type]);
	}
	record->labels[0] = run->labels;
	record->threads = run->threads ? run->threads : 1;
	record->context = (struct trace_context){ .span_id = { 0 } };
	if (thread_current)
		context_read(thread_current, &record->context);
	record->labels[1] = run->counts.labels;
	record->samples_dropped = load(&run->counts.dropped);
	record->profiler_cost_ns =
		load(&run->counts.cost_ns) +
		(load(&run->counts.samples[SAMPLE_CPU]) + load(&run->counts.samples[SAMPLE_REAL])) *
			budget_figure(BUDGET_SIGNAL_NS) +
		watch_cost_of(1, end->work.rows);
	record->samples_truncated = load(&run->counts.truncated);
	record->exception_code = end->work.exception_code;
	record->thread_id = run->counts.start.thread_id;
	record->worker_cpu_time_ns = load(&run->counts.worker_cpu_ns);
	record->worker_wait_ns = load(&run->counts.worker_wait_ns);
}

void query_finish(const struct query_run *run, const struct query_end *end)
{
	uint64_t duration_ns = run->left_ns - run->start_monotonic_ns;
	struct ring *ring = sampler_ring();
	struct text texts[TEXTS] = {
		[TEXT_QUERY_ID] = text_of(end->query_id),
		[TEXT_QUERY] = text_of(end->query),
		[TEXT_DATABASE] = text_of(end->database),
		[TEXT_EXCEPTION] = text_of(end->exception),
		[TEXT_LIBRARY] = text_of(end->library),
		[TEXT_EXPANDED] = text_of(end->expanded),
		[TEXT_CALL_STACK] = { end->call_stack, end->call_stack_size },
	};
	size_t size = sizeof(struct query_record);
	uint32_t flags = 0;

	if (!ring)
		return;
	size_t share = ring_bytes(ring) / RING_SHARE;
	size_t limit = share > RING_MIN_BYTES / 2 ? share : ring_max_payload(ring);
	fit_texts(texts, limit - size, &flags);
	for (int i = 0; i < TEXTS; i++)
		size += texts[i].size;

	struct query_record *record = ring_reserve(ring, size);
	if (!record)
		return;
	fill_record(record, run, end);
	record->duration_ns = duration_ns;
	record->execution_time_ns = run->execution_ns;
	record->execution_error_ns = rows_error_ns(&run->row_times);
	fill_waits(record, run);
	record->cpu_time_ns = run->cpu_ns;
	record->prepare_time_ns = end->was_prepared_only ? duration_ns : run->prepare_ns;
	record->flags = flags;
	record->query_id_size = (uint32_t)texts[TEXT_QUERY_ID].size;
	record->query_size = (uint32_t)texts[TEXT_QUERY].size;
	record->database_size = (uint32_t)texts[TEXT_DATABASE].size;
	record->exception_size = (uint32_t)texts[TEXT_EXCEPTION].size;
	record->library_size = (uint32_t)texts[TEXT_LIBRARY].size;
	record->call_stack_size = (uint32_t)texts[TEXT_CALL_STACK].size;
	record->expanded_size = (uint32_t)texts[TEXT_EXPANDED].size;
	char *to = record->text;
	for (int i = 0; i < TEXTS; i++) {
		if (texts[i].size != 0)
			memcpy(to, texts[i].start, texts[i].size);
		to += texts[i].size;
	}
	ring_commit(ring, record, RECORD_QUERY);
}
