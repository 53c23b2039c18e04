/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole unwinder on aarch64. The shipped handler code, parser and module map walk stacks that this
 * program builds.
 *
 *   walk            checks, and prints failures
 *   walk --record   prints registers, stack and rows of a few traces for the native test
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../lib/thread_stack.h"
#include "base/code_map.h"
#include "wire/record.h"
#include "handler/unwind/unwind.h"
#include "handler/unwind/arch.h"
#include "handler/unwind/rules.h"
#include "modules/modules.h"

#define RECORDED_WORDS 760

#define SEEN __attribute__((noinline, visibility("default")))

_Static_assert(offsetof(ucontext_t, uc_mcontext.regs) == CONTEXT_X0, "registers in a ucontext");
_Static_assert(offsetof(ucontext_t, uc_mcontext.pc) == CONTEXT_PC, "pc in a ucontext");
_Static_assert(sizeof(siginfo_t) == SIGNAL_CONTEXT, "a ucontext in a signal frame");

extern void leaf_trap(void);
extern void late_record(void (*callee)(void));
extern void far_fp(void (*callee)(void));
extern void return_from_signal(void);
extern const uint32_t plt[];

static uint64_t trace[STACK_FRAMES_MAX], plain_trace[STACK_FRAMES_MAX];
static struct unwind_result seen;
static struct unwind_stack stack;
static struct unwind_memo *memo;
static const char *record_as;
static volatile int sink;
static int failures, differs;

static bool is_named(uint64_t address, const char *name)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)address, &info) != 0 && info.dli_sname &&
	       strcmp(info.dli_sname, name) == 0;
}

static const char *name_of(uint64_t address)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)address, &info) != 0 && info.dli_sname ? info.dli_sname : "?";
}

/* Prints everything that a trace was made from, as C. */
static void record(const void *context)
{
	uint64_t registers[CFI_REGISTERS];
	const struct code_map *map = code_map_current();

	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		registers[i] = arch_register(context, i);
	const uint64_t sp = registers[CFI_STACK_POINTER];
	uint64_t words = (stack.end - sp) / 8;
	printf("{\n\t.name = \"%s\",\n\t.registers = {", record_as);
	for (int i = 0; i < CFI_REGISTERS; i++)
		printf("%s%#" PRIx64 ",", i % 4 ? " " : "\n\t\t", registers[i]);
	printf("\n\t},\n\t.steps = {\n");
	for (int i = 0; i < seen.depth; i++) {
		struct cfi_section section;
		struct cfi_row row;
		memset(&row, 0, sizeof(row));
		if (rules_find_section(map, trace[i], &section) <= SECTION_NEWER && section.header != 0)
			cfi_find_row(&section, trace[i], &row);
		printf("\t\t{%#" PRIx64 ", {.signal_frame = %d, .cfa_register = %u, .cfa_offset = %d, "
		       ".return_address = {%d, %" PRId64 "}, .frame_pointer = {%d, %" PRId64
		       "}}}, /* %s */\n",
		       trace[i], row.signal_frame, row.cfa_register, row.cfa_offset, row.return_address.saved,
		       row.return_address.value, row.frame_pointer.saved, row.frame_pointer.value,
		       name_of(trace[i]));
	}
	printf("\t},\n\t.depth = %d,\n\t.words = {", seen.depth);
	if (words > RECORDED_WORDS)
		words = RECORDED_WORDS;
	for (uint64_t i = 0, printed = 0; i < words; i++)
		if (((const uint64_t *)sp)[i] != 0)
			printf("%s[%" PRIu64 "] = %#" PRIx64 ",", printed++ % 4 ? " " : "\n\t\t", i,
			       ((const uint64_t *)sp)[i]);
	printf("\n\t},\n\t.word_count = %" PRIu64 ",\n},\n", words);
}

static void walk_plt(const ucontext_t *real);
static bool is_in_plt;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (is_in_plt)
		walk_plt(context);
	seen = unwind_addresses(context, &stack, memo, trace, STACK_FRAMES_MAX);
	const struct unwind_result plain =
		unwind_addresses(context, &stack, NULL, plain_trace, STACK_FRAMES_MAX);
	differs += plain.depth != seen.depth || plain.truncated != seen.truncated ||
	           memcmp(trace, plain_trace, (size_t)seen.depth * sizeof(trace[0])) != 0;
	if (record_as)
		record(context);
	((ucontext_t *)context)->uc_mcontext.pc += 4; /* past brk */
}

static int count(const char *name)
{
	int found = 0;

	for (int i = 0; i < seen.depth; i++)
		found += is_named(trace[i], name);
	return found;
}

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	failures++;
	fprintf(stderr, "FAIL %s: %d frames%s\n", what, seen.depth, seen.truncated ? ", truncated" : "");
	for (int i = 0; i < seen.depth; i++)
		fprintf(stderr, "  %2d %#" PRIx64 " %s\n", i, trace[i], name_of(trace[i]));
}

