/* SPDX-License-Identifier: Apache-2.0 */
/* See step.h. */
#include "step.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../lib/thread_stack.h"
#include "wire/record.h"
#include "handler/unwind/unwind.h"

#define DEEPEST 4096
#define PLACES 64
#define KEPT 1024
#define KEPT_DEPTH 64

struct call {
	uintptr_t slot; /* address of its return address */
	uintptr_t back;
};

/* A trace that does not match the calls made. */
struct kept {
	struct unwind_result got;
	uint64_t trace[KEPT_DEPTH];
	int same, expected; /* number of its first frames that match, and of calls made */
};

static struct {
	struct call calls[DEEPEST];
	int depth;
	uintptr_t last_pc;
	uintptr_t tail[STACK_FRAMES_MAX]; /* the callers of step_run's work */
	int tail_count;
	struct unwind_stack stack;
	struct unwind_memo *memo;
	struct step_result *result;
	uintptr_t places[PLACES];
	const char *place_kinds[PLACES];
	int place_count;
	struct kept kept[KEPT];
	int kept_count;
	bool running;
} now;

/* Returns whether the instruction at `pc` is a call. */
static bool is_call(const uint8_t *pc)
{
	/* notrack, bnd, segment and REX prefixes */
	while (*pc == 0x3e || *pc == 0xf2 || *pc == 0x66 || *pc == 0x64 || (*pc & 0xf0) == 0x40)
		pc++;
	return *pc == 0xe8 || (*pc == 0xff && (pc[1] & 0x38) == 0x10);
}

static void note(const char *kind, uintptr_t pc, const struct unwind_result *got, const uint64_t *trace,
                 int expected)
{
	for (int i = 0; i < now.place_count; i++)
		if (now.places[i] == pc && now.place_kinds[i] == kind)
			return;
	if (now.place_count == PLACES)
		return;
	now.places[now.place_count] = pc;
	now.place_kinds[now.place_count++] = kind;

	Dl_info info = { 0 };
	dladdr((void *)pc, &info);
	/* Not safe in a handler, but the program is single-threaded and being tested. */
	fprintf(stderr, "  %s at %#lx %s+%#lx (%s+%#lx): %d frames%s, expected %d; frame %d is %#lx\n", kind,
	        pc, info.dli_sname ? info.dli_sname : "?",
	        info.dli_saddr ? pc - (uintptr_t)info.dli_saddr : 0, info.dli_fname ? info.dli_fname : "?",
	        pc - (uintptr_t)info.dli_fbase, got->depth, got->truncated ? " truncated" : "", expected,
	        got->depth - 1, (unsigned long)trace[got->depth - 1]);
}

static uintptr_t expected_at(int i, uintptr_t pc)
{
	if (i == 0)
		return pc;
	if (i <= now.depth)
		return now.calls[now.depth - i].back - 1;
	return now.tail[i - 1 - now.depth];
}

/* Returns whether the instruction at `pc` jumps to the address in rcx or rdx, like longjmp's last
 * instruction. */
static bool is_jump(const uint8_t *pc)
{
	return pc[0] == 0xff && (pc[1] == 0xe1 || pc[1] == 0xe2);
}

static void keep(const struct unwind_result *got, const uint64_t *trace, int same, int expected)
{
	if (now.kept_count == KEPT || got->depth > KEPT_DEPTH) {
		now.result->wrong++;
		note("unexpected", now.last_pc, got, trace, expected);
		return;
	}
	struct kept *kept = &now.kept[now.kept_count++];
	*kept = (struct kept){ .got = *got, .same = same, .expected = expected };
	memcpy(kept->trace, trace, (size_t)got->depth * sizeof(trace[0]));
}

/* Returns whether the trace named the target of the jump from `from` to `pc`: that address, or the call of
 * setjmp before it. */
static bool foretold(const struct kept *kept, uintptr_t from, uintptr_t pc, int *callers)
{
	const uint64_t *trace = kept->trace;
	const int same = kept->same;

	*callers = kept->got.depth - same - 1;
	if (same == 0 || *callers < 0 || from - trace[same - 1] + 256 > 512 ||
	    (trace[same] != pc && trace[same] != pc - 1) || *callers > now.depth + now.tail_count)
		return false;
	for (int i = 1; i <= *callers; i++)
		if (trace[same + i] != expected_at(i, pc))
			return false;
	return true;
}

