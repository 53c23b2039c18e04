-- SPDX-License-Identifier: Apache-2.0
-- Lines of OpenMetrics. After read/selected.sql, without a selection. :limit: how many statements have a label of
-- their own, the most expensive first. The others are the statement "(other)".
WITH
text (value, escaped) AS MATERIALIZED (
	SELECT value, replace(replace(replace(value, '\', '\\'), '"', '\"'), char(10), '\n')
	FROM (SELECT iif(length(query) > 200, substr(query, 1, 197) || '...', query) AS value FROM statement_stats
	      UNION SELECT program FROM statement_stats UNION SELECT reason FROM losses
	      UNION SELECT database FROM wal_log UNION SELECT database FROM checkpoints)),
stats AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, program, min(query) AS query, sum(calls) AS calls, sum(errors) AS errors, sum(rows) AS rows,
	       sum(execution_time_ns) / 1e9 AS time, sum(cpu_time_ns) / 1e9 AS cpu, sum(prepares) AS prepares, sum(prepare_time_ns) / 1e9 AS prepare,
	       sum(fullscan_steps) AS fullscan_steps, sum(sorts) AS sorts, sum(autoindexes) AS autoindexes
	FROM statement_stats GROUP BY 1, 2),
ranked AS MATERIALIZED (
	SELECT iif(row_number() OVER (ORDER BY time DESC, hash) > CAST(:limit AS INTEGER) OR hash = 0, '(other)', printf('%016x', hash)) AS statement, *
	FROM stats),
sums AS MATERIALIZED (
	SELECT statement, program, min(query) AS query, sum(calls) AS calls, sum(errors) AS errors, sum(rows) AS rows, sum(time) AS time, sum(cpu) AS cpu,
	       sum(prepares) AS prepares, sum(prepare) AS prepare, sum(fullscan_steps) AS fullscan_steps, sum(sorts) AS sorts,
	       sum(autoindexes) AS autoindexes
	FROM ranked GROUP BY 1, 2),
logged AS MATERIALIZED (
	SELECT total(lock_wait_ns) AS locks, total(io_read_ns) AS reads, total(io_write_ns) AS writes, total(io_sync_ns) AS syncs,
	       total(mutex_wait_ns) AS mutexes, total(sleep_ns) AS sleeps, total(other_wait_ns) AS others, total(run_delay_ns) AS queues
	FROM query_log),
-- SQLite gives the other columns of a row with a max() those of the row that has it.
wals AS MATERIALIZED (
	SELECT database, sum(iif(event = 'append', frames, 0)) AS frames,
	       max(iif(wal_bytes IS NULL, NULL, timestamp_ns)) AS newest, wal_bytes AS bytes
	FROM wal_log GROUP BY 1),
passes AS MATERIALIZED (
	SELECT database, iif(stopped_by = '', 'complete', 'stopped') AS outcome, count(*) AS passes, sum(duration_ns) / 1e9 AS time
	FROM checkpoints GROUP BY 1, 2),
lost AS MATERIALIZED (SELECT reason, sum(samples) AS samples, sum(refusals) AS refusals FROM losses GROUP BY 1),
families (family, name, type, unit, help) AS (VALUES
	(1, 'queryprof_statement', 'info', '', 'The text of each statement, at most 200 characters.'),
	(2, 'queryprof_statement_runs', 'counter', '', 'Runs of the statement; exact.'),
	(3, 'queryprof_statement_errors', 'counter', '', 'Runs that failed; exact.'),
	(4, 'queryprof_statement_rows', 'counter', '', 'Rows returned; exact.'),
	(5, 'queryprof_statement_time_seconds', 'counter', 'seconds', 'Wall time inside SQLite with preparing, of all runs.'),
	(6, 'queryprof_statement_cpu_seconds', 'counter', 'seconds', 'CPU time inside SQLite, of all runs.'),
	(7, 'queryprof_statement_prepares', 'counter', '', 'How often the statement was prepared.'),
	(8, 'queryprof_statement_prepare_seconds', 'counter', 'seconds', 'Wall time of preparing.'),
	(9, 'queryprof_statement_fullscan_steps', 'counter', '', 'Rows of whole tables visited (SQLITE_STMTSTATUS_FULLSCAN_STEP).'),
	(10, 'queryprof_statement_sorts', 'counter', '', 'Sorts.'),
	(11, 'queryprof_statement_autoindex_rows', 'counter', '', 'Rows put into automatic indexes.'),
	(12, 'queryprof_logged_wait_seconds', 'gauge', 'seconds', 'Waits, by cause, of the runs that are in query_log.'),
	(13, 'queryprof_lost_samples', 'counter', '', 'Samples, rows of logs and spans that could not be stored, by reason.'),
	(14, 'queryprof_refusals', 'counter', '', 'Timers or connections that were refused, by reason.'),
	(15, 'queryprof_wal_bytes', 'gauge', 'bytes', 'Bytes of the WAL up to its last frame, at the newest event in wal_log.'),
	(16, 'queryprof_logged_wal_frames', 'gauge', '', 'Frames that recorded programs appended to the WAL, of the events in wal_log.'),
	(17, 'queryprof_logged_checkpoints', 'gauge', '', 'Checkpoints that are in checkpoints; stopped: they left frames or failed.'),
	(18, 'queryprof_logged_checkpoint_seconds', 'gauge', 'seconds', 'Time of the checkpoints that are in checkpoints.')),
rows (family, labels, value) AS (
	SELECT family, printf('statement="%s",program="%s"', statement, p.escaped)
	               || iif(family = 1, printf(',query="%s"', iif(statement = '(other)', '', q.escaped)), ''),
	       CASE family WHEN 1 THEN '1' WHEN 2 THEN calls WHEN 3 THEN errors WHEN 4 THEN rows WHEN 5 THEN printf('%.9f', time)
	                   WHEN 6 THEN printf('%.9f', cpu) WHEN 7 THEN prepares WHEN 8 THEN printf('%.9f', prepare)
	                   WHEN 9 THEN fullscan_steps WHEN 10 THEN sorts ELSE autoindexes END
	FROM families JOIN sums JOIN text AS p ON p.value = program
	JOIN text AS q ON q.value = iif(length(query) > 200, substr(query, 1, 197) || '...', query)
	WHERE family <= 11
	UNION ALL
	SELECT 12, printf('cause="%s"', cause), printf('%.9f', ns / 1e9)
	FROM (SELECT 'lock' AS cause, locks AS ns FROM logged UNION ALL SELECT 'read', reads FROM logged UNION ALL SELECT 'write', writes FROM logged
	      UNION ALL SELECT 'sync', syncs FROM logged UNION ALL SELECT 'mutex', mutexes FROM logged UNION ALL SELECT 'sleep', sleeps FROM logged
	      UNION ALL SELECT 'other', others FROM logged UNION ALL SELECT 'run queue', queues FROM logged)
	UNION ALL SELECT 13, printf('reason="%s"', escaped), samples FROM lost JOIN text ON value = reason WHERE samples
	UNION ALL SELECT 14, printf('reason="%s"', escaped), refusals FROM lost JOIN text ON value = reason WHERE refusals
	UNION ALL SELECT 15, printf('database="%s"', escaped), bytes FROM wals JOIN text ON value = database WHERE newest IS NOT NULL
	UNION ALL SELECT 16, printf('database="%s"', escaped), frames FROM wals JOIN text ON value = database
	UNION ALL SELECT family, printf('database="%s",outcome="%s"', escaped, outcome), iif(family = 17, passes, printf('%.9f', time))
	FROM families JOIN passes JOIN text ON value = database WHERE family IN (17, 18))
SELECT line
FROM (SELECT family, 0 AS place, '' AS labels, '# TYPE ' || name || ' ' || type AS line FROM families
      UNION ALL SELECT family, 1, '', '# UNIT ' || name || ' ' || unit FROM families WHERE unit <> ''
      UNION ALL SELECT family, 2, '', '# HELP ' || name || ' ' || help FROM families
      UNION ALL SELECT family, 3, labels, name || CASE type WHEN 'info' THEN '_info' WHEN 'counter' THEN '_total' ELSE '' END || '{' || labels || '} ' || value FROM rows JOIN families USING (family)
      UNION ALL SELECT 99, 0, '', '# EOF')
ORDER BY family, place, labels;
