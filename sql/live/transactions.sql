-- SPDX-License-Identifier: Apache-2.0
-- The transactions that are open now (sql/live/tables.sql), the oldest first. is_oldest_reader: this transaction has read the
-- database for the longest time, so it keeps the WAL from being reset.
SELECT t.process_id, p.program, t.thread_id, t.thread_name, t.state, t.session_id, t.number AS transaction_number, t.database,
       t.age_ns, t.write_lock_ns, t.exclusive_lock_ns, t.statements, t.first_query_id, t.first_query, t.last_query_id,
       r.query,
       row_number() OVER (PARTITION BY t.database ORDER BY t.age_ns DESC) = 1 AS is_oldest_reader
FROM temp.live_transactions AS t
JOIN temp.live_processes AS p USING (process_id)
LEFT JOIN temp.live_runs AS r ON r.rowid = (
	SELECT i.rowid FROM temp.live_runs AS i
	WHERE i.process_id = t.process_id AND i.session_id = t.session_id AND i.is_running
	ORDER BY i.query_start_ns DESC LIMIT 1)
ORDER BY t.age_ns DESC, t.process_id, t.number;
