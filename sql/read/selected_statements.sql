-- SPDX-License-Identifier: Apache-2.0
-- The statements and the plans of the selected runs, and the sums of the runs, in the tables of read/selected.sql. After
-- it, with the same parameters, if temp.summed_runs exists. The statements that read that table come first, so that all of
-- them are prepared before the first one runs, and the runs are read once.
INSERT INTO run_sums
SELECT hash, finished, nested, process, library, exception_code, exception, runs, run, samples, first, newest, last, ns, longest, cpu, outside,
       ns_square, cpu_square, workers, rows, vm_steps, fullscan_steps, most_scanned, sorts, autoindexes, prepare, locks, read_ns, write_ns,
       sync_ns, mutexes, sleeps, others, queue, rest, dropped, reads, read_bytes, writes, write_bytes, syncs
FROM temp.summed_runs;

INSERT INTO program_sums
SELECT hash, program, finished, sampled, runs, run, ns, rows, fullscan_steps FROM temp.summed_runs;

INSERT INTO call_sums
SELECT hash, call_stack, runs, ns FROM temp.summed_runs WHERE call_stack <> 0;

INSERT INTO selected_statements
SELECT r.hash, x.query, NULL, logged, samples, newest, wall, cpu, outside, nested_wall, nested_cpu, longest, wall_square, cpu_square, rows,
       failed, vm_steps, fullscan_steps, sorts, autoindexes, NULL, prepare
FROM (SELECT hash, coalesce(sum(runs) FILTER (WHERE finished), 0) AS logged, sum(samples) AS samples, max(newest) AS newest,
             sum(ns) FILTER (WHERE finished) AS wall, sum(cpu) FILTER (WHERE finished) AS cpu, sum(outside) FILTER (WHERE finished) AS outside,
             sum(iif(nested, ns, 0)) FILTER (WHERE finished) AS nested_wall, sum(iif(nested, cpu, 0)) FILTER (WHERE finished) AS nested_cpu,
             max(longest) FILTER (WHERE finished) AS longest, sum(ns_square) FILTER (WHERE finished) AS wall_square,
             sum(cpu_square) FILTER (WHERE finished) AS cpu_square, sum(rows) FILTER (WHERE finished) AS rows,
             sum(iif(exception_code, runs, 0)) AS failed, sum(vm_steps) AS vm_steps, sum(fullscan_steps) AS fullscan_steps, sum(sorts) AS sorts,
             sum(autoindexes) AS autoindexes, sum(prepare) FILTER (WHERE finished) AS prepare
      FROM temp.run_sums GROUP BY hash) AS r
JOIN (SELECT s.hash AS hash, min(coalesce(query, '')) AS query
      FROM (SELECT DISTINCT hash, statement FROM temp.summed_runs) AS s LEFT JOIN statements ON statements.id = s.statement
      GROUP BY s.hash) AS x USING (hash);

-- Their counters. With :label they count the runs with that label in a comment (see statement_parts), if all runs of the
-- statement were counted by labels and the program itself never sets the label. Values that are not counted
-- by labels are then NULL, unless all runs have the label. The spread of times is assumed to be the same for each
-- label.
INSERT INTO selected_statements
WITH whole AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, min(query) AS query, sum(calls) AS calls, max(last_seen_ns) AS newest,
	       sum(execution_time_ns) AS wall, sum(cpu_time_ns) AS cpu, sum(duration_ns - execution_time_ns) AS outside,
	       sum(nested_time_ns) AS nested_wall, sum(nested_cpu_time_ns) AS nested_cpu, max(max_ns) AS longest,
	       sum(execution_time_square) AS wall_square, sum(cpu_time_square) AS cpu_square, sum(rows) AS rows,
	       sum(errors) AS failed, sum(vm_steps) AS vm_steps, sum(fullscan_steps) AS fullscan_steps,
	       sum(sorts) AS sorts, sum(autoindexes) AS autoindexes, sum(prepares) AS prepares,
	       sum(prepare_time_ns) AS prepare
	FROM statement_stats
	WHERE coalesce(:query_id, :since, :until, :min_duration, :failed, :process, :thread, :last, :host, :service, :caller) IS NULL
	  AND (:statement IS NULL OR printf('%016x', normalized_query_hash) = :statement)
	  AND (:database IS NULL OR :database IN (database, fileName(database)))
	  AND (:like IS NULL OR normalized_query_hash IN (
		-- all of its texts; otherwise :like matches literals, which counters do not distinguish
		SELECT normalized_query_hash FROM statements GROUP BY 1 HAVING min(query LIKE '%' || :like || '%')))
	GROUP BY normalized_query_hash
	-- A statement that was only prepared does not count.
	HAVING sum(calls) > 0 OR normalized_query_hash IN (SELECT hash FROM temp.selected_statements)),
matching AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, labels IN (SELECT labels FROM temp.selected_labels WHERE matches) AS matches, *
	FROM statement_parts
	WHERE :label IS NOT NULL
	  AND (:database IS NULL OR :database IN (database, fileName(database)))),
parts AS MATERIALIZED (
	SELECT hash, sum(calls) AS all_calls, sum(calls) FILTER (WHERE matches) AS calls, max(last_seen_ns) FILTER (WHERE matches) AS newest,
	       sum(execution_time_ns) FILTER (WHERE matches) AS wall, sum(cpu_time_ns) FILTER (WHERE matches) AS cpu,
	       sum(duration_ns - execution_time_ns) FILTER (WHERE matches) AS outside,
	       sum(nested_time_ns) FILTER (WHERE matches) AS nested_wall, sum(nested_cpu_time_ns) FILTER (WHERE matches) AS nested_cpu,
	       max(max_ns) FILTER (WHERE matches) AS longest, sum(rows) FILTER (WHERE matches) AS rows,
	       sum(errors) FILTER (WHERE matches) AS failed
	FROM matching GROUP BY 1)
