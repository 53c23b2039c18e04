-- SPDX-License-Identifier: Apache-2.0
-- Many short SELECTs outside a transaction: each locks the file, reads whether it has changed, and unlocks it. In WAL mode it
-- locks the WAL. The names of functions show it: those of SQLite, or fcntl(), which SQLite calls for locks. There is no
-- finding if a server runs such a SELECT now and then: they have to take a fifth of the time between the first and the last one.
WITH frequent AS MATERIALIZED (
	SELECT hash, wall, runs
	FROM temp.finding_statements AS f JOIN (SELECT normalized_query_hash AS hash, max(last_seen_ns) - min(first_seen_ns) AS ns FROM statement_counters GROUP BY 1) AS p USING (hash)
	WHERE wall >= 0.2 * ns AND (query LIKE 'SELECT%' OR query LIKE 'WITH%') AND runs >= 1000 AND wall >= 0.1 * (SELECT sum(wall) FROM temp.finding_statements)),
stacks_that_lock AS MATERIALIZED (
	SELECT DISTINCT s.id AS stack
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM frequent)) CROSS JOIN names AS n CROSS JOIN frames AS f ON f.function = n.id CROSS JOIN stacks AS s ON instr(s.trace, f.address)
	WHERE n.name IN ('sqlite3PagerSharedLock', 'pager_unlock', 'walTryBeginRead', 'fcntl', 'fcntl64', '__fcntl64', '__libc_fcntl', '__libc_fcntl64', '__fcntl64_nocancel_adjusted')),
computed AS MATERIALIZED (
	SELECT r.hash AS hash, r.wall AS wall, r.runs AS runs, sum(value) AS whole, total(value) FILTER (WHERE stack_id IN (SELECT stack FROM stacks_that_lock)) AS ns,
	       total(1.0 * value * value) FILTER (WHERE stack_id IN (SELECT stack FROM stacks_that_lock)) AS square, count(*) AS samples
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM stacks_that_lock)) CROSS JOIN frequent AS r JOIN statements AS x ON x.normalized_query_hash = r.hash
	JOIN queries AS q ON q.statement = x.id
	CROSS JOIN temp.selected_samples AS s ON s.run = q.id AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
	WHERE trace_type = 'CPU' GROUP BY 1)
SELECT hash, ns / whole * wall AS saved, sqrt(square) / whole * wall AS error, printf('%,d', runs) AS runs, printf('%.0f', 100.0 * ns / whole) AS share,
       duration(wall / runs) AS each
FROM computed WHERE samples >= 20 AND ns >= 0.3 * whole;
