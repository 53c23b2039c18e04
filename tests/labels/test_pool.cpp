/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many queries as micro-tasks on a few threads. Each sample has the label of the task that ran, and the
 * samples of a label add up to its CPU time.
 */
#include <algorithm>
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

#include "../lib/seed.h"
#include "../lib/ticks.h"
#include "pool.h"

#define QUERIES 64u
#define THREADS 8u
/* Tasks of a thread, each 1 to 100 us long. */
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

/* A probability so small that it never happens. */
#define CHANCE 1e-9

/* Returns the smaller of the probabilities of at most and at least `seen` of `count`, each with
 * probability `share`. */
static double tail(unsigned seen, unsigned count, double share)
{
	double less = 0, more = 0;

	for (unsigned i = 0; i <= count; i++) {
		double chance = std::exp(std::lgamma(count + 1.0) - std::lgamma(i + 1.0) -
		                         std::lgamma(count - i + 1.0) + i * std::log(share) +
		                         (count - i) * std::log1p(-share));

		less += i <= seen ? chance : 0;
		more += i >= seen ? chance : 0;
	}
	return std::min(less, more);
}

static double squared_error(double seen, double count, double share)
{
	return (seen - count * share) * (seen - count * share) / (count * share * (1 - share));
}

/* Returns the probability of at least this sum of squared errors. With about 6 samples per label, its
 * distribution is far from chi-squared. It is therefore computed label by label from Poisson
 * distributions, on a grid of quarters. */
static double tail_of_errors(const std::vector<double> &shares, unsigned count, double errors)
{
	const auto place = [](double value) { return (size_t)std::lround(4 * value); };
	std::vector<double> chances(place(errors), 0);
	double below = 0;

	if (chances.empty())
		return 1;
	chances[0] = 1;
	for (double share : shares) {
		const double mean = count * share;
		std::vector<double> next(chances.size(), 0);
		double chance = std::exp(-mean);

		for (unsigned i = 0; i <= count; chance *= mean / ++i) {
			const size_t at = place(squared_error(i, count, share));

			for (size_t from = 0; from + at < next.size(); from++)
				next[from + at] += chances[from] * chance;
		}
		chances = next;
	}
	for (double chance : chances)
		below += chance;
	return 1 - below;
}

/* A sample has a label with the probability of the label's share of the CPU time. Samples are counted
 * without their weights. On a busy machine one signal may stand for many ticks, but it is one observation. */
static void check_sums(const work &done, const char *key)
{
	const std::string of_key = "labels->>'" + std::string(key) + "'";
	const auto seen = [&of_key](const std::string &condition) {
		return (unsigned)ask_number("SELECT count(*) FROM trace_log WHERE trace_type = 'CPU' AND " +
		                            of_key + condition);
	};
	const unsigned whole = seen(" IS NOT NULL");
	const double judged = QUERIES + 2; /* each label, the halves, and the sum of errors */
	std::vector<double> shares;
	double cpu = 0, errors = 0, first_half = 0;
	unsigned beyond = 0;

	for (const auto &one : done.cpu_ns)
		cpu += (double)one;
	for (unsigned i = 0; i < QUERIES; i++) {
		const unsigned samples = seen(" = " + std::to_string(i));

		shares.push_back((double)done.cpu_ns[i] / cpu);
		first_half += i < QUERIES / 2 ? shares[i] : 0;
		errors += squared_error(samples, whole, shares[i]);
		if (tail(samples, whole, shares[i]) > CHANCE / 2 / judged)
			continue;
		beyond++;
		print_message("query %u: %u, expected %.1f\n", i, samples, whole * shares[i]);
	}
	const unsigned of_first = seen(" < " + std::to_string(QUERIES / 2));
	const double chance = tail_of_errors(shares, whole, errors);

	print_message(
		"%s: %u samples, of the first half %u, expected %.1f; squared errors %.1f of 64 queries, a "
		"chance of %.3g\n",
		key, whole, of_first, whole * first_half, errors, chance);
	assert_true(beyond == 0 || samples_are_late);
	assert_true(tail(of_first, whole, first_half) > CHANCE / 2 / judged || samples_are_late);
	assert_true(chance > CHANCE / judged || samples_are_late);
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
			/* Half of the queries have twice the share of the others. */
			unsigned query = (unsigned)(random() % (QUERIES + QUERIES / 2) % QUERIES);
			uint64_t ns = 1000 + random() % 99000;
			labels[query]->apply([&] { task(*done, query, ns); });
		}
	});
	check_sums(*done, "query");
}

/* The tasks of each query have it in two labels: by a trampoline, and by the set that is entered inside.
 * If a sample has both, both must be equal. Labels are freed while tasks run under them, and recreated
 * thousands of times a second, with and without free trampolines. */
static void churn(const char *kind, size_t held)
{
	std::vector<std::unique_ptr<queryprof::DynamicLabel>> others;
	std::string inner = std::string(kind) + "_inner", outer = std::string(kind) + "_outer";
	std::atomic<uint64_t> burnt_ns{ 0 }, turns{ 0 };

	for (size_t i = 0; i < held; i++)
		others.push_back(std::make_unique<queryprof::DynamicLabel>("held", i));
	on_threads(THREADS, [&](unsigned number) {
		std::mt19937_64 random(seed + number + 100);
		uint64_t burnt = 0;
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
			burnt += ns;
		}
		burnt_ns += burnt;
		turns += turns_of_thread();
	});
	int64_t both =
		ask_number("SELECT count(*) FROM trace_log WHERE labels->>'" + inner + "' IS NOT NULL");
	assert_true((double)both >= least_samples((double)burnt_ns, (double)turns) || samples_are_late);
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
	/* The ring may have been full when a set was freed, before the flusher read it. */
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
