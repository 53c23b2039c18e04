-- SPDX-License-Identifier: Apache-2.0
-- Writes that fail because their transaction read an older state: waiting cannot help.
SELECT r.hash AS hash, NULL AS saved, NULL AS error, sum(r.runs) FILTER (WHERE exception_code = 517) AS failed, sum(r.runs) AS logged, printf(iif(f.failed = 1, '%,d run', '%,d runs'), f.failed) AS all_failed
FROM temp.run_sums AS r JOIN temp.finding_statements AS f ON f.hash = r.hash
WHERE exception_code <> 0 GROUP BY r.hash HAVING max(exception_code = 517);
