/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding stacks whose bounds are not known: alternate signal stacks, coroutines, threads made by the bare
 * system call, and memory that is not a stack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "../lib/thread_stack.h"
#include "base/code_map.h"
#include "wire/record.h"
#include "handler/unwind/unwind.h"
#include "modules/modules.h"

/* Visible to dladdr(). */
#define SEEN __attribute__((noinline, visibility("default")))
#define STACK_BYTES (768u * 1024) /* room for a sanitizer's frames */

uint64_t trace[STACK_FRAMES_MAX];
struct unwind_result seen;
struct unwind_stack known;
struct unwind_memo *memo;
ucontext_t interrupted; /* as passed to the handler */
int errno_inside;
static volatile int sink;
static size_t page;

extern void frame_by_rbx(void (*callee)(void)); /* frames.S */

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	memcpy(&interrupted, context, sizeof(interrupted));
	errno = 77;
	seen = unwind_addresses(context, &known, memo, trace, STACK_FRAMES_MAX);
	errno_inside = errno;
}

/* Takes a trace at this point, in a handler that runs on the same stack. */
void take_trace(void);
SEEN void take_trace(void)
{
	__asm__ volatile("int3" : : : "memory");
	sink++;
}

void dive(int n);
SEEN void dive(int n)
{
	volatile char room[200];

	room[n % 200] = 1;
	if (n == 0)
		take_trace();
	else
		dive(n - 1);
	sink += room[n % 200];
}

static bool is_named(uint64_t address, const char *name)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)address, &info) != 0 && info.dli_sname &&
	       strcmp(info.dli_sname, name) == 0;
}

static int count_named(const char *name)
{
	int count = 0;

	for (int i = 0; i < seen.depth; i++)
		count += is_named(trace[i], name);
	return count;
}

static void print_trace(void)
{
	for (int i = 0; i < seen.depth && i < 40; i++) {
		Dl_info info = { 0 };
		dladdr((void *)(uintptr_t)trace[i], &info);
		print_message("  %2d %#llx %s\n", i, (unsigned long long)trace[i],
		              info.dli_sname ? info.dli_sname : "?");
	}
	print_message("  %d frames%s\n", seen.depth, seen.truncated ? ", truncated" : "");
}

#define expect(condition)                                                                                    \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			print_trace();                                                                       \
		assert_true(condition);                                                                      \
	} while (0)

/* Returns a stack between two inaccessible pages. */
static char *make_stack(size_t bytes)
{
	char *all = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(all != MAP_FAILED);
	assert_int_equal(mprotect(all + page, bytes, PROT_READ | PROT_WRITE), 0);
	return all + page;
}

static void free_stack(char *stack, size_t bytes)
{
	munmap(stack - page, bytes + 2 * page);
}

static int setup(void **state)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	(void)state;
	sigaction(SIGTRAP, &action, NULL);
	known = thread_stack();
	memo = NULL;
	return 0;
}

/* --- coroutines ------------------------------------------------------------------ */

static ucontext_t coroutine, caller;
static int coroutine_depth;
static bool by_rbx;

static void dive_inside(void)
{
	dive(coroutine_depth);
}

static void in_coroutine(void)
{
	if (by_rbx)
		frame_by_rbx(dive_inside);
	else
		dive_inside();
}

static void run_coroutine(char *stack, size_t bytes)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = bytes;
	coroutine.uc_link = &caller;
	makecontext(&coroutine, in_coroutine, 0);
	swapcontext(&caller, &coroutine);
}

static void test_coroutine(void **state)
{
	static const int depths[] = { 0, 3, 30, 200 };
	char *stack = make_stack(STACK_BYTES);
	const uint64_t before = unwind_counter(UNWIND_UNKNOWN_STACKS);

	(void)state;
	memo = calloc(1, unwind_memo_bytes);
	for (int i = 0; i < 8; i++) {
		coroutine_depth = depths[i % 4];
		by_rbx = i >= 4;
		run_coroutine(stack, STACK_BYTES);
		expect(!seen.truncated && count_named("dive") == coroutine_depth + 1);
		expect(is_named(trace[0], "take_trace"));
		assert_int_equal(errno_inside, 77);
		/* On its own stack the thread is traced as before, with and without the memo. */
		dive(5);
		expect(!seen.truncated && count_named("dive") == 6);
		expect(is_named(trace[seen.depth - 1], "_start"));
	}
	by_rbx = false;
	assert_int_equal(unwind_counter(UNWIND_UNKNOWN_STACKS), before + 8);

	/* More frames than a trace holds. */
	coroutine_depth = 900;
	run_coroutine(stack, STACK_BYTES);
	expect(seen.truncated && seen.depth == STACK_FRAMES_MAX);
	free_stack(stack, STACK_BYTES);
	free(memo);
}

