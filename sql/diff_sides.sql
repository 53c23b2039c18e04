-- SPDX-License-Identifier: Apache-2.0
-- What two sides of a comparison are, in a database of its own: each side is read
-- from its file (diff_side_*.sql, after the files that report uses), then compared
-- (diff_totals.sql, diff_statements.sql, diff_functions.sql). side: A or B.
CREATE TABLE side_totals (
	side TEXT PRIMARY KEY, runs INTEGER, wall INTEGER, cpu INTEGER, samples INTEGER, sampled INTEGER);

-- x: the exact time of a run in ns, by the chosen clock; spread: the sum of
-- its squared distances from the mean.
CREATE TABLE side_statements (
	side TEXT, hash INTEGER, query TEXT, runs INTEGER, x INTEGER, spread REAL);

-- The sum of the samples' values, their number, and the sum of the squared values: in the
-- function itself, and with what it called.
CREATE TABLE side_functions (
	side TEXT, name TEXT, module TEXT, self INTEGER, self_n INTEGER, self_square REAL,
	total INTEGER, total_n INTEGER, total_square REAL);
