-- SPDX-License-Identifier: Apache-2.0
-- What a process that is not recorded does now, as cmd/live/unrecorded.c sees it from outside. NULL: not known.
-- depth: 1 is the outermost statement of its thread. function: SQLite's function that the program has called.
CREATE TABLE runs (process_id, program, thread_id, thread_name, depth, state, wait_cause, function, query, is_cut, library_path, stack, stack_is_truncated);

-- The threads in no function of SQLite.
CREATE TABLE outside (process_id, program, thread_id, thread_name, state, wait_cause, stack, stack_is_truncated);

CREATE TABLE databases (path, is_wal);

-- From /proc/locks. process_id NULL: not known.
CREATE TABLE locks (database, lock, is_exclusive, process_id, program);
