/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that need the sampler's very first steps. Each runs in a separate process, with one thread and one
 * query.
 */
#ifndef TESTS_SAMPLER_ALONE_H
#define TESTS_SAMPLER_ALONE_H

#include "common.h"

extern struct ring *ring;
extern struct query_run run;

/* Runs `test` in a child; returns the child's status from waitpid(). */
int status_of(void (*test)(void));

/* Begins such a test: makes the ring, and starts the sampler. */
void begin(void);

/* Starts the query, with samples of these periods. */
void push(struct thread *thread, uint64_t cpu_period_ns, uint64_t real_period_ns);

uint64_t stored(void); /* samples */

/* Burns until `count` more samples are stored. */
void burn_for_samples(uint64_t count);

/* Burns until no timer of the thread is armed. */
void wait_for_idle(const struct thread *thread);

#endif
