-- SPDX-License-Identifier: Apache-2.0
-- Writes that fail because their transaction read an older state: waiting cannot help.
SELECT hash, NULL AS saved, NULL AS error, sum(runs) AS failed FROM temp.run_sums WHERE exception_code = 517 AND hash <> 0 GROUP BY hash;
