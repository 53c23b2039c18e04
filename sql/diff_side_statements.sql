-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see diff_sides.sql). After selected.sql.
SELECT hash, query, n, x, max(0.0, square - 1.0 * x * x / n), own_wall, own_cpu
FROM (SELECT hash, query, known AS n, own_wall, own_cpu,
             CASE :trace_type WHEN 'Real' THEN wall ELSE cpu END AS x,
             CASE :trace_type WHEN 'Real' THEN wall_square ELSE cpu_square END AS square
      FROM temp.selected_parts)
WHERE n > 0;
