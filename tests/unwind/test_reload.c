/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries replace each other at the same address, with other unwind information, while threads are
 * sampled in them. Every trace must be complete and contain each of their frames, whether the map already
 * contains the change or not.
 *
 * Usage: test_reload VARIANT VARIANT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../lib/thread_stack.h"
#include "base/code_map.h"
#include "wire/record.h"
#include "handler/unwind/unwind.h"
#include "modules/modules.h"
#include "modules/publish.h"

#define THREADS 8
#define SIGNAL (SIGRTMIN + 3)
#define SWAPS 120
#define SAMPLES 1500
#define DEADLINE_S 300
#define VARIANT_BYTES 64 /* variant_dive is at most this long */

typedef int dive_function(int n, int (*callback)(void));

static const char *paths[2];
static void *library;
static dive_function *dive;
static pthread_rwlock_t in_use = PTHREAD_RWLOCK_INITIALIZER;

/* The state that the threads share. */
static uint64_t samples, inside_samples, moved_samples, cut, wrong;
static bool stop;

/* Number of the library's frames below the callback, or 0 while the callback does not run. */
static __thread volatile int frames;
static __thread struct unwind_stack stack;
static __thread struct unwind_memo *memo;
static __thread uint64_t trace[STACK_FRAMES_MAX];

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static uint64_t value(uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	const int expected = frames;
	int found = 0;

	(void)signal;
	(void)info;
	const unsigned side = publish_enter_reader();
	const bool moved = code_map_moved(code_map_current());
	const struct unwind_result result = unwind_addresses(context, &stack, memo, trace, STACK_FRAMES_MAX);
	publish_leave_reader(side);
	count(&samples);
	if (result.truncated)
		count(&cut);
	if (expected == 0)
		return; /* `dive` must not be read either */
	const uintptr_t code = (uintptr_t)dive;
	for (int i = 0; i < result.depth; i++)
		found += trace[i] - code < VARIANT_BYTES;
	count(&inside_samples);
	if (moved)
		count(&moved_samples);
	if (found != expected)
		count(&wrong);
}

static void know_stack(void)
{
	stack = thread_stack();
	memo = calloc(1, unwind_memo_bytes);
}

static __thread int depth;

static int work(void)
{
	frames = depth + 1;
	for (volatile int i = 0; i < 20000; i++)
		continue;
	frames = 0;
	return 1;
}

static int trace_once(void)
{
	frames = depth + 1;
	raise(SIGNAL);
	frames = 0;
	return 1;
}

static void load(int which)
{
	library = dlopen(paths[which], RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		print_message("%s\n", dlerror());
	assert_non_null(library);
	dive = (dive_function *)dlsym(library, "variant_dive");
	assert_non_null(dive);
}

/* The smallest case: a library is sampled and closed, another one takes its place, and no hook reports it. */
static void test_one_after_the_other(void **state)
{
	(void)state;
	know_stack();
	depth = 5;
	load(0);
	modules_refresh(false);
	const uintptr_t first = (uintptr_t)dive;
	for (int i = 0; i < 3; i++)
		dive(depth, trace_once);
	assert_int_equal(value(&moved_samples), 0);
	assert_int_equal(value(&wrong), 0);

	dlclose(library);
	load(1);
	print_message("loaded at %#lx, then at %#lx\n", (unsigned long)first, (unsigned long)(uintptr_t)dive);
	assert_true((uintptr_t)dive == first);
	for (int i = 0; i < 3; i++)
		dive(depth, trace_once);
	assert_int_equal(value(&inside_samples), 6);
	assert_int_equal(value(&wrong), 0);
	assert_int_equal(value(&cut), 0);
	assert_int_equal(value(&moved_samples), 3);

	assert_true(modules_refresh(false));
	dive(depth, trace_once);
	assert_int_equal(value(&moved_samples), 3);
	assert_int_equal(value(&wrong), 0);
	free(memo);
}

static void *run(void *argument)
{
	const struct itimerspec every = { { 0, 200000 }, { 0, 100000 } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL };
	timer_t timer;

	know_stack();
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0)
		abort();
	for (int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		depth = i % 20;
		pthread_rwlock_rdlock(&in_use);
		dive(depth, work);
		pthread_rwlock_unlock(&in_use);
	}
	timer_delete(timer);
	/* A late signal must not use the freed memo. */
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	free(memo);
	return argument;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_under_sampled_threads(void **state)
{
	const struct timespec pause = { .tv_nsec = 500000 };
	const double begin = seconds();
	pthread_t threads[THREADS];
	int swaps = 0, same = 0;
	pthread_rwlockattr_t kind;

	(void)state;
	/* Without this, the readers never let the writer in. */
	pthread_rwlockattr_init(&kind);
	pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&in_use, &kind);
	samples = inside_samples = moved_samples = cut = wrong = 0;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, NULL), 0);
	while ((swaps < SWAPS || value(&inside_samples) < SAMPLES || value(&moved_samples) < SAMPLES / 10) &&
	       seconds() - begin < DEADLINE_S) {
		pthread_rwlock_wrlock(&in_use);
		const uintptr_t before = (uintptr_t)dive;
		dlclose(library);
		load(swaps++ % 2);
		same += (uintptr_t)dive == before;
		pthread_rwlock_unlock(&in_use);
		nanosleep(&pause, NULL);
		/* Every second time, the rules are cached before the next swap. */
		if (swaps % 2 == 0) {
			modules_refresh(false);
			nanosleep(&pause, NULL);
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	print_message("%d swaps, %d at the same address; %llu samples, %llu in the library, "
	              "%llu of these before the map knew; %llu cut, %llu wrong\n",
	              swaps, same, (unsigned long long)samples, (unsigned long long)inside_samples,
	              (unsigned long long)moved_samples, (unsigned long long)cut, (unsigned long long)wrong);
	assert_int_equal(wrong, 0);
	assert_int_equal(cut, 0);
	assert_true(same > swaps / 4);
	assert_true(inside_samples > 100 && moved_samples > 10);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_under_sampled_threads),
	};
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };

	if (argc != 3) {
		fprintf(stderr, "usage: %s VARIANT VARIANT\n", argv[0]);
		return 2;
	}
	paths[0] = argv[1];
	paths[1] = argv[2];
	if (modules_init() != 0)
		return 1;
	sigaction(SIGNAL, &action, NULL);
	return cmocka_run_group_tests_name("reloaded libraries", tests, NULL, NULL);
}
