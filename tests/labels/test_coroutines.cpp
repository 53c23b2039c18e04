/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ coroutines on an executor that captures contexts. They need nothing more. A coroutine keeps its query
 * and labels wherever it resumes.
 */
#include <atomic>
#include <coroutine>
#include <cstdarg>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <unistd.h>
#include <string>
#include <vector>

#include "executor.h"

extern "C" {
#include <cmocka.h>
}

#include "pool.h"

#define QUERIES 6
#define STEPS 150

struct fire_and_forget {
	struct promise_type {
		fire_and_forget get_return_object()
		{
			return {};
		}
		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_never final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
};

/* co_await next_turn{ pool } puts the coroutine at the end of the queue. Any thread may resume it. */
struct next_turn {
	executor &pool;

	bool await_ready()
	{
		return false;
	}
	void await_suspend(std::coroutine_handle<> handle)
	{
		pool.add([handle] { handle.resume(); });
	}
	void await_resume()
	{
	}
};

static fire_and_forget work(executor &pool, std::atomic<int> &running)
{
	for (int i = 0; i < STEPS; i++) {
		co_await next_turn{ pool };
		burn(2000000);
	}
	running--;
}

static void test_language(void **)
{
	std::vector<qp_query_handle *> handles;
	std::atomic<int> running{ QUERIES };

	{
		executor pool(3);
		for (int i = 0; i < QUERIES; i++) {
			const std::string id = "co " + std::to_string(i);
			qp_query query = {};
			query.size = sizeof(query);
			query.query_id = id.c_str();
			handles.push_back(qp_query_start(&query));
			assert_non_null(handles.back());
			queryprof::DynamicLabel label("number", i);
			queryprof::LabelScope scope(label);
			qp_query_handle *before = qp_query_enter(handles.back());
			work(pool, running);
			qp_query_leave(before);
		}
		while (running > 0)
			usleep(1000);
	}
	for (qp_query_handle *handle : handles)
		assert_int_equal(qp_query_finish(handle, 0, NULL), QP_OK);
	assert_int_equal(ask_number("SELECT count(*) FROM trace_log WHERE query_id GLOB 'co *'"
	                            " AND labels->>'number' IS NOT substr(query_id, 4) + 0"),
	                 0);
	assert_int_equal(ask_number("SELECT count(*) FROM trace_log WHERE query_id NOT GLOB 'co *'"), 0);
	assert_int_equal(ask_number("SELECT count(*) FROM (SELECT 1 FROM trace_log GROUP BY query_id)"),
	                 QUERIES);
	assert_true(ask_number("SELECT max(threads) FROM query_log") > 1);
}

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_language),
	};

	return cmocka_run_group_tests_name("label_coroutines", tests, begin_file, end_file);
}
