-- SPDX-License-Identifier: Apache-2.0
-- The statements that run in a process that is not recorded (sql/live/unrecorded_tables.sql), with the columns of
-- sql/live/runs.sql. holders: if a run waits for a lock, the other processes with an exclusive lock on one of the process's
-- databases, or else with a shared one that the run may wait for. In a WAL database only a checkpoint waits for readers.
WITH
conflicts AS MATERIALIZED (
	SELECT r.rowid AS run, k.*, max(k.is_exclusive) OVER (PARTITION BY r.rowid) AS most
	FROM runs AS r JOIN locks AS k ON k.process_id IS NOT r.process_id JOIN databases AS d ON d.path = k.database
	WHERE r.wait_cause = 'lock' AND (k.is_exclusive OR NOT d.is_wal OR (k.lock = 'WAL read' AND instr(r.stack, 'Checkpoint')))),
others AS MATERIALIZED (
	SELECT run, process_id, program, database, group_concat(DISTINCT lock) AS locks
	FROM conflicts WHERE is_exclusive = most GROUP BY run, process_id, database),
holders AS MATERIALIZED (
	SELECT run,
	       iif(count(DISTINCT ifnull(process_id, -1)) = 1, max(process_id), NULL) AS process_id,
	       iif(count(DISTINCT ifnull(process_id, -1)) = 1, max(program), NULL) AS program,
	       group_concat(iif(process_id, printf('process %d (%s)', process_id, ifnull(program, 'not known')), 'a process that is not known')
	                    || ', which has ' || replace(locks, ',', ', ') || ' of ' || database, '; ') AS words
	FROM others GROUP BY run)
SELECT r.process_id, r.program, r.thread_id, r.thread_name, r.depth, 1 AS is_running, NULL AS elapsed_ns, r.state, r.wait_cause,
       '' AS wait_object, NULL AS wait_ns, h.process_id AS holder_process_id, h.program AS holder_program, h.words AS holders,
       r.function, r.query, r.is_cut, r.library_path, r.stack, r.stack_is_truncated
FROM runs AS r LEFT JOIN holders AS h ON h.run = r.rowid
ORDER BY r.thread_id, r.depth DESC;
