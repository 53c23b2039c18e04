-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints that these runs paid for, except those of a PRAGMA or function, whose purpose they are. checkpoint_ms and its
-- parts: sums over all of them. own_ms: the longest logged run without its checkpoint. frames_of: the statements whose frames
-- were copied.
WITH paid AS MATERIALIZED (
	SELECT c.*, q.execution_ns - c.duration_ns AS own_ns
	FROM wal_checkpoints AS c LEFT JOIN queries AS q ON q.id = c.query AND q.finished
	WHERE c.origin = 0 AND (c.query IN (SELECT id FROM temp.selected_runs)
	                        OR q.id IS NULL AND c.statement IN (SELECT hash FROM temp.selected_statements WHERE runs > logged))),
owners AS MATERIALIZED (
	SELECT query, sum(frames) AS frames FROM checkpoint_frames WHERE checkpoint IN (SELECT id FROM paid)
	GROUP BY iif(normalized_query_hash, normalized_query_hash, query))
SELECT
	count(*) AS checkpoints,
	round(sum(duration_ns) / 1e6, 3) AS checkpoint_ms,
	round(max(duration_ns) / 1e6, 3) AS longest_ms,
	round((SELECT own_ns FROM paid WHERE own_ns >= 0 ORDER BY duration_ns DESC LIMIT 1) / 1e6, 3) AS own_ms,
	round(sum(write_ns) / 1e6, 3) AS write_ms,
	round(sum(wal_sync_ns) / 1e6, 3) AS wal_sync_ms,
	round(sum(database_sync_ns) / 1e6, 3) AS database_sync_ms,
	round(sum(cpu_ns) / 1e6, 3) AS cpu_ms,
	sum(copied_after - copied_before) AS frames,
	coalesce((SELECT group_concat(printf('%,d of ', frames) || iif(length(query) > 60, substr(query, 1, 57) || '...', query), ', ')
	          FROM (SELECT * FROM owners ORDER BY frames DESC LIMIT 3)), '(not known)') AS frames_of
FROM paid
HAVING count(*);
