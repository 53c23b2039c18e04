-- SPDX-License-Identifier: Apache-2.0
-- If a process that is not recorded (sql/live/unrecorded_tables.sql) has locks that exclude others: what its threads do that
-- are outside SQLite. The kernel does not know which thread has a lock. locks: all of the process.
WITH own AS MATERIALIZED (
	SELECT group_concat(DISTINCT lock || ' of ' || database) AS locks FROM locks
	WHERE is_exclusive AND process_id = (SELECT process_id FROM outside))
SELECT o.process_id, o.program, o.thread_id, o.thread_name, 1 AS is_running, o.state, o.wait_cause, '' AS wait_object, NULL AS wait_ns,
       replace(own.locks, ',', ', ') AS locks, o.stack, o.stack_is_truncated
FROM own CROSS JOIN outside AS o
WHERE own.locks IS NOT NULL
ORDER BY o.thread_id
LIMIT 16;
