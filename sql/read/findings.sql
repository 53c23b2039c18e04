-- SPDX-License-Identifier: Apache-2.0
-- What the files of sql/findings read. After read/statement_lines.sql without a limit. Times are wall time inside SQLite in
-- ns, unless they have another name.
--
-- finding_statements: the statements, with the line of the program that called most of the time.
-- finding_sampled: the sampled time of each statement, without the run queue, because that time would be spent as the rest
-- is. finding_programs: the same by program and node. finding_consumers: the program's own time between rows.
-- finding_nodes: the time of each node of their plans: its share of the sampled time, multiplied by the statement's time.
-- error: one standard error. whole, whole_error: including the nodes below. around: the details of the nodes above, each
-- after a line feed.
DROP TABLE IF EXISTS temp.finding_statements;
CREATE TEMP TABLE finding_statements AS
WITH called AS (
	SELECT c.hash AS hash, b.caller AS caller, b.caller_function AS caller_function, sum(ns) AS ns, sum(runs) AS logged
	FROM temp.call_sums AS c JOIN call_stacks AS b ON b.id = c.call_stack
	GROUP BY 1, 2, 3),
callers AS (
	SELECT hash, caller, caller_function, sum(logged) AS logged, sum(sum(logged)) OVER (PARTITION BY hash) AS all_logged,
	       row_number() OVER (PARTITION BY hash ORDER BY sum(ns) DESC, caller) AS place
	FROM called GROUP BY 1, 2, 3)
SELECT l.hash AS hash, oneLine(l.query) AS query, l.wall AS wall,
       l.cpu AS cpu, l.runs AS runs, l.rows AS rows, l.prepares AS prepares, l.prepare AS prepare, l.outside AS outside,
       l.vm_steps AS vm_steps, l.fullscan_steps AS fullscan_steps, l.sorts AS sorts, l.autoindexes AS autoindexes, l.locks AS locks, l.syncs AS syncs,
       l.failed AS failed, l.each AS each, coalesce(c.caller, '') AS caller, coalesce(c.caller_function, '') AS caller_function,
       -- Whether one line of the program called most of the runs whose caller is known.
       coalesce(1.0 * c.logged / c.all_logged, 0) >= 0.9 AS is_one_caller
FROM temp.lines AS l LEFT JOIN callers AS c ON c.hash = l.hash AND c.place = 1
WHERE l.run IS NULL AND l.hash <> 0;

-- If no wait was sampled, CPU time is the wall time.
DROP TABLE IF EXISTS temp.finding_types;
CREATE TEMP TABLE finding_types AS
SELECT DISTINCT iif(EXISTS (SELECT 1 FROM series WHERE trace_type IN (SELECT trace_type FROM temp.wall_types)), trace_type, 'CPU') AS trace_type
FROM temp.wall_types;

DROP TABLE IF EXISTS temp.finding_sampled;
CREATE TEMP TABLE finding_sampled AS
WITH sums AS NOT MATERIALIZED (
	SELECT hash, trace_type, wait, checkpoint, spill, value, spread FROM temp.selected_sums
	WHERE logged AND NOT is_worker AND NOT queued AND trace_type IN (SELECT trace_type FROM temp.finding_types)),
wholes AS MATERIALIZED (
	SELECT s.hash AS hash, sampled, f.wall AS wall
	FROM (SELECT hash, sum(value) AS sampled FROM sums GROUP BY hash) AS s JOIN temp.finding_statements AS f ON f.hash = s.hash)
SELECT s.hash AS hash, trace_type, wait, checkpoint, spill, value AS ns, spread AS square, sampled, wall
FROM sums AS s CROSS JOIN wholes AS w ON w.hash = s.hash;

DROP TABLE IF EXISTS temp.finding_programs;
CREATE TEMP TABLE finding_programs AS
SELECT hash, program, phase AS node, sum(value) AS ns, sum(spread) AS square
FROM temp.selected_sums
WHERE logged AND NOT is_worker AND NOT queued AND trace_type IN (SELECT trace_type FROM temp.finding_types)
  AND hash IN (SELECT hash FROM temp.finding_statements)
GROUP BY 1, 2, 3;

-- The line of the program that took the most of the sampled time between the statement's rows, and its share.
DROP TABLE IF EXISTS temp.finding_consumers;
CREATE TEMP TABLE finding_consumers AS
WITH sums AS MATERIALIZED (
	SELECT hash, call_stack, sum(value) AS ns FROM temp.selected_sums
	WHERE logged AND trace_type IN ('ProgramCPU', 'ProgramOffCPU') GROUP BY 1, 2),
