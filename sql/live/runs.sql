-- SPDX-License-Identifier: Apache-2.0
-- The runs that are open now (sql/live/tables.sql), with data of the trace file: the stack and the plan node of the newest
-- sample, the line of the program, and the holder of the lock that the run waits for. Runs inside SQLite come first, each
-- group with the oldest run first. Parameter: :now_ns, since 1970.
WITH
known AS MATERIALIZED (
	SELECT r.rowid AS run, r.*, p.inner_id, p.program, q.id AS query_row, q.program AS bytecode, q.call_stack,
	       (SELECT s.timestamp_ns FROM samples AS s JOIN series AS e ON e.id = s.series
	        WHERE s.query = q.id AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
	        AND e.trace_type IN ('CPU', 'Real', 'OffCPU') AND s.stack
	        ORDER BY s.timestamp_ns DESC LIMIT 1) AS sample_ns
	FROM temp.live_runs AS r
	JOIN temp.live_processes AS p USING (process_id)
	LEFT JOIN queries AS q ON q.id = (
		SELECT max(i.id) FROM queries AS i JOIN processes AS o ON o.id = i.process
		WHERE i.query_id = r.query_id AND o.process_id = p.inner_id AND o.hostname = p.hostname)),
-- The holder's transaction. In another process the connection is not known: there it is the transaction on the same database
-- that has held such a lock longest.
holders AS MATERIALIZED (
	SELECT k.run, h.process_id AS holder_process, h.program AS holder_program, coalesce(h.process_id, k.holder_inner_id) AS holder_process_id,
	       (SELECT t.rowid FROM temp.live_transactions AS t
	        WHERE t.process_id = h.process_id
	        AND iif(k.holder_session_id, t.session_id = k.holder_session_id,
	                t.database = k.database AND (k.wait_object NOT IN ('RESERVED', 'WAL write') OR t.write_lock_ns))
	        ORDER BY t.write_lock_ns DESC, t.age_ns DESC LIMIT 1) AS transaction_row
	FROM known AS k LEFT JOIN temp.live_processes AS h ON h.inner_id = k.holder_inner_id
	WHERE k.holder_inner_id),
does AS MATERIALIZED (
	SELECT h.*, t.thread_id, t.thread_name, t.session_id, t.age_ns, t.write_lock_ns, t.first_query, t.state,
	       (SELECT r.rowid FROM temp.live_runs AS r
	        WHERE r.process_id = h.holder_process AND r.session_id = t.session_id AND r.is_running
	        ORDER BY r.query_start_ns DESC LIMIT 1) AS does_run
	FROM holders AS h LEFT JOIN temp.live_transactions AS t ON t.rowid = h.transaction_row)
SELECT k.process_id, k.program, k.thread_id, k.thread_name, k.session_id, k.query_id, k.initial_query_id, k.parent_query_id,
       k.is_running,
       strftime('%Y-%m-%d %H:%M:%S', k.query_start_ns / 1000000000, 'unixepoch') || printf('.%06d', k.query_start_ns % 1000000000 / 1000) AS query_start_time_microseconds,
       k.elapsed_ns, k.outside_ns, k.state, k.wait_cause, k.wait_object, k.wait_ns,
       d.holder_process_id, d.holder_program, coalesce(d.thread_id, nullif(k.holder_thread_id, 0)) AS holder_thread_id,
       d.thread_name AS holder_thread_name, coalesce(d.session_id, nullif(k.holder_session_id, 0)) AS holder_session_id,
       d.age_ns AS holder_transaction_ns, d.write_lock_ns AS holder_write_lock_ns, d.first_query AS holder_first_query,
       a.query AS holder_query, a.elapsed_ns AS holder_elapsed_ns, coalesce(nullif(a.wait_cause, ''), d.state) AS holder_state,
       k.query, k.is_cut, k.database,
       rtrim(substr(k.library, 1, instr(k.library, ' '))) AS library_version,
       iif(instr(k.library, ' '), substr(k.library, instr(k.library, ' ') + 1), '') AS library_path,
       n.detail AS plan_node, iif(k.sample_ns, max(0, :now_ns - k.sample_ns), NULL) AS sample_age_ns,
       stackFunctions(c.trace, NULL) AS stack,
       b.caller, b.caller_function, s.truncated AS stack_is_truncated
FROM known AS k
LEFT JOIN does AS d ON d.run = k.run
LEFT JOIN temp.live_runs AS a ON a.rowid = d.does_run
LEFT JOIN samples AS s ON s.timestamp_ns = k.sample_ns
LEFT JOIN stacks AS c ON c.id = s.stack
LEFT JOIN call_stacks AS b ON b.id = k.call_stack
LEFT JOIN program_opcodes AS o ON o.program = k.bytecode AND o.address = s.opcode AND s.opcode
LEFT JOIN plan_nodes AS n ON n.program = o.program AND n.node = o.node
ORDER BY k.is_running DESC, k.elapsed_ns DESC, k.process_id, k.run;