SELECT hash, query, calls, 0, 0, newest, wall, cpu, outside, nested_wall, nested_cpu, longest, wall_square, cpu_square, rows,
       failed, vm_steps, fullscan_steps, sorts, autoindexes, prepares, prepare
FROM whole WHERE :label IS NULL
UNION ALL
SELECT w.hash, w.query, p.calls, 0, 0, p.newest, p.wall, p.cpu, p.outside, p.nested_wall, p.nested_cpu, p.longest,
       1.0 * p.calls / w.calls * (w.wall_square - 1.0 * w.wall * w.wall / w.calls) + 1.0 * p.wall * p.wall / p.calls,
       1.0 * p.calls / w.calls * (w.cpu_square - 1.0 * w.cpu * w.cpu / w.calls) + 1.0 * p.cpu * p.cpu / p.calls, p.rows,
       p.failed, iif(p.calls = w.calls, vm_steps, NULL), iif(p.calls = w.calls, fullscan_steps, NULL),
       iif(p.calls = w.calls, sorts, NULL), iif(p.calls = w.calls, autoindexes, NULL), iif(p.calls = w.calls, prepares, NULL),
       iif(p.calls = w.calls, prepare, NULL)
FROM whole AS w JOIN parts AS p USING (hash)
WHERE :label IS NOT NULL AND p.calls > 0 AND p.all_calls = w.calls AND w.hash NOT IN (
	SELECT r.normalized_query_hash FROM temp.selected_runs AS r JOIN statements AS s ON s.id = r.statement
	WHERE s.labels NOT IN (SELECT labels FROM temp.selected_labels WHERE matches))
ON CONFLICT (hash) DO UPDATE SET
	(runs, newest, wall, cpu, outside, nested_wall, nested_cpu, longest, wall_square, cpu_square, rows, failed, vm_steps,
	 fullscan_steps, sorts, autoindexes, prepares, prepare) =
	(excluded.runs, excluded.newest, excluded.wall, excluded.cpu, excluded.outside, excluded.nested_wall, excluded.nested_cpu,
	 excluded.longest, excluded.wall_square, excluded.cpu_square, excluded.rows, excluded.failed,
	 excluded.vm_steps, excluded.fullscan_steps, excluded.sorts, excluded.autoindexes, excluded.prepares,
	 excluded.prepare);

-- With :failed, how many of all runs of each statement failed, if no other option selects some of them.
CREATE TEMP TABLE selected_failures AS
SELECT normalized_query_hash AS hash, sum(errors) AS failed FROM statement_stats
WHERE :failed IS NOT NULL
  AND coalesce(:query_id, :since, :until, :min_duration, :database, :process, :thread, :last, :label, :host, :service, :caller) IS NULL
  AND (:like IS NULL OR normalized_query_hash IN (
	SELECT normalized_query_hash FROM statements GROUP BY 1 HAVING min(query LIKE '%' || :like || '%')))
GROUP BY 1;

-- The rows of statement_parts of statements whose runs are all counted.
CREATE TEMP TABLE selected_counts AS
SELECT * FROM statement_parts
WHERE normalized_query_hash IN (SELECT hash FROM temp.selected_statements WHERE runs IS NOT NULL)
  AND (:label IS NULL OR labels IN (SELECT labels FROM temp.selected_labels WHERE matches))
  AND (:database IS NULL OR :database IN (database, fileName(database)));

INSERT INTO selected_periods
SELECT p.normalized_query_hash, p.database, g.plan_hash, p.first_seen_ns, p.last_seen_ns, p.calls, p.execution_time_ns
FROM temp.selected_counts AS p
JOIN (SELECT normalized_query_hash, layout, max(plan_hash) AS plan_hash
      FROM programs JOIN statements ON statements.id = programs.statement WHERE layout GROUP BY 1, 2) AS g
  ON g.normalized_query_hash = p.normalized_query_hash AND g.layout = p.layout
WHERE p.calls > 0;

-- Reads the runs only if there are any. Runs of a statement with one plan are summed up: a million rows would take long
-- to sort in plan_changes.sql.
INSERT INTO selected_periods
WITH uncounted AS MATERIALIZED (
	SELECT DISTINCT p.hash AS hash, p.program AS program, g.plan_hash AS plan_hash FROM temp.program_sums AS p JOIN programs AS g ON g.id = p.program
	WHERE finished AND (p.hash, g.plan_hash) NOT IN (SELECT hash, plan_hash FROM temp.selected_periods)),
changing AS MATERIALIZED (
	SELECT hash FROM (SELECT hash, plan_hash FROM uncounted UNION ALL SELECT hash, plan_hash FROM temp.selected_periods)
	GROUP BY hash HAVING min(plan_hash) < max(plan_hash))
SELECT normalized_query_hash, database, g.plan_hash, min(query_start_ns), max(query_start_ns), count(*), sum(execution_time_ns)
FROM (SELECT 1 FROM uncounted LIMIT 1) CROSS JOIN temp.selected_runs AS r CROSS JOIN programs AS g ON g.id = r.program
WHERE finished AND (normalized_query_hash, r.program) IN (SELECT hash, program FROM uncounted)
GROUP BY 1, 2, 3, iif(normalized_query_hash IN (SELECT hash FROM changing), r.id, 0);
