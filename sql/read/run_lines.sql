-- SPDX-License-Identifier: Apache-2.0
-- The selected runs (see read/selected.sql), the costliest first, in temp.lines, with the columns for
-- read/causes.sql. Parameters, which may be NULL: :by (wall, cpu, off, samples, start), :limit.
DROP TABLE IF EXISTS temp.lines;

CREATE TEMP TABLE lines AS
SELECT row_number() OVER (ORDER BY cost DESC, id) AS line, normalized_query_hash AS hash, id AS run, query, 1 AS runs,
       result_rows AS rows, exception_code <> 0 AS failed, exception AS error, fullscan_steps, sorts, autoindexes,
       execution_time_ns AS wall, cpu_time_ns AS cpu, NOT finished AS is_unfinished, iif(finished, execution_time_ns, 0) AS ended_wall,
       query_duration_ns - execution_time_ns AS outside, NULL AS prepares, prepare_time_ns AS prepare,
       lock_wait_ns AS locks, io_read_ns AS reads, io_write_ns AS writes, io_sync_ns AS syncs, mutex_wait_ns AS mutexes,
       sleep_ns AS sleeps, other_wait_ns AS others, run_delay_ns AS queue, 0 AS unknown
FROM (SELECT *, CASE :by WHEN 'cpu' THEN cpu_time_ns
                         WHEN 'off' THEN execution_time_ns - cpu_time_ns
                         WHEN 'samples' THEN samples_cpu + samples_real
                         WHEN 'start' THEN query_start_ns
                         ELSE execution_time_ns END AS cost
      FROM temp.selected_runs
      ORDER BY cost DESC, id LIMIT coalesce(CAST(:limit AS INTEGER), 20));
