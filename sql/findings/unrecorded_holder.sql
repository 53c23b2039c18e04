-- SPDX-License-Identifier: Apache-2.0
-- Waits for a lock that a process held that is not recorded. The statement is the one that waited longest.
WITH waits AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, wait_ns, refused, holder_process_id, holder_program, holder_user, o.name AS lock, fileName(w.database) AS database
	FROM waits_for_locks AS w JOIN temp.selected AS s ON s.id = w.query JOIN queries AS q ON q.id = w.query JOIN statements AS x ON x.id = q.statement
	LEFT JOIN wait_objects AS o ON o.object = w.lock
	WHERE holder_process_id <> 0 AND holder_process_id NOT IN (SELECT process_id FROM processes) AND holder_transaction = 0
	  AND x.normalized_query_hash IN (SELECT hash FROM temp.finding_statements)
	  AND (SELECT total(locks) FROM temp.finding_statements) >= 0.01 * (SELECT total(wall) FROM temp.finding_statements)),
-- hash: of the longest of these waits
sums AS (
	SELECT hash, max(wait_ns) AS longest, holder_process_id, max(nullif(holder_program, '')) AS program, max(holder_user) AS user, lock, database, sum(wait_ns) AS waited,
	       count(*) AS waits, sum(refused = 1) AS failed
	FROM waits GROUP BY holder_process_id, database)
SELECT hash, waited AS saved, NULL AS error, holder_process_id || coalesce(' (' || program || ', user ' || user || ')', '') AS holder, lock, database,
       duration(waited) AS waited, printf(iif(waits = 1, '%,d wait', '%,d waits'), waits) AS waits, duration(longest) AS longest,
       iif(failed, printf(', %,d of them in vain', failed), '') AS failed
FROM sums;
