/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/plan_counts.h"

#include <math.h>
#include <string.h>

double plan_count_factor(int64_t loops, int64_t rows, double estimate)
{
	const double expected = fmax(1, estimate * (double)loops), found = fmax(1, (double)rows);

	if (loops < 1 || estimate < 0)
		return 0;
	return found >= expected ? found / expected : -expected / found;
}

bool plan_may_end_early(const char *detail, bool is_cut)
{
	/* min() and max() stop at the first row: SQLite calls such a loop a search without a condition. */
	return is_cut || (!strncmp(detail, "SEARCH ", 7) && !strchr(detail, '('));
}
