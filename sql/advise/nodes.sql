-- SPDX-License-Identifier: Apache-2.0
-- The plan that analyze has measured, for printing. node 0: the statement's own work; -1: not known; -2: preparing; -3: closing;
-- -4: in a run queue. Times in ns, of a run, without the nodes below, and one standard error. loops and rows: of a run, if SQLite
-- counted them.
CREATE TABLE nodes (
	node INTEGER, parent INTEGER, detail TEXT, self_ns REAL, self_error_ns REAL, loops REAL, rows REAL, runs INTEGER);
