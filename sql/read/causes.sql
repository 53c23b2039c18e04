-- SPDX-License-Identifier: Apache-2.0
-- Where the time of each line of temp.lines went (see read/statement_lines.sql and run_lines.sql), in words, in
-- temp.line_causes. waits: the two largest causes of waits with at least 5 % of the line's time, with their shares of
-- it; `unknown` are waits of runs that were not logged. notes: what the plan does that takes long, errors, and
-- everything else with a share of at least 5 %; for locks, the statement that held them longest, and its transaction. prepare
-- and checkpoint are parts of the time, including waits; checkpoint excludes the run queue. triggers and foreign keys are
-- parts of the CPU time. between rows is not part of the time: it is a duration, and its share of both together, which is
-- 100 % for a cursor left open. The last note is the line of the program. After read/selected.sql.
DROP TABLE IF EXISTS temp.line_causes;

CREATE TEMP TABLE line_causes AS
-- The CPU samples and the mutex waits of lines that are single runs. These are few; the sums of temp.selected_sums by
-- run would be many.
WITH RECURSIVE run_samples AS MATERIALIZED (
	SELECT line, trace_type, q.program AS program, opcode, s.wait AS wait, value
	FROM temp.lines AS l JOIN queries AS q ON q.id = l.run
	CROSS JOIN temp.selected_samples AS s ON s.run = l.run AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
	WHERE trace_type IN ('CPU', 'OffCPU')
	  AND (EXISTS (SELECT 1 FROM plan_nodes WHERE program = q.program AND (detail LIKE 'TRIGGER %' OR detail = 'FOREIGN KEY ACTION' OR detail LIKE '% VIRTUAL TABLE %')) OR l.mutexes > 0)),
-- The samples are read for checkpoints and spills only if there may be some.
run_stacks AS MATERIALIZED (
	SELECT line, l.cpu AS cpu, trace_type, s.wait AS wait, stack_id, value
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM temp.lines WHERE run IS NOT NULL AND reads + writes + syncs + others > 0.05 * (wall - queue))
	                  OR EXISTS (SELECT 1 FROM temp.checkpoint_stacks) OR EXISTS (SELECT 1 FROM temp.spill_stacks))
	CROSS JOIN temp.lines AS l JOIN queries AS q ON q.id = l.run
	CROSS JOIN temp.selected_samples AS s ON s.run = l.run AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns),
checkpoints AS MATERIALIZED (
	SELECT line, sum(value) AS ns
	FROM (SELECT line, s.value AS value
	      FROM temp.lines AS l CROSS JOIN temp.selected_sums AS s ON s.hash = l.hash AND s.logged AND s.checkpoint
	      WHERE l.run IS NULL
	      UNION ALL
	      SELECT line, value FROM run_stacks
	      WHERE wait & 255 = 6 OR trace_type = 'CPU' AND stack_id IN (SELECT stack FROM temp.checkpoint_stacks))
	WHERE EXISTS (SELECT 1 FROM temp.lines WHERE reads + writes + syncs + others > 0.05 * (wall - queue)) OR EXISTS (SELECT 1 FROM temp.checkpoint_stacks)
	GROUP BY 1),
-- Shares of the CPU time, because the waits of short runs have no samples.
spills AS MATERIALIZED (
	SELECT line, 1.0 * sum(value) / cpu AS share
	FROM (SELECT line, l.cpu AS cpu, s.value AS value
	      FROM temp.lines AS l CROSS JOIN temp.selected_sums AS s ON s.hash = l.hash AND s.logged AND s.spill
	      WHERE l.run IS NULL
	      UNION ALL
	      SELECT line, cpu, value FROM run_stacks WHERE trace_type = 'CPU' AND stack_id IN (SELECT stack FROM temp.spill_stacks))
	GROUP BY 1 HAVING share >= 0.05),
waits AS MATERIALIZED (
	SELECT line, what, 1.0 * ns / wall AS share, row_number() OVER (PARTITION BY line ORDER BY ns DESC, what) AS place
	FROM (SELECT line, wall, 'lock' AS what, locks AS ns FROM temp.lines
	      UNION ALL SELECT line, wall, 'read', reads FROM temp.lines
	      UNION ALL SELECT line, wall, 'write', writes FROM temp.lines
	      UNION ALL SELECT line, wall, 'sync', syncs FROM temp.lines
	      UNION ALL SELECT line, wall, 'mutex', mutexes FROM temp.lines
	      UNION ALL SELECT line, wall, 'sleep', sleeps FROM temp.lines
	      UNION ALL SELECT line, wall, 'other', others FROM temp.lines
	      UNION ALL SELECT line, wall, 'run queue', queue FROM temp.lines
	      UNION ALL SELECT line, wall, 'unknown', unknown FROM temp.lines)
	WHERE ns >= 0.05 * wall AND ns > 0),
