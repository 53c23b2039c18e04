-- SPDX-License-Identifier: Apache-2.0
-- The stacks that waited longest: cause, object, total ms, the longest single wait, the stack.
SELECT
	wait_cause,
	wait_object,
	round(ms, 3) AS ms,
	round(longest_ms, 3) AS longest_ms,
	samples,
	traceToText(trace) AS stack
FROM (
	SELECT
		wait_cause, wait_object, trace,
		sum(value) / 1e6 AS ms,
		max(wait_ns) / 1e6 AS longest_ms,
		count(*) AS samples
	FROM trace_log
	WHERE trace_type = 'OffCPU'
	GROUP BY wait_cause, wait_object, stack_id
	ORDER BY ms DESC
	LIMIT 20
);
