-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: the logged runs, for load.sql, which explains the ids. The command replaces the comment with the
-- selection, and for servers before 20.8 toJSONString(labels) with `labels`.
SELECT
	toInt64(file) AS file_id, toInt64(run) AS run_id, toInt64(cityHash64(file, query_id)) AS query_key,
	toInt64(cityHash64(file, hostname, process_id, program)) AS process,
	hostname, program, process_id, query_start_ns AS start_ns, query_id, initial_query_id, parent_query_id,
	type, toInt64(normalized_query_hash) AS hash, query, database, thread_id, exception_code, exception,
	query_duration_ns, execution_time_ns, cpu_time_ns, worker_cpu_time_ns, prepare_time_ns,
	lock_wait_ns, io_read_ns, io_write_ns, io_sync_ns, mutex_wait_ns, sleep_ns, other_wait_ns, run_delay_ns, rest_ns,
	result_rows, read_bytes, write_bytes, memory_usage, vm_steps, fullscan_steps, sorts, autoindexes,
	samples_cpu, samples_real, samples_dropped, samples_truncated, toJSONString(labels) AS label_set
FROM query_log_rows FINAL
WHERE 1 /* and */
