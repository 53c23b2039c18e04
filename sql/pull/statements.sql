-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: the sums of all runs of statements, see queries.sql.
SELECT
	toInt64(normalized_query_hash) AS hash, query, database, program, calls, errors, rows, execution_time_ns, cpu_time_ns,
	duration_ns, min_ns, max_ns, execution_time_square, cpu_time_square, nested_time_ns, nested_cpu_time_ns, prepares,
	prepare_time_ns, vm_steps, fullscan_steps, sorts, autoindexes, first_seen_ns, last_seen_ns
FROM statement_stats
WHERE 1 /* and */
