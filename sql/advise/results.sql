-- SPDX-License-Identifier: Apache-2.0
-- What advise has found, for printing. kind: index, drop, read, write, not replayed. Times in ns: before and after of a run, saved of
-- all runs. An error is one standard error. is_cut: a run was ended at its limit of time. statement: its id. written_before,
-- written_after: bytes that a run of its own writes to the database or its WAL; NULL: not measured.
CREATE TABLE results (
	kind TEXT, sql TEXT, runs INTEGER, before_ns REAL, before_error_ns REAL, after_ns REAL, after_error_ns REAL,
	saved_ns REAL, saved_error_ns REAL, bytes INTEGER, is_cut INTEGER, reason TEXT, statement TEXT,
	written_before INTEGER, written_after INTEGER);