-- The longest waits suffice to see who held the locks.
line_waits AS MATERIALIZED (
	SELECT * FROM (
		SELECT l.line AS line, w.id AS wait, w.wait_ns AS ns, coalesce(nullif(w.holder_query, ''), x.query, '') AS holder, w.holder_process_id AS process_id,
		       w.process AS process, w.holder_transaction AS number, q.call_stack AS call_stack,
		       row_number() OVER (PARTITION BY l.line ORDER BY w.wait_ns DESC, w.id) AS place
		FROM (SELECT w.*, (SELECT normalized_query_hash FROM temp.selected_runs AS r WHERE r.id = w.query) AS hash FROM waits_for_locks AS w) AS w
		JOIN temp.lines AS l ON l.hash = w.hash AND (l.run IS NULL OR l.run = w.query)
		LEFT JOIN queries AS q ON q.id = w.holder LEFT JOIN statements AS x ON x.id = q.statement
		WHERE l.locks >= 0.05 * l.wall)
	WHERE place <= 100),
-- As in lock_waits: for a holder in another process, the first statement of its transaction.
foreign_holders AS MATERIALIZED (
	SELECT f.wait AS wait, t.first_query AS query, t.duration_ns AS open, t.idle_ns AS outside, q.call_stack AS call_stack
	FROM foreign_lock_holders AS f JOIN transactions AS t ON t.id = f.holder LEFT JOIN queries AS q ON q.id = t.first
	WHERE f.wait IN (SELECT wait FROM line_waits WHERE holder = '')),
held AS MATERIALIZED (
	SELECT process, number, duration_ns AS open, idle_ns AS outside FROM transactions
	WHERE number IN (SELECT number FROM line_waits WHERE number <> 0)),
-- open, outside: of the holder's longest transaction.
holders AS MATERIALIZED (
	SELECT line, holder, open, outside, fileName(caller) AS caller, row_number() OVER (PARTITION BY line ORDER BY ns DESC, holder) AS place
	FROM (SELECT line, trim(replace(replace(coalesce(nullif(w.holder, ''), f.query,
			iif(process_id = 0, '', 'process ' || process_id || iif(process_id IN (SELECT process_id FROM processes), '', ' (not recorded)'))),
			char(10), ' '), char(13), ' ')) AS holder, sum(ns) AS ns, max(coalesce(h.open, f.open, 0)) AS open,
	             coalesce(h.outside, f.outside) AS outside, coalesce(w.call_stack, f.call_stack) AS call_stack
	      FROM line_waits AS w LEFT JOIN foreign_holders AS f ON f.wait = w.wait
	      LEFT JOIN held AS h ON h.process = w.process AND h.number = w.number
	      GROUP BY 1, 2)
	LEFT JOIN call_stacks AS b ON b.id = call_stack
	WHERE holder <> ''),
-- The line of the program, by the time of the logged runs whose call stack is known. Lines of a function that are near each
-- other count as one place, because a call may span several lines, and the calls that fetch its rows are next to it.
called AS MATERIALIZED (
	SELECT line, fileName(rtrim(caller, '0123456789')) AS file, CAST(substr(caller, 1 + length(rtrim(caller, '0123456789'))) AS INTEGER) AS number,
	       iif(caller_function IN ('<module>', '{main}', ''), '', ' (' || caller_function || ')') AS function,
	       json_array(rtrim(caller, '0123456789'), caller_function) AS whole, sum(ns) AS ns
	FROM (SELECT line, call_stack, ns FROM temp.lines JOIN temp.call_sums USING (hash) WHERE lines.run IS NULL
	      UNION ALL
	      SELECT line, call_stack, coalesce(execution_ns, query_duration_ns) FROM temp.lines JOIN queries ON id = lines.run)
	JOIN call_stacks AS b ON b.id = call_stack
	GROUP BY line, caller, caller_function),
