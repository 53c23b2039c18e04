/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/inspection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "cmd/attach/helper.h"
#include "cmd/attach/running.h"
#include "cmd/attach/stopped.h"
#include "cmd/attach/walk.h"
#include "cmd/ui/process_files.h"

/* The most that is copied of a stack. */
#define STACK_MAX (256u << 10)
#define RED_ZONE 128

/* A thread in uninterruptible sleep cannot be stopped. This is how long to wait for it. */
#define NAPS 20
#define NAP_NS 5000000

struct inspecting {
	struct inspection *inspection;
	const struct target *target;
	const struct sqlite_codes *codes;
	struct walk *walk;
	struct stopped stopped;
	struct walk_start start;
	unsigned char *stack;
	uint64_t outermost; /* where the outermost frame of sqlite3_step() was at the thread's first stop */
};

/* --- one stop ------------------------------------------------------------------------------------------- */

static void copy_stack(struct inspecting *inspecting)
{
	const uint64_t at = inspecting->stopped.registers.rsp - RED_ZONE;
	struct iovec here = { inspecting->stack, STACK_MAX }, there = { (void *)(uintptr_t)at, STACK_MAX };
	/* Up to the end of the mapping. */
	const ssize_t size = process_vm_readv(inspecting->target->process, &here, 1, &there, 1, 0);

	inspecting->start = (struct walk_start){ .registers = &inspecting->stopped.registers,
		                                 .copy = inspecting->stack,
		                                 .at = at,
		                                 .size = size > 0 ? (size_t)size : 0 };
}

/* Stops the thread, copies its stack, calls `see`, and lets the thread continue. */
static bool stop(struct inspecting *inspecting, struct inspected_thread *thread,
                 void (*see)(struct inspecting *inspecting, struct inspected_thread *thread))
{
	uint64_t begin, ns;

	thread->state = process_state(inspecting->target->process, thread->id);
	for (int i = 0; i < NAPS && thread->state == 'D'; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		thread->state = process_state(inspecting->target->process, thread->id);
	}
	thread->error = !thread->state || strchr("ZX", thread->state) ? ESRCH
	                : thread->state == 'D'                        ? EAGAIN
	                                                              : 0;
	if (thread->error)
		return false;
	thread->error = stopped_begin(&inspecting->stopped, inspecting->target->process, thread->id);
	if (thread->error)
		return false;
	begin = clock_ns(CLOCK_MONOTONIC);
	copy_stack(inspecting);
	if (see)
		see(inspecting, thread);
	stopped_end(&inspecting->stopped);
	ns = clock_ns(CLOCK_MONOTONIC) - begin;
	if (ns > thread->stopped_ns)
		thread->stopped_ns = ns;
	thread->call = stopped_call_number(&inspecting->stopped);
	thread->state = thread->call >= 0 ? 'S' : 'R'; /* not that of before, from which it has been woken */
	return true;
}

/* --- statements ----------------------------------------------------------------------------------- */

struct step {
	const struct sqlite_code *code;
	struct running_frame frame;
	uint32_t number; /* of the frame */
};

/* The frames of sqlite3_step(), up to the outermost one. */
struct steps {
	struct inspecting *inspecting;
	uint32_t frames;
	bool awaits_end; /* the stack address of the newest step's frame */
	size_t count;
	struct step list[INSPECTION_STATEMENTS];
	uint64_t last; /* no frame beyond this stack address is one, as far as is known */
};

static bool visit_step(void *context, Dwfl_Frame *frame, uint64_t address)
{
	struct steps *steps = context;
	const struct sqlite_code *code = sqlite_codes_step_at(steps->inspecting->codes, address);
	uint64_t stack = 0;

	if (steps->awaits_end || steps->last)
		(void)walk_register(steps->inspecting->walk, frame, WALK_STACK_POINTER, &stack);
	if (steps->awaits_end)
		steps->list[steps->count - 1].frame.stack_end = stack;
	steps->awaits_end = false;
	if (steps->last && stack > steps->last)
		return false;
	if (code && steps->count < INSPECTION_STATEMENTS) {
		struct step *step = &steps->list[steps->count++];

		step->code = code;
		step->number = steps->frames;
		running_frame_read(&step->frame, steps->inspecting->walk, frame);
		steps->awaits_end = true;
	}
	return ++steps->frames < INSPECTION_FRAMES;
}

static void add_statement(struct inspecting *inspecting, struct inspected_thread *thread,
                          const struct step *step)
{
	struct inspection *inspection = inspecting->inspection;
	struct inspected_statement *added = &thread->statements[thread->statement_count++];
	const pid_t process = inspecting->target->process;
	const uint64_t statement = running_statement(&step->frame, step->code, &inspecting->start, process);
	size_t room = INSPECTION_TEXTS - inspection->text_used;

	*added = (struct inspected_statement){
		.frame = step->number,
		.library = (uint32_t)(step->code - inspecting->codes->list.items),
		.text = inspection->text_used,
	};
	if (statement && room > 1)
		added->size = (uint32_t)running_text(
			statement, step->code, process, inspection->texts + inspection->text_used,
			room < INSPECTION_TEXT_MAX ? room : INSPECTION_TEXT_MAX, &added->is_cut);
	inspection->text_used += added->size ? added->size + 1 : 0;
}

