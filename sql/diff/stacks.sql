-- SPDX-License-Identifier: Apache-2.0
-- The stacks of a side's samples by statement, in temp.report_stacks, which report/frames.sql fills for all
-- statements.
DROP TABLE IF EXISTS temp.report_functions;
DROP TABLE IF EXISTS temp.report_stacks;
DROP TABLE IF EXISTS temp.side_factors;

CREATE TEMP TABLE report_stacks AS
SELECT hash, stack_id, samples, value, square FROM temp.selected_sums
WHERE (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU'));

CREATE VIRTUAL TABLE temp.report_functions USING report_functions;

CREATE TEMP TABLE side_factors (hash INTEGER PRIMARY KEY, factor REAL);
