/* SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"

#include <stdlib.h>
#include <string.h>

static const char *brought; /* atomic; NULL: the process's own */

void environment_replace(const char *variables)
{
	/* Release: its content. */
	__atomic_store_n(&brought, variables, __ATOMIC_RELEASE);
}

const char *environment_value(const char *name)
{
	const char *at = __atomic_load_n(&brought, __ATOMIC_ACQUIRE);
	const size_t size = strlen(name);

	if (!at)
		return secure_getenv(name);
	for (; *at; at += strlen(at) + 1)
		if (strncmp(at, name, size) == 0 && at[size] == '=')
			return at + size + 1;
	return NULL;
}
