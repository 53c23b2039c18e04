/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUERYPROF_TESTS_EXECUTOR_H
#define QUERYPROF_TESTS_EXECUTOR_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <queryprof.hpp>

/* A typical task queue. It uses queryprof in one place. */
class executor
{
      public:
	explicit executor(unsigned threads)
	{
		for (unsigned i = 0; i < threads; i++)
			threads_.emplace_back([this] { work(); });
	}
	~executor()
	{
		{
			std::lock_guard<std::mutex> guard(lock_);
			ends_ = true;
		}
		changed_.notify_all();
		for (std::thread &thread : threads_)
			thread.join();
	}
	template <typename Function> void add(Function &&function)
	{
		auto task = queryprof::with_context(std::forward<Function>(function));
		{
			std::lock_guard<std::mutex> guard(lock_);
			tasks_.emplace_back(std::move(task));
		}
		changed_.notify_one();
	}

      private:
	void work()
	{
		for (;;) {
			std::unique_lock<std::mutex> guard(lock_);
			changed_.wait(guard, [this] { return ends_ || !tasks_.empty(); });
			if (tasks_.empty())
				return;
			auto task = std::move(tasks_.front());
			tasks_.pop_front();
			guard.unlock();
			task();
		}
	}

	std::mutex lock_;
	std::condition_variable changed_;
	std::deque<std::function<void()>> tasks_;
	bool ends_ = false;
	std::vector<std::thread> threads_;
};

#endif
