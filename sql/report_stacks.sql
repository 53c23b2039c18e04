-- Where the time of a report went, by whole stack, leaf first, one frame a line.
-- :trace_type is CPU or Real. After report_samples.sql.
SELECT printf('%.1f %%', 100.0 * ns / sum(ns) OVER ()) AS share,
       printf('%.1f', ns / 1e6) AS ms,
       traceToText(trace) AS stack
FROM temp.report_samples
WHERE trace_type = coalesce(:trace_type, 'CPU')
ORDER BY ns DESC, stack_id
LIMIT coalesce(:limit, 5);
