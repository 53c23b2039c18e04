/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/look.h"

#include <dirent.h>
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

/* So much of a stack is copied. */
#define STACK_MAX (256u << 10)
#define RED_ZONE 128

/* A thread in uninterruptible sleep cannot be stopped: for so long it is waited for. */
#define NAPS 20
#define NAP_NS 5000000

struct looking {
	struct look *look;
	const struct target *target;
	const struct sqlite_codes *codes;
	struct walk *walk;
	struct stopped stopped;
	struct walk_start start;
	unsigned char *stack;
	uint64_t outermost; /* where the outermost frame of sqlite3_step() was at the thread's first stop */
};

/* --- one stop ------------------------------------------------------------------------------------------- */

static void copy_stack(struct looking *looking)
{
	const uint64_t at = looking->stopped.registers.rsp - RED_ZONE;
	struct iovec here = { looking->stack, STACK_MAX }, there = { (void *)(uintptr_t)at, STACK_MAX };
	/* Up to the end of the mapping. */
	const ssize_t size = process_vm_readv(looking->target->process, &here, 1, &there, 1, 0);

	looking->start = (struct walk_start){ .registers = &looking->stopped.registers,
		                              .copy = looking->stack,
		                              .at = at,
		                              .size = size > 0 ? (size_t)size : 0 };
}

/* Stops the thread, copies its stack, has `see` look at it, and lets it continue. */
static bool stop(struct looking *looking, struct look_thread *thread,
                 void (*see)(struct looking *looking, struct look_thread *thread))
{
	uint64_t begin, ns;

	thread->state = process_state(looking->target->process, thread->id);
	for (int i = 0; i < NAPS && thread->state == 'D'; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		thread->state = process_state(looking->target->process, thread->id);
	}
	thread->error = !thread->state || strchr("ZX", thread->state) ? ESRCH
	                : thread->state == 'D'                        ? EAGAIN
	                                                              : 0;
	if (thread->error)
		return false;
	thread->error = stopped_begin(&looking->stopped, looking->target->process, thread->id);
	if (thread->error)
		return false;
	begin = clock_ns(CLOCK_MONOTONIC);
	copy_stack(looking);
	if (see)
		see(looking, thread);
	stopped_end(&looking->stopped);
	ns = clock_ns(CLOCK_MONOTONIC) - begin;
	if (ns > thread->stopped_ns)
		thread->stopped_ns = ns;
	thread->call = stopped_call_number(&looking->stopped);
	thread->state = thread->call >= 0 ? 'S' : 'R'; /* not that of before, from which it has been woken */
	return true;
}

/* --- statements ----------------------------------------------------------------------------------- */

struct step {
	const struct sqlite_code *code;
	struct running_frame frame;
	uint32_t number; /* of the frame */
};

/* The frames of sqlite3_step() up to the outermost. */
struct steps {
	struct looking *looking;
	uint32_t frames;
	bool awaits_end; /* of the newest step's frame */
	size_t count;
	struct step list[LOOK_STATEMENTS];
	uint64_t last; /* no frame beyond this stack address is one, as far as is known */
};

static bool visit_step(void *context, Dwfl_Frame *frame, uint64_t address)
{
	struct steps *steps = context;
	const struct sqlite_code *code = sqlite_codes_step_at(steps->looking->codes, address);
	uint64_t stack = 0;

	if (steps->awaits_end || steps->last)
		(void)walk_register(steps->looking->walk, frame, WALK_STACK_POINTER, &stack);
	if (steps->awaits_end)
		steps->list[steps->count - 1].frame.stack_end = stack;
	steps->awaits_end = false;
	if (steps->last && stack > steps->last)
		return false;
	if (code && steps->count < LOOK_STATEMENTS) {
		struct step *step = &steps->list[steps->count++];

		step->code = code;
		step->number = steps->frames;
		running_frame_read(&step->frame, steps->looking->walk, frame);
		steps->awaits_end = true;
	}
	return ++steps->frames < LOOK_FRAMES;
}

static void add_statement(struct looking *looking, struct look_thread *thread, const struct step *step)
{
	struct look *look = looking->look;
	struct look_statement *added = &thread->statements[thread->statement_count++];
	const pid_t process = looking->target->process;
	const uint64_t statement = running_statement(&step->frame, step->code, &looking->start, process);
	size_t room = LOOK_TEXTS - look->text_used;

	*added = (struct look_statement){
		.frame = step->number,
		.library = (uint32_t)(step->code - looking->codes->list.items),
		.text = look->text_used,
	};
	if (statement && room > 1)
		added->size =
			(uint32_t)running_text(statement, step->code, process, look->texts + look->text_used,
		                               room < LOOK_TEXT_MAX ? room : LOOK_TEXT_MAX, &added->is_cut);
	look->text_used += added->size ? added->size + 1 : 0;
}

