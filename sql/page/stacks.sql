-- SPDX-License-Identifier: Apache-2.0
-- The stacks with most of the time, in temp.page_stacks: at most 2000 of all selected samples, by statement, type and
-- cause of the wait. stack: NULL for the rest of a statement's time, one row per type. Their functions are in
-- temp.page_lines, with the leaf at index 0, and once each in temp.page_functions. After read/selected.sql.
DROP TABLE IF EXISTS temp.page_stacks;
DROP TABLE IF EXISTS temp.page_functions;
DROP TABLE IF EXISTS temp.page_lines;

CREATE TEMP TABLE page_stacks AS
WITH
types AS MATERIALIZED (SELECT 'CPU' AS trace_type UNION SELECT 'OffCPU' UNION SELECT trace_type FROM temp.wall_types),
-- Each row has another key, so nothing is grouped.
top AS MATERIALIZED (
	SELECT hash, trace_type, wait, stack_id AS stack, samples, value FROM temp.selected_sums
	WHERE trace_type IN (SELECT trace_type FROM types) ORDER BY value DESC LIMIT 2000)
SELECT hash, trace_type, wait, stack, samples, value FROM top
UNION ALL
SELECT hash, trace_type, 0, NULL, sum(samples), sum(value)
FROM (SELECT hash, trace_type, samples, value FROM temp.selected_sums WHERE trace_type IN (SELECT trace_type FROM types)
      UNION ALL SELECT hash, trace_type, -samples, -value FROM top)
GROUP BY hash, trace_type HAVING sum(samples) > 0;

-- A backslash looks like the backslashes that JSON writes.
CREATE TEMP TABLE page_lines AS
WITH used AS MATERIALIZED (SELECT DISTINCT stack FROM temp.page_stacks WHERE stack IS NOT NULL),
functions AS MATERIALIZED (
	SELECT stack, key, value
	FROM used, json_each('[' || replace(json_quote(replace(stackFunctions(stack, NULL), '\', '/')), '\n', '","') || ']')),
modules AS MATERIALIZED (
	SELECT stack, key, value
	FROM used, json_each('[' || replace(json_quote(replace(stackModules(stack), '\', '/')), '\n', '","') || ']'))
SELECT stack, key AS place, f.value AS function, m.value AS module
FROM functions AS f JOIN modules AS m USING (stack, key);

CREATE TEMP TABLE page_functions (id INTEGER PRIMARY KEY, function TEXT, module TEXT, UNIQUE (function, module));
INSERT INTO page_functions (function, module) SELECT DISTINCT function, module FROM temp.page_lines;
