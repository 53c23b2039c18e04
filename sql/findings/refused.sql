-- SPDX-License-Identifier: Apache-2.0
-- Statements that SQLite refuses without calling the busy handler, so that no busy timeout helps: a cursor of the same
-- connection is open, a connection with the same shared cache has the table, or a transaction that has read wants to write.
-- An old snapshot is a finding of its own (busy_snapshot).
WITH refusals AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, w.start_ns AS start_ns, q.id AS query, q.process AS process, q.session AS session, w.own_query AS own_query,
	       CASE WHEN w.code = 262 THEN 'shared cache' WHEN w.code & 255 = 6 THEN 'own statements' WHEN w.code = 5 AND own_transaction AND tries <= 1 THEN 'read before write' END AS reason
	FROM waits_for_locks AS w JOIN temp.selected AS s ON s.id = w.query JOIN queries AS q ON q.id = w.query JOIN statements AS x ON x.id = q.statement
	LEFT JOIN wait_objects AS o ON o.object = w.lock
	WHERE refused = 1 AND w.code <> 517 AND (w.code <> 5 OR o.name IN ('RESERVED', 'WAL write'))),
sums AS MATERIALIZED (
	SELECT hash, reason, count(*) AS refused, max(start_ns) AS newest_ns, query, process, session, own_query FROM refusals WHERE reason IS NOT NULL GROUP BY hash, reason),
failures AS MATERIALIZED (
	SELECT hash, sum(runs) AS logged FROM temp.run_sums WHERE exception_code <> 0 GROUP BY 1),
-- The statement that was open for the longest time when the newest run was refused.
open AS MATERIALIZED (
	SELECT s.hash AS hash, max(o.query_duration_ns) AS open_ns, x.query AS query, coalesce(' at ' || nullif(fileName(b.caller), ''), '') AS caller
	FROM sums AS s CROSS JOIN queries AS o ON o.process = s.process AND o.session = s.session AND o.id <> s.query
	     AND o.query_start_ns < newest_ns AND (NOT o.finished OR o.query_start_ns + o.query_duration_ns > newest_ns)
	LEFT JOIN statements AS x ON x.id = o.statement LEFT JOIN call_stacks AS b ON b.id = o.call_stack
	WHERE reason = 'own statements' GROUP BY s.hash)
SELECT s.hash AS hash, NULL AS saved, NULL AS error, printf('%,d', s.refused) AS refused, printf('%,d', logged) AS logged, printf('%,d', f.failed) AS failed, printf('%,d', f.runs) AS runs,
       CASE reason WHEN 'shared cache' THEN 'another connection with the same shared cache has the table locked (SQLITE_LOCKED)'
                   WHEN 'own statements' THEN 'another statement of the same connection is still open (SQLITE_LOCKED)'
                   ELSE 'its transaction had read before, and another connection had the write lock (SQLITE_BUSY)' END AS why,
       CASE reason WHEN 'own statements' THEN coalesce('open then: ' || oneLine(substr(o.query, 1, 100)) || o.caller || ', for ' || duration(o.open_ns) || ' in all', 'which one is not known')
                   WHEN 'shared cache' THEN 'SQLite did not wait'
                   ELSE 'the transaction began with: ' || oneLine(substr(own_query, 1, 100)) || '; SQLite did not wait, because two such transactions would wait for each other' END AS detail,
       CASE reason WHEN 'shared cache' THEN 'open the connections without a shared cache (in WAL mode, readers and a writer do not wait for each other); or wait with sqlite3_unlock_notify()'
                   WHEN 'own statements' THEN 'fetch all its rows, or reset or finalize it (the driver''s close), before this statement'
                   ELSE 'BEGIN IMMEDIATE for transactions that will write: it waits before it reads' END AS cure,
       CASE reason WHEN 'shared cache' THEN 'https://www.sqlite.org/sharedcache.html' WHEN 'own statements' THEN 'https://www.sqlite.org/rescode.html#locked'
                   ELSE 'https://www.sqlite.org/c3ref/busy_handler.html' END AS document
FROM sums AS s JOIN temp.finding_statements AS f ON f.hash = s.hash LEFT JOIN failures AS x ON x.hash = s.hash LEFT JOIN open AS o ON o.hash = s.hash
WHERE f.failed > 0 AND s.refused >= 0.5 * coalesce(logged, s.refused);
