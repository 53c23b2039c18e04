-- SPDX-License-Identifier: Apache-2.0
-- The statements that kept others waiting for database locks, ordered by the time that those waited. open_ms, outside_ms: of the
-- longest of the transactions that were waited for. holder: the program, of a process of the file.
WITH waits AS MATERIALIZED (SELECT * FROM lock_waits),
held AS MATERIALIZED (
	SELECT p.hostname AS hostname, p.process_id AS process_id, t.session AS session, t.number AS number, t.duration_ns AS open, t.idle_ns AS outside
	FROM transactions AS t JOIN processes AS p ON p.id = t.process
	WHERE t.number IN (SELECT holder_transaction FROM waits WHERE holder_transaction <> 0)),
programs AS MATERIALIZED (
	SELECT hostname, process_id, fileName(executable) || iif(script <> '', ' ' || fileName(script), '') AS program, max(id) FROM processes GROUP BY 1, 2),
holders AS (
	SELECT sum(wait_ns) AS waited, max(wait_ns) AS longest, count(*) AS waits, sum(outcome = 'SQLITE_BUSY') AS busy,
	       count(DISTINCT json_array(w.hostname, w.process_id, session_id, iif(session_id, 0, thread_id))) AS victims,
	       lock, database, holder_process_id, holder_session_id, holder_query, max(program) AS holder,
	       max(iif(open IS NULL, NULL, printf('%020d%d', open, outside))) AS held, max(holder_query_id) AS query_id
	FROM waits AS w
	LEFT JOIN held AS h ON h.number = holder_transaction AND h.session = holder_session_id AND h.process_id = holder_process_id AND h.hostname = w.hostname
	LEFT JOIN programs AS p ON p.process_id = holder_process_id AND p.hostname = w.hostname
	GROUP BY lock, database, holder_process_id, holder_session_id, holder_query)
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
	round(substr(held, 21) / 1e6, 3) AS outside_ms,
	(SELECT fileName(caller) FROM queries JOIN call_stacks AS b ON b.id = call_stack WHERE queries.query_id = holders.query_id) AS caller,
	CASE
		WHEN holder_query <> '' THEN holder_query
		WHEN holder_process_id = 0 OR holder_process_id IN (SELECT process_id FROM processes) THEN '(not known)'
		ELSE '(a process that is not recorded)'
	END AS holder_query
FROM holders
ORDER BY waited DESC, holder_process_id, holder_session_id, holders.holder_query
LIMIT 50;
