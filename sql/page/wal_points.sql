-- SPDX-License-Identifier: Apache-2.0
-- The size of each WAL over time, in frames, and its checkpoints: the largest size in each of 300 parts of the time.
-- checkpoint: 0: none in this part; 1: all frames were copied; 2: some remained, or it failed. database: the name of
-- the file.
WITH
points AS MATERIALIZED (
	SELECT database, start_ns + duration_ns AS ns, iif(event = 0, last_frame, iif(event = 1, 0, frames)) AS frames, 0 AS checkpoint FROM wal_events
	UNION ALL
	SELECT database, start_ns, coalesce(frames, 0), 1 + (result <> 0 OR coalesce(copied_after < frames, 0)) FROM wal_checkpoints),
bounds AS MATERIALIZED (SELECT database, min(ns) AS first_ns, max(ns) - min(ns) + 1 AS lasted_ns FROM points GROUP BY database),
shown AS (SELECT database FROM wal_story ORDER BY largest_frames DESC, database LIMIT 20)
SELECT fileName(p.database) AS database, min(ns) / 1000000 AS at_ms, max(frames) AS frames, max(checkpoint) AS checkpoint
FROM points AS p JOIN bounds AS b USING (database) WHERE database IN (SELECT database FROM shown)
GROUP BY database, CAST(300.0 * (ns - first_ns) / lasted_ns AS INTEGER) ORDER BY database, at_ms;
