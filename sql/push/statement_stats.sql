-- SPDX-License-Identifier: Apache-2.0
-- The statements whose counters changed in the batches of counters from :since on and before :until, for
-- statement_stats_rows. In a file that only versions up to 5 have written, all batches are 0. The hour is that of the
-- newest run.
SELECT
	(SELECT identity FROM state) AS file,
	(SELECT max(last_seen_ns) FROM statement_counters) / 3600000000000 * 3600000000000 AS hour_ns,
	c.batch AS version,
	coalesce((SELECT hostname FROM processes AS p WHERE p.executable = c.program ORDER BY id DESC LIMIT 1),
	         (SELECT hostname FROM processes ORDER BY id DESC LIMIT 1)) AS hostname,
	coalesce(:service, fileName(c.program)) AS service,
	c.program, c.database, c.normalized_query_hash, x.query, c.calls, c.errors, c.rows, c.execution_time_ns,
	c.cpu_time_ns, c.duration_ns, c.min_ns, c.max_ns, c.execution_time_square, c.cpu_time_square,
	c.nested_time_ns, c.nested_cpu_time_ns, c.prepares, c.prepare_time_ns, c.vm_steps, c.fullscan_steps, c.sorts,
	c.autoindexes, c.first_seen_ns, c.last_seen_ns, s.histogram
FROM statement_counters AS c
JOIN statement_stats AS s USING (normalized_query_hash, database, program)
LEFT JOIN statements AS x ON x.id = c.statement
WHERE c.batch >= :since AND c.batch < :until;
