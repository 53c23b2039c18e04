-- SPDX-License-Identifier: Apache-2.0
-- Statements that stay open because the program works between two rows. The program may also run other statements then,
-- so their time is subtracted if they ran in the same period, on any thread.
WITH periods AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, min(first_seen_ns) AS first_ns, max(last_seen_ns) + sum(duration_ns) AS last_ns FROM statement_counters GROUP BY 1),
open AS (
	SELECT f.*, (SELECT total(o.wall) FROM temp.finding_statements AS o LEFT JOIN periods AS q ON q.hash = o.hash
	             WHERE o.hash <> f.hash AND (q.first_ns IS NULL OR p.first_ns IS NULL OR q.first_ns < p.last_ns AND q.last_ns > p.first_ns)) AS others
	FROM temp.finding_statements AS f LEFT JOIN periods AS p ON p.hash = f.hash WHERE outside > 50000000 AND outside > 3 * wall AND outside > 2000 * rows AND rows >= 10),
alone AS MATERIALIZED (SELECT *, outside - others AS own FROM open WHERE outside - others > 50000000),
-- Functions of CPython, Ruby, PHP and node that collect garbage.
collector_stacks AS MATERIALIZED (
	SELECT DISTINCT s.id AS stack
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM alone)) CROSS JOIN names AS n CROSS JOIN frames AS f ON f.function = n.id CROSS JOIN stacks AS s ON instr(s.trace, f.address)
	WHERE n.name IN ('gc_collect_main', 'gc_collect_generations', 'gc_start', 'gc_marks', 'gc_sweep_step', 'zend_gc_collect_cycles') OR n.name LIKE 'v8::internal::Heap::CollectGarbage%'),
collected AS MATERIALIZED (
	SELECT a.hash AS hash, 100.0 * total(value) FILTER (WHERE stack_id IN (SELECT stack FROM collector_stacks)) / sum(value) AS percent
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM collector_stacks)) CROSS JOIN alone AS a JOIN statements AS x ON x.normalized_query_hash = a.hash JOIN queries AS q ON q.statement = x.id
	CROSS JOIN temp.selected_samples AS s ON s.run = q.id AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
	WHERE trace_type IN ('ProgramCPU', 'ProgramOffCPU') GROUP BY 1)
SELECT hash, own AS saved, NULL AS error, duration(own) AS took, duration(wall) AS inside, printf('%,d', rows) AS rows, duration(1.0 * own / rows) AS each,
       coalesce((SELECT ', ' || place FROM temp.finding_consumers AS c WHERE c.hash = alone.hash), '')
       || coalesce((SELECT printf(', %.0f %% of it collects garbage', percent) FROM collected AS g WHERE g.hash = alone.hash AND percent >= 5), '')
       || iif(others > 0.01 * own, printf('; %s of other statements are not included', duration(others)), '') AS without
FROM alone WHERE own > others -- otherwise those statements are what takes the time
  -- Fetching a row costs every program some time, less than the second bound. It counts if it is more than all time in SQLite.
  AND (own > 3 * wall AND own > 100000 * rows OR own > 5 * wall AND own > 2000 * rows AND own > (SELECT sum(wall) FROM temp.finding_statements));
