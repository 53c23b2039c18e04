-- SPDX-License-Identifier: Apache-2.0
-- The samples of the runs that are selected (see read/selected.sql), summed up by type
-- and stack, in two temporary tables that the other report_*.sql read: run this
-- after selected.sql.
--
-- value: the sum of the samples' values, in the unit of their type. square: of their
-- squares; of OffCPU the value of each times its period, as such a sample stands for one wait that
-- was seen as a whole, and only the last period of it is chance. longest: the longest wait.
DROP TABLE IF EXISTS temp.report_samples;
DROP TABLE IF EXISTS temp.report_parts;

CREATE TEMP TABLE report_samples AS
SELECT trace_type, stack_id, wait, samples, value, spread AS square, longest FROM temp.selected_sums;

-- By series. stretches: how many threads of runs, each a stretch of time that samples were taken from. (A statement
-- may be continued on another thread; that is the run's own then.) changes: how often the time between
-- its signals became another one, each time with a new phase (see query_profiler_max_threads).
CREATE TEMP TABLE report_parts AS
SELECT series, trace_type, finished, is_worker, samples, value, spread AS square, stretches, changes FROM temp.selected_sums;
