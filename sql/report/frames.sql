-- SPDX-License-Identifier: Apache-2.0
-- The stacks of a report's samples, in temp.report_stacks, for the files that follow: of the samples of :trace_type
-- (Wall is CPU and OffCPU together, in a row each); and their functions, in temp.report_functions (src/cmd/file/stack_frames.h).
-- shape: one number for all stacks with the same functions, NULL without functions. caller: see stackCaller(). After
-- report/samples.sql.
DROP TABLE IF EXISTS temp.report_functions;
DROP TABLE IF EXISTS temp.report_stacks;
DROP TABLE IF EXISTS temp.report_shapes;

CREATE TEMP TABLE report_stacks AS
SELECT stack_id, samples, value, square FROM temp.report_samples
WHERE (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU'));

CREATE VIRTUAL TABLE temp.report_functions USING report_functions;

CREATE TEMP TABLE report_shapes (stack_id INTEGER PRIMARY KEY, shape INTEGER, caller TEXT);
INSERT INTO report_shapes
SELECT stack_id, stackShape(stack_id, :full), stackCaller(stack_id) FROM temp.report_samples;
