/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many queries as micro-tasks on a few threads: each sample carries the label of the task that
 * ran, and the samples of a label add up to its CPU time.
 */
#include <atomic>
#include <cmath>
#include <cstdarg>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" {
#include <cmocka.h>
}
#include <queryprof.hpp>

#include "../seed.h"
#include "pool.h"

#define QUERIES 64u
#define THREADS 8u
/* A thread runs so many, of 1 to 100 us. */
#define TASKS (samples_are_late ? 4000u : 6000u)
#define CHURNED (samples_are_late ? 1000u : 2500u)

static uint64_t seed;

struct work {
	std::atomic<uint64_t> cpu_ns[QUERIES];
};

static void task(work &done, unsigned query, uint64_t ns)
{
	uint64_t before = cpu_now();

	burn(ns);
	done.cpu_ns[query] += cpu_now() - before;
}

/* A busy machine may bring the points of many ticks with one signal. That is one observation, and
 * counts for a tick of 4 ms. */
#define WEIGHT "min(weight, 4)"

/* The share that each query has of the samples is its share of the CPU time, within 3 standard
 * errors; of 64 one may be beyond by chance, and a second. */
static void check_sums(const work &done, const char *key)
{
	const std::string of_key = "labels->>'" + std::string(key) + "'";
	const double whole = (double)ask_number("SELECT sum(" WEIGHT ") FROM trace_log WHERE " + of_key +
	                                        " IS NOT NULL"),
		     squares =
			     (double)ask_number("SELECT sum(" WEIGHT " * " WEIGHT ") FROM trace_log WHERE " +
	                                        of_key + " IS NOT NULL");
	double cpu = 0, chi = 0;
	unsigned beyond = 0;

	for (const auto &one : done.cpu_ns)
		cpu += (double)one;
	for (unsigned i = 0; i < QUERIES; i++) {
		double share = (double)done.cpu_ns[i] / cpu, expected = share * whole;
		double seen = (double)ask_number("SELECT coalesce(sum(" WEIGHT "), 0) FROM trace_log WHERE " +
		                                 of_key + " = " + std::to_string(i));
		double error = std::sqrt(squares * share * (1 - share));

		chi += (seen - expected) * (seen - expected) / (error * error);
		if (std::fabs(seen - expected) <= 3 * error)
			continue;
		beyond++;
		print_message("query %u: %.0f, expected %.0f +- %.1f\n", i, seen, expected, error);
	}
	print_message("%s: chi square %.1f, 64 queries\n", key, chi);
	assert_true(beyond <= 2 || samples_are_late);
	assert_true(chi < 64 + 4 * std::sqrt(2 * 64) || samples_are_late);
}

static void test_pool(void **)
{
	std::vector<std::unique_ptr<queryprof::DynamicLabel>> labels;
	auto done = std::make_unique<work>();

	for (unsigned i = 0; i < QUERIES; i++)
		labels.push_back(std::make_unique<queryprof::DynamicLabel>("query", i));
	on_threads(THREADS, [&](unsigned number) {
		std::mt19937_64 random(seed + number);
		for (unsigned i = 0; i < TASKS; i++) {
			/* Half of them with twice the share of the others. */
			unsigned query = (unsigned)(random() % (QUERIES + QUERIES / 2) % QUERIES);
			uint64_t ns = 1000 + random() % 99000;
			labels[query]->apply([&] { task(*done, query, ns); });
		}
	});
	check_sums(*done, "query");
}

/* The tasks of each query name it twice, by a trampoline and by the set that is entered inside:
 * wherever a sample has both, both say the same. Labels are freed while tasks run under them, and
 * made anew thousands of times a second, with and without trampolines left. */
static void churn(const char *kind, size_t held)
{
	std::vector<std::unique_ptr<queryprof::DynamicLabel>> others;
	std::string inner = std::string(kind) + "_inner", outer = std::string(kind) + "_outer";

	for (size_t i = 0; i < held; i++)
		others.push_back(std::make_unique<queryprof::DynamicLabel>("held", i));
	on_threads(THREADS, [&](unsigned number) {
		std::mt19937_64 random(seed + number + 100);
		for (unsigned i = 0; i < CHURNED; i++) {
			unsigned query =
				(unsigned)(random() % QUERIES) + i * THREADS * QUERIES + number * QUERIES;
			uint64_t ns = 1000 + random() % 99000;
			auto run = std::make_unique<queryprof::DynamicLabel>(outer, query);
			auto function = [&] {
				run.reset();
				queryprof::DynamicLabel own(inner, query);
				own.apply([&] { burn(ns); });
			};
			run->apply(function);
		}
	});
	int64_t both =
		ask_number("SELECT count(*) FROM trace_log WHERE labels->>'" + inner + "' IS NOT NULL");
	assert_true(both > 100 || samples_are_late);
	int64_t wrong = ask_number("SELECT count(*) FROM trace_log WHERE labels->>'" + inner +
	                           "' <> coalesce(labels->>'" + outer + "', -1)");
	assert_true(wrong == 0 || samples_are_late);
	print_message("%s: %d samples, %d wrong\n", kind, (int)both, (int)wrong);
}

static void test_reused(void **)
{
	churn("reused", 0);
	assert_true(ask_number("SELECT count(*) FROM (SELECT 1 FROM label_uses GROUP BY trampoline HAVING "
	                       "count(*) > 1)") > 1000);
}

static int64_t metric(const char *name)
{
	struct search {
		const char *name;
		int64_t value;
	} wanted = { name, -1 };

	qp_metrics(
		[](void *to, const qp_metric *one) {
			search *found = static_cast<search *>(to);
			if (std::string(one->name) == found->name)
				found->value = one->value;
			return 0;
		},
		&wanted);
	return wanted.value;
}

static void test_exhausted(void **)
{
	churn("exhausted", 4096);
	assert_true(metric("label_sets_without_trampoline") > 1000);
	assert_int_equal(metric("label_sets"), 0);
	/* The ring may have had no room for a set that was freed before the flusher came. */
	assert_true(metric("label_sets_unknown") <= metric("ring_dropped"));
}

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_reused),
		cmocka_unit_test(test_exhausted),
	};

	seed = test_seed(20261122);
	return cmocka_run_group_tests_name("label_pool", tests, begin_file, end_file);
}
