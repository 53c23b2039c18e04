-- SPDX-License-Identifier: Apache-2.0
-- The selected statements (see read/selected.sql), the costliest first, in temp.lines. Queries that differ only in
-- their literals are one statement. The numbers are of all its runs, or of the logged ones if runs is NULL. Causes of
-- waits are known only of logged runs. Parameters, which may be NULL: :by (wall, cpu, off, samples, start), :limit,
-- :part (the costliest that make up this part of the total time).
--
-- share: of the total time of the selection. p99: 99 of 100 runs took no longer. For all runs it is an upper bound, from a
-- histogram whose bounds are powers of 2 ns, and at most the longest run; is_bound: it may be up to 2 times too much. Of less
-- than 100 runs it is the longest.
DROP TABLE IF EXISTS temp.lines;

CREATE TEMP TABLE lines AS
-- No counter includes runs that have not ended: their time up to the newest sample of each.
WITH unfinished AS MATERIALIZED (
	SELECT hash, sum(ns) AS wall, sum(cpu) AS cpu, max(longest) AS longest, sum(outside) AS outside,
	       sum(iif(nested AND EXISTS (SELECT 1 FROM temp.selected WHERE id = 0), 0, ns)) AS own_wall,
	       sum(iif(nested AND EXISTS (SELECT 1 FROM temp.selected WHERE id = 0), 0, cpu)) AS own_cpu
	FROM temp.run_sums WHERE NOT finished GROUP BY 1),
whole AS MATERIALIZED (
	SELECT iif(:by = 'cpu', (SELECT total(own_cpu) FROM temp.selected_parts) + (SELECT total(own_cpu) FROM unfinished),
	           (SELECT total(own_wall) FROM temp.selected_parts) + (SELECT total(own_wall) FROM unfinished)) AS time),
parts AS MATERIALIZED (
	SELECT s.*, s.wall AS ended_wall, s.cpu AS ended_cpu,
	       iif(u.hash IS NOT NULL, coalesce(s.wall, 0) + u.wall, s.wall) AS all_wall,
	       iif(u.hash IS NOT NULL, coalesce(s.cpu, 0) + u.cpu, s.cpu) AS all_cpu,
	       iif(u.hash IS NOT NULL, max(coalesce(s.longest, 0), u.longest), s.longest) AS all_longest,
	       iif(u.hash IS NOT NULL, coalesce(s.outside, 0) + u.outside, s.outside) AS all_outside,
	       u.hash IS NOT NULL AS is_unfinished
	FROM temp.selected_statements AS s LEFT JOIN unfinished AS u ON u.hash = s.hash),
ranked AS MATERIALIZED (
	SELECT *, row_number() OVER costly AS line, total(all_wall) OVER (costly ROWS UNBOUNDED PRECEDING) - coalesce(all_wall, 0) AS before
	FROM parts
	WINDOW costly AS (ORDER BY CASE :by WHEN 'cpu' THEN all_cpu
	                                    WHEN 'off' THEN all_wall - all_cpu
	                                    WHEN 'samples' THEN samples
	                                    WHEN 'start' THEN newest
	                                    ELSE all_wall END DESC, hash)),
chosen AS MATERIALIZED (
	SELECT * FROM ranked, whole
	WHERE line <= coalesce(CAST(:limit AS INTEGER), 20) AND (:part IS NULL OR before < CAST(:part AS REAL) * whole.time)),
logged AS MATERIALIZED (
	SELECT hash, sum(ns) AS wall, sum(cpu) AS cpu, sum(locks) AS locks, sum(read_ns) AS reads, sum(write_ns) AS writes,
	       sum(sync_ns) AS syncs, sum(mutexes) AS mutexes, sum(sleeps) AS sleeps, sum(others) AS others, sum(queue) AS queue,
	       max(iif(exception_code = 0, NULL, exception)) AS error
	FROM temp.run_sums WHERE finished AND hash IN (SELECT hash FROM chosen) GROUP BY 1),
-- If no counter has all runs.
placed AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, execution_time_ns AS ns,
	       row_number() OVER (PARTITION BY normalized_query_hash ORDER BY execution_time_ns) AS place,
	       count(*) OVER (PARTITION BY normalized_query_hash) AS count
	FROM (SELECT 1 FROM chosen WHERE runs IS NULL LIMIT 1) CROSS JOIN temp.selected_runs
	WHERE finished AND normalized_query_hash IN (SELECT hash FROM chosen WHERE runs IS NULL))
SELECT line, c.hash AS hash, NULL AS run, query, runs, c.logged AS logged, rows, failed, error, vm_steps, fullscan_steps, sorts, autoindexes,
       all_wall AS wall, all_cpu AS cpu, all_longest AS longest, is_unfinished, ended_wall, all_outside AS outside, prepares, prepare,
       iif(time > 0, coalesce(iif(:by = 'cpu', all_cpu, all_wall), 0) / time, NULL) AS share,
       -- The longest of all runs is one without its preparation.
       1.0 * (coalesce(ended_wall, all_wall) - iif(runs IS NULL, 0, prepare)) / nullif(coalesce(runs, c.logged), 0) AS each,
       CASE WHEN runs IS NULL THEN (SELECT min(ns) FROM placed WHERE placed.hash = c.hash AND 100 * place >= 99 * count)
            WHEN :label IS NULL THEN
                 (SELECT min(iif(bucket < 23, min(1024 << bucket, c.longest), c.longest))
                  FROM (SELECT key AS bucket, sum(sum(value)) OVER (ORDER BY key) AS upto
                        FROM statement_stats, json_each(histogram)
                        WHERE normalized_query_hash = c.hash
                          AND (:database IS NULL OR :database IN (database, fileName(database)))
                        GROUP BY key)
                  WHERE 100 * upto >= 99 * runs) END AS p99, coalesce(runs >= 100, 0) AS is_bound,
       locks, reads, writes, syncs, mutexes, sleeps, others, queue,
       -- of runs that were not logged
       max(0, ended_wall - ended_cpu - coalesce(l.wall - l.cpu, 0)) AS unknown
FROM chosen AS c LEFT JOIN logged AS l ON l.hash = c.hash;
