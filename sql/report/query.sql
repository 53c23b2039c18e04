-- SPDX-License-Identifier: Apache-2.0
-- What a report is about: the statements and runs that are selected (see read/selected.sql). After report/samples.sql.
-- read, written: input and output of a megabyte or more. There may be a million runs, so queries read them one by one only if
-- a few suffice.
WITH times AS MATERIALIZED (
	SELECT coalesce(sum(runs), 0) AS n, min(first) AS first, max(last) AS last, min(run) AS run, sum(dropped) AS dropped,
	       sum(reads) AS reads, sum(read_bytes) AS read_bytes, sum(writes) AS writes, sum(write_bytes) AS write_bytes, sum(syncs) AS syncs
	FROM temp.run_sums),
programs AS MATERIALIZED (SELECT DISTINCT program FROM temp.program_sums),
texts AS (
	SELECT coalesce(query, '') AS text FROM (SELECT DISTINCT statement FROM temp.summed_runs) LEFT JOIN statements ON statements.id = statement),
parts AS MATERIALIZED (SELECT * FROM temp.selected_parts),
counted AS (SELECT count(runs) > 0 AS is_counted, sum(runs) AS n FROM parts),
-- What the plans of these statements scan, with the columns that are compared themselves: an index serves those, and
-- none that only an expression reads. SQLite before 3.36 says SCAN TABLE.
scans AS MATERIALIZED (
	SELECT DISTINCT substr(scanned, 1, instr(scanned || ' ', ' ') - 1) AS name,
	       substr(compared, 1, instr(compared || '; ', '; ') - 1) AS columns
	FROM (SELECT *, substr(detail, iif(detail LIKE 'SCAN TABLE %', 12, 6)) AS scanned FROM plan_nodes)
	WHERE program IN (SELECT program FROM programs) AND detail LIKE 'SCAN %' AND detail NOT LIKE '% VIRTUAL TABLE INDEX %'
	  AND compared NOT LIKE 'in expressions: %' AND compared NOT LIKE '%; index % is not searched: %' AND compared <> ''),
unfinished AS MATERIALIZED (
	SELECT id, query_id, statement FROM queries CROSS JOIN temp.selected USING (id)
	-- A sampled statement of queryprof itself has a start, but no text.
	WHERE NOT finished AND id <> 0 AND (statement OR query_start_ns = 0 AND EXISTS (
		-- Samples of the program belong to runs that had returned.
		SELECT 1 FROM samples JOIN series ON series.id = samples.series
		WHERE timestamp_ns BETWEEN queries.first_ns AND queries.last_ns AND query = queries.id AND trace_type NOT IN ('ProgramCPU', 'ProgramOffCPU'))))
