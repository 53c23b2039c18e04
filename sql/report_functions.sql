-- Where the time of a report went, by function: `self` is spent in the function
-- itself, `total` also in what it called. Code without a symbol is one line a
-- module. :trace_type is CPU or Real. After report_samples.sql.
WITH stacks AS MATERIALIZED (
	SELECT stack_id, trace, ns FROM temp.report_samples
	WHERE trace_type = coalesce(:trace_type, 'CPU')),
frames AS MATERIALIZED (
	SELECT stack_id, ns, frame.key AS depth, frame.value AS address
	FROM stacks JOIN json_each(trace) AS frame),
symbols AS MATERIALIZED (
	SELECT address, addressToSymbol(address) AS symbol
	FROM (SELECT DISTINCT address FROM frames)),
names AS MATERIALIZED (
	SELECT address,
	       CASE WHEN symbol IS NULL THEN '(no module)'
	            WHEN symbol LIKE '%+0x%' THEN '(' || substr(symbol, 1, instr(symbol, '+0x') - 1) || ')'
	            ELSE demangle(symbol) END AS function
	FROM symbols),
-- Each function once a stack, however often it recurs there.
functions AS (
	SELECT function, ns, min(depth) = 0 AS is_leaf
	FROM frames JOIN names USING (address)
	GROUP BY stack_id, function)
SELECT printf('%.1f %%', 100.0 * sum(ns * is_leaf) / (SELECT sum(ns) FROM stacks)) AS self,
       printf('%.1f %%', 100.0 * sum(ns) / (SELECT sum(ns) FROM stacks)) AS total,
       printf('%.1f', sum(ns * is_leaf) / 1e6) AS self_ms,
       printf('%.1f', sum(ns) / 1e6) AS total_ms,
       function
FROM functions
GROUP BY function
ORDER BY sum(ns * is_leaf) DESC, sum(ns) DESC, function
LIMIT coalesce(:limit, 15);