/* Unwinds from each instruction of a PLT, as if a signal had interrupted it. */
static void walk_plt(const ucontext_t *real)
{
	for (unsigned i = 0; i < 21; i++) {
		ucontext_t context = *real;
		char what[32];

		snprintf(what, sizeof(what), "instruction %u of a PLT", i);
		context.uc_mcontext.pc = (uintptr_t)(plt + i);
		context.uc_mcontext.sp -= i >= 1 && i <= 4 ? 16 : 0;
		seen = unwind_addresses(&context, &stack, NULL, trace, STACK_FRAMES_MAX);
		if (i < 5 || (i >= 8 && i < 17))
			check(!seen.truncated && count("dive") == 4, what);
		else
			check(seen.truncated && seen.depth == 1, what);
	}
}

void dive(int n);
SEEN void dive(int n)
{
	volatile char room[48];

	room[n % 48] = 1;
	if (n == 0)
		leaf_trap();
	else
		dive(n - 1);
	sink += room[n % 48];
}

void dive_with_alloca(int n);
SEEN void dive_with_alloca(int n)
{
	volatile char *room = __builtin_alloca((size_t)(n * 40 + 16));

	room[0] = 1;
	if (n == 0)
		leaf_trap();
	else
		dive_with_alloca(n - 1);
	sink += room[0];
}

int compare(const void *a, const void *b);
SEEN int compare(const void *a, const void *b)
{
	leaf_trap();
	sink++;
	return *(const int *)a - *(const int *)b;
}

void handle(int signal);
SEEN void handle(int signal)
{
	dive(2);
	sink += signal;
}

/* qemu-user has no vdso to return through. This restorer is passed to the kernel, which libc never does. */
static void handle_usr1(unsigned long flags)
{
	enum { SA_HAS_RESTORER = 0x04000000 };
	const struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { handle, flags | SA_HAS_RESTORER, return_from_signal, 0 };

	if (syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof(action.mask)) != 0)
		perror("rt_sigaction");
}

static void *in_thread(void *argument)
{
	const struct unwind_stack whole = stack;

	stack = thread_stack();
	dive(3);
	check(!seen.truncated && count("dive") == 4, "thread");
	if (argument) {
		record_as = "recursion";
		dive(3);
		record_as = "frames by x29";
		dive_with_alloca(3);
		record_as = "a record in the middle of its frame";
		late_record(leaf_trap);
		record_as = "a signal frame";
		handle_usr1(0);
		raise(SIGUSR1);
		record_as = NULL;
	}
	stack = whole;
	return NULL;
}

static ucontext_t coroutine, caller;

static void in_coroutine(void)
{
	dive(5);
	sink++;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	const bool recording = argc > 1 && strcmp(argv[1], "--record") == 0;
	static char other_stack[128 * 1024] __attribute__((aligned(16)));
	int numbers[] = { 3, 1, 2 };
	pthread_t thread;

	if (modules_init() != 0)
		return 2;
	sigaction(SIGTRAP, &action, NULL);
	stack = thread_stack();
	if (recording) {
		pthread_create(&thread, NULL, in_thread, (void *)"record");
		pthread_join(thread, NULL);
		return 0;
	}
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);

	memo = calloc(1, unwind_memo_bytes);
	for (int i = 0; i < 40; i++) {
		dive(i % 7 * 5);
		check(!seen.truncated && count("dive") == i % 7 * 5 + 1 && count("leaf_trap") == 1 &&
		              count("main") == 1 && is_named(trace[seen.depth - 1], "_start"),
		      "recursion");
		dive_with_alloca(i % 5);
		check(!seen.truncated && count("dive_with_alloca") == i % 5 + 1, "alloca");
	}
	qsort(numbers, 3, sizeof(numbers[0]), compare);
	check(!seen.truncated && count("compare") == 1 && count("main") == 1, "callback");
	late_record(leaf_trap);
	check(!seen.truncated && count("late_record") == 1 && count("main") == 1, "record after locals");
	const uint64_t full = unwind_counter(UNWIND_FULL_STEPS);
	far_fp(leaf_trap);
	check(!seen.truncated && count("far_fp") == 1 && count("main") == 1, "all registers");
	check(unwind_counter(UNWIND_FULL_STEPS) > full, "all registers were needed");

	is_in_plt = true;
	dive(3);
	is_in_plt = false;

	handle_usr1(0);
	raise(SIGUSR1);
	check(!seen.truncated && count("handle") == 1 && count("dive") == 3 && count("main") == 1,
	      "signal frame");
	const stack_t alternate = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	sigaltstack(&alternate, NULL);
	handle_usr1(SA_ONSTACK);
	raise(SIGUSR1);
	check(!seen.truncated && count("handle") == 1 && count("dive") == 3 && count("main") == 1,
	      "alternate signal stack");

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = other_stack;
	coroutine.uc_stack.ss_size = sizeof(other_stack);
	coroutine.uc_link = &caller;
	makecontext(&coroutine, in_coroutine, 0);
	swapcontext(&caller, &coroutine);
	check(count("dive") == 6 && count("main") == 0, "coroutine");

	seen.depth = 0;
	check(differs == 0, "the memo made a difference");
	printf("%d failures\n", failures);
	return failures != 0;
}
