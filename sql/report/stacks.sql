-- SPDX-License-Identifier: Apache-2.0
-- Where the time of a report went, by whole stack, leaf first, one function a line.
-- :limit. :full (not NULL): with all its frames, not as foldStack() shows it, the
-- command's own function. :unit as in report/functions.sql. After report/frames.sql.
WITH shown AS (
	SELECT iif(is_time, '%.1f', '%.0f') AS form, iif(is_time, 1e6, 1.0) AS scale
	FROM (SELECT coalesce(:unit, 'ns') = 'ns' AS is_time)),
stacks AS (
	SELECT value, group_concat(function || iif(place <> '' AND (is_of_program OR :full IS NOT NULL), ' (' || place || ')', ''), char(10)) AS stack,
	       group_concat(module, char(10)) AS modules, group_concat(is_of_program, char(10)) AS owners
	FROM (SELECT * FROM temp.report_frames ORDER BY stack_id, depth)
	GROUP BY stack_id),
-- In the order in which they are shown, and no others: foldStack() counts on it.
top AS MATERIALIZED (
	SELECT sum(value) AS value, stack, max(modules) AS modules, max(owners) AS owners
	FROM stacks
	GROUP BY stack
	ORDER BY sum(value) DESC, stack
	LIMIT coalesce(CAST(:limit AS INTEGER), 5))
SELECT printf('%.1f %%', 100.0 * value / (
	       SELECT sum(value) FROM temp.report_samples
	       WHERE (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU')))) AS share,
       printf(form, value / scale) AS ms,
       iif(:full IS NULL, foldStack(stack, modules, owners), stack) AS stack
FROM top, shown;
