-- SPDX-License-Identifier: Apache-2.0
-- The lock waits that ended after :since (ns since 1970), or up to a minute before: a wait that has not ended is sent
-- again, and rows are not stored in the order of these times.
SELECT
	(SELECT identity FROM state) AS file,
	l.id AS wait,
	k.wait_ns AS version,
	k.timestamp_ns, k.hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	k.process_id, k.thread_id, k.query_id, k.query, k.database, k.lock, k.wait_ns, k.outcome, k.holder_query_id,
	k.holder_query, k.holder_process_id, k.holder_thread_id
FROM waits_for_locks AS l
LEFT JOIN processes AS p ON p.id = l.process
JOIN lock_waits AS k ON k.id = l.id
WHERE l.start_ns + l.wait_ns > :since - 60000000000;
