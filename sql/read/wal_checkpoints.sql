-- SPDX-License-Identifier: Apache-2.0
-- Who paid for checkpoints: a line for each statement that ran them. frames_of: the statements whose frames they copied.
WITH runs AS MATERIALIZED (
	SELECT *, iif(normalized_query_hash, normalized_query_hash, query) AS statement FROM checkpoints),
owners AS MATERIALIZED (
	SELECT statement, r.database AS database, r.mode AS mode, r.origin AS origin, f.query AS query, sum(f.frames) AS frames
	FROM runs AS r JOIN checkpoint_frames AS f ON f.checkpoint = r.id
	GROUP BY statement, r.database, r.mode, r.origin, iif(f.normalized_query_hash, f.normalized_query_hash, f.query))
SELECT
	round(sum(duration_ns) / 1e6, 3) AS total_ms,
	round(max(duration_ns) / 1e6, 3) AS longest_ms,
	count(*) AS checkpoints,
	sum(stopped_by <> '') AS stopped,
	sum(frames_copied) AS copied,
	round(sum(write_ns) / 1e6, 3) AS write_ms,
	round(sum(wal_sync_ns + database_sync_ns) / 1e6, 3) AS sync_ms,
	round(sum(lock_wait_ns) / 1e6, 3) AS lock_ms,
	mode,
	origin,
	coalesce((SELECT group_concat(printf('%,d of ', frames) || iif(length(query) > 40, substr(query, 1, 37) || '...', query), ', ')
	          FROM (SELECT * FROM owners AS o WHERE o.statement = r.statement AND o.database = r.database AND o.mode = r.mode AND o.origin = r.origin
	                ORDER BY frames DESC LIMIT 2)), '') AS frames_of,
	coalesce(nullif(max(fileName(caller)), ''), '') AS caller,
	query
FROM runs AS r
GROUP BY database, statement, mode, origin
ORDER BY sum(duration_ns) DESC, query
LIMIT coalesce(CAST(:limit AS INTEGER), 5);
