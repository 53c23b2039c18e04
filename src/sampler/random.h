/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers: each thread has its own.
 */
#ifndef QUERYPROF_SAMPLER_RANDOM_H
#define QUERYPROF_SAMPLER_RANDOM_H

#include <stdint.h>

#include "handler/thread.h"

void random_seed(struct thread *thread);

/* The next random number of the thread. */
uint64_t random_next(struct thread *thread);

#endif
