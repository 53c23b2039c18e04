-- SPDX-License-Identifier: Apache-2.0
-- Where the time of the selected statements went: CPU, waits by cause, the rest. Times are of all runs. The causes of
-- waits are known only of the logged runs, so the time off the CPU of other runs is a line of its own. No rows if
-- less than a hundredth of the time was off the CPU. After read/selected.sql.
WITH logged AS MATERIALIZED (
	SELECT total(coalesce(q.execution_ns, q.query_duration_ns)) AS time, total(q.cpu_time_ns) AS cpu,
	       total(q.lock_wait_ns) AS locks, total(q.io_read_ns) AS reads, total(q.io_write_ns) AS writes,
	       total(q.io_sync_ns) AS syncs, total(q.mutex_wait_ns) AS mutexes, total(q.sleep_ns) AS sleeps,
	       total(q.other_wait_ns) AS others, total(q.run_delay_ns) AS queue, total(q.rest_ns) AS rest
	FROM temp.selected_runs AS r JOIN queries AS q USING (id) WHERE q.finished),
all_runs AS (SELECT total(own_wall) AS time, total(own_cpu) AS cpu FROM temp.selected_parts),
-- Nested runs count once in all_runs.
sums AS MATERIALIZED (
	SELECT max(logged.time, all_runs.time) AS time, max(logged.cpu, all_runs.cpu) AS cpu, locks, reads, writes, syncs, mutexes,
	       sleeps, others, queue, rest,
	       max(0, max(logged.time, all_runs.time) - logged.time - max(logged.cpu, all_runs.cpu) + logged.cpu) AS short
	FROM logged, all_runs),
parts AS (
	SELECT 1 AS line, 'on CPU' AS part, cpu AS ns FROM sums
	UNION ALL SELECT 2, 'locks', locks FROM sums
	UNION ALL SELECT 3, 'reads', reads FROM sums
	UNION ALL SELECT 4, 'writes', writes FROM sums
	UNION ALL SELECT 5, 'syncs', syncs FROM sums
	UNION ALL SELECT 6, 'mutexes', mutexes FROM sums
	UNION ALL SELECT 7, 'sleeps', sleeps FROM sums
	UNION ALL SELECT 8, 'other waits', others FROM sums
	UNION ALL SELECT 9, 'run queue', queue FROM sums
	UNION ALL SELECT 10, 'rest', rest FROM sums
	UNION ALL SELECT 11, 'short runs, cause not known', short FROM sums)
SELECT part,
       printf('%.1f', ns / 1e6) AS ms,
       printf('%.1f %%', 100.0 * ns / time) AS share,
       replace(printf('%*s', CAST(round(min(40 * ns / time, 40)) AS INTEGER), ''), ' ', '#') AS bar
FROM parts, sums
WHERE ns > 0 AND locks + reads + writes + syncs + mutexes + sleeps + others + queue + short > time / 100
ORDER BY line;
