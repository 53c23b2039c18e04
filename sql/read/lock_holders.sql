-- SPDX-License-Identifier: Apache-2.0
-- The statements that kept other statements waiting for database locks, ordered by the time of these waits. open_ms,
-- outside_ms: of the holder's longest transaction. doing: what the program did in outside_ms: CPU time by exact clocks, waits
-- and functions by samples (query_profiler_outside; see program.sql). holder: the program, if its connection is in the file.
WITH waits AS MATERIALIZED (SELECT * FROM lock_waits),
held AS MATERIALIZED (
	SELECT p.hostname AS hostname, p.process_id AS process_id, t.session AS session, t.number AS number, t.duration_ns AS open, t.idle_ns AS outside, t.id AS id
	FROM transactions AS t JOIN processes AS p ON p.id = t.process
	WHERE t.number IN (SELECT holder_transaction FROM waits WHERE holder_transaction <> 0)),
programs AS MATERIALIZED (
	SELECT hostname, process_id, fileName(executable) || iif(script <> '', ' ' || fileName(script), '') AS program, max(id) FROM processes GROUP BY 1, 2),
holders AS MATERIALIZED (
	SELECT sum(wait_ns) AS waited, max(wait_ns) AS longest, count(*) AS waits, sum(outcome LIKE 'SQLITE_BUSY%' OR outcome LIKE 'SQLITE_LOCKED%') AS busy,
	       count(DISTINCT json_array(w.hostname, w.process_id, session_id, iif(session_id, 0, thread_id))) AS victims,
	       lock, database, holder_process_id, holder_session_id, holder_query, max(program) AS holder,
	       max(printf('%020d%020d%d', wait_ns, timestamp_ns, w.thread_id)) AS worst,
	       max(iif(open IS NULL, NULL, printf('%020d%020d%d', open, outside, h.id))) AS held, max(holder_query_id) AS query_id
	FROM waits AS w
	LEFT JOIN held AS h ON h.number = holder_transaction AND h.session = holder_session_id AND h.process_id = holder_process_id AND h.hostname = w.hostname
	-- Otherwise only the kernel named the process, which may have become another program.
	LEFT JOIN programs AS p ON p.process_id = holder_process_id AND p.hostname = w.hostname AND (holder_session_id OR holder_transaction)
	GROUP BY lock, database, holder_process_id, holder_session_id, holder_query
	ORDER BY waited DESC LIMIT 50),
longest AS MATERIALIZED (SELECT DISTINCT t.* FROM holders JOIN transactions AS t ON t.id = CAST(substr(held, 41) AS INTEGER)),
outside AS MATERIALIZED (
	SELECT l.id AS id, iif(trace_type = 'ProgramCPU', 0, wait & 255) AS cause, stack, call_stack, sum(size + weight * period_ns) AS ns
	-- In one pass, because an index on the samples would cost more.
	FROM (SELECT min(start_ns) AS first_ns, max(start_ns + duration_ns) + 1000000 AS last_ns FROM longest)
	CROSS JOIN samples AS s ON s.timestamp_ns BETWEEN first_ns AND last_ns
	CROSS JOIN longest AS l ON l.number = s.transaction_number AND s.timestamp_ns BETWEEN l.start_ns AND l.start_ns + l.duration_ns + 1000000
	CROSS JOIN series AS r ON r.id = s.series CROSS JOIN threads AS t ON t.id = r.thread
	WHERE t.process = l.process AND trace_type IN ('ProgramCPU', 'ProgramOffCPU')
	GROUP BY 1, 2, 3, 4),
-- The line of each function that took the most time.
functions AS MATERIALIZED (
	SELECT id, cause, sum(ns) AS ns, max(ns), substr(place, 1, instr(place || char(10), char(10)) - 1) AS function,
	       substr(place, instr(place || char(10), char(10)) + 1) AS at
	FROM (SELECT o.id AS id, cause, sum(ns) AS ns, coalesce(f.function || char(10) || fileName(f.caller), stackPlace(trace)) AS place
	      FROM outside AS o LEFT JOIN stacks AS k ON k.id = stack LEFT JOIN call_stacks AS f ON f.id = call_stack
	      GROUP BY o.id, cause, place)
	GROUP BY id, cause, function),
parts AS MATERIALIZED (
	SELECT l.id AS id, idle_ns, coalesce(cause, 0) AS cause, iif(coalesce(cause, 0), sum(ns), coalesce(idle_cpu_ns, sum(ns))) AS ns, max(ns),
	       iif(max(ns) >= 0.9 * sum(ns), ' in ', printf(', %.0f %% of it in ', 100.0 * max(ns) / sum(ns)))
	       || function || iif(at <> '', ' (' || at || ')', '') AS place
	FROM longest AS l LEFT JOIN functions USING (id) GROUP BY l.id, cause),
doing AS MATERIALIZED (
	SELECT id, group_concat(duration(ns)
	                        || CASE cause WHEN 0 THEN ' on CPU' WHEN 9 THEN ' asleep' WHEN 18 THEN ' waiting for a process'
	                           ELSE ' waiting (' || (SELECT name FROM wait_causes AS w WHERE w.cause = p.cause) || ')' END
	                        || coalesce(place, ''), ', ')
	           || iif(idle_ns - sum(ns) >= 0.05 * idle_ns, ', ' || duration(idle_ns - sum(ns))
	              || ' ready to run, or not seen', '') AS words
	FROM (SELECT * FROM parts WHERE ns >= 0.01 * idle_ns AND ns > 0 ORDER BY ns DESC) AS p
	GROUP BY id),
stories AS MATERIALIZED (
	SELECT printf('%020d%020d%d', wait_ns, timestamp_ns, thread_id) AS worst, cause, cure FROM lock_story
	WHERE printf('%020d%020d%d', wait_ns, timestamp_ns, thread_id) IN (SELECT worst FROM holders))
SELECT
	round(waited / 1e6, 3) AS waited_ms,
	round(longest / 1e6, 3) AS longest_ms,
	waits,
	busy,
	victims,
	lock,
	database,
	holder_process_id,
	holder_session_id,
	holder,
	round(substr(held, 1, 20) / 1e6, 3) AS open_ms,
	round(substr(held, 21, 20) / 1e6, 3) AS outside_ms,
	coalesce('Outside SQLite: ' || (SELECT words FROM doing WHERE id = CAST(substr(held, 41) AS INTEGER)) || '.', '') AS doing,
	(SELECT fileName(caller) FROM queries JOIN call_stacks AS b ON b.id = call_stack WHERE queries.query_id = holders.query_id) AS caller,
	(SELECT cause FROM stories WHERE stories.worst = holders.worst) AS cause,
	coalesce((SELECT cure FROM stories WHERE stories.worst = holders.worst), '') AS cure,
	CASE
		WHEN holder_query <> '' THEN holder_query
		WHEN holder_process_id = 0 OR holder_process_id IN (SELECT process_id FROM processes) THEN '(not known)'
		ELSE '(a process that is not recorded)'
	END AS holder_query
FROM holders
ORDER BY waited DESC, holder_process_id, holder_session_id, holders.holder_query
LIMIT 50;
