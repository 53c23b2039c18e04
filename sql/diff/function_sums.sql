-- SPDX-License-Identifier: Apache-2.0
-- The functions of both sides, in function_sums, for diff/functions.sql: self_… in the function itself, total_… with
-- the functions that it called; n…: samples. See diff/sides.sql.
CREATE TABLE function_sums AS
SELECT name, module,
       coalesce(sum(self) FILTER (WHERE side = 'A'), 0) AS self_a,
       coalesce(sum(self) FILTER (WHERE side = 'B'), 0) AS self_b,
       coalesce(sum(self_n) FILTER (WHERE side = 'A'), 0) AS self_na,
       coalesce(sum(self_n) FILTER (WHERE side = 'B'), 0) AS self_nb,
       sum(self_square) AS self_variance,
       coalesce(sum(total) FILTER (WHERE side = 'A'), 0) AS total_a,
       coalesce(sum(total) FILTER (WHERE side = 'B'), 0) AS total_b,
       coalesce(sum(total_n) FILTER (WHERE side = 'A'), 0) AS total_na,
       coalesce(sum(total_n) FILTER (WHERE side = 'B'), 0) AS total_nb,
       sum(total_square) AS total_variance
FROM side_functions GROUP BY name, module;
