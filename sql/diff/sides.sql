-- SPDX-License-Identifier: Apache-2.0
-- The data of both sides of a comparison, in a database of its own: each side is read
-- from its file (diff_side_*.sql, after the files that report uses), then compared
-- (diff/totals.sql, diff/statements.sql, diff/functions.sql). side: A or B. is_counted: runs
-- and times are of all runs; else of the logged ones. unfinished: runs whose end was not
-- recorded; they have samples and no times.
CREATE TABLE side_totals (
	side TEXT PRIMARY KEY, runs INTEGER, wall INTEGER, cpu INTEGER, samples INTEGER, sampled INTEGER,
	is_counted INTEGER, unfinished INTEGER);

-- x: the exact time of all runs in ns, by the chosen clock; spread: the sum of the squared
-- distances of a run's time from the mean. wall and cpu: what the statement adds to the totals.
CREATE TABLE side_statements (
	side TEXT, hash INTEGER, query TEXT, runs INTEGER, x INTEGER, spread REAL, wall INTEGER, cpu INTEGER);

-- The sum of the samples' values, their number, and the sum of the squared values, of a
-- statement (hash 0: of none): in the function itself, and with what it called.
CREATE TABLE side_functions (
	side TEXT, hash INTEGER, name TEXT, module TEXT, self INTEGER, self_n INTEGER, self_square REAL,
	total INTEGER, total_n INTEGER, total_square REAL);

-- A row for each time in which a statement had a plan, with its runs then, see plan_changes.sql.
CREATE TABLE side_plans (
	side TEXT, hash INTEGER, query TEXT, place TEXT, plan_hash INTEGER, plan TEXT, start_ns INTEGER,
	runs INTEGER, ns INTEGER);

-- The factor of B's numbers, for as many runs of each statement as A has. (One
-- factor for all statements together would compare the mix, not the statements.)
CREATE VIEW side_factors AS
SELECT 'B' AS side, hash, 1.0 * a.runs / b.runs AS factor
FROM side_statements AS b JOIN side_statements AS a USING (hash)
WHERE a.side = 'A' AND b.side = 'B';
