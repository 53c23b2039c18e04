/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that stops in the middle of a query, so that the debugger can inspect it.
 */
#include <signal.h>

#include "../lib/spin.h"
#include "queryprof.h"

int main(void)
{
	const qp_query query = { .size = sizeof(query),
		                 .text = "a query of the debugger's",
		                 .database = "none" };

	if (qp_init(NULL) || qp_query_begin(&query))
		return 1;
	spin(200000000);
	raise(SIGABRT);
	return 0;
}
