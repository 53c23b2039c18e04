/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <cstdarg>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}
#include <queryprof.h>
#include <sqlite3.h>

#include "../lib/spin.h"

static char path[64];
static sqlite3 *file;

int begin_file(void **)
{
	snprintf(path, sizeof(path), "/tmp/queryprof-labels-XXXXXX");
	close(mkstemp(path));
	qp_config config = {};
	config.size = sizeof(config);
	config.trace_log_path = path;
	/* The tests expect a number of samples. The budget would reduce it, as thousands of labels are
	 * costly. */
	if (qp_init(&config) || qp_set(NULL, "query_profiler_max_overhead_percent", "0") ||
	    qp_set(NULL, "query_profiler_cpu_time_period_ns", std::to_string(PERIOD_NS).c_str()) ||
	    sqlite3_open(path, &file))
		fail_msg("%s", qp_error());
	return 0;
}

int end_file(void **)
{
	sqlite3_close(file);
	qp_shutdown();
	for (const char *suffix : { "", "-wal", "-shm" })
		unlink((std::string(path) + suffix).c_str());
	return 0;
}

std::string ask(const std::string &sql)
{
	sqlite3_stmt *stmt;
	std::string text;

	if (qp_flush(20000))
		fail_msg("%s", qp_error());
	if (sqlite3_prepare_v2(file, sql.c_str(), -1, &stmt, NULL))
		fail_msg("%s: %s", sql.c_str(), sqlite3_errmsg(file));
	if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_text(stmt, 0))
		text = (const char *)sqlite3_column_text(stmt, 0);
	sqlite3_finalize(stmt);
	return text;
}

int64_t ask_number(const std::string &sql)
{
	std::string text = ask(sql);

	return text.empty() ? -1 : strtoll(text.c_str(), NULL, 10);
}

void burn(uint64_t ns)
{
	spin(ns);
}

uint64_t cpu_now()
{
	timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void on_threads(unsigned count, const std::function<void(unsigned)> &thread)
{
	std::vector<std::thread> threads;

	for (unsigned i = 0; i < count; i++)
		threads.emplace_back([&thread, i] {
			qp_query query = {};
			query.size = sizeof(query);
			query.text = "pool";
			qp_query_begin(&query);
			thread(i);
			qp_query_end(0, NULL);
		});
	for (std::thread &one : threads)
		one.join();
}
