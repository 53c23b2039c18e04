/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of labels: a call under a label compared with a direct call, an indirect call and a std::function;
 * and a thread pool whose micro-tasks count (Rockset's benchmark of DynamicLabel), with and without apply().
 * Times are CPU time. In each row they are the least of several alternating rounds.
 *
 *   tools/bench --all label
 */
#include <algorithm>
#include <atomic>
#include <cmath>
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
	query.size = sizeof(query);
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

/* A pool with one queue, as pools usually are. */
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
			unfinished_++;
		}
		changed_.notify_one();
	}
	/* Returns after all tasks have run. */
	void wait()
	{
		std::unique_lock<std::mutex> guard(lock_);
		finished_.wait(guard, [this] { return unfinished_ == 0; });
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
		std::unique_lock<std::mutex> guard(lock_);

		for (;;) {
			changed_.wait(guard, [this] { return !tasks_.empty(); });
			if (!tasks_.front()) {
				changed_.notify_all();
				return;
			}
			auto task = std::move(tasks_.front());
			tasks_.pop_front();
			guard.unlock();
			task();
			guard.lock();
			if (--unfinished_ == 0)
				finished_.notify_all();
		}
	}

	std::mutex lock_;
	std::condition_variable changed_, finished_;
	std::deque<std::function<void()>> tasks_;
	std::size_t unfinished_ = 0;
	std::vector<std::thread> threads_;
};

#define BATCH 2000
#define PAIRS 800

/* CPU time per task. */
static double run_batch(pool &workers, const queryprof::DynamicLabel *label)
{
	static std::atomic<uint64_t> count;
	const double start = now();

	for (int i = 0; i < BATCH; i++) {
		if (label)
			workers.add([label] { label->apply([] { count++; }); });
		else
			workers.add([label] { count += label == nullptr; });
	}
	workers.wait();
	return (now() - start) / BATCH;
}

static double middle(std::vector<double> &values)
{
	std::nth_element(values.begin(), values.begin() + (long)values.size() / 2, values.end());
	return values[values.size() / 2];
}

/* Alternates batches with and without labels. Batches are short and many, so that both of a pair meet the
 * same machine. The standard error is the error of the median of 20 parts. */
static void print_ratio(pool &workers, const char *name, const queryprof::DynamicLabel *label)
{
	std::vector<double> ratios, plains, parts;

	for (int pair = 0; pair < PAIRS; pair++) {
		double first = run_batch(workers, pair % 2 ? label : nullptr);
		double second = run_batch(workers, pair % 2 ? nullptr : label);

		ratios.push_back(pair % 2 ? first / second : second / first);
		plains.push_back(pair % 2 ? second : first);
	}
	for (int part = 0; part < 20; part++) {
		std::vector<double> some(ratios.begin() + part * (PAIRS / 20),
		                         ratios.begin() + (part + 1) * (PAIRS / 20));
		parts.push_back(middle(some));
	}
	double mean = 0, square = 0;
	for (double part : parts)
		mean += part / 20;
	for (double part : parts)
		square += (part - mean) * (part - mean) / 19;
	printf("  %-24s %6.0f  %6.3f +- %.3f\n", name, middle(plains), middle(ratios),
	       std::sqrt(square / 20));
}

static void print_pool()
{
	queryprof::DynamicLabel label("query", 1);

	printf("a pool's task that counts: ns of CPU time without, and with, as a multiple of it\n");
	for (unsigned threads : { 1, 2, 8 }) {
		pool workers(threads);

		printf(" %u threads\n", threads);
		print_ratio(workers, "the same again", nullptr);
		print_ratio(workers, "DynamicLabel::apply", &label);
	}
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
