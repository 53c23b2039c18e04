-- SPDX-License-Identifier: Apache-2.0
-- The two thousand longest logged runs for the time line, in lanes by thread. wait_ms: the waits of any kind inside
-- SQLite; lock_ms: those for database locks. kind: what took at least half of the time: outside SQLite, or in it a cause
-- of waits; running: none of them. The end of an unfinished run is not known.
SELECT printf('%016x', normalized_query_hash) AS statement, p.process_id, r.thread_id, coalesce(t.thread_name, '') AS thread_name,
       query_start_ns / 1e6 AS at_ms, round(query_duration_ns / 1e6, 3) AS open_ms, round(execution_time_ns / 1e6, 3) AS wall_ms, round(lock_wait_ns / 1e6, 3) AS lock_ms,
       round((lock_wait_ns + io_read_ns + io_write_ns + io_sync_ns + mutex_wait_ns + sleep_ns + other_wait_ns + run_delay_ns) / 1e6, 3) AS wait_ms,
       CASE WHEN 2 * execution_time_ns < query_duration_ns THEN 'outside' WHEN lock_wait_ns > 0 AND 2 * lock_wait_ns >= execution_time_ns THEN 'lock'
            WHEN 2 * (io_read_ns + io_write_ns + io_sync_ns) >= execution_time_ns AND io_read_ns + io_write_ns + io_sync_ns > 0 THEN 'io'
            WHEN run_delay_ns > 0 AND 2 * run_delay_ns >= execution_time_ns THEN 'queue'
            WHEN mutex_wait_ns + sleep_ns + other_wait_ns > 0 AND 2 * (mutex_wait_ns + sleep_ns + other_wait_ns) >= execution_time_ns THEN 'wait'
            ELSE 'running' END AS kind, finished
FROM temp.selected_runs AS r JOIN processes AS p ON p.id = r.process
LEFT JOIN (SELECT process, thread_id, max(thread_name) AS thread_name FROM threads GROUP BY 1, 2) AS t ON t.process = r.process AND t.thread_id = r.thread_id
WHERE query_start_ns ORDER BY query_duration_ns DESC, r.id LIMIT 2000;