callers AS MATERIALIZED (
	SELECT line, row_number() OVER (of_line ORDER BY ns DESC, file, number) AS rank,
	       CASE WHEN count(*) OVER of_line = 1 THEN ', from ' || file || number
	            WHEN min(whole) OVER of_line = max(whole) OVER of_line AND max(number) OVER of_line < min(number) OVER of_line + 10
	            THEN ', from ' || file || min(number) OVER of_line || '-' || max(number) OVER of_line
	            ELSE ', most from ' || file || number END || function AS place
	FROM called WINDOW of_line AS (PARTITION BY line)),
-- How much longer a run takes with the plan that took the most time than with the fastest plan.
plans AS MATERIALIZED (
	SELECT hash, plan_hash, 1.0 * sum(ns) / sum(runs) AS each, sum(ns) AS ns
	FROM temp.selected_periods WHERE hash IN (SELECT hash FROM temp.lines WHERE run IS NULL) AND plan_hash IS NOT NULL
	GROUP BY hash, plan_hash HAVING sum(runs) > 0),
slower AS MATERIALIZED (
	SELECT hash, p.each / f.each AS times, p.plan_hash AS plan_hash, f.plan_hash AS faster, max(p.ns) AS most
	FROM plans AS p JOIN (SELECT hash, plan_hash, min(each) AS each FROM plans GROUP BY hash HAVING count(*) > 1) AS f USING (hash)
	GROUP BY hash),
begun AS MATERIALIZED (
	SELECT hash, s.plan_hash AS plan_hash, faster, min(start_ns) AS start_ns
	FROM slower AS s JOIN temp.selected_periods AS p USING (hash) WHERE times >= 2 AND p.plan_hash = s.plan_hash GROUP BY hash),
-- The periods of the faster plan, before and after the other plan separately.
periods AS MATERIALIZED (
	SELECT hash, min(place) AS place, p.plan_hash AS plan_hash, min(p.start_ns) AS start_ns, max(last_ns) AS last_ns
	FROM temp.selected_periods AS p JOIN begun AS s USING (hash)
	WHERE p.plan_hash IN (s.plan_hash, faster)
	GROUP BY hash, p.plan_hash, p.plan_hash = faster AND p.start_ns > s.start_ns
	HAVING min(place) = max(place)),
-- The statements after which SQLite left the faster plan, and chose it again.
turned AS MATERIALIZED (
	SELECT s.hash AS hash,
	       (SELECT text FROM temp.schema_changes AS c, periods AS f
	        WHERE f.hash = s.hash AND f.plan_hash = faster AND c.place = f.place AND c.place = p.place
	          AND c.at_ns > f.last_ns AND c.at_ns <= p.start_ns ORDER BY c.at_ns DESC LIMIT 1) AS before,
	       (SELECT text FROM temp.schema_changes AS c, periods AS f
	        WHERE f.hash = s.hash AND f.plan_hash = faster AND c.place = f.place AND c.place = p.place
	          AND c.at_ns > p.last_ns AND c.at_ns <= f.start_ns ORDER BY c.at_ns DESC LIMIT 1) AS since
	FROM begun AS s JOIN periods AS p ON p.hash = s.hash AND p.plan_hash = s.plan_hash),
nodes AS MATERIALIZED (
	SELECT DISTINCT line, detail FROM temp.lines AS l JOIN statements AS x ON x.normalized_query_hash = l.hash
	JOIN programs AS g ON g.statement = x.id JOIN plan_nodes AS n ON n.program = g.id
	WHERE fullscan_steps > 0 OR sorts > 0),
-- The statement's work for triggers and foreign keys, including the nodes below.
triggers AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, g.id AS program, n.node AS node, iif(n.detail LIKE 'TRIGGER %', 'trigger' || substr(n.detail, 8), 'foreign key action') AS what
	FROM statements AS x JOIN programs AS g ON g.statement = x.id JOIN plan_nodes AS n ON n.program = g.id
	WHERE x.normalized_query_hash IN (SELECT hash FROM temp.lines) AND (n.detail LIKE 'TRIGGER %' OR n.detail = 'FOREIGN KEY ACTION')
	UNION
	SELECT t.hash, t.program, n.node, t.what FROM triggers AS t JOIN plan_nodes AS n ON n.program = t.program AND n.parent = t.node),
