/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/prepared.h"

#ifndef NDEBUG
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void prepared_check_name(const struct prepared *prepared, const char *name)
{
	const char *parameter;

	if (!prepared->statement)
		return;
	parameter = sqlite3_bind_parameter_name(prepared->statement, prepared->bound);
	if (parameter && strcmp(parameter + 1, name) == 0)
		return;
	fprintf(stderr, "queryprof: %s is bound to parameter %d, which is %s: %s\n", name, prepared->bound,
	        parameter ? parameter : "without a name", prepared->sql);
	abort();
}

void prepared_check_all(const struct prepared *prepared)
{
	int count = prepared->statement ? sqlite3_bind_parameter_count(prepared->statement) : 0;

	if (!prepared->statement || prepared->bound == count)
		return;
	fprintf(stderr, "queryprof: %d of %d parameters are bound: %s\n", prepared->bound, count,
	        prepared->sql);
	abort();
}
#endif