/* While the thread is stopped. libdw has read the CFI that it needs for this at the first stop. */
static void see_statements(struct inspecting *inspecting, struct inspected_thread *thread)
{
	struct steps steps = { .inspecting = inspecting, .last = inspecting->outermost };

	(void)walk_frames(inspecting->walk, thread->id, &inspecting->start, visit_step, &steps);
	for (size_t i = 0; i < steps.count; i++)
		add_statement(inspecting, thread, &steps.list[i]);
}

/* --- a thread ------------------------------------------------------------------------------------- */

static bool visit_any(void *context, Dwfl_Frame *frame, uint64_t address)
{
	struct inspected_thread *thread = context;

	(void)frame;
	if (thread->frame_count == INSPECTION_FRAMES)
		return false;
	thread->frames[thread->frame_count++] = address;
	return true;
}

static void inspect_thread(struct inspecting *inspecting, struct inspected_thread *thread)
{
	struct steps steps = { .inspecting = inspecting };

	thread->call = -1;
	if (!stop(inspecting, thread, NULL))
		return;
	/* Also reads what libdw needs for the next stop. */
	(void)walk_frames(inspecting->walk, thread->id, &inspecting->start, visit_step, &steps);
	if (steps.count) {
		inspecting->outermost = steps.list[steps.count - 1].frame.stack;
		if (!stop(inspecting, thread, see_statements))
			return;
	}
	thread->is_whole = walk_frames(inspecting->walk, thread->id, &inspecting->start, visit_any, thread);
}

static int compare_ids(const void *a, const void *b)
{
	const pid_t first = ((const struct inspected_thread *)a)->id,
		    second = ((const struct inspected_thread *)b)->id;

	return (first > second) - (first < second);
}

/* False: there are no more threads. */
static bool list_threads(struct inspecting *inspecting)
{
	struct inspection *inspection = inspecting->inspection;
	DIR *threads = process_folder(inspecting->target->process, "task");

	for (pid_t thread; (thread = process_next(threads)) >= 0;)
		if (inspection->count < INSPECTION_THREADS)
			inspection->threads[inspection->count++].id = thread;
		else
			inspection->unseen++;
	qsort(inspection->threads, inspection->count, sizeof(inspection->threads[0]), compare_ids);
	return inspection->count != 0;
}

static void say_why(const struct inspecting *inspecting, int error)
{
	char *sentence = inspecting->inspection->sentence;

	if (error == EPERM)
		(void)target_refuse(inspecting->target, sentence);
	else
		snprintf(sentence, SENTENCE_SIZE,
		         error == EBUSY ? "it is stopped by a signal: let it continue first (kill -CONT %d)"
		                        : "a thread of it (%d) cannot be stopped: %s",
		         (int)inspecting->target->process, strerror(error));
}

/* The kernel would stop that thread later. This process ends before that, so it does not look at the other
 * threads. */
static void skip_threads(struct inspection *inspection, uint32_t first)
{
	for (uint32_t i = first; i < inspection->count; i++)
		inspection->threads[i].error = EAGAIN;
}

/* Whether it may look at the other threads after such an error. */
static bool is_thread_alone(int error)
{
	return !error || error == ESRCH || error == EAGAIN;
}

static void inspect_threads(void *context)
{
	struct inspecting *inspecting = context;
	struct inspection *inspection = inspecting->inspection;

	inspecting->walk = walk_open(inspecting->target->process);
	inspecting->stack = malloc(STACK_MAX);
	if (!inspecting->walk || !inspecting->stack) {
		snprintf(inspection->sentence, sizeof(inspection->sentence),
		         "stacks cannot be read without libdw: install elfutils' library (libdw1)");
		return;
	}
	memset(inspecting->stack, 0, STACK_MAX); /* or the copy would be the first to touch its pages */
	if (!list_threads(inspecting))
		snprintf(inspection->sentence, sizeof(inspection->sentence), "it has ended");
	for (uint32_t i = 0; i < inspection->count && !inspection->sentence[0]; i++) {
		inspect_thread(inspecting, &inspection->threads[i]);
		if (inspection->threads[i].error == ETIMEDOUT) {
			skip_threads(inspection, i);
			break;
		}
		if (!is_thread_alone(inspection->threads[i].error))
			say_why(inspecting, inspection->threads[i].error);
	}
}

struct inspection *inspection_make(const struct target *target, const struct sqlite_codes *codes)
{
	struct inspecting *inspecting = calloc(1, sizeof(*inspecting));
	struct inspection *inspection = inspecting ? helper_memory(sizeof(*inspection)) : NULL;

	if (inspection) {
		*inspecting =
			(struct inspecting){ .inspection = inspection, .target = target, .codes = codes };
		if (!helper_run(inspect_threads, inspecting) && !inspection->sentence[0])
			snprintf(inspection->sentence, sizeof(inspection->sentence), "%s",
			         errno ? strerror(errno)
			               : "the process of this command that stops threads has ended");
	}
	free(inspecting);
	return inspection;
}

void inspection_free(struct inspection *inspection)
{
	if (inspection)
		munmap(inspection, sizeof(*inspection));
}
