-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: the samples, see queries.sql.
SELECT
	timestamp_ns AS time_ns,
	toInt64(cityHash64(file, hostname, process_id, program, thread_id, thread_name,
		if(value < 0, 'MemoryFree', trace_type), period_ns, unit)) AS series,
	if(query_id = '', toInt64(0), toInt64(cityHash64(file, query_id))) AS query_key,
	toInt64(cityHash64(file, trace)) AS stack,
	cpu_id, truncated, weight, value - weight * period_ns AS size, toJSONString(labels) AS label_set, otel_trace_id,
	otel_span_id, opcode, wait_ns, wait_cause, wait_object, transaction_number,
	toInt64(ptr) AS ptr
FROM trace_log_rows FINAL
WHERE 1 /* and */
