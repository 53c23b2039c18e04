/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test_perf.py: labels come and go while another profiler records. Each label names the function that
 * runs under it. A trampoline gets the other label when it is reused.
 *
 *   perf_program TRACE
 */
#include <cstdio>
#include <string>

#include <queryprof.hpp>

#include "../lib/spin.h"

#define TRAMPOLINES 4096u

extern "C" __attribute__((noinline)) void work_for_left()
{
	spin(50000);
	__asm__ volatile("");
}

extern "C" __attribute__((noinline)) void work_for_right()
{
	spin(50000);
	__asm__ volatile("");
}

int main(int, char **arguments)
{
	qp_config config = {};

	config.size = sizeof(config);
	config.trace_log_path = arguments[1];
	if (qp_init(&config) || qp_set(nullptr, "query_profiler_cpu_time_period_ns", "1000000") ||
	    qp_query_begin(nullptr)) {
		fprintf(stderr, "%s\n", qp_error());
		return 1;
	}
	for (unsigned i = 0; i < 2 * TRAMPOLINES + 100; i++) {
		const bool is_left = (i + i / TRAMPOLINES) % 2;
		queryprof::DynamicLabel label((is_left ? "left" : "right"), i);

		label.apply(is_left ? work_for_left : work_for_right);
	}
	if (qp_query_end(0, nullptr) || qp_flush(60000)) {
		fprintf(stderr, "%s\n", qp_error());
		return 1;
	}
	return 0;
}
