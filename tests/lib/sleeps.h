/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinguishes sleeps that waited from sleeps that did not. If another thread preempts a thread before it
 * sleeps, it may run again only after the sleep's end. Then it was ready all the time, and waited only for a
 * processor.
 */
#ifndef TESTS_LIB_SLEEPS_H
#define TESTS_LIB_SLEEPS_H

#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number of times that the calling thread has given up its processor. */
static inline long voluntary_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* Sleeps. Returns whether the thread waited. */
static inline bool sleep_for_us(useconds_t us)
{
	long before = voluntary_switches();

	usleep(us);
	return voluntary_switches() != before;
}

#endif