/* Frames larger than a page, and larger than the amount that is read for one frame. */
static int frame_bytes;

void dive_widely(int n);
SEEN void dive_widely(int n)
{
	volatile char *room = alloca((size_t)frame_bytes);

	room[0] = 1;
	if (n == 0)
		take_trace();
	else
		dive_widely(n - 1);
	sink += room[0];
}

static void widely_inside(void)
{
	dive_widely(3);
}

static void test_large_frames(void **state)
{
	const size_t bytes = 2048 * 1024;
	char *stack = make_stack(bytes);

	(void)state;
	for (int round = 0; round < 2; round++) {
		frame_bytes = round == 0 ? 40000 : 400000;
		getcontext(&coroutine);
		coroutine.uc_stack.ss_sp = stack;
		coroutine.uc_stack.ss_size = bytes;
		coroutine.uc_link = &caller;
		makecontext(&coroutine, widely_inside, 0);
		swapcontext(&caller, &coroutine);
		if (round == 0)
			expect(!seen.truncated && count_named("dive_widely") == 4);
		else
			expect(seen.truncated && count_named("dive_widely") >= 1);
	}
	free_stack(stack, bytes);
}

/* --- alternate signal stacks ---------------------------------------------------------- */

void host_handler(int signal);
SEEN void host_handler(int signal)
{
	dive(4);
	sink += signal;
}

void interrupted_work(void);
SEEN void interrupted_work(void)
{
	raise(SIGUSR1);
	sink++;
}

static void use_signal_stack(char *stack, struct sigaction *action)
{
	const stack_t alternate = { .ss_sp = stack, .ss_size = STACK_BYTES };

	memset(action, 0, sizeof(*action));
	action->sa_handler = host_handler;
	action->sa_flags = SA_ONSTACK;
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, action, NULL), 0);
}

static void drop_signal_stack(char *stack)
{
	const stack_t none = { .ss_flags = SS_DISABLE };

	sigaltstack(&none, NULL);
	free_stack(stack, STACK_BYTES);
}

/* A host's handler runs on a stack of its own. The trace contains its frames, then the interrupted frames
 * to the bottom. */
static void test_signal_stack(void **state)
{
	struct sigaction action;
	char *stack = make_stack(STACK_BYTES);

	(void)state;
	use_signal_stack(stack, &action);
	for (int i = 0; i < 2; i++) {
		memo = i == 0 ? NULL : calloc(1, unwind_memo_bytes);
		interrupted_work();
		expect(!seen.truncated && count_named("dive") == 5);
		expect(count_named("host_handler") == 1 && count_named("interrupted_work") == 1);
		expect(is_named(trace[seen.depth - 1], "_start"));
	}
	free(memo);
	memo = NULL;
	drop_signal_stack(stack);
}

static void work_inside(void)
{
	interrupted_work();
	sink++;
}

/* The trace continues from one unknown stack to another. */
static void test_signal_in_coroutine(void **state)
{
	struct sigaction action;
	char *stack = make_stack(STACK_BYTES), *other = make_stack(STACK_BYTES);

	(void)state;
	use_signal_stack(stack, &action);
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = other;
	coroutine.uc_stack.ss_size = STACK_BYTES;
	coroutine.uc_link = &caller;
	makecontext(&coroutine, work_inside, 0);
	swapcontext(&caller, &coroutine);
	expect(!seen.truncated && count_named("dive") == 5);
	expect(count_named("host_handler") == 1 && count_named("interrupted_work") == 1);
	expect(count_named("_start") == 0);
	free_stack(other, STACK_BYTES);
	drop_signal_stack(stack);
}

/* --- threads ------------------------------------------------------------------------------ */

static void *in_thread(void *argument)
{
	dive(6);
	return argument;
}

/* A thread whose stack is mistaken for another thread's. */
static void test_unregistered_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	expect(!seen.truncated && count_named("dive") == 7);
	known = (struct unwind_stack){ 0, 0 };
	assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	expect(!seen.truncated && count_named("dive") == 7);
}

static int in_clone(void *argument)
{
	(void)argument;
	dive(6);
	return 0;
}

