-- SPDX-License-Identifier: Apache-2.0
-- The transactions in which the program did not call SQLite for at least :idle_ns ns in all: open transactions first, each
-- group with the longest first. cause: a sentence about each.
WITH listed AS MATERIALIZED (
	SELECT *, substr(database, 1 + length(rtrim(database, replace(database, '/', '')))) AS file
	FROM transaction_log WHERE idle_ns >= CAST(:idle_ns AS INTEGER))
SELECT
	round(duration_ns / 1e6, 3) AS open_ms,
	round(idle_ns / 1e6, 3) AS outside_ms,
	state,
	round(nullif(write_lock_ns, 0) / 1e6, 3) AS write_lock_ms,
	statements,
	round(nullif(waited_ns, 0) / 1e6, 3) AS waited_ms,
	database,
	process_id,
	session_id,
	(SELECT max(thread_name) FROM threads AS t JOIN processes AS p ON p.id = t.process
	 WHERE t.thread_id = listed.thread_id AND p.process_id = listed.process_id AND p.hostname = listed.hostname) AS thread,
	event_time_microseconds AS began,
	CASE WHEN statements > 0 OR state NOT IN ('open', 'killed') THEN ''
	     WHEN write_lock_ns = 0 THEN 'Its statement was stepped and not reset'
	          || iif(state = 'open', ' when it was last seen.', ' when its process ended.')
	          || ' Until then it keeps a read lock: a checkpoint of a WAL cannot go beyond its snapshot, and with a rollback journal nobody can commit.'
	     ELSE 'Its statement that writes has not ended.' END AS cause,
	iif(last_query IN ('', first_query), '', last_query) AS last_query,
	first_query
FROM listed
ORDER BY state IN ('open', 'killed') DESC, idle_ns DESC, timestamp_ns
LIMIT 50;
