-- SPDX-License-Identifier: Apache-2.0
-- Statements that failed because another connection had the lock, without a second try.
WITH refusals AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, count(*) AS once
	FROM waits_for_locks AS w JOIN temp.selected AS s ON s.id = w.query JOIN queries AS q ON q.id = w.query JOIN statements AS x ON x.id = q.statement
	-- SQLite calls no busy handler for a transaction that has read and wants to write.
	WHERE refused = 1 AND w.code = 5 AND tries <= 1 AND own_transaction = 0 GROUP BY 1),
failures AS MATERIALIZED (
	SELECT hash, sum(runs) AS logged FROM temp.run_sums WHERE exception_code <> 0 GROUP BY 1)
SELECT r.hash AS hash, NULL AS saved, NULL AS error, printf('%,d', once) AS once, printf('%,d', logged) AS logged, printf('%,d', failed) AS failed, printf('%,d', runs) AS runs
FROM refusals AS r JOIN temp.finding_statements AS f ON f.hash = r.hash JOIN failures AS x ON x.hash = r.hash
WHERE once >= 3 AND once >= 0.8 * logged AND failed >= 5;
