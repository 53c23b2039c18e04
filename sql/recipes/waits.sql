-- SPDX-License-Identifier: Apache-2.0
-- Where the time of the slowest queries went, in ms. The columns from cpu to rest add up to ms.
SELECT
	round(execution_time_ns / 1e6, 3) AS ms,
	round(cpu_time_ns / 1e6, 3) AS cpu,
	round(lock_wait_ns / 1e6, 3) AS locks,
	round(io_read_ns / 1e6, 3) AS read,
	round(io_write_ns / 1e6, 3) AS write,
	round(io_sync_ns / 1e6, 3) AS sync,
	round(mutex_wait_ns / 1e6, 3) AS mutex,
	round(sleep_ns / 1e6, 3) AS sleep,
	round(other_wait_ns / 1e6, 3) AS other,
	round(run_delay_ns / 1e6, 3) AS run_queue,
	round(rest_ns / 1e6, 3) AS rest,
	reads, writes, syncs, major_faults,
	query
FROM query_log
ORDER BY execution_time_ns DESC
LIMIT 20;
