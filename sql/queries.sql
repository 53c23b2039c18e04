-- SPDX-License-Identifier: Apache-2.0
-- The runs that are selected (see selected.sql), the costliest first. Parameters,
-- which may be left NULL: :by (cpu, wall, off, samples, start), :limit, :for_table
-- (shorter: times without the year, ids cut).
-- cpu_ms is without the worker threads that SQLite made. A run whose end was not recorded
-- has no rows: its times are those of its last sample. In the sqlite3 shell on a
-- trace file: .read sql/selected.sql, then .read sql/queries.sql
SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
                query_start_ns / 1000000000, 'unixepoch') AS started,
       round(query_duration_ns / 1e6, iif(:for_table, 1, 3)) AS wall_ms,
       round(cpu_time_ns / 1e6, iif(:for_table, 1, 3)) AS cpu_ms,
       samples_cpu AS n_cpu, samples_real AS n_wall, iif(finished, result_rows, NULL) AS rows,
       -- as much of a UUID as tells it from the others
       CASE WHEN :for_table AND query_id GLOB '*-*-*-*-*' AND length(query_id) = 36
            THEN substr(query_id, 1, 18) ELSE query_id END AS query_id,
       iif(finished, '', '(unfinished) ') || trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM temp.selected_runs
ORDER BY CASE :by WHEN 'wall' THEN query_duration_ns
                  WHEN 'off' THEN query_duration_ns - cpu_time_ns
                  WHEN 'samples' THEN samples_cpu + samples_real
                  WHEN 'start' THEN query_start_ns
                  ELSE cpu_time_ns END DESC, id
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
