-- SPDX-License-Identifier: Apache-2.0
-- The statements that run in a process that is not recorded (sql/live/unrecorded_tables.sql), with the columns of
-- sql/live/runs.sql. holders: if a run waits for a lock, the other processes with an exclusive lock on one of the process's
-- databases, or else with any lock.
WITH
others AS MATERIALIZED (
	SELECT k.process_id, k.program, k.database, group_concat(DISTINCT k.lock) AS locks
	FROM locks AS k
	WHERE k.process_id IS NOT (SELECT process_id FROM runs)
	AND k.is_exclusive = (SELECT max(o.is_exclusive) FROM locks AS o WHERE o.process_id IS NOT (SELECT process_id FROM runs))
	GROUP BY k.process_id, k.database),
holders AS MATERIALIZED (
	SELECT iif(count(DISTINCT ifnull(process_id, -1)) = 1, max(process_id), NULL) AS process_id,
	       iif(count(DISTINCT ifnull(process_id, -1)) = 1, max(program), NULL) AS program,
	       group_concat(iif(process_id, printf('process %d (%s)', process_id, ifnull(program, 'not known')), 'a process that is not known')
	                    || ', which has ' || replace(locks, ',', ', ') || ' of ' || database, '; ') AS words
	FROM others)
SELECT r.process_id, r.program, r.thread_id, r.thread_name, r.depth, 1 AS is_running, NULL AS elapsed_ns, r.state, r.wait_cause,
       '' AS wait_object, NULL AS wait_ns, iif(r.wait_cause = 'lock', h.process_id, NULL) AS holder_process_id,
       iif(r.wait_cause = 'lock', h.program, NULL) AS holder_program, iif(r.wait_cause = 'lock', h.words, NULL) AS holders,
       r.function, r.query, r.is_cut, r.library_path, r.stack, r.stack_is_truncated
FROM runs AS r LEFT JOIN holders AS h
ORDER BY r.thread_id, r.depth DESC;
