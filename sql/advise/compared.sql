-- SPDX-License-Identifier: Apache-2.0
-- Ways to run a statement that analyze has compared with the first one, for printing. Times in ns of CPU time of a run, with one
-- standard error. difference: after - before, as a part of before. verdict: faster, slower, no difference, not known.
-- same_rows: 1: the same rows in the same order; 0: other rows; 2: the same rows in another order; NULL: not known.
CREATE TABLE compared (
	sql TEXT, pragma TEXT, before_ns REAL, before_error_ns REAL, after_ns REAL, after_error_ns REAL, difference REAL, difference_error REAL,
	verdict TEXT, pairs INTEGER, is_cut INTEGER, rows INTEGER, same_rows INTEGER);
