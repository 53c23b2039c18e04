-- SPDX-License-Identifier: Apache-2.0
-- The lock waits that ended after :since (ns since 1970), or up to a minute before: a wait that has not ended is sent
-- again, and rows are not stored in the order of these times.
SELECT
	(SELECT identity FROM state) AS file,
	l.id AS wait,
	l.wait_ns AS version,
	l.start_ns AS timestamp_ns,
	p.hostname AS hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	p.process_id AS process_id,
	l.thread_id AS thread_id,
	q.query_id AS query_id,
	x.query AS query,
	l.database AS database,
	o.name AS lock,
	l.wait_ns AS wait_ns,
	CASE WHEN l.refused = 0 THEN 'SQLITE_OK' WHEN l.refused = 2 THEN 'waiting' ELSE CASE l.code
		WHEN 6 THEN 'SQLITE_LOCKED' WHEN 261 THEN 'SQLITE_BUSY_RECOVERY' WHEN 262 THEN 'SQLITE_LOCKED_SHAREDCACHE'
		WHEN 517 THEN 'SQLITE_BUSY_SNAPSHOT' WHEN 518 THEN 'SQLITE_LOCKED_VTAB' WHEN 773 THEN 'SQLITE_BUSY_TIMEOUT'
		ELSE 'SQLITE_BUSY' END END AS outcome,
	coalesce(h.query_id, fq.query_id) AS holder_query_id,
	coalesce(nullif(l.holder_query, ''), hx.query, ft.first_query) AS holder_query,
	l.holder_process_id AS holder_process_id,
	coalesce(ft.thread_id, l.holder_thread_id) AS holder_thread_id
FROM waits_for_locks AS l
LEFT JOIN processes AS p ON p.id = l.process
LEFT JOIN queries AS q ON q.id = l.query
LEFT JOIN statements AS x ON x.id = q.statement
LEFT JOIN queries AS h ON h.id = l.holder
LEFT JOIN statements AS hx ON hx.id = h.statement
LEFT JOIN wait_objects AS o ON o.object = l.lock
LEFT JOIN foreign_lock_holders AS f ON f.wait = l.id
LEFT JOIN transactions AS ft ON ft.id = f.holder
LEFT JOIN queries AS fq ON fq.id = ft.first
WHERE l.start_ns + l.wait_ns > :since - 60000000000;
