/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/made_code.h"

static struct made_code all[MADE_CODE_MAX];
static size_t count; /* atomic */

bool made_code_add(const struct made_code *code)
{
	size_t index = __atomic_load_n(&count, __ATOMIC_RELAXED);

	if (index == MADE_CODE_MAX)
		return false;
	all[index] = *code;
	/* Release: with made_code_all(). */
	__atomic_store_n(&count, index + 1, __ATOMIC_RELEASE);
	return true;
}

size_t made_code_all(const struct made_code **codes)
{
	*codes = all;
	return __atomic_load_n(&count, __ATOMIC_ACQUIRE);
}
