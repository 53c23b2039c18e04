/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of labels: a trace file for the test, and a pool of threads that run short tasks.
 */
#ifndef QUERYPROF_TESTS_POOL_H
#define QUERYPROF_TESTS_POOL_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/* ThreadSanitizer delivers a signal when the thread calls something that it watches: later, and elsewhere.
 * Then a test is there for the races. */
#ifdef __SANITIZE_THREAD__
constexpr bool samples_are_late = true;
#else
constexpr bool samples_are_late = false;
#endif

#define PERIOD_NS UINT64_C(1000000)

/* queryprof on a file of its own, with a sample each PERIOD_NS of CPU time: what a group of tests begins
 * and ends with. */
int begin_file(void **);
int end_file(void **);

/* The first column of the first row; what was sampled before the call is there. */
std::string ask(const std::string &sql);
int64_t ask_number(const std::string &sql);

/* About so much of the thread's CPU time. */
void burn(uint64_t ns);

/* The calling thread's CPU time in ns. */
uint64_t cpu_now();

/* Threads, each inside one query, on which thread(number) runs. */
void on_threads(unsigned count, const std::function<void(unsigned)> &thread);

#endif