static void test_bare_clone(void **state)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
	                  CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
	char *stack = make_stack(STACK_BYTES);
	static int child;

	(void)state;
	/* It shares this thread's thread-local memory, including errno, so this thread only waits. */
	assert_true(clone(in_clone, stack + STACK_BYTES, flags, NULL, &child, NULL, &child) > 0);
	for (int now; (now = __atomic_load_n(&child, __ATOMIC_ACQUIRE)) != 0;)
		syscall(SYS_futex, &child, FUTEX_WAIT, now, NULL, NULL, 0);
	expect(count_named("dive") == 7 && count_named("in_clone") <= 1 && !seen.truncated);
	free_stack(stack, STACK_BYTES);
}

/* --- memory that is not a stack -------------------------------------------------------------- */

static void test_no_stack(void **state)
{
	char *guarded = make_stack(page);
	const uintptr_t sps[] = {
		0,
		1,
		8,
		4095,
		4096,
		128,
		(uintptr_t)guarded - 8,
		(uintptr_t)guarded + page,
		(uintptr_t)guarded - 3,
		UINT64_C(0x00007ffffffffff8),
		UINT64_C(0x0000800000000000),
		UINT64_C(0xffff800000000000),
		UINTPTR_MAX - 7,
		UINTPTR_MAX,
	};
	struct sigaction before[2], after[2];

	(void)state;
	sigaction(SIGSEGV, NULL, &before[0]);
	sigaction(SIGBUS, NULL, &before[1]);
	dive(3);
	ucontext_t context = interrupted;
	for (size_t i = 0; i < sizeof(sps) / sizeof(sps[0]); i++) {
		context.uc_mcontext.gregs[REG_RSP] = (greg_t)sps[i];
		seen = unwind_addresses(&context, &known, NULL, trace, STACK_FRAMES_MAX);
		expect(seen.depth == 1 && seen.truncated);
	}
	/* The last words of the page. */
	for (uintptr_t back = 1; back <= page; back += back < 32 ? 1 : 8) {
		context.uc_mcontext.gregs[REG_RSP] = (greg_t)((uintptr_t)guarded + page - back);
		seen = unwind_addresses(&context, &known, NULL, trace, STACK_FRAMES_MAX);
		expect(seen.depth >= 1 && seen.depth < 5);
	}
	/* The host's signal handlers are unchanged. */
	sigaction(SIGSEGV, NULL, &after[0]);
	sigaction(SIGBUS, NULL, &after[1]);
	for (int i = 0; i < 2; i++)
		assert_true(before[i].sa_sigaction == after[i].sa_sigaction);
	free_stack(guarded, page);
}

/* Pages of a mapped file beyond its end. Reading them raises SIGBUS. */
static void test_cut_file(void **state)
{
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)page), 0);
	char *mapped = mmap(NULL, 3 * page, PROT_READ, MAP_SHARED, fileno(file), 0);
	assert_true(mapped != MAP_FAILED);
	dive(3);
	ucontext_t context = interrupted;
	for (size_t at = 0; at < 3 * page; at += 512) {
		context.uc_mcontext.gregs[REG_RSP] = (greg_t)((uintptr_t)mapped + at);
		seen = unwind_addresses(&context, &known, NULL, trace, STACK_FRAMES_MAX);
		expect(seen.depth >= 1 && seen.depth < 5);
	}
	munmap(mapped, 3 * page);
	fclose(file);
}

/* --- pages that go while they are read ---------------------------------------------------- */

static volatile bool done;

