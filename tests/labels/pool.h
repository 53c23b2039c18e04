/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of labels: a trace file, and a pool of threads that run short tasks.
 */
#ifndef QUERYPROF_TESTS_POOL_H
#define QUERYPROF_TESTS_POOL_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/* ThreadSanitizer delivers a signal late, when the thread calls a function that it intercepts. The tests
 * then only find data races. */
#ifdef __SANITIZE_THREAD__
constexpr bool samples_are_late = true;
#else
constexpr bool samples_are_late = false;
#endif

#define PERIOD_NS UINT64_C(1000000)

/* Fixture of a group of tests: queryprof with its own file, and a sample per PERIOD_NS of CPU time. */
int begin_file(void **);
int end_file(void **);

/* Returns the first column of the first row. All earlier samples are in the file. */
std::string ask(const std::string &sql);
int64_t ask_number(const std::string &sql);

/* Uses about this much of the thread's CPU time. */
void burn(uint64_t ns);

/* Returns the calling thread's CPU time in ns. */
uint64_t cpu_now();

/* Runs thread(number) on `count` threads, each inside one query. */
void on_threads(unsigned count, const std::function<void(unsigned)> &thread);

#endif
