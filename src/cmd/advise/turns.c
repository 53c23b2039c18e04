/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/turns.h"

#define PAIRS_MAX 3000
#define CERTAIN 3 /* standard errors */
#define LEAST 0.01

static bool run(const struct side *side, int variant, const struct turns_limit *limit, double *ns,
                bool *is_cut)
{
	sqlite3_stmt *statement = side->prepare(side, variant);
	int code = statement ? connection_time(side->connection, statement, limit->run_ns, ns, NULL)
	                     : SQLITE_ERROR;

	sqlite3_finalize(statement);
	if (code == SQLITE_INTERRUPT) {
		*is_cut = true;
		*ns = *ns < (double)limit->run_ns ? (double)limit->run_ns : *ns; /* it may have waited */
	}
	return code == SQLITE_DONE || code == SQLITE_INTERRUPT;
}

static bool is_enough(const struct turns *turns, const struct turns_limit *limit)
{
	const double error = sums_error(&turns->saved);

	return turns->saved.count >= PAIRS_MAX ||
	       (turns->saved.count >= limit->pairs && error <= limit->error * turns->before.mean);
}

bool turns_take(struct turns *turns, const struct side sides[2], int variants,
                const struct turns_limit *limit)
{
	const int64_t start = connection_clock_ns();
	double ns[2] = { 0 };

	*turns = (struct turns){ 0 };
	/* The first pair brings pages into the cache. It counts only if there is no time for another pair. */
	for (int pair = 0; !is_enough(turns, limit); pair++) {
		for (int turn = 0; turn < 2; turn++) {
			const int side = (pair + turn) & 1; /* each side is first equally often */

			if (!run(&sides[side], pair % variants, limit, &ns[side], &turns->is_cut))
				return false;
		}
		const int64_t used = connection_clock_ns() - start;

		if (pair > 0 || used > limit->ns / 4) {
			sums_add(&turns->before, ns[0]);
			sums_add(&turns->after, ns[1]);
			sums_add(&turns->saved, ns[0] - ns[1]);
		}
		if (turns->saved.count > 1 ? used > limit->ns : used > 2 * limit->ns)
			break;
	}
	return true;
}

const char *turns_verdict(const struct turns *turns)
{
	const double error = sums_error(&turns->saved);

	if (!isfinite(error))
		return "not known";
	if (fabs(turns->saved.mean) < CERTAIN * error || fabs(turns->saved.mean) < LEAST * turns->before.mean)
		return "no difference";
	return turns->saved.mean > 0 ? "faster" : "slower";
}
