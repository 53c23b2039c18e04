-- SPDX-License-Identifier: Apache-2.0
-- The plan that analyze has measured, for printing. node 0: the statement's own work; -1: not known; -2: preparing; -3: closing;
-- -4: in a run queue. Times in ns, of a run, without the nodes below, and one standard error. loops and rows: of a run, as SQLite
-- counted them; NULL for a node that is not a loop. estimated_rows: what the planner expected of each start of the loop. factor:
-- rows, as a multiple of those that it expected in all, at least 1 of each.
CREATE TABLE nodes (
	node INTEGER, parent INTEGER, detail TEXT, self_ns REAL, self_error_ns REAL, loops INTEGER, rows INTEGER, rows_per_loop REAL,
	estimated_rows REAL, factor REAL, runs INTEGER);
