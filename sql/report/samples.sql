-- SPDX-License-Identifier: Apache-2.0
-- The samples of the selected runs (see read/selected.sql), summed by type and stack, in temporary tables that
-- the other files of report/ read. After read/selected.sql.
--
-- value: the sum of the samples' values, in the unit of their type. square: the sum of their squares; for OffCPU, of
-- each value times its period, because such a sample represents one wait that was seen as a whole, and only its last
-- period is due to chance. longest: the longest wait.
DROP TABLE IF EXISTS temp.report_samples;
DROP TABLE IF EXISTS temp.report_parts;
DROP TABLE IF EXISTS temp.report_program;

CREATE TEMP TABLE report_samples AS
SELECT trace_type, stack_id, wait, samples, value, spread AS square, longest FROM temp.selected_sums;

-- By series. stretches: the number of pairs of a run and a thread, each a stretch of time with samples. (A statement
-- may continue on another thread, which is then the run's own.) changes: how often the time between its signals
-- changed, each time with a new phase (see query_profiler_max_threads).
CREATE TEMP TABLE report_parts AS
SELECT series, trace_type, finished, is_worker, samples, value, spread AS square, stretches, changes FROM temp.selected_sums;

-- Of the program's own code. is_rows: while a query was open; otherwise in a transaction.
CREATE TEMP TABLE report_program AS
SELECT logged OR NOT finished AS is_rows, trace_type, stack_id, wait, value FROM temp.selected_sums
WHERE trace_type IN ('ProgramCPU', 'ProgramOffCPU');
