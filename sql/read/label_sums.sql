-- SPDX-License-Identifier: Apache-2.0
-- Sums of the selected runs' samples (see read/selected.sql), by the text of one label: :key. :limit; :for_table (not
-- NULL: several lines end with their sum). The label of a statement's comment counts first.
-- wall_ms: samples of type Real, or of CPU and OffCPU, where waits were sampled. percent: of all of these samples'
-- time, of CPU time where there is some. runs: all of them, as the label of a comment is counted (see statement_parts);
-- NULL where the label is one of the program's own, or single runs are chosen. logged: those with samples under it.
WITH sums AS (
	SELECT coalesce((SELECT statements.labels FROM queries JOIN statements ON statements.id = statement WHERE queries.id = run), 0)
	       AS comment, labels, run, trace_type, count(*) AS samples, sum(value) AS value
	FROM temp.selected_samples GROUP BY 1, 2, 3, 4),
texts AS MATERIALIZED (
	SELECT (SELECT value FROM label_values AS v WHERE v.labels = comment AND key = :key) AS of_comment,
	       (SELECT value FROM label_values AS v WHERE v.labels = sums.labels AND key = :key) AS own,
	       run, trace_type, samples, value
	FROM sums),
named AS MATERIALIZED (
	SELECT coalesce(of_comment, own, '') || '' AS label, of_comment IS NULL AND own IS NOT NULL AS is_own,
	       run, trace_type, samples, value
	FROM texts),
main AS MATERIALIZED (
	SELECT CASE WHEN sum(trace_type = 'CPU') THEN 'CPU' WHEN sum(trace_type = 'Real') THEN 'Real' ELSE 'OffCPU' END AS main,
	       sum(trace_type = 'OffCPU') AS waits, max(is_own) AS any_own
	FROM named),
-- What a statement has beyond its parts was counted without labels.
counted AS (
	SELECT coalesce((SELECT value FROM label_values AS v WHERE v.labels = p.labels AND key = :key), '') || '' AS label, sum(calls) AS runs
	FROM temp.selected_parts AS s JOIN temp.selected_counts AS p ON p.normalized_query_hash = s.hash
	WHERE s.runs IS NOT NULL GROUP BY 1
	UNION ALL
	SELECT '(not known)', sum(runs - calls)
	FROM (SELECT runs, coalesce((SELECT sum(calls) FROM temp.selected_counts WHERE normalized_query_hash = hash), 0) AS calls
	      FROM temp.selected_parts WHERE runs IS NOT NULL)
	WHERE EXISTS (SELECT 1 FROM statement_parts) HAVING sum(runs - calls) > 0),
lines AS MATERIALIZED (
	SELECT label,
	       CASE WHEN max(is_own) OR (label = '' AND any_own) OR any_logged THEN NULL
	            ELSE sum(runs) END AS runs,
	       count(DISTINCT nullif(run, 0)) AS logged, sum(samples) AS samples,
	       round(sum(value) FILTER (WHERE trace_type = 'CPU') / 1e6, 1) AS cpu_ms,
	       round(coalesce(sum(value) FILTER (WHERE trace_type = 'Real'),
	                      iif(waits, sum(value) FILTER (WHERE trace_type IN ('CPU', 'OffCPU')), NULL)) / 1e6, 1) AS wall_ms,
	       round(100 * total(value) FILTER (WHERE trace_type = main) / max(whole, 1), 1) AS percent
	FROM (SELECT label, is_own, run, trace_type, samples, value, NULL AS runs FROM named
	      UNION ALL SELECT label, 0, NULL, NULL, 0, NULL, runs FROM counted),
	     main, (SELECT EXISTS (SELECT 1 FROM temp.selected_parts WHERE runs IS NULL AND logged > 0) AS any_logged),
	     (SELECT total(value) FILTER (WHERE trace_type = main) AS whole FROM named, main)
	GROUP BY 1 ORDER BY percent DESC, samples DESC, label
	LIMIT coalesce(CAST(:limit AS INTEGER), 20))
SELECT * FROM lines
UNION ALL
SELECT 'sum of ' || count(*), iif(count(runs) = count(*), sum(runs), NULL), sum(logged), sum(samples), sum(cpu_ms), sum(wall_ms), round(sum(percent), 1)
FROM lines WHERE :for_table HAVING count(*) > 1;
