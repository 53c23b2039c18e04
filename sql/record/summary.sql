-- SPDX-License-Identifier: Apache-2.0
-- The sums over the processes after number :before in a trace file. queries: their rows in query_log. runs: all runs
-- counted since there were :runs_before, and those that have not ended; if runs are not counted, the rows.
WITH
came AS (SELECT id, process FROM threads WHERE process > :before),
used AS (SELECT process, finished, finished OR statement AS is_shown FROM queries WHERE process > :before AND id > 0)
SELECT
	(SELECT count(*) FROM samples WHERE series IN (
		SELECT id FROM series WHERE thread IN (SELECT id FROM came) AND trace_type <> 'MemoryFree')) AS samples,
	(SELECT count(*) FROM used WHERE is_shown) AS queries,
	-- Including processes of which only the runs were counted.
	(SELECT count(*) FROM (
		SELECT id FROM processes WHERE id > :before
		UNION SELECT process FROM used
		UNION SELECT process FROM came)) AS processes,
	max(coalesce((SELECT sum(calls) FROM statement_counters), 0) - :runs_before
	    + (SELECT count(*) FROM used WHERE is_shown AND NOT finished),
	    (SELECT count(*) FROM used WHERE is_shown)) AS runs,
	EXISTS (SELECT 1 FROM stacks WHERE id > 0) AS has_stacks,
	-- Of a few programs, what each process ran.
	(SELECT group_concat(program, ', ') FROM (
		SELECT DISTINCT fileName(executable) || iif(script <> '', ' ' || fileName(script), '') AS program
		FROM processes WHERE id > :before ORDER BY id)
	 HAVING count(*) <= 3) AS programs,
	(SELECT removals FROM state) AS removals;
