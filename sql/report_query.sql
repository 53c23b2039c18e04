-- SPDX-License-Identifier: Apache-2.0
-- What a report is about: the runs that are selected (see selected.sql).
WITH runs AS MATERIALIZED (SELECT * FROM temp.selected_runs),
times AS (
	SELECT count(*) AS n, min(query_start_ns) AS first, max(query_start_ns + query_duration_ns) AS last
	FROM runs),
unfinished AS MATERIALIZED (
	SELECT id, query_id, statement FROM temp.selected CROSS JOIN queries USING (id)
	WHERE NOT finished AND id <> 0 AND (statement OR EXISTS (
		SELECT 1 FROM samples WHERE timestamp_ns BETWEEN queries.first_ns AND queries.last_ns AND query = id)))
SELECT what, value FROM (
	SELECT 1 AS line, 'query' AS what, max(query_id) AS value FROM runs HAVING count(DISTINCT query_id) = 1
	UNION ALL
	SELECT 2, 'query', query_id FROM unfinished
	WHERE NOT statement AND (SELECT count(*) FROM temp.selected) = 1
	UNION ALL
	SELECT 3, 'runs', n || ' of ' || (SELECT count(*) FROM queries WHERE finished OR statement) FROM times
	WHERE n <> 1
	UNION ALL
	SELECT 3, 'unfinished', count(*) || ': no end was recorded' FROM unfinished HAVING count(*) > 0
	UNION ALL
	SELECT 4, 'from', strftime('%Y-%m-%d %H:%M:%S', first / 1000000000, 'unixepoch')
	          || printf('.%06d UTC', first % 1000000000 / 1000) FROM times WHERE n > 0
	UNION ALL
	SELECT 5, 'to', strftime('%Y-%m-%d %H:%M:%S', last / 1000000000, 'unixepoch')
	          || printf('.%06d UTC', last % 1000000000 / 1000) FROM times WHERE n > 1
	UNION ALL
	SELECT 6, 'rows', sum(result_rows) FROM runs WHERE finished
	UNION ALL
	SELECT 7, 'failed', sum(exception_code <> 0) ||
	       CASE count(DISTINCT nullif(exception, '')) WHEN 0 THEN '' ELSE ': ' || max(exception) END
	FROM runs HAVING sum(exception_code <> 0) > 0
	UNION ALL
	SELECT 8, 'dropped', sum(samples_dropped) || ' samples, for which there was no room'
	FROM runs HAVING sum(samples_dropped) > 0
	UNION ALL
	SELECT 9, 'scanned', printf('%,d rows of whole tables: an index may save that', sum(fullscan_steps))
	FROM runs HAVING sum(fullscan_steps) > max(1000, 10 * sum(result_rows))
	UNION ALL
	SELECT 10, 'sorted', printf('%,d times: an index in that order may save it', sum(sorts))
	FROM runs HAVING sum(sorts) > 0
	UNION ALL
	SELECT 11, 'indexed', printf('%,d rows for indexes of these runs alone: CREATE INDEX would keep them',
	                             sum(autoindexes))
	FROM runs HAVING sum(autoindexes) > 0
	UNION ALL
	-- Not where some samples are of a query whose text is not known.
	SELECT 12, 'text', max(trim(query)) FROM runs
	HAVING count(DISTINCT query) = 1 AND NOT EXISTS (SELECT 1 FROM unfinished WHERE NOT statement))
WHERE value IS NOT NULL
ORDER BY line;
