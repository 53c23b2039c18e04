-- SPDX-License-Identifier: Apache-2.0
-- The statements that kept others waiting for database locks, ordered by the time that those waited.
SELECT
	round(sum(wait_ns) / 1e6, 3) AS waited_ms,
	round(max(wait_ns) / 1e6, 3) AS longest_ms,
	count(*) AS waits,
	sum(outcome = 'SQLITE_BUSY') AS busy,
	count(DISTINCT json_array(hostname, process_id, session_id, iif(session_id, 0, thread_id))) AS victims,
	lock,
	database,
	holder_process_id,
	holder_session_id,
	CASE
		WHEN holder_query <> '' THEN holder_query
		WHEN holder_process_id = 0 OR holder_process_id IN (SELECT process_id FROM processes) THEN '(not known)'
		ELSE '(a process that is not recorded)'
	END AS holder_query
FROM lock_waits
GROUP BY lock, database, holder_process_id, holder_session_id, holder_query
ORDER BY sum(wait_ns) DESC, holder_process_id, holder_session_id, holder_query
LIMIT 50;
