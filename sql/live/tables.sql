-- SPDX-License-Identifier: Apache-2.0
-- What is open at this moment, as cmd/live/snapshot.c copies it from the memory of the recorded processes. Columns
-- that `processes` has mean the same. NULL: not known. inner_id: the process's number in its own pid namespace,
-- as the trace file and the holders of locks have it.
CREATE TEMP TABLE IF NOT EXISTS live_processes (
	process_id INTEGER PRIMARY KEY, inner_id, program, hostname, is_read, changed);

-- state: of the thread. outside_ns: of elapsed_ns, between its calls.
CREATE TEMP TABLE IF NOT EXISTS live_runs (
	process_id, query_id, initial_query_id, parent_query_id, thread_id, thread_name, session_id, is_running,
	query_start_ns, elapsed_ns, call_ns, outside_ns, state, wait_cause, wait_object, wait_ns,
	holder_session_id, holder_inner_id, holder_thread_id, query, is_cut, database, library);

-- write_lock_ns: when it got the write lock; NULL: it does not have it.
CREATE TEMP TABLE IF NOT EXISTS live_transactions (
	process_id, number, session_id, thread_id, thread_name, state, age_ns, write_lock_ns, exclusive_lock_ns,
	statements, database, first_query_id, first_query, last_query_id);

DELETE FROM temp.live_processes;
DELETE FROM temp.live_runs;
DELETE FROM temp.live_transactions;
