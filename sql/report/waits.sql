-- SPDX-License-Identifier: Apache-2.0
-- Where the time of the selected statements went: CPU, waits by cause, the rest. Times are of all runs. The causes of
-- waits are known only of the logged runs, so the time off the CPU of other runs is a line of its own. No rows if
-- less than a hundredth of the time was off the CPU. After read/selected.sql.
WITH logged AS MATERIALIZED (
	SELECT total(ns) AS time, total(cpu) AS cpu, total(locks) AS locks, total(read_ns) AS reads, total(write_ns) AS writes,
	       total(sync_ns) AS syncs, total(mutexes) AS mutexes, total(sleeps) AS sleeps, total(others) AS others,
	       total(queue) AS queue, total(rest) AS rest
	FROM temp.run_sums WHERE finished),
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