SELECT what, value FROM (
	SELECT 1 AS line, 'query' AS what, query_id AS value FROM times JOIN queries ON id = run, counted
	WHERE NOT is_counted AND NOT EXISTS (SELECT 1 FROM temp.selected_runs AS r WHERE r.query_id <> queries.query_id)
	UNION ALL
	SELECT 2, 'query', query_id FROM unfinished
	WHERE NOT statement AND (SELECT count(*) FROM temp.selected) = 1
	UNION ALL
	SELECT 2, 'program', group_concat(name, ', ') || iif(count(*) < n, ' and ' || (n - count(*)) || ' others', '')
	FROM (SELECT *, count(*) OVER () AS n
	      FROM (SELECT DISTINCT fileName(executable) || iif(script <> '', ' ' || fileName(script), '') AS name
	            FROM processes WHERE id IN (SELECT process FROM temp.run_sums) ORDER BY id)
	      LIMIT 3)
	HAVING count(*) > 0
	UNION ALL
	SELECT 3, 'runs', printf('%,d', n) FROM counted WHERE is_counted AND NOT (n = 0 AND EXISTS (SELECT 1 FROM unfinished))
	UNION ALL
	-- If all runs are counted, their number shows it, except if no samples are expected.
	SELECT 4, 'logged runs', CASE WHEN all_n = 0 THEN 'none: no run took long enough, or had a sample'
	                              WHEN NOT is_counted THEN printf('%,d of %,d', times.n, all_n)
	                              WHEN times.n = 0 AND counted.n > 0 THEN 'none: no run took long enough, or had a sample' END
	FROM times, counted, (SELECT iif(is_all, n, (SELECT count(*) FROM queries WHERE finished OR statement)) AS all_n FROM times, temp.selected_limits) WHERE times.n <> 1 OR (is_counted AND counted.n > 0)
	UNION ALL
	SELECT 4, 'unfinished', count(*) || ': no end was recorded' FROM unfinished HAVING count(*) > 0
	UNION ALL
	SELECT 5, 'from', strftime('%Y-%m-%d %H:%M:%S', first / 1000000000, 'unixepoch')
	          || printf('.%06d UTC', first % 1000000000 / 1000) FROM times WHERE n > 0
	UNION ALL
	SELECT 6, 'to', strftime('%Y-%m-%d %H:%M:%S', last / 1000000000, 'unixepoch')
	          || printf('.%06d UTC', last % 1000000000 / 1000) FROM times WHERE n > 1
	UNION ALL
	-- By the time of the logged runs whose caller is known.
	SELECT 6, 'called', 'from ' || group_concat(place || printf(' %.0f %%', 100.0 * ns / whole), ', ') || iif(count(*) < n, ' and ' || (n - count(*)) || ' others', '')
	FROM (SELECT fileName(caller) || iif(caller_function IN ('<module>', '{main}', ''), '', ' (' || caller_function || ')') AS place, sum(ns) AS ns,
	             sum(sum(ns)) OVER () AS whole, count(*) OVER () AS n
	      FROM temp.call_sums JOIN call_stacks AS b ON b.id = call_stack GROUP BY caller, caller_function ORDER BY sum(ns) DESC, caller LIMIT 3)
	HAVING count(*) > 0 AND max(whole) > 0
	UNION ALL
	SELECT 7, 'rows', printf('%,d', sum(rows)) FROM parts HAVING sum(rows) IS NOT NULL AND sum(known) > 0
	UNION ALL
	-- Runs that were not logged are not among these.
	SELECT 7, what, printf('%,d calls, %.1f MB', calls, bytes / 1e6) || iif(syncs > 0, printf(', %,d sync%s', syncs, iif(syncs = 1, '', 's')), '')
	       || iif(is_counted AND counted.n > times.n, ', of logged runs', '')
	FROM (SELECT 'read' AS what, reads AS calls, read_bytes AS bytes, 0 AS syncs, n FROM times
	      UNION ALL SELECT 'written', writes, write_bytes, syncs, n FROM times) AS times, counted
	WHERE bytes >= 1e6
	UNION ALL
	SELECT 8, 'failed', printf('%,d', sum(failed)) || coalesce((
		SELECT ': ' || group_concat(coalesce(name || ', ', '') || exception, '; ')
		FROM (SELECT DISTINCT exception_code, exception, library FROM temp.run_sums WHERE exception_code <> 0
		      ORDER BY exception_code LIMIT 3)
		LEFT JOIN temp.error_names ON library <> 0 AND code = exception_code
		HAVING count(*) > 0), '')
	FROM parts HAVING sum(failed) > 0
	UNION ALL
	SELECT 9, 'dropped', printf('%,d', dropped) || ' samples, for which there was no room'
	FROM times WHERE dropped > 0
	UNION ALL
	SELECT 10, 'scanned', printf('%,d rows of whole tables for %,d rows returned', sum(fullscan_steps), sum(rows))
	       || coalesce((SELECT CASE count(*) WHEN 0 THEN NULL
	                           WHEN 1 THEN '; an index on ' || name || ' (' || columns || ') may save most of that'
	                           WHEN 2 THEN '; indexes on ' || group_concat(name || ' (' || columns || ')', ' and ') || ' may save most of that'
	                           END FROM scans), '')
	FROM parts WHERE fullscan_steps IS NOT NULL HAVING sum(fullscan_steps) > max(1000, 10 * sum(rows))
	UNION ALL
	SELECT 11, 'sorted', printf('%,d time%s', sum(sorts), iif(sum(sorts) = 1, '', 's')) || coalesce((
		SELECT ' for ' || group_concat(what, ', ')
		FROM (SELECT DISTINCT substr(detail, length('USE TEMP B-TREE FOR ') + 1) AS what FROM plan_nodes
		      WHERE program IN (SELECT program FROM programs) AND detail LIKE 'USE TEMP B-TREE FOR %' ORDER BY 1)
		HAVING count(*) > 0), '')
	FROM parts HAVING sum(sorts) > 0
	UNION ALL
	SELECT 12, 'indexed', printf('%,d rows for indexes of these runs alone: CREATE INDEX would keep them',
	                             sum(autoindexes))
	FROM parts HAVING sum(autoindexes) > 0
	UNION ALL
	SELECT 12, 'no plan', iif((SELECT count(*) FROM temp.selected_statements) = 1, (
		SELECT reason || coalesce('. To get one: ' || remedy, '')
		FROM temp.selected_without_plan LEFT JOIN temp.plan_remedies USING (reason) WHERE is_sqlites), NULL)
	UNION ALL
	SELECT 13, 'interval', (
		SELECT group_concat(clock || printf(iif(low < high, ' %g to %g', ' %g') || ' ms', low / 1e6, high / 1e6)
		                    || printf(' for a period of %g ms', period / 1e6), '; ')
		       || ', to keep the limits of what sampling costs'
		FROM (SELECT iif(series.trace_type = 'CPU', 'on CPU', 'wall') AS clock, min(series.period_ns) AS period,
		             min(series.period_ns * stretch) AS low, max(series.period_ns * stretch) AS high
		      FROM series WHERE id IN (SELECT series FROM temp.report_parts) AND series.trace_type IN ('CPU', 'Real')
		      GROUP BY 1 HAVING max(stretch) > 1))
	UNION ALL
	-- Omitted if some samples belong to a query whose text is not known.
	SELECT 14, 'text', trim(coalesce((SELECT min(text) FROM texts HAVING count(DISTINCT text) = 1), max(query)))
	FROM temp.selected_statements
	HAVING count(*) = 1 AND (SELECT count(DISTINCT text) = 1 OR count(*) = 0 FROM texts)
	   AND NOT EXISTS (SELECT 1 FROM unfinished WHERE NOT statement)
	UNION ALL
	SELECT 15, 'removed', 'the oldest samples and logged runs, because the file reached its limit (trace_log_max_bytes)'
	FROM state WHERE removals > 0
	UNION ALL
	SELECT 15, 'lost', printf('%,d %s, of all: ', sum(samples),
	                  CASE WHEN reason LIKE 'runs were not counted: %' THEN iif(sum(samples) = 1, 'run', 'runs')
	                       WHEN sum(samples) = 1 THEN 'sample, row or span' ELSE 'samples, rows or spans' END) || reason
	FROM losses GROUP BY reason HAVING sum(samples) > 0
	UNION ALL
	SELECT 16, 'missing', printf('samples, of all; refused %,d time%s: ', sum(refusals), iif(sum(refusals) = 1, '', 's')) || reason
	FROM losses GROUP BY reason HAVING sum(refusals) > 0)
WHERE value IS NOT NULL
ORDER BY line;
