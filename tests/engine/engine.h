/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A very small engine that shows how to profile one. It runs queries on numbers.
 *
 *   sum N              adds 1 to N
 *   both (Q) (Q)       runs two queries one after the other and adds their results
 *   threads K (Q)      runs a query on K threads of its own and adds their results
 *   fail TEXT          ends with an error
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdint.h>

#define ENGINE_OK 0
#define ENGINE_SYNTAX 1
#define ENGINE_FAILED 42

/* `id` may be NULL. The error is a sentence in static memory, per thread. */
int engine_run(const char *query, const char *id, uint64_t *result, const char **error);

#endif
