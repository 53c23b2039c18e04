-- SPDX-License-Identifier: Apache-2.0
-- Scales the stacks of a side (diff/stacks.sql) to as many runs of each statement as A has, with the factors in
-- temp.side_factors (see diff/sides.sql).
UPDATE temp.report_stacks SET value = value * f.factor, square = square * f.factor * f.factor
FROM temp.side_factors AS f WHERE f.hash = report_stacks.hash;
