-- SPDX-License-Identifier: Apache-2.0
-- The hundred longest waits for database locks, with their story. :no_text: if it is not NULL, no text of a statement.
SELECT timestamp_ns / 1000000 AS at_ms, round(wait_ns / 1e6, 3) AS wait_ms, process_id, thread_id, outcome, reason, holder_process_id, thread AS holder_thread,
       iif(:no_text, NULL, cause) AS cause, cure
FROM lock_story ORDER BY wait_ns DESC, timestamp_ns, process_id, thread_id LIMIT 100;