places AS (
	SELECT s.hash AS hash, b.function || ' (' || fileName(b.caller) || ')' AS place, sum(ns) AS ns, sum(sum(ns)) OVER (PARTITION BY s.hash) AS whole
	FROM sums AS s LEFT JOIN call_stacks AS b ON b.id = s.call_stack GROUP BY 1, 2)
SELECT hash, max(ns), printf('%.0f %% of it in %s', 100.0 * ns / whole, place) AS place
FROM places WHERE place IS NOT NULL GROUP BY hash HAVING ns > 0.3 * whole;

DROP TABLE IF EXISTS temp.finding_nodes;
CREATE TEMP TABLE finding_nodes AS
WITH RECURSIVE
wholes AS MATERIALIZED (SELECT DISTINCT hash, sampled, wall FROM temp.finding_sampled),
-- Each node and all above it. The limit is for damaged files, whose nodes may form a circle.
above (hash, program, node, top, level, ns, square) AS (
	SELECT hash, program, node, node, 0, ns, square FROM temp.finding_programs WHERE program <> 0 AND node > 0
	UNION ALL
	SELECT a.hash, a.program, a.node, p.parent, level + 1, ns, square
	FROM above AS a JOIN plan_nodes AS p ON p.program = a.program AND p.node = a.top
	WHERE p.parent <> 0 AND level < 50),
around (program, node, top, level, details) AS (
	SELECT program, node, parent, 0, '' FROM plan_nodes WHERE program IN (SELECT program FROM temp.finding_programs)
	UNION ALL
	SELECT a.program, a.node, p.parent, level + 1, details || char(10) || p.detail
	FROM around AS a JOIN plan_nodes AS p ON p.program = a.program AND p.node = a.top
	WHERE level < 50),
sums AS (
	SELECT hash, program, top AS node, total(ns) FILTER (WHERE level = 0) AS ns, total(square) FILTER (WHERE level = 0) AS square,
	       total(ns) AS whole_ns, total(square) AS whole_square
	FROM above GROUP BY 1, 2, 3)
-- A virtual table has no columns that an index could serve, but the name of its module there.
SELECT s.hash AS hash, p.detail AS detail, iif(p.detail LIKE '% VIRTUAL TABLE INDEX %', '', p.compared) AS compared, coalesce(a.details, '') AS around,
       sum(ns) / sampled * wall AS ns, sqrt(sum(square)) / sampled * wall AS error,
       sum(whole_ns) / sampled * wall AS whole, sqrt(sum(whole_square)) / sampled * wall AS whole_error
FROM sums AS s JOIN wholes AS w ON w.hash = s.hash AND w.sampled > 0
JOIN plan_nodes AS p ON p.program = s.program AND p.node = s.node
LEFT JOIN around AS a ON a.program = s.program AND a.node = s.node AND a.top = 0
GROUP BY s.hash, p.detail, p.compared, a.details;

-- The table of a node "SCAN t" or "SEARCH t USING ..."; SQLite before 3.36 writes SCAN TABLE, and t may be an alias.
-- name: the table's own, '' if that is not known.
DROP TABLE IF EXISTS temp.finding_tables;
CREATE TEMP TABLE finding_tables AS
WITH made AS MATERIALIZED (
	SELECT DISTINCT s.hash AS hash, substr(p.detail, 1 + instr(p.detail, ' ')) AS name
	FROM (SELECT DISTINCT hash, program FROM temp.finding_programs) AS s JOIN plan_nodes AS p ON p.program = s.program
	WHERE p.detail GLOB 'MATERIALIZE *' OR p.detail GLOB 'CO-ROUTINE *')
SELECT n.*, substr(rest, 1, instr(rest || ' USING ', ' USING ') - 1) AS "table", tableOf(query, substr(rest, 1, instr(rest || ' USING ', ' USING ') - 1)) AS name
FROM (SELECT *, substr(bare, CASE WHEN detail LIKE 'SCAN TABLE %' THEN 12 WHEN detail LIKE 'SCAN %' THEN 6
                                    WHEN detail LIKE 'SEARCH TABLE %' THEN 14 ELSE 8 END) AS rest
      FROM (SELECT *, replace(detail, ' LEFT-JOIN', '') AS bare FROM temp.finding_nodes) WHERE detail LIKE 'SCAN %' OR detail LIKE 'SEARCH %') AS n
JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE rest NOT LIKE '(%' AND rest NOT LIKE 'CONSTANT ROW%' AND rest NOT GLOB '[0-9]* CONSTANT ROWS' AND rest NOT GLOB '[0-9]*-ROW VALUES CLAUSE' AND rest NOT LIKE '% VIRTUAL TABLE %' AND rest NOT LIKE 'SUBQUERY %'
  -- A WITH clause or a view may have this name; no index can be made on it.
  AND (n.hash, "table") NOT IN (SELECT hash, name FROM made);

-- The scans among them that visit far more rows than the statement returns. saved: as in a finding.
DROP TABLE IF EXISTS temp.finding_scans;
CREATE TEMP TABLE finding_scans AS
SELECT n.*, coalesce(nullif(name, ''), "table") AS shown, f.query AS query, f.fullscan_steps AS visited, f.rows AS returned,
       ns * (1 - min(1, 1.0 * f.rows / max(f.fullscan_steps, 1))) AS saved
FROM temp.finding_tables AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
-- SQLite writes SEARCH without an index if it reads all rows for a minimum or maximum.
WHERE (detail LIKE 'SCAN %' OR detail NOT LIKE '% USING %') AND f.fullscan_steps > 20 * max(f.rows, 1)
  AND f.fullscan_steps > 100 * f.runs -- a search in an index costs some rows, too
  -- Rows that a statement changes are not counted; they are few if changing them takes little.
  AND (SELECT total(m.ns) FROM temp.finding_nodes AS m WHERE m.hash = n.hash AND m.detail LIKE 'MODIFY %') < 0.1 * n.ns;

-- The waits for locks, with the transaction that held the lock and the statement that began it: all waits for the same
-- process, and the hundred longest waits for another recorded process, whose transaction is found by its time. Empty if the
-- waits are less than 1 % of the time. by_checkpoint: a PRAGMA wal_checkpoint waited. began:
-- the statement that began the transaction, and the line that ran it, because runs of the same hash may wait for it.
DROP TABLE IF EXISTS temp.finding_lock_waits;
CREATE TEMP TABLE finding_lock_waits AS
WITH waits AS MATERIALIZED (
	SELECT id, process, query, wait_ns, lock, refused, holder_process_id, holder_transaction FROM waits_for_locks
	WHERE EXISTS (SELECT 1 FROM temp.selected AS s WHERE s.id = query)
	  AND (SELECT total(locks) FROM temp.finding_statements) >= 0.01 * (SELECT total(wall) FROM temp.finding_statements)),
foreign_waits AS MATERIALIZED (
	SELECT id FROM waits WHERE holder_process_id <> 0 AND holder_transaction = 0 ORDER BY wait_ns DESC LIMIT 100),
numbered AS MATERIALIZED (
	SELECT id, process, number FROM transactions WHERE number IN (SELECT holder_transaction FROM waits WHERE holder_transaction <> 0)),
held AS MATERIALIZED (
	SELECT w.id AS wait, t.id AS holder, w.query AS query, wait_ns, lock, refused FROM waits AS w JOIN numbered AS t ON t.process = w.process AND t.number = w.holder_transaction
	UNION ALL
	SELECT wait, f.holder, l.query, l.wait_ns, lock, refused
	FROM (SELECT wait, holder FROM foreign_lock_holders WHERE wait IN (SELECT id FROM foreign_waits)) AS f CROSS JOIN waits_for_locks AS l ON l.id = wait
	WHERE f.holder IS NOT NULL),
texts AS MATERIALIZED (
	SELECT query, max(normalized_query_hash) AS hash FROM statements WHERE query IN (SELECT first_query FROM held CROSS JOIN transactions AS t ON t.id = holder) GROUP BY 1)
SELECT x.hash AS hash, wait_ns, o.name AS lock, refused = 1 AS refused, duration_ns, idle_ns, v.query LIKE 'PRAGMA%wal\_checkpoint%' ESCAPE '\' AS by_checkpoint,
       iif(length(t.first_query) > 60, substr(t.first_query, 1, 57) || '...', t.first_query) || coalesce(' at ' || nullif(fileName(b.caller), ''), '') AS began
