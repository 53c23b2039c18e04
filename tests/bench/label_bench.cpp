/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What labels cost: a call under one beside a direct call, an indirect one and a std::function;
 * and a thread pool whose micro-tasks count (Rockset's benchmark of DynamicLabel), with apply()
 * and without. Times are CPU time; in each row the least of several rounds, taken in turns.
 *
 *   cmake --build build/release --target label_bench
 *   build/release/tests/bench/label_bench
 */
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <queryprof.hpp>

#define ROUNDS 21
#define CALLS 2000000

static double now()
{
	timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

__attribute__((noinline)) static void nothing(void *argument)
{
	__asm__ volatile("" ::"r"(argument) : "memory");
}

static void (*volatile indirect)(void *) = nothing;

struct row {
	const char *name;
	std::function<void()> calls; /* CALLS of them */
	double least;
};

#define LOOP(...)                                                                                            \
	[&] {                                                                                                \
		for (int i = 0; i < CALLS; i++) {                                                            \
			__VA_ARGS__;                                                                         \
		}                                                                                            \
	}

static void print_calls()
{
	const qp_label label = { "query", "1", 0, nullptr };
	qp_label_set *set = qp_labels_new(&label, 1);
	queryprof::DynamicLabel dynamic("query", "2");
	std::function<void(void *)> function = nothing;
	int argument = 0;
	qp_query query = {};
	query.size = sizeof query;
	qp_query_handle *handle = qp_query_start(&query);
	row rows[] = {
		{ "direct call", LOOP(nothing(&argument)), 1e9 },
		{ "indirect call", LOOP(indirect(&argument)), 1e9 },
		{ "std::function", LOOP(function(&argument)), 1e9 },
		{ "qp_labels_run", LOOP(qp_labels_run(set, nothing, &argument)), 1e9 },
		{ "DynamicLabel::apply", LOOP(dynamic.apply([&] { nothing(&argument); })), 1e9 },
		{ "qp_labels_enter, _leave", LOOP(qp_labels_leave(qp_labels_enter(set))), 1e9 },
		{ "qp_context_get", LOOP(volatile uint64_t labels = qp_context_get().labels; (void)labels),
		  1e9 },
		{ "qp_query_enter, _leave", LOOP(qp_query_leave(qp_query_enter(handle))), 1e9 },
	};

	for (int round = 0; round < ROUNDS; round++)
		for (row &one : rows) {
			double start = now();
			one.calls();
			one.least = std::min(one.least, (now() - start) / CALLS);
		}
	printf("ns a call (a pair), beyond a direct call, and as a multiple of it\n");
	for (const row &one : rows)
		printf("  %-24s %6.2f  %+6.2f  %5.2f x\n", one.name, one.least, one.least - rows[0].least,
		       one.least / rows[0].least);
	qp_query_finish(handle, 0, NULL);
	qp_labels_free(set);
}

/* A pool with one queue, as they are. */
class pool
{
      public:
	explicit pool(unsigned threads)
	{
		for (unsigned i = 0; i < threads; i++)
			threads_.emplace_back([this] { work(); });
	}
	void add(std::function<void()> task)
	{
		{
			std::lock_guard<std::mutex> guard(lock_);
			tasks_.push_back(std::move(task));
		}
		changed_.notify_one();
	}
	~pool()
	{
		add(nullptr);
		for (std::thread &thread : threads_)
			thread.join();
	}

      private:
	void work()
	{
		for (;;) {
			std::unique_lock<std::mutex> guard(lock_);
			changed_.wait(guard, [this] { return !tasks_.empty(); });
			if (!tasks_.front()) {
				changed_.notify_all();
				return;
			}
			auto task = std::move(tasks_.front());
			tasks_.pop_front();
			guard.unlock();
			task();
		}
	}

	std::mutex lock_;
	std::condition_variable changed_;
	std::deque<std::function<void()>> tasks_;
	std::vector<std::thread> threads_;
};

static double run_pool(const queryprof::DynamicLabel *label)
{
	std::atomic<uint64_t> count{ 0 };
	const double start = now();
	{
		pool workers(2);
		for (int i = 0; i < 100000; i++) {
			if (label)
				workers.add([&count, label] { label->apply([&] { count++; }); });
			else
				workers.add([&count] { count++; });
		}
	}
	return now() - start;
}

static void print_pool()
{
	queryprof::DynamicLabel label("query", 1);
	std::vector<double> ratios;
	double with = 1e18, without = 1e18;

	for (int round = 0; round < 2 * ROUNDS; round++) {
		double first = run_pool(round % 2 ? &label : nullptr),
		       second = run_pool(round % 2 ? nullptr : &label);
		double labelled = round % 2 ? first : second, plain = round % 2 ? second : first;
		with = std::min(with, labelled);
		without = std::min(without, plain);
		ratios.push_back(labelled / plain);
	}
	std::sort(ratios.begin(), ratios.end());
	printf("a pool's task that counts: %.0f ns of CPU time, with apply() %.0f ns: %.3f x; median of %zu "
	       "pairs %.3f x "
	       "(quartiles %.3f, %.3f)\n",
	       without / 1e5, with / 1e5, with / without, ratios.size(), ratios[ratios.size() / 2],
	       ratios[ratios.size() / 4], ratios[ratios.size() * 3 / 4]);
}

int main()
{
	if (qp_init(NULL)) {
		fprintf(stderr, "%s\n", qp_error());
		return 1;
	}
	print_calls();
	print_pool();
	qp_shutdown();
	return 0;
}
