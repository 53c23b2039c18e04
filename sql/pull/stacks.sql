-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: the stacks of samples, see queries.sql. No name contains \x7F.
SELECT
	toInt64(file) AS file_id, toInt64(cityHash64(file, trace)) AS stack,
	any(arrayStringConcat(arrayMap(x -> toString(x), trace), ',')) AS addresses,
	any(arrayStringConcat(symbols, '\x7F')) AS functions, any(arrayStringConcat(lines, '\x7F')) AS places
FROM trace_log_rows
WHERE 1 /* and */
GROUP BY file_id, stack
