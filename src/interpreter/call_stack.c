/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/call_stack.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "interpreter/python.h"

/* What was found; never freed, as another thread may read it. */
static const struct python *found; /* atomic; NULL: nothing yet */
static uint32_t looks;             /* atomic: how often it was looked for */

/* A program may load an interpreter late, and one that has none is not searched at each call: the 1st, 2nd,
 * 4th, … call that is worth a stack looks. */
static bool is_due(void)
{
	uint32_t before = __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);

	return (before & (before + 1)) == 0;
}

static const struct python *find(void)
{
	struct python *python = is_due() ? malloc(sizeof(*python)) : NULL;

	if (python && !python_find(python)) {
		free(python);
		return NULL;
	}
	if (python) /* release: with the acquire of the threads that use it */
		__atomic_store_n(&found, python, __ATOMIC_RELEASE);
	return python;
}

size_t call_stack_read(char to[CALL_STACK_BYTES])
{
	const struct python *python = __atomic_load_n(&found, __ATOMIC_ACQUIRE);

	/* An unloaded library's functions must not be called. */
	if (!python || !python_is_loaded(python))
		python = find();
	return python ? python_call_stack(python, to) : 0;
}
