-- SPDX-License-Identifier: Apache-2.0
-- Where one query's CPU time went, by function: `self` is the time in the function itself, `total` includes the
-- functions that it called. Bind :query_id to choose the query (in the sqlite3 shell: .parameter set :query_id
-- "'…'"); otherwise it is the query that took the most CPU time.
WITH stacks AS MATERIALIZED (
	SELECT stack_id, trace, sum(value) / 1e6 AS ms
	FROM system.trace_log
	WHERE trace_type = 'CPU' AND query_id = coalesce(:query_id, (
		SELECT query_id FROM system.query_log ORDER BY cpu_time_ns DESC LIMIT 1))
	GROUP BY stack_id),
frames AS (
	SELECT stack_id, ms, frame.key AS depth, addressToSymbol(frame.value) AS symbol
	FROM stacks JOIN json_each(trace) AS frame),
-- A function counts once per stack, however often it recurs there. Code without names ("module+0x1234") counts as one
-- function per module, "(module)".
functions AS (
	SELECT iif(symbol GLOB '*+0x*', '(' || substr(symbol, 1, instr(symbol, '+0x') - 1) || ')',
	           demangle(symbol)) AS function,
	       ms, min(depth) = 0 AS is_leaf
	FROM frames GROUP BY stack_id, function)
SELECT printf('%5.1f %%', 100 * sum(ms * is_leaf) / (SELECT sum(ms) FROM stacks)) AS self,
       printf('%5.1f %%', 100 * sum(ms) / (SELECT sum(ms) FROM stacks)) AS total,
       printf('%8.1f', sum(ms * is_leaf)) AS self_ms,
       function
FROM functions GROUP BY function ORDER BY sum(ms * is_leaf) DESC, sum(ms) DESC LIMIT 10;
