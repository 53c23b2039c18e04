-- SPDX-License-Identifier: Apache-2.0
-- The functions of both sides over all statements, in function_sums, for diff/functions.sql: self_… in the function
-- itself, total_… with the functions that it called; n…: samples. B's are for as many runs as A has. See
-- diff/sides.sql.
CREATE TABLE function_sums AS
SELECT name, module,
       coalesce(sum(self * factor) FILTER (WHERE side = 'A'), 0) AS self_a,
       coalesce(sum(self * factor) FILTER (WHERE side = 'B'), 0) AS self_b,
       coalesce(sum(self_n) FILTER (WHERE side = 'A'), 0) AS self_na,
       coalesce(sum(self_n) FILTER (WHERE side = 'B'), 0) AS self_nb,
       sum(self_square * factor * factor) AS self_variance,
       coalesce(sum(total * factor) FILTER (WHERE side = 'A'), 0) AS total_a,
       coalesce(sum(total * factor) FILTER (WHERE side = 'B'), 0) AS total_b,
       coalesce(sum(total_n) FILTER (WHERE side = 'A'), 0) AS total_na,
       coalesce(sum(total_n) FILTER (WHERE side = 'B'), 0) AS total_nb,
       sum(total_square * factor * factor) AS total_variance
FROM (SELECT f.*, coalesce(factor, 1.0) AS factor
      FROM side_functions AS f LEFT JOIN (SELECT * FROM side_factors) USING (side, hash))
GROUP BY name, module;
