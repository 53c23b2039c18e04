/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of some microseconds: two threads alternate, so each turn is a switch to the other thread and back.
 * (If the other thread runs on another processor, there may be no switch.)
 */
#ifndef TESTS_LIB_TURNS_H
#define TESTS_LIB_TURNS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

struct turn {
	uint64_t ns;   /* wall time of the wait */
	bool switched; /* the thread gave its processor up */
};

static sem_t turn_there, turn_here;
static pthread_t turn_taker;

static void *take_turns(void *turns)
{
	for (uintptr_t i = 0; i < (uintptr_t)turns; i++) {
		sem_wait(&turn_there);
		sem_post(&turn_here);
	}
	return NULL;
}

static inline void begin_turns(int turns)
{
	sem_init(&turn_there, 0, 0);
	sem_init(&turn_here, 0, 0);
	if (pthread_create(&turn_taker, NULL, take_turns, (void *)(uintptr_t)turns))
		abort();
}

static inline struct turn take_turn(void)
{
	struct rusage before, after;
	struct timespec from, to;

	getrusage(RUSAGE_THREAD, &before);
	sem_post(&turn_there);
	clock_gettime(CLOCK_MONOTONIC, &from);
	sem_wait(&turn_here);
	clock_gettime(CLOCK_MONOTONIC, &to);
	getrusage(RUSAGE_THREAD, &after);
	return (struct turn){
		.ns = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 +
		      (uint64_t)(to.tv_nsec - from.tv_nsec),
		.switched = after.ru_nvcsw != before.ru_nvcsw,
	};
}

static inline void end_turns(void)
{
	pthread_join(turn_taker, NULL);
}

#endif
