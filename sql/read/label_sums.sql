-- SPDX-License-Identifier: Apache-2.0
-- The sums of the selected runs' samples (see read/selected.sql), by the text of one label, :key. :limit; :for_table
-- (not NULL: the sum of several lines in the last line). The label of a statement's comment takes precedence.
-- runs, wall_ms, cpu_ms: of all runs, exact and inside SQLite, because the label of a comment is counted (see
-- statement_parts); NULL if the program sets the label itself, or if single runs are selected. sampled_runs: those
-- with samples under the label. sampled_…_ms: the sums of the samples; wall time is Real, or CPU and OffCPU if waits
-- were sampled. percent: of the sum over all labels, of CPU time if there is any.
WITH texts_of AS MATERIALIZED (SELECT labels, value FROM label_values WHERE key = :key),
sums AS MATERIALIZED (
	SELECT comment, labels, trace_type, sum(samples) AS samples, sum(value) AS value FROM temp.selected_sums
	WHERE trace_type <> 'MemoryLive' -- these samples are counted as MemorySample
	GROUP BY 1, 2, 3),
texts AS MATERIALIZED (
	SELECT DISTINCT comment, s.labels AS labels, c.value AS of_comment, o.value AS own
	FROM sums AS s LEFT JOIN texts_of AS c ON c.labels = comment LEFT JOIN texts_of AS o ON o.labels = s.labels),
names AS MATERIALIZED (
	SELECT comment, labels, coalesce(of_comment, own, '') || '' AS label, of_comment IS NULL AND own IS NOT NULL AS is_own
	FROM texts),
named AS MATERIALIZED (
	SELECT label, is_own, trace_type, samples, value FROM sums JOIN names USING (comment, labels)),
sampled AS MATERIALIZED (
	SELECT label AS of_label, count(DISTINCT nullif(run, 0)) AS runs
	FROM (SELECT run, comment, labels FROM temp.selected_sums) JOIN names USING (comment, labels) GROUP BY 1),
main AS MATERIALIZED (
	SELECT CASE WHEN sum(trace_type = 'CPU') THEN 'CPU' WHEN sum(trace_type = 'Real') THEN 'Real' ELSE 'OffCPU' END AS main,
	       sum(trace_type = 'OffCPU') AS waits, max(is_own) AS any_own
	FROM named),
parts AS MATERIALIZED (
	SELECT hash, coalesce((SELECT value FROM label_values AS v WHERE v.labels = p.labels AND key = :key), '') || '' AS label,
	       sum(p.calls) AS runs, sum(p.execution_time_ns - is_all * p.nested_time_ns) AS wall,
	       sum(p.cpu_time_ns - is_all * p.nested_cpu_time_ns) AS cpu
	FROM temp.selected_parts AS s JOIN temp.selected_counts AS p ON p.normalized_query_hash = hash
	WHERE s.runs IS NOT NULL GROUP BY 1, 2),
-- What a statement has in addition to its parts was counted without labels.
counted AS (
	SELECT label, runs, wall, cpu FROM parts
	UNION ALL
	SELECT '(not known)', sum(s.runs) - total(p.runs), sum(own_wall) - total(p.wall), sum(own_cpu) - total(p.cpu)
	FROM temp.selected_parts AS s
	LEFT JOIN (SELECT hash, sum(runs) AS runs, sum(wall) AS wall, sum(cpu) AS cpu FROM parts GROUP BY 1) AS p USING (hash)
	WHERE s.runs IS NOT NULL AND EXISTS (SELECT 1 FROM statement_parts) HAVING sum(s.runs) > total(p.runs)),
lines AS MATERIALIZED (
	SELECT label,
	       iif(is_counted, CAST(sum(runs) AS INTEGER), NULL) AS runs,
	       iif(is_counted, round(sum(wall) / 1e6, 4), NULL) AS wall_ms,
	       iif(is_counted, round(sum(cpu) / 1e6, 4), NULL) AS cpu_ms,
	       coalesce((SELECT sampled.runs FROM sampled WHERE of_label = label), 0) AS sampled_runs,
	       round(sum(value) FILTER (WHERE trace_type = 'CPU') / 1e6, 1) AS sampled_cpu_ms,
	       round(coalesce(sum(value) FILTER (WHERE trace_type = 'Real'),
	                      iif(waits, sum(value) FILTER (WHERE trace_type IN ('CPU', 'OffCPU')), NULL)) / 1e6, 1) AS sampled_wall_ms,
	       sum(samples) AS samples,
	       100 * total(value) FILTER (WHERE trace_type = main) / max(whole, 1) AS percent
	FROM (SELECT *, NOT (max(is_own) OVER (PARTITION BY label) OR (label = '' AND any_own) OR any_logged) AS is_counted
	      FROM (SELECT label, is_own, trace_type, samples, value, NULL AS runs, NULL AS wall, NULL AS cpu FROM named
	            UNION ALL SELECT label, 0, NULL, 0, NULL, runs, wall, cpu FROM counted),
	           main, (SELECT EXISTS (SELECT 1 FROM temp.selected_parts WHERE runs IS NULL AND logged > 0) AS any_logged),
	           (SELECT total(value) FILTER (WHERE trace_type = main) AS whole FROM named, main))
	GROUP BY 1 ORDER BY percent DESC, samples DESC, label
	LIMIT coalesce(CAST(:limit AS INTEGER), 20))
SELECT label, runs, wall_ms, cpu_ms, sampled_runs, sampled_cpu_ms, sampled_wall_ms, samples, round(percent, 1) AS percent FROM lines
UNION ALL
SELECT 'sum of ' || count(*), iif(count(runs) = count(*), sum(runs), NULL), iif(count(runs) = count(*), sum(wall_ms), NULL),
       iif(count(runs) = count(*), sum(cpu_ms), NULL), sum(sampled_runs), sum(sampled_cpu_ms), sum(sampled_wall_ms), sum(samples), round(sum(percent), 1)
FROM lines WHERE :for_table HAVING count(*) > 1;
