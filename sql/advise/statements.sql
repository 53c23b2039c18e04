-- SPDX-License-Identifier: Apache-2.0
-- The statements of the database ?1, the most expensive first. Statements that mostly ran inside others, as those of
-- virtual tables do, are left out.
SELECT c.normalized_query_hash, sum(calls) AS runs, sum(execution_time_ns) AS ns, max(query)
FROM statement_counters AS c JOIN statements AS s ON s.id = c.statement
WHERE c.normalized_query_hash <> 0 AND database = ?1 AND NOT is_cut
GROUP BY c.normalized_query_hash
HAVING runs > 0 AND sum(nested_time_ns) <= sum(execution_time_ns) / 2
ORDER BY ns DESC, c.normalized_query_hash;
