-- SPDX-License-Identifier: Apache-2.0
-- Sums of the selected runs' samples (see selected.sql), by the text of one label: :key.
-- :limit. wall_ms: samples of type Real, or of CPU and OffCPU, where waits were sampled. runs: that have samples under it. percent: of all of these samples' time, of CPU time
-- where there is some. The label of a statement's comment counts first.
WITH sums AS MATERIALIZED (
	SELECT coalesce((SELECT statements.labels FROM queries JOIN statements ON statements.id = statement WHERE queries.id = run), 0)
	       AS comment, labels, run, trace_type, count(*) AS samples, sum(value) AS value
	FROM temp.selected_samples GROUP BY 1, 2, 3, 4),
named AS MATERIALIZED (
	SELECT coalesce((SELECT value FROM label_values AS v WHERE v.labels = comment AND key = :key),
	                (SELECT value FROM label_values AS v WHERE v.labels = sums.labels AND key = :key)) AS label,
	       run, trace_type, samples, value
	FROM sums),
main AS MATERIALIZED (
	SELECT CASE WHEN sum(trace_type = 'CPU') THEN 'CPU' WHEN sum(trace_type = 'Real') THEN 'Real' ELSE 'OffCPU' END AS main,
	       sum(trace_type = 'OffCPU') AS waits
	FROM named)
SELECT coalesce(label, '') AS label, count(DISTINCT nullif(run, 0)) AS runs, sum(samples) AS samples,
       round(sum(value) FILTER (WHERE trace_type = 'CPU') / 1e6, 1) AS cpu_ms,
       round(coalesce(sum(value) FILTER (WHERE trace_type = 'Real'),
                      iif(waits, sum(value) FILTER (WHERE trace_type IN ('CPU', 'OffCPU')), NULL)) / 1e6, 1) AS wall_ms,
       round(100 * total(value) FILTER (WHERE trace_type = main) / max(whole, 1), 1) AS percent
FROM named, main, (SELECT total(value) FILTER (WHERE trace_type = main) AS whole FROM named, main)
GROUP BY 1 ORDER BY percent DESC, samples DESC, label
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