/* While the thread is stopped: libdw has read the CFI that it needs for this at the first stop. */
static void see_statements(struct looking *looking, struct look_thread *thread)
{
	struct steps steps = { .looking = looking, .last = looking->outermost };

	(void)walk_frames(looking->walk, thread->id, &looking->start, visit_step, &steps);
	for (size_t i = 0; i < steps.count; i++)
		add_statement(looking, thread, &steps.list[i]);
}

/* --- a thread ------------------------------------------------------------------------------------- */

static bool visit_any(void *context, Dwfl_Frame *frame, uint64_t address)
{
	struct look_thread *thread = context;

	(void)frame;
	if (thread->frame_count == LOOK_FRAMES)
		return false;
	thread->frames[thread->frame_count++] = address;
	return true;
}

static void look_at_thread(struct looking *looking, struct look_thread *thread)
{
	struct steps steps = { .looking = looking };

	thread->call = -1;
	if (!stop(looking, thread, NULL))
		return;
	/* Also reads what libdw needs for the next time. */
	(void)walk_frames(looking->walk, thread->id, &looking->start, visit_step, &steps);
	if (steps.count) {
		looking->outermost = steps.list[steps.count - 1].frame.stack;
		if (!stop(looking, thread, see_statements))
			return;
	}
	thread->is_whole = walk_frames(looking->walk, thread->id, &looking->start, visit_any, thread);
}

static int compare_ids(const void *a, const void *b)
{
	const pid_t first = ((const struct look_thread *)a)->id, second = ((const struct look_thread *)b)->id;

	return (first > second) - (first < second);
}

/* False: there are none any more. */
static bool list_threads(struct looking *looking)
{
	struct look *look = looking->look;
	const struct dirent *entry;
	char path[32];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)looking->target->process);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		if (look->count < LOOK_THREADS)
			look->threads[look->count++].id = (pid_t)atoi(entry->d_name);
		else
			look->unseen++;
	}
	if (tasks)
		closedir(tasks);
	qsort(look->threads, look->count, sizeof(look->threads[0]), compare_ids);
	return look->count != 0;
}

static void say_why(const struct looking *looking, int error)
{
	char *sentence = looking->look->sentence;

	if (error == EPERM)
		(void)target_refuse(looking->target, sentence);
	else
		snprintf(sentence, SENTENCE_SIZE,
		         error == EBUSY ? "it is stopped by a signal: let it continue first (kill -CONT %d)"
		                        : "a thread of it (%d) cannot be stopped: %s",
		         (int)looking->target->process, strerror(error));
}

/* The kernel stops that thread later, so this process ends before: the others are not looked at. */
static void skip_threads(struct look *look, uint32_t first)
{
	for (uint32_t i = first; i < look->count; i++)
		look->threads[i].error = EAGAIN;
}

/* Whether the others may be looked at after such an error. */
static bool is_thread_alone(int error)
{
	return !error || error == ESRCH || error == EAGAIN;
}

static void look_at_threads(void *context)
{
	struct looking *looking = context;
	struct look *look = looking->look;

	looking->walk = walk_open(looking->target->process);
	looking->stack = malloc(STACK_MAX);
	if (!looking->walk || !looking->stack) {
		snprintf(look->sentence, sizeof(look->sentence),
		         "stacks cannot be read without libdw: install elfutils' library (libdw1)");
		return;
	}
	memset(looking->stack, 0, STACK_MAX); /* or the copy would be the first to touch its pages */
	if (!list_threads(looking))
		snprintf(look->sentence, sizeof(look->sentence), "it has ended");
	for (uint32_t i = 0; i < look->count && !look->sentence[0]; i++) {
		look_at_thread(looking, &look->threads[i]);
		if (look->threads[i].error == ETIMEDOUT) {
			skip_threads(look, i);
			break;
		}
		if (!is_thread_alone(look->threads[i].error))
			say_why(looking, look->threads[i].error);
	}
}

struct look *look_take(const struct target *target, const struct sqlite_codes *codes)
{
	struct looking *looking = calloc(1, sizeof(*looking));
	struct look *look = looking ? helper_memory(sizeof(*look)) : NULL;

	if (look) {
		*looking = (struct looking){ .look = look, .target = target, .codes = codes };
		if (!helper_run(look_at_threads, looking) && !look->sentence[0])
			snprintf(look->sentence, sizeof(look->sentence), "%s",
			         errno ? strerror(errno)
			               : "the process of this command that stops threads has ended");
	}
	free(looking);
	return look;
}

void look_free(struct look *look)
{
	if (look)
		munmap(look, sizeof(*look));
}
