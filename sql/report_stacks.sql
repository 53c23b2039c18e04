-- SPDX-License-Identifier: Apache-2.0
-- Where the time of a report went, by whole stack, leaf first, one function a line.
-- :limit. :unit as in report_functions.sql. After report_frames.sql.
WITH shown AS (
	SELECT iif(is_time, '%.1f', '%.0f') AS form, iif(is_time, 1e6, 1.0) AS scale
	FROM (SELECT coalesce(:unit, 'ns') = 'ns' AS is_time)),
stacks AS (
	SELECT value, group_concat(function, char(10)) AS stack
	FROM (SELECT * FROM temp.report_frames ORDER BY stack_id, depth)
	GROUP BY stack_id)
SELECT printf('%.1f %%', 100.0 * sum(value) / (
	       SELECT sum(value) FROM temp.report_samples WHERE trace_type = coalesce(:trace_type, 'CPU'))) AS share,
       printf(form, sum(value) / scale) AS ms,
       stack
FROM stacks, shown
GROUP BY stack
ORDER BY sum(value) DESC, stack
LIMIT coalesce(CAST(:limit AS INTEGER), 5);
