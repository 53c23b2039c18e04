-- SPDX-License-Identifier: Apache-2.0
-- The statements that are selected (see selected.sql), all runs of one together, the
-- costliest first: queries that differ only in their literals are one statement. runs and
-- the times are of all runs; where runs is NULL they are of the logged ones only. Parameters
-- as in queries.sql.
SELECT runs, logged,
       round(wall / 1e6, iif(:for_table, 1, 3)) AS wall_ms,
       round(cpu / 1e6, iif(:for_table, 1, 3)) AS cpu_ms,
       round(longest / 1e6, iif(:for_table, 1, 3)) AS max_ms,
       samples_cpu AS n_cpu, samples_real AS n_wall, rows, failed,
       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM temp.selected_statements
ORDER BY CASE :by WHEN 'wall' THEN wall
                  WHEN 'off' THEN wall - cpu
                  WHEN 'samples' THEN samples_cpu + samples_real
                  WHEN 'start' THEN newest
                  ELSE cpu END DESC, hash
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
