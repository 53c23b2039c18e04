/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc's string functions are assembly without a frame. In each sample that hits one, the caller is exact
 * at every instruction. libc chooses a variant for the processor. Without AVX-512, strstr() is written in C
 * and calls other functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <queryprof.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define BYTES 4096
#define SAMPLES 200 /* inside libc, per function */

static char from[BYTES + 64], to[BYTES + 64];
static volatile size_t sink;
static volatile sig_atomic_t inside, exact, wrong;
static uintptr_t caller_start, caller_end, libc_start, libc_end;

#define CALLS(_)                                                                                             \
	_(memcpy, memcpy(to, from, BYTES))                                                                   \
	_(memmove, memmove(to + 7, to, BYTES))                                                               \
	_(memset, memset(to, 'x', BYTES))                                                                    \
	_(memcmp, memcmp(to, from, BYTES))                                                                   \
	_(memchr, memchr(from, 1, BYTES))                                                                    \
	_(memrchr, memrchr(from, 1, BYTES))                                                                  \
	_(rawmemchr, rawmemchr(from, 0))                                                                     \
	_(strlen, strlen(from))                                                                              \
	_(strnlen, strnlen(from, BYTES))                                                                     \
	_(strcmp, strcmp(from, from + 0))                                                                    \
	_(strncmp, strncmp(to, from, BYTES))                                                                 \
	_(strchr, strchr(from, 1))                                                                           \
	_(strrchr, strrchr(from, 1))                                                                         \
	_(strchrnul, strchrnul(from, 1))                                                                     \
	_(strcpy, strcpy(to, from))                                                                          \
	_(strncpy, strncpy(to, from, BYTES))                                                                 \
	_(stpcpy, stpcpy(to, from))                                                                          \
	_(strcspn, strcspn(from, "ab"))                                                                      \
	_(strspn, strspn(from, "xy"))                                                                        \
	_(strpbrk, strpbrk(from, "ab"))                                                                      \
	_(strstr, strstr(from, "xxxy"))                                                                      \
	_(strcasecmp, strcasecmp(from, to))

/* Work remains after the call, so that the compiler does not turn it into a jump. */
#define CALLER(name, call)                                                                                   \
	__attribute__((noinline, section("string_callers"))) static void call_##name(void)                   \
	{                                                                                                    \
		sink = (size_t)(uintptr_t)(call);                                                            \
		__asm__ volatile("" ::: "memory");                                                           \
	}
/* The compiler must treat these functions as unknown. */
#pragma GCC diagnostic ignored "-Wunused-value"
CALLS(CALLER)

extern char __start_string_callers[], __stop_string_callers[];

#define ENTRY(name, call) { #name, call_##name },
static const struct {
	const char *name;
	void (*call)(void);
} callers[] = { CALLS(ENTRY) };

static bool is_libc(uint64_t address)
{
	return address >= libc_start && address < libc_end;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	uint64_t trace[8];
	int depth = qp_unwind(context, trace, 8), frame = 1;

	(void)number;
	(void)info;
	depth = depth < 0 ? -depth : depth;
	if (!is_libc(trace[0]))
		return;
	inside++;
	if (depth > 1 && is_libc(trace[1]))
		frame = 2; /* at most one frame of a function in C */
	if (frame < depth && trace[frame] >= caller_start && trace[frame] < caller_end)
		exact++;
	else
		wrong++;
}

/* Finds the address range of libc's code. */
static int find_libc(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t within = (uintptr_t)dlsym(RTLD_DEFAULT, "strlen"), start, end;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && within >= start && within < end) {
			libc_start = start;
			libc_end = end;
		}
	if (maps)
		fclose(maps);
	return libc_end == 0;
}

static void test_leaves(void **state)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	const struct itimerspec often = { { 0, 97000 }, { 0, 97000 } };
	timer_t timer;

	(void)state;
	memset(from, 'x', BYTES);
	assert_int_equal(qp_init(NULL), QP_OK);
	assert_int_equal(qp_thread_register(), QP_OK);
	assert_int_equal(find_libc(), 0);
	caller_start = (uintptr_t)__start_string_callers;
	caller_end = (uintptr_t)__stop_string_callers;
	sigaction(SIGUSR1, &action, NULL);
	((int *)&event._sigev_un)[0] = (int)syscall(SYS_gettid);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	for (size_t i = 0; i < sizeof(callers) / sizeof(*callers); i++) {
		memset(to, 'x', BYTES);
		to[BYTES] = 0;
		inside = exact = wrong = 0;
		/* The loop calls no other function of libc. */
		for (long round = 0; inside < SAMPLES && round < 20000000; round++)
			callers[i].call();
		/* print_message() runs in libc, too. */
		const int all = (int)inside, right = (int)exact;
		print_message("%-12s %d samples, %d exact\n", callers[i].name, all, right);
		assert_true(all > 0);
		assert_int_equal(right, all);
	}
	timer_delete(timer);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_leaves) };

	return cmocka_run_group_tests_name("string functions as leaves", tests, NULL, NULL);
}
