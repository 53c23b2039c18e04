-- SPDX-License-Identifier: Apache-2.0
-- The lock waits that ended after :since (ns since 1970), or up to a minute before: a wait that has not ended is sent
-- again, and rows are not stored in the order of these times.
SELECT
	(SELECT identity FROM state) AS file,
	l.id AS wait,
	k.wait_ns AS version,
	k.timestamp_ns AS timestamp_ns,
	k.hostname AS hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	k.process_id AS process_id,
	k.thread_id AS thread_id,
	k.query_id AS query_id,
	k.query AS query,
	k.database AS database,
	k.lock AS lock,
	k.wait_ns AS wait_ns,
	k.outcome AS outcome,
	k.holder_query_id AS holder_query_id,
	k.holder_query AS holder_query,
	k.holder_process_id AS holder_process_id,
	k.holder_thread_id AS holder_thread_id
FROM waits_for_locks AS l
LEFT JOIN processes AS p ON p.id = l.process
JOIN lock_waits AS k ON k.id = l.id
WHERE l.start_ns + l.wait_ns > :since - 60000000000;