/* Repeatedly makes the pages after the first frames inaccessible and accessible again. */
static void *take_pages_away(void *from)
{
	while (!done) {
		mprotect(from, 2 * page, PROT_NONE);
		mprotect(from, 2 * page, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

/* While one thread reads a stack, another makes its pages inaccessible. The trace is complete or ends
 * early, and no signal is raised. A coroutine's pages are unmapped only when it ends. But a damaged stack
 * may lead to garbage, which may be unmapped at any time. */
static void test_unmapped(void **state)
{
	char *stack = make_stack(STACK_BYTES);
	uint64_t whole = 0, cut = 0;
	pthread_t thread;

	(void)state;
	coroutine_depth = 60;
	run_coroutine(stack, STACK_BYTES);
	const ucontext_t context = interrupted;
	char *const from = (char *)(((uintptr_t)context.uc_mcontext.gregs[REG_RSP] & ~(page - 1)) + page);

	expect(!seen.truncated && from + 2 * page <= stack + STACK_BYTES);
	done = false;
	assert_int_equal(pthread_create(&thread, NULL, take_pages_away, from), 0);
	errno = 0;
	for (int round = 0; round < 2000000 && (whole < 300 || cut < 300); round++) {
		seen = unwind_addresses(&context, &known, NULL, trace, STACK_FRAMES_MAX);
		/* take_trace() and dive(). Their callers have returned since. */
		whole += seen.depth >= 62;
		cut += seen.truncated && seen.depth < 62;
	}
	const int errno_after = errno;
	done = true;
	pthread_join(thread, NULL);
	print_message("%llu traces whole, %llu cut\n", (unsigned long long)whole, (unsigned long long)cut);
	assert_true(whole >= 100 && cut >= 100);
	assert_int_equal(errno_after, 0);
	free_stack(stack, STACK_BYTES);
}

/* --- filtered system calls ------------------------------------------------------------------ */

static void forbid(long number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(77);
}

/* A filter kills the process if it copies memory through the kernel. The process must survive. */
static void test_filtered(void **state)
{
	char *stack = make_stack(STACK_BYTES);
	int status;

	(void)state;
	coroutine_depth = 30;
	fflush(NULL);
	const pid_t child = fork();
	if (child == 0) {
		forbid(SYS_process_vm_readv);
		run_coroutine(stack, STACK_BYTES);
		_exit(!seen.truncated && count_named("dive") == 31 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	free_stack(stack, STACK_BYTES);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	print_message("status %#x\n", (unsigned)status);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- cost ----------------------------------------------------------------------------------- */

/* Only prints what a trace costs on an unknown stack and on a known stack. */
static void test_cost(void **state)
{
	enum { ROUNDS = 2000 };
	char *stack = make_stack(STACK_BYTES);
	const struct unwind_stack own = known;

	(void)state;
	coroutine_depth = 30;
	run_coroutine(stack, STACK_BYTES);
	const ucontext_t context = interrupted;
	const struct unwind_stack given = { (uintptr_t)stack, (uintptr_t)stack + STACK_BYTES };
	for (int i = 0; i < 2; i++) {
		const uint64_t begin = now_ns();
		for (int round = 0; round < ROUNDS; round++)
			seen = unwind_addresses(&context, i == 0 ? &own : &given, NULL, trace,
			                        STACK_FRAMES_MAX);
		print_message("%s stack: %.0f ns for %d frames\n", i == 0 ? "unknown" : "known",
		              (double)(now_ns() - begin) / ROUNDS, seen.depth);
		assert_true(seen.depth >= 32);
	}
	free_stack(stack, STACK_BYTES);
}

/* --- goroutines ----------------------------------------------------------------------- */

extern void goroutine_run(char *top, void (*callee)(void));

/* The stack of a goroutine follows the stack on which C runs. */
static void test_goroutine(void **state)
{
	char *stack = make_stack(STACK_BYTES);

	(void)state;
	for (int round = 0; round < 3; round++) {
		if (round == 1)
			memo = calloc(1, unwind_memo_bytes);
		goroutine_run(stack + STACK_BYTES, take_trace);
		expect(!seen.truncated && seen.depth == 4);
		expect(is_named(trace[0], "take_trace"));
		expect(is_named(trace[1], "goroutine_calls_c"));
		/* Without goroutine_inner, because the function that switches the stack has no frame of
		 * its own. */
		expect(is_named(trace[2], "goroutine_outer"));
		expect(is_named(trace[3], "goroutine_end"));
	}
	free(memo);
	memo = NULL;
	free_stack(stack, STACK_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_goroutine, setup),
		cmocka_unit_test_setup(test_coroutine, setup),
		cmocka_unit_test_setup(test_large_frames, setup),
		cmocka_unit_test_setup(test_signal_stack, setup),
		cmocka_unit_test_setup(test_signal_in_coroutine, setup),
		cmocka_unit_test_setup(test_unregistered_thread, setup),
		cmocka_unit_test_setup(test_bare_clone, setup),
		cmocka_unit_test_setup(test_no_stack, setup),
		cmocka_unit_test_setup(test_cut_file, setup),
		cmocka_unit_test_setup(test_unmapped, setup),
		cmocka_unit_test_setup(test_filtered, setup),
		cmocka_unit_test_setup(test_cost, setup),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	if (modules_init() != 0)
		return 1;
	return cmocka_run_group_tests_name("unknown stacks", tests, NULL, NULL);
}
