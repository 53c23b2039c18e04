-- SPDX-License-Identifier: Apache-2.0
-- The data of both sides of a comparison, in a separate database. Each side is read from its file (diff/side_*.sql,
-- after the files that report uses); then diff/totals.sql, diff/statements.sql and diff/functions.sql compare them.
-- side: A or B. is_counted: runs and times are of all runs; otherwise of the logged ones. unfinished: runs without a
-- recorded end; they have samples but no times. versions: of the SQLite libraries.
CREATE TABLE side_totals (
	side TEXT PRIMARY KEY, runs INTEGER, wall INTEGER, cpu INTEGER, samples INTEGER, sampled INTEGER,
	is_counted INTEGER, unfinished INTEGER, versions TEXT);

-- x: the exact time of all runs in ns, on the chosen clock. spread: the sum of the squared distances of a run's time
-- from the mean. wall and cpu: the statement's part of the totals.
CREATE TABLE side_statements (
	side TEXT, hash INTEGER, query TEXT, runs INTEGER, x INTEGER, spread REAL, wall INTEGER, cpu INTEGER);

-- The sum of the samples' values, for as many runs as A has, their number, and the sum of the squared values: in the
-- function itself, and including the functions that it called.
CREATE TABLE side_functions (
	side TEXT, name TEXT, module TEXT, self REAL, self_n INTEGER, self_square REAL,
	total REAL, total_n INTEGER, total_square REAL);

-- A row for each period in which a statement had a plan, with its runs in that period, see plan_changes.sql.
-- versions: of the SQLite that made the plan.
CREATE TABLE side_plans (
	side TEXT, hash INTEGER, query TEXT, place TEXT, plan_hash INTEGER, plan TEXT, start_ns INTEGER,
	last_ns INTEGER, runs INTEGER, ns INTEGER, versions TEXT);

-- As in read/selected.sql.
CREATE TABLE schema_changes (side TEXT, place TEXT, at_ns INTEGER, text TEXT);

-- The factor of B's numbers, for as many runs of each statement as A has. (One
-- factor for all statements together would compare the mix, not the statements.)
CREATE VIEW side_factors AS
SELECT 'B' AS side, hash, 1.0 * a.runs / b.runs AS factor
FROM side_statements AS b JOIN side_statements AS a USING (hash)
WHERE a.side = 'A' AND b.side = 'B';
