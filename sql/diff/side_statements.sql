-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see sides.sql). After read/selected.sql.
SELECT hash, query, n, x, max(0.0, square - 1.0 * x * x / n), own_wall, own_cpu
FROM (SELECT hash, query, known AS n, own_wall, own_cpu,
             iif(:trace_type IN ('Real', 'Wall'), wall, cpu) AS x,
             iif(:trace_type IN ('Real', 'Wall'), wall_square, cpu_square) AS square
      FROM temp.selected_parts)
WHERE n > 0;
