/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that compute all the time, to simulate a busy machine. They end with the process that started
 * them.
 */
#ifndef TESTS_LIB_BUSY_H
#define TESTS_LIB_BUSY_H

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUSY_MAX 256

static pid_t busy_processes[BUSY_MAX];
static int busy_count;

/* Starts up to BUSY_MAX processes in all. Returns how many run then. */
static inline int busy_start(int count)
{
	for (int i = 0; i < count && busy_count < BUSY_MAX; i++) {
		pid_t parent = getpid(), child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (getppid() == parent)
				for (volatile int n = 0; n < 1000000; n++)
					;
			_exit(0);
		}
		if (child > 0)
			busy_processes[busy_count++] = child;
	}
	return busy_count;
}

/* Starts `count` processes for each processor that the process may use. */
static inline void busy_start_per_processor(int count)
{
	cpu_set_t processors;
	int number = 1;

	if (sched_getaffinity(0, sizeof(processors), &processors) == 0)
		number = CPU_COUNT(&processors);
	busy_start(number * count);
}

static inline void busy_stop(void)
{
	while (busy_count > 0) {
		kill(busy_processes[--busy_count], SIGKILL);
		waitpid(busy_processes[busy_count], NULL, 0);
	}
}

#endif
