/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library while other libraries load and unload. Eight threads run queries, and are sampled as
 * often as the settings allow. They are inside libraries that replace each other as fast as the loader can.
 * No sample may be cut, lost or wrong because of that.
 *
 * Usage: test_reload_sampled VARIANT VARIANT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queryprof.h"

#define THREADS 8
#define SWAPS 500
#define SAMPLES 5000
#define DEADLINE_S 300

typedef int dive_function(int n, int (*callback)(void));

static const char *paths[2];
static void *library;
static dive_function *dive;
static pthread_rwlock_t in_use;
static bool stop;

static int work(void)
{
	for (volatile int i = 0; i < 20000; i++)
		continue;
	return 1;
}

static void *run(void *argument)
{
	for (int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		if (qp_query_begin(NULL) != QP_OK)
			abort();
		pthread_rwlock_rdlock(&in_use);
		dive(i % 20, work);
		pthread_rwlock_unlock(&in_use);
		if (qp_query_end(0, NULL) != QP_OK)
			abort();
	}
	return argument;
}

static bool load(int which)
{
	library = dlopen(paths[which], RTLD_NOW | RTLD_LOCAL);
	dive = library ? (dive_function *)dlsym(library, "variant_dive") : NULL;
	return dive != NULL;
}

struct wanted {
	const char *name;
	int64_t value;
};

static int find_metric(void *context, const qp_metric *metric)
{
	struct wanted *wanted = context;

	if (strcmp(metric->name, wanted->name) == 0)
		wanted->value = metric->value;
	return 0;
}

static int64_t metric(const char *name)
{
	struct wanted wanted = { name, -1 };

	qp_metrics(find_metric, &wanted);
	assert_true(wanted.value >= 0);
	return wanted.value;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_sampled(void **state)
{
	static const char *const troubles[] = { "samples_truncated", "unwind_no_rule", "unwind_bad_read" };
	const double begin = seconds();
	pthread_rwlockattr_t kind;
	pthread_t threads[THREADS];
	bool loaded;
	int swaps = 0;

	(void)state;
	assert_int_equal(qp_init(NULL), QP_OK);
	assert_int_equal(qp_set(NULL, "query_profiler_real_time_period_ns", "10000"), QP_OK);
	assert_int_equal(qp_set(NULL, "query_profiler_cpu_time_period_ns", "10000"), QP_OK);
	/* Without this, the readers never let the writer in. */
	pthread_rwlockattr_init(&kind);
	pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&in_use, &kind);
	assert_true(load(0));
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, NULL), 0);
	do {
		pthread_rwlock_wrlock(&in_use);
		dlclose(library);
		loaded = load(++swaps % 2);
		pthread_rwlock_unlock(&in_use);
		assert_true(loaded);
	} while ((swaps < SWAPS || metric("samples") < SAMPLES) && seconds() - begin < DEADLINE_S);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(qp_flush(60000), QP_OK);
	print_message("%d swaps, %lld samples\n", swaps, (long long)metric("samples"));
	for (int i = 0; i < 3; i++) {
		print_message("%s %lld\n", troubles[i], (long long)metric(troubles[i]));
		assert_int_equal(metric(troubles[i]), 0);
	}
	assert_true(metric("samples") > 100);
	assert_int_equal(qp_shutdown(), QP_OK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sampled) };

	if (argc != 3) {
		fprintf(stderr, "usage: %s VARIANT VARIANT\n", argv[0]);
		return 2;
	}
	paths[0] = argv[1];
	paths[1] = argv[2];
	return cmocka_run_group_tests_name("reloaded libraries, sampled", tests, NULL, NULL);
}
