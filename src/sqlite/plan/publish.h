/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a program and its plan (wire/bytecode_record.h), written to the ring.
 */
#ifndef QUERYPROF_SQLITE_PLAN_PUBLISH_H
#define QUERYPROF_SQLITE_PLAN_PUBLISH_H

#include "sqlite/plan/plan.h"

struct published_program {
	uint64_t program, layout; /* as in struct program_record */
	const char *text, *library;
};

/* False, here and below: the ring is full, or there is none. */
bool publish_program(const struct published_program *of, const struct plan *plan);

/* Why the plan of the program was not read. */
bool publish_missing(uint64_t program, const char *reason);

#endif
