-- SPDX-License-Identifier: Apache-2.0
-- Sums of the selected runs (see read/selected.sql), by where the application called SQLite. :limit; :for_table (not NULL:
-- files without folders, and several lines end with their sum). As the view statement_callers, which has no selection.
-- runs: all runs of the line. Only logged runs have a caller, so the others are divided among the lines by the samples: a
-- sample of a run that took a tenth of the period represents ten such runs. If CPU time was sampled, it is used, because the
-- wall time of a run depends on the tick that takes its sample: the kernel preempts threads there.
-- runs_error: one standard error of runs, 0 if all runs were logged, otherwise at least a quarter of the runs that were not
-- logged, because the tick that takes a sample also makes its run longer, by an unknown time that matters most in short runs. query: the text of the
-- statement with the most samples.
WITH types AS MATERIALIZED (
	SELECT coalesce(max(trace_type = 'CPU'), 0) AS has_cpu FROM series),
sums AS MATERIALIZED (
	SELECT run, trace_type, is_worker, sum(samples) AS samples, sum(value) AS value, sum(spread) AS spread
	FROM temp.selected_sums WHERE logged GROUP BY 1, 2, 3),
sampled AS MATERIALIZED (
	SELECT run, sum(samples) AS samples, sum(value) FILTER (WHERE trace_type = 'CPU') AS cpu, sum(value) FILTER (WHERE is_wall) AS wall,
	       sum(value) FILTER (WHERE is_clock) AS value, sum(spread) FILTER (WHERE is_clock) AS spread
	FROM (SELECT *, NOT is_worker AND iif(has_cpu, trace_type = 'CPU', is_wall) AS is_clock
	      FROM (SELECT *, trace_type IN (SELECT trace_type FROM temp.wall_types) AS is_wall FROM sums, types))
	GROUP BY 1),
parts AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, coalesce(caller, '(not known)') AS caller, coalesce(caller_function, '') AS function,
	       min(r.query) AS query, sum(finished) AS logged, sum(samples) AS samples, sum(cpu) AS cpu, sum(wall) AS wall,
	       total(value / ns) AS weight, total(spread / ns / ns) AS square
	FROM (SELECT *, iif(finished, nullif(1.0 * iif(has_cpu, cpu_time_ns, execution_time_ns) + prepare_time_ns, 0), NULL) AS ns
	      FROM temp.selected_runs, types) AS r
	LEFT JOIN call_stacks AS b ON b.id = call_stack LEFT JOIN sampled AS s ON s.run = r.id
	GROUP BY 1, 2, 3),
shares AS MATERIALIZED (
	SELECT *, max(weight - logged, 0) AS part, sum(max(weight - logged, 0)) OVER statement AS whole,
	       sum(weight) OVER statement AS weights, sum(square) OVER statement AS squares
	FROM parts WINDOW statement AS (PARTITION BY hash)),
counted AS MATERIALIZED (
	SELECT p.*, p.logged + coalesce(rest * share, 0) AS runs,
	       -- The error of the share, or that of a share of n equal samples after one more sample on each side, if larger.
	       iif(rest = 0, 0, rest * rest * (max((square + share * share * (squares - 2 * square)) / weights / weights,
	                                           (share * n + 1) * (n - share * n + 1) / ((n + 2) * (n + 2) * (n + 3)))
	                                       + 1.0 / 16)) AS variance
	FROM (SELECT *, part / nullif(whole, 0) AS share, weights * weights / nullif(squares, 0) AS n FROM shares) AS p
	JOIN (SELECT hash, max(coalesce(runs, 0) - coalesce(logged, 0), 0) AS rest FROM temp.selected_statements) USING (hash)),
lines AS MATERIALIZED (
	SELECT caller, function, CAST(round(total(runs)) AS INTEGER) AS runs,
	       iif(count(variance) = count(*), CAST(round(sqrt(sum(variance))) AS INTEGER), NULL) AS runs_error, sum(logged) AS logged,
	       round(sum(cpu) / 1e6, 1) AS sampled_cpu_ms, round(sum(wall) / 1e6, 1) AS sampled_wall_ms,
	       100.0 * total(iif(has_cpu, cpu, wall)) / max(1, sum(total(iif(has_cpu, cpu, wall))) OVER ()) AS percent,
	       count(hash) AS statements, max(coalesce(samples, -1)), oneLine(query) AS query
	FROM (SELECT hash, caller, function, runs, variance, logged, cpu, wall, samples, query FROM counted
	      -- The runs of statements without samples.
	      UNION ALL SELECT NULL, '(not known)', '', known - (SELECT total(runs) FROM counted), NULL, 0, NULL, NULL, NULL, ''
	      FROM (SELECT total(known) AS known FROM temp.selected_parts) WHERE known > 0.5 + (SELECT total(runs) FROM counted)), types
	GROUP BY 1, 2),
shown AS MATERIALIZED (
	SELECT iif(:for_table, fileName(caller), caller) AS caller, function, runs, runs_error, logged,
	       sampled_cpu_ms, sampled_wall_ms, percent, statements, query
	FROM lines ORDER BY percent DESC, lines.runs DESC, lines.caller, function LIMIT coalesce(CAST(:limit AS INTEGER), 20))
SELECT caller, function, runs, runs_error, logged, sampled_cpu_ms, sampled_wall_ms, round(percent, 1) AS percent, statements, query FROM shown
UNION ALL
SELECT 'sum of ' || count(*), '', sum(runs), NULL, sum(logged), sum(sampled_cpu_ms), sum(sampled_wall_ms), round(sum(percent), 1), NULL, ''
FROM shown WHERE :for_table HAVING count(*) > 1;
