-- Where the time of a report went, by whole stack, leaf first, one function a line.
-- :limit. After report_frames.sql.
WITH stacks AS (
	SELECT ns, group_concat(function, char(10)) AS stack
	FROM (SELECT * FROM temp.report_frames ORDER BY stack_id, depth)
	GROUP BY stack_id)
SELECT printf('%.1f %%', 100.0 * sum(ns) / (
	       SELECT sum(ns) FROM temp.report_samples WHERE trace_type = coalesce(:trace_type, 'CPU'))) AS share,
       printf('%.1f', sum(ns) / 1e6) AS ms,
       stack
FROM stacks
GROUP BY stack
ORDER BY sum(ns) DESC, stack
LIMIT coalesce(CAST(:limit AS INTEGER), 5);
