-- SPDX-License-Identifier: Apache-2.0
-- The WAL of each database over time, in :width parts of it: the largest number of frames, as blocks, and its checkpoints: | if all
-- frames were copied, x if some were left or it failed.
WITH RECURSIVE
points AS MATERIALIZED (
	SELECT database, start_ns + duration_ns AS ns, iif(event = 0, last_frame, iif(event = 1, 0, frames)) AS frames, 0 AS is_end FROM wal_events
	UNION ALL SELECT database, start_ns, coalesce(frames, 0), 0 FROM wal_checkpoints
	UNION ALL SELECT database, start_ns + duration_ns, 0, 1 FROM wal_checkpoints
	          WHERE copied_after = frames AND (origin = 3 OR mode = 3) AND result = 0),
bounds AS MATERIALIZED (
	SELECT database, min(ns) AS first_ns, max(max(ns), min(ns) + 1) AS last_ns, max(max(frames), 1) AS most FROM points GROUP BY database),
parts(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM parts WHERE i + 1 < CAST(:width AS INTEGER)),
placed AS MATERIALIZED (
	SELECT p.database AS database, CAST((ns - first_ns) * 1.0 / (last_ns - first_ns + 1) * CAST(:width AS INTEGER) AS INTEGER) AS i, ns, frames, is_end
	FROM points AS p JOIN bounds AS b USING (database)),
most AS MATERIALIZED (SELECT database, i, max(frames) AS frames FROM placed GROUP BY database, i),
lasts AS MATERIALIZED (SELECT database, i, frames, max(ns + is_end) FROM placed GROUP BY database, i),
bars AS MATERIALIZED (
	SELECT b.database AS database, p.i AS i, b.most AS most,
	       max(coalesce((SELECT frames FROM most AS m WHERE m.database = b.database AND m.i = p.i), 0),
	           coalesce((SELECT frames FROM lasts AS l WHERE l.database = b.database AND l.i < p.i ORDER BY l.i DESC LIMIT 1), 0)) AS frames
	FROM bounds AS b CROSS JOIN parts AS p),
ticks AS MATERIALIZED (
	SELECT c.database AS database, CAST((start_ns - first_ns) * 1.0 / (last_ns - first_ns + 1) * CAST(:width AS INTEGER) AS INTEGER) AS i,
	       max(result <> 0 OR coalesce(copied_after < frames, 0)) AS is_stopped
	FROM wal_checkpoints AS c JOIN bounds AS b USING (database) GROUP BY 1, 2)
SELECT
	s.story,
	(SELECT group_concat(iif(frames = 0, ' ', substr('▁▂▃▄▅▆▇█', 1 + min(7, frames * 8 / most), 1)), '')
	 FROM (SELECT * FROM bars WHERE bars.database = b.database ORDER BY i)) AS bars,
	(SELECT group_concat(coalesce((SELECT iif(is_stopped, 'x', '|') FROM ticks AS t WHERE t.database = b.database AND t.i = parts.i), ' '), '')
	 FROM (SELECT * FROM parts ORDER BY i) AS parts) AS ticks,
	(last_ns - first_ns) / 1e9 AS seconds
FROM wal_story AS s JOIN bounds AS b USING (database)
ORDER BY s.largest_frames DESC, s.database
LIMIT coalesce(CAST(:limit AS INTEGER), 5);
