-- SPDX-License-Identifier: Apache-2.0
-- The stacks of page/stacks.sql, by descending time, then the rests. The points of `times` name them by their place. frames: indexes in the list of functions, with commas between
-- them, leaf first; NULL for a wait without a stack, and for the rest of the statement's time. wait: the cause of an
-- OffCPU sample. statement: zeros if it is not known.
WITH texts AS MATERIALIZED (
	SELECT stack, group_concat(f.id - 1) AS frames
	FROM (SELECT stack, function, module FROM temp.page_lines ORDER BY stack, place) JOIN temp.page_functions AS f USING (function, module)
	GROUP BY stack)
SELECT printf('%016x', s.hash) AS statement, trace_type, coalesce(c.name, '') AS wait, samples, round(value / 1e6, 3) AS ms, frames
FROM temp.page_stacks AS s LEFT JOIN texts USING (stack) LEFT JOIN wait_causes AS c ON c.cause = wait & 255
ORDER BY s.rowid;
