-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: the thread, type and period of samples, see queries.sql.
SELECT DISTINCT
	toInt64(cityHash64(file, hostname, process_id, program, thread_id, thread_name,
		if(value < 0, 'MemoryFree', trace_type), period_ns, unit)) AS series,
	toInt64(cityHash64(file, hostname, process_id, program, thread_id, thread_name)) AS thread,
	toInt64(cityHash64(file, hostname, process_id, program)) AS process,
	hostname, process_id, program, thread_id, thread_name, if(value < 0, 'MemoryFree', trace_type) AS trace_type, period_ns, unit
FROM trace_log_rows
WHERE 1 /* and */