/* Judges the kept traces after a jump from `from` to `pc`. */
static void judge_kept(uintptr_t from, uintptr_t pc)
{
	for (int i = 0; i < now.kept_count; i++) {
		const struct kept *kept = &now.kept[i];
		int callers;
		if (!foretold(kept, from, pc, &callers)) {
			now.result->wrong++;
			note("wrong", kept->trace[0], &kept->got, kept->trace, kept->expected);
		} else if (kept->got.truncated || callers != now.depth + now.tail_count) {
			now.result->incomplete++;
			note("incomplete", kept->trace[0], &kept->got, kept->trace, kept->expected);
		} else {
			now.result->exact++;
			now.result->jumping++;
		}
	}
	now.kept_count = 0;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	const uintptr_t pc = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
	const uintptr_t sp = (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
	uint64_t trace[STACK_FRAMES_MAX], with_memo[STACK_FRAMES_MAX];

	(void)signal;
	(void)info;
	if (!now.running)
		return;
	while (now.depth > 0 && now.calls[now.depth - 1].slot < sp)
		now.depth--;
	if (now.last_pc != 0 && is_call((const uint8_t *)now.last_pc)) {
		const uintptr_t back = *(uintptr_t *)sp;
		if (back > now.last_pc && back - now.last_pc <= 9 && now.depth < DEEPEST)
			now.calls[now.depth++] = (struct call){ sp, back };
	}
	if (now.last_pc != 0 && is_jump((const uint8_t *)now.last_pc))
		judge_kept(now.last_pc, pc);
	now.last_pc = pc;

	const int expected = 1 + now.depth + now.tail_count;
	struct unwind_result got = unwind_addresses(context, &now.stack, NULL, trace, STACK_FRAMES_MAX);
	struct unwind_result memo =
		unwind_addresses(context, &now.stack, now.memo, with_memo, STACK_FRAMES_MAX);

	now.result->steps++;
	if ((uint64_t)expected > now.result->deepest)
		now.result->deepest = (uint64_t)expected;
	if (memo.depth != got.depth || memo.truncated != got.truncated ||
	    memcmp(trace, with_memo, (size_t)got.depth * sizeof(trace[0])) != 0) {
		now.result->memo_differs++;
		note("memo differs", pc, &memo, with_memo, expected);
	}
	int same = 0;
	while (same < got.depth && same < expected && trace[same] == expected_at(same, pc))
		same++;
	if (same == got.depth && same == expected && !got.truncated) {
		now.result->exact++;
	} else if (same == got.depth && got.truncated) {
		now.result->incomplete++;
		note("incomplete", pc, &got, trace, expected);
	} else {
		keep(&got, trace, same, expected);
	}
}

/* trap_flag.S */
extern void trap_on(void);
extern void trap_off(void);

/* The first frame whose instructions are stepped. In it the shadow stack is empty, and its callers are the
 * tail. */
__attribute__((noinline)) static void run_stepped(void (*work)(void *), void *argument)
{
	void *callers[STACK_FRAMES_MAX];
	const int count = backtrace(callers, STACK_FRAMES_MAX);

	/* callers[0] is in this function. */
	now.tail_count = count - 1;
	for (int i = 0; i < now.tail_count; i++)
		now.tail[i] = (uintptr_t)callers[i + 1] - 1;
	now.running = true;
	trap_on();
	work(argument);
	trap_off();
	now.running = false;
	judge_kept(0, 0);
}

void step_run(const char *name, void (*work)(void *argument), void *argument, struct step_result *result)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK }, before;
	static char alternate[256 * 1024];
	stack_t alternate_stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	memset(result, 0, sizeof(*result));
	memset(&now, 0, sizeof(now));
	now.stack = thread_stack();
	now.memo = calloc(1, unwind_memo_bytes);
	now.result = result;
	sigaltstack(&alternate_stack, NULL);
	sigemptyset(&action.sa_mask);
	sigaction(SIGTRAP, &action, &before);
	run_stepped(work, argument);
	sigaction(SIGTRAP, &before, NULL);
	free(now.memo);
	fprintf(stderr,
	        "%-22s %9lu steps, %.4f %% exact, %lu incomplete, %lu wrong, %lu foretold a longjmp, %lu "
	        "differ "
	        "with the memo, depth to %lu\n",
	        name, result->steps,
	        result->steps ? 100.0 * (double)result->exact / (double)result->steps : 0, result->incomplete,
	        result->wrong, result->jumping, result->memo_differs, result->deepest);
}