-- Virtual tables do work outside the nodes that the plan names. compared: the module, if it is not SQLite's own.
worked AS MATERIALIZED (
	SELECT * FROM triggers
	UNION
	SELECT x.normalized_query_hash, g.id, n.node,
	       CASE WHEN n.detail LIKE 'MODIFY %' THEN 'changes of virtual tables ' || substr(n.detail, length('MODIFY VIRTUAL TABLE ') + 1)
	            ELSE coalesce(name || ' (' || coalesce(nullif(n.compared, ''), virtualWords(n.detail)) || ')', 'virtual table ' || name) END
	FROM statements AS x JOIN programs AS g ON g.statement = x.id
	JOIN (SELECT *, substr(scanned, 1, instr(scanned || ' ', ' ') - 1) AS name
	      FROM (SELECT *, substr(detail, iif(detail LIKE 'SCAN TABLE %', 12, 6)) AS scanned FROM plan_nodes)) AS n ON n.program = g.id
	WHERE x.normalized_query_hash IN (SELECT hash FROM temp.lines)
	  AND (n.detail LIKE 'MODIFY VIRTUAL TABLE (%' OR n.detail LIKE 'SCAN % VIRTUAL TABLE INDEX %')),
-- Shares of the CPU time, because a wait for a processor has no node.
fired AS MATERIALIZED (
	SELECT line, what, 1.0 * sum(value) / cpu AS share
	FROM (SELECT s.*, 1.0 * (l.cpu + coalesce(l.queue, 0)) / l.wall AS ready, sum(value) OVER (PARTITION BY l.line) AS cpu
	      FROM (SELECT line, program, phase AS node, value
	            FROM temp.lines AS l CROSS JOIN temp.selected_sums AS s ON s.hash = l.hash
	            WHERE l.run IS NULL AND EXISTS (SELECT 1 FROM worked WHERE worked.hash = l.hash) AND s.trace_type = 'CPU'
	            UNION ALL
	            SELECT line, s.program, node, value
	            FROM run_samples AS s LEFT JOIN program_opcodes AS o ON o.program = s.program AND o.address = nullif(s.opcode, 0)
	            WHERE trace_type = 'CPU') AS s JOIN temp.lines AS l USING (line))
	JOIN worked USING (program, node)
	GROUP BY 1, 2 HAVING share * max(ready) >= 0.05),
-- Waits of runs with samples: the share of the mutex with the longest waits.
mutexes AS MATERIALIZED (
	SELECT line, o.name AS mutex, sum(value) AS ns
	FROM (SELECT l.line AS line, l.mutexes AS mutexes, l.wall AS wall, s.wait AS wait, value
	      FROM temp.lines AS l CROSS JOIN temp.selected_sums AS s ON s.hash = l.hash
	      WHERE l.run IS NULL AND l.mutexes >= 0.05 * l.wall AND s.trace_type = 'OffCPU'
	      UNION ALL
	      SELECT line, mutexes, wall, s.wait, value FROM run_samples AS s JOIN temp.lines USING (line) WHERE trace_type = 'OffCPU')
	JOIN wait_objects AS o ON o.object = wait >> 8
	WHERE mutexes >= 0.05 * wall AND mutexes > 0 AND wait & 255 = 7 AND o.name <> 'other'
	GROUP BY 1, 2),
-- The result of a part of the statement is not a table.
scans AS (
	SELECT line, group_concat(name, ' and ') AS tables
	FROM (SELECT DISTINCT line, substr(scanned, 1, instr(scanned || ' ', ' ') - 1) AS name
	      -- SQLite before 3.36 writes SCAN TABLE.
	      FROM (SELECT *, substr(detail, iif(detail LIKE 'SCAN TABLE %', 12, 6)) AS scanned FROM nodes) WHERE detail LIKE 'SCAN %' AND detail NOT LIKE '%VIRTUAL TABLE%' AND detail NOT LIKE 'SCAN (%'
	                   AND detail NOT LIKE '%CONSTANT ROW%' AND detail NOT LIKE '%-ROW VALUES CLAUSE%')
	WHERE name NOT IN (SELECT substr(detail, instr(detail, ' ') + 1) FROM nodes
	                   WHERE detail LIKE 'CO-ROUTINE %' OR detail LIKE 'MATERIALIZE %')
	GROUP BY line HAVING count(*) <= 2),
sorts AS (
	SELECT line, group_concat(what, ', ') AS whats
	FROM (SELECT DISTINCT line, substr(detail, length('USE TEMP B-TREE FOR ') + 1) AS what
	      FROM nodes WHERE detail LIKE 'USE TEMP B-TREE FOR %' ORDER BY 1, 2)
	GROUP BY line)
