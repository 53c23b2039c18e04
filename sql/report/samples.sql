-- SPDX-License-Identifier: Apache-2.0
-- The samples of the selected runs (see read/selected.sql), summed up, in temporary views that the other files of report/
-- read: by type and stack, and (report_waits) by cause and shape (see report/frames.sql). After read/selected.sql. The
-- command makes the tables under these views first.
--
-- value: the sum of the samples' values, in the unit of their type. square: the sum of their squares; for OffCPU, of
-- each value times its period, because such a sample represents one wait that was seen as a whole, and only its last
-- period is due to chance. longest: the longest wait.
DROP VIEW IF EXISTS temp.report_samples;
DROP VIEW IF EXISTS temp.report_waits;
DROP VIEW IF EXISTS temp.report_parts;
DROP VIEW IF EXISTS temp.report_program;

CREATE TEMP VIEW report_samples AS
SELECT trace_type, stack_id, samples, value, spread AS square FROM temp.selected_sums;

CREATE TEMP VIEW report_waits AS
SELECT wait, shape, value, longest, last_stack FROM temp.selected_sums WHERE trace_type = 'OffCPU';

-- By series. stretches: the number of pairs of a run and a thread, each a stretch of time with samples. (A statement
-- may continue on another thread, which is then the run's own.) changes: how often the time between its signals
-- changed, each time with a new phase (see query_profiler_max_threads).
CREATE TEMP VIEW report_parts AS
SELECT series, trace_type, finished, is_worker, samples, value, spread AS square, stretches, changes FROM temp.selected_sums;

-- Of the program's own code. is_rows: while a query was open; otherwise in a transaction.
CREATE TEMP VIEW report_program AS
SELECT logged OR NOT finished AS is_rows, trace_type, stack_id, call_stack, wait, value FROM temp.selected_sums
WHERE trace_type IN ('ProgramCPU', 'ProgramOffCPU');
