/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that a hypervisor takes from the machine. No thread's CPU time and no run queue contains it, but
 * wall time does.
 */
#ifndef TESTS_LIB_STEAL_H
#define TESTS_LIB_STEAL_H

#include <stdio.h>
#include <unistd.h>

/* The stolen ticks of all processors so far. */
static inline unsigned long long stolen_ticks(void)
{
	FILE *file = fopen("/proc/stat", "r");
	unsigned long long ticks = 0;

	if (file && fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		ticks = 0;
	if (file)
		fclose(file);
	return ticks;
}

/* The most time that these ticks may be. Each processor rounds on its own. */
static inline double stolen_ns(unsigned long long ticks)
{
	return ticks ? (double)(ticks + (unsigned long long)sysconf(_SC_NPROCESSORS_CONF)) * 1e9 /
	                       (double)sysconf(_SC_CLK_TCK)
	             : 0;
}

#endif
