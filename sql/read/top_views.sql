-- SPDX-License-Identifier: Apache-2.0
-- The views top_functions and top_stacks of the schema, on sums by function and by text (src/cmd/file/stack_sums.h).
-- main.top_functions and main.top_stacks have the same rows.
CREATE VIRTUAL TABLE temp.function_times USING function_times;
CREATE VIRTUAL TABLE temp.text_times USING text_times;
DROP VIEW IF EXISTS temp.top_functions;
DROP VIEW IF EXISTS temp.top_stacks;

CREATE TEMP VIEW top_functions AS
SELECT trace_type,
       CAST(round(100.0 * self / whole, 2) AS REAL) AS self_percent,
       CAST(round(100.0 * total / whole, 2) AS REAL) AS total_percent,
       CAST(iif(unit = 'ns', round(self / 1e6, 3), NULL) AS REAL) AS self_ms,
       CAST(iif(unit = 'ns', round(total / 1e6, 3), NULL) AS REAL) AS total_ms,
       coalesce(n.name, '(' || substr(m.path, 1 + length(rtrim(m.path, replace(m.path, '/', '')))) || ')', '(no module)') AS function,
       coalesce(m.path, '') AS module,
       CAST(self AS INTEGER) AS self_value,
       CAST(total AS INTEGER) AS total_value,
       unit
FROM temp.function_times
LEFT JOIN names AS n ON n.id = function_id
LEFT JOIN modules AS m ON m.id = module_id
ORDER BY self DESC, total DESC, function;

CREATE TEMP VIEW top_stacks AS
SELECT trace_type,
       CAST(round(100.0 * value / whole, 2) AS REAL) AS percent,
       CAST(iif(unit = 'ns', round(value / 1e6, 3), NULL) AS REAL) AS ms,
       CAST(samples AS INTEGER) AS samples,
       CAST(stack AS TEXT) AS stack,
       CAST(value AS INTEGER) AS value,
       unit
FROM temp.text_times
ORDER BY text_times.value DESC, text_times.stack;