FROM held AS h CROSS JOIN transactions AS t ON t.id = h.holder
LEFT JOIN wait_objects AS o ON o.object = h.lock LEFT JOIN texts AS x ON x.query = t.first_query
LEFT JOIN queries AS q ON q.id = h.query LEFT JOIN statements AS v ON v.id = q.statement
LEFT JOIN queries AS e ON e.id = t.first LEFT JOIN call_stacks AS b ON b.id = e.call_stack;

-- Views and subqueries that take at least 30 % of a statement's time. The statement compares their rows in its own WHERE
-- clause, and returns few rows for many scanned ones.
DROP TABLE IF EXISTS temp.finding_views;
CREATE TEMP TABLE finding_views AS
SELECT n.hash AS hash, n.detail AS detail, substr(n.detail, 1 + instr(n.detail, ' ')) AS name, sum(whole) AS whole, sqrt(sum(whole_error * whole_error)) AS whole_error
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE (n.detail GLOB 'MATERIALIZE *' OR n.detail GLOB 'CO-ROUTINE *') AND n.around = '' AND f.fullscan_steps > 100 * max(f.rows, f.runs)
  -- The first row of each group may need all rows.
  AND query NOT LIKE '% OVER %'
  -- The end of the text, after its last bracket.
  AND replace(query, rtrim(query, replace(query, ')', '')), '') LIKE '% WHERE %'
GROUP BY n.hash, n.detail HAVING sum(whole) >= 0.3 * f.wall;

-- Statements whose logged runs nearly all have a connection of their own.
DROP TABLE IF EXISTS temp.finding_reconnected;
CREATE TEMP TABLE finding_reconnected AS
SELECT hash, count(*) AS connections, sum(runs) AS logged
FROM (SELECT normalized_query_hash AS hash, count(*) AS runs
      FROM (SELECT id FROM temp.selected LIMIT 10000) CROSS JOIN queries AS q USING (id) CROSS JOIN statements AS x ON x.id = q.statement
      WHERE session <> 0 GROUP BY 1, q.process, session)
GROUP BY 1 HAVING sum(runs) >= 10 AND count(*) >= 0.9 * sum(runs);

-- The number of connections, if there are at least twenty, and at least one for every twenty runs, with the time of closing
-- them and of preparing the statements that each of them prepares. Only logged runs have a connection, so there may be more;
-- opened: by their numbers, which a process gives to its connections one after the other; numbers that are far apart are not
-- believed. expected: their number if the other runs are like the logged ones, at most one for each preparation. It is the
-- number of logged ones if each run prepares, because then logged runs of one connection may be rare by chance.
-- hash: the statement that takes most of that time.
DROP TABLE IF EXISTS temp.finding_connections;
CREATE TEMP TABLE finding_connections AS
WITH numbers AS (
	SELECT q.process AS process, max(session) - min(session) + 1 AS opened
	FROM (SELECT id FROM temp.selected LIMIT 10000) CROSS JOIN queries AS q USING (id)
	WHERE session <> 0 AND EXISTS (SELECT 1 FROM temp.finding_reconnected) GROUP BY 1),
opened AS MATERIALIZED (SELECT total(opened) AS opened FROM numbers WHERE opened < 1000000),
parts AS MATERIALIZED (
	SELECT hash, connections, runs, prepares, iif(query LIKE 'sqlite3\_%' ESCAPE '\', 0, runs) AS statement_runs, iif(query LIKE 'sqlite3\_close%' ESCAPE '\', wall, 0) AS closing,
	       iif(prepares >= 0.9 * runs, prepare, 0) AS preparing, iif(prepares < 0.5 * runs, min(prepares, 1.0 * connections * runs / logged), connections) AS expected
	FROM temp.finding_statements LEFT JOIN temp.finding_reconnected USING (hash)),
sums AS (
	SELECT max(max(connections), CAST(opened AS INTEGER)) AS connections, max(max(connections), opened, coalesce(max(expected), 0)) AS expected,
	       max(connections) AS logged, sum(statement_runs) AS runs, total(closing) AS closing,
	       total(preparing) FILTER (WHERE connections OR prepares BETWEEN 0.9 * opened AND 1.1 * opened) AS preparing
	FROM parts, opened)
SELECT (SELECT hash FROM parts ORDER BY closing + iif(connections, preparing, 0) DESC LIMIT 1) AS hash, sums.* FROM sums WHERE logged >= 20 AND runs <= 20 * expected;
