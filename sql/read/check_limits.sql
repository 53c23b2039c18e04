-- SPDX-License-Identifier: Apache-2.0
-- The limits of each statement, in temp.check_limits: at first those for all. Before read/check.sql.
-- Parameters, of which NULL is no limit: :max_scan and :max_runs, :no_sort, :no_auto_index, :max_time (ns).
DROP TABLE IF EXISTS temp.check_limits;
CREATE TEMP TABLE check_limits AS
SELECT hash, CAST(:max_scan AS INTEGER) AS max_scan, :no_sort IS NOT NULL AS no_sort, :no_auto_index IS NOT NULL AS no_auto_index,
       CAST(:max_time AS INTEGER) AS max_time, CAST(:max_runs AS INTEGER) AS max_runs
FROM temp.selected_statements;
