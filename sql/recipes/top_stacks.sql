-- SPDX-License-Identifier: Apache-2.0
-- Where one query's CPU time went, by whole stack of functions, leaf first. Bind :query_id to choose the query (in
-- the sqlite3 shell: .parameter set :query_id "'…'"); otherwise it is the query that took the most CPU time.
WITH traces AS MATERIALIZED (
	SELECT stack_id, trace, sum(value) / 1e6 AS ms
	FROM system.trace_log
	WHERE trace_type = 'CPU' AND query_id = coalesce(:query_id, (
		SELECT query_id FROM system.query_log ORDER BY cpu_time_ns DESC LIMIT 1))
	GROUP BY stack_id),
-- Combines traces that differ only in addresses within the same functions.
stacks AS (
	SELECT traceToText(trace, ' < ') AS stack, sum(ms) AS ms FROM traces GROUP BY stack)
SELECT printf('%5.1f %%', 100 * ms / (SELECT sum(ms) FROM traces)) AS share, stack
FROM stacks ORDER BY ms DESC LIMIT 3;
