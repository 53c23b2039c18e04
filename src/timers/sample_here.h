/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that ordinary code takes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/sample.h"
#include "wire/sample_type.h"

/* Takes a sample from ordinary code, at a hooked call: the calling thread's stack from its caller
 * on. The sample goes to the running query, and its time is set here. False, and nothing is
 * written: no query runs, or there is no space. Signals wait meanwhile, so a timer's sample is
 * only late. Async-signal-safe; keeps errno. */
bool sampler_record_observed(struct thread *thread, struct observation *seen);

/* The same with `value` in the type's unit, for tests. It has no frame of its own in any build. */
__attribute__((always_inline)) static inline bool sampler_record(struct thread *thread,
                                                                 enum sample_type_number type, int64_t value)
{
	struct observation seen = { .type = type, .weight = 1, .value = value };

	return sampler_record_observed(thread, &seen);
}