SELECT line,
       coalesce((SELECT group_concat(what || printf(' %.0f %%', 100 * share), ', ')
                 FROM (SELECT * FROM waits WHERE waits.line = lines.line AND place <= 2 ORDER BY place)), '') AS waits,
       ltrim(iif(is_unfinished, ', unfinished', '')
             || iif(failed > 0, ', failed' || iif(run IS NULL, ' ' || failed, '') || coalesce(': ' || nullif(
			trim(replace(replace(substr(error, 1, 60), char(10), ' '), char(13), ' ')), ''), ''), '')
             || coalesce((SELECT ', lock held by ' || iif(length(holder) > 40, substr(holder, 1, 37) || '...', holder)
                                 || coalesce(' of ' || caller, '')
                                 || iif(open > 0, ', open ' || duration(open)
                                        || iif(outside > open / 2, ', ' || duration(outside) || ' of that outside SQLite', ''), '')
                          FROM holders WHERE holders.line = lines.line AND place = 1), '')
             || iif(run IS NULL AND times >= 2, printf(iif(times < 10, ', another plan is %.1f times faster', ', another plan is %.0f times faster'), times)
                 || coalesce((SELECT coalesce(', before ' || iif(length(before) > 60, substr(before, 1, 57) || '...', before), '')
                                     || coalesce(iif(before IS NULL, ', since ', ' and since ') || iif(length(since) > 60, substr(since, 1, 57) || '...', since), '')
                              FROM turned WHERE turned.hash = lines.hash), ''), '')
             || iif(fullscan_steps > max(1000, 10 * coalesce(rows, 0)),
                    ', scan ' || iif(fullscan_steps < 9999500, printf('%.0fk', fullscan_steps / 1e3), printf('%.0fM', fullscan_steps / 1e6))
                    || ' rows' || coalesce(' of ' || tables, ''), '')
             || iif(sorts > 0, ', sort' || coalesce(' for ' || whats, ''), '') || iif(autoindexes > 0, ', automatic index', '')
             || coalesce((SELECT group_concat(what, '') FROM (
				SELECT ', ' || what || printf(' %.0f %% of CPU time', 100 * share) AS what FROM fired
				WHERE fired.line = lines.line ORDER BY share DESC, what LIMIT 2)), '')
             || coalesce((SELECT ', mutex of the ' || mutex || iif(mutex = 'allocator', ' (SQLITE_CONFIG_MEMSTATUS 0 avoids it)', '') FROM mutexes WHERE mutexes.line = lines.line ORDER BY ns DESC, mutex LIMIT 1), '')
             || iif(prepare >= 0.05 * ended_wall AND prepare > 0, printf(', prepare %.0f %%', 100.0 * prepare / ended_wall)
                 || iif(prepares > 1, printf(' (%d times%s)', prepares, iif(prepares > 10 AND 2 * prepares > runs, ': keep the statement', '')), ''), '')
             -- A wait for a processor may have been inside a checkpoint, which samples do not show.
             || iif(ns >= 0.05 * (wall - coalesce(queue, 0)), printf(', checkpoint %.0f %%', min(100, 100.0 * ns / (wall - coalesce(queue, 0))))
                 || iif(queue >= 0.05 * wall, ' without run queue', ''), '')
             || coalesce((SELECT printf(', cache spill %.0f %% of CPU time', min(100, 100.0 * share))
			-- A larger cache saves only pages that are written again.
			|| iif((SELECT sum(rewritten) > 0.2 * sum(writes) FROM page_sums WHERE statement = lines.hash), ' (cache_size is too small)', '') FROM spills WHERE spills.line = lines.line), '')
             || iif(outside > max(1000000, wall / 10), printf(iif(outside < 1e9, ', between rows %.0f ms (%.0f %%)', ', between rows %.1f s (%.0f %%)'), outside / iif(outside < 1e9, 1e6, 1e9),
                 100.0 * outside / (outside + wall)), '')
             || coalesce((SELECT place FROM callers WHERE callers.line = lines.line AND rank = 1), ''), ', ') AS notes
FROM temp.lines LEFT JOIN scans USING (line) LEFT JOIN sorts USING (line) LEFT JOIN checkpoints USING (line)
LEFT JOIN slower ON slower.hash = lines.hash;
