-- SPDX-License-Identifier: Apache-2.0
-- Readers whose snapshots kept checkpoints from copying thousands of frames: the WAL grows until they end.
WITH worst AS (
	SELECT id, max(frames - copied_after) AS remained, count(*) AS stopped FROM wal_checkpoints
	-- 3: a reader
	WHERE obstacle = 3 AND copied_after < frames AND statement IN (SELECT hash FROM temp.finding_statements)
	GROUP BY database HAVING max(frames - copied_after) >= 4000)
SELECT coalesce((SELECT max(normalized_query_hash) FROM statements AS x WHERE x.query = c.holder_query), c.normalized_query_hash) AS hash,
       NULL AS saved, NULL AS error, replace(c.database, rtrim(c.database, replace(c.database, '/', '')), '') AS file, printf('%,d', c.frames) AS frames,
       printf('%,.1f MB', c.frames * (c.page_size + 24.0) / 1e6) AS size, c.stopped_by AS mark,
       printf(iif(w.stopped = 1, '%,d checkpoint was', '%,d checkpoints were'), w.stopped) AS stopped, printf('%,d', w.remained) AS remained
FROM worst AS w CROSS JOIN checkpoints AS c ON c.id = w.id;
