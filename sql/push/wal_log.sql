-- SPDX-License-Identifier: Apache-2.0
-- The events of WALs after :since (ns since 1970), or up to a minute before, because rows are not stored in the order
-- of these times.
SELECT
	(SELECT identity FROM state) AS file,
	e.id AS change,
	k.timestamp_ns, k.hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	k.process_id, k.thread_id, k.event, k.query, k.normalized_query_hash, k.database, k.duration_ns, k.frames,
	k.first_frame, k.last_frame, k.transactions, k.page_size
FROM wal_events AS e
JOIN processes AS p ON p.id = e.process
JOIN wal_log AS k ON k.id = e.id
WHERE e.start_ns + e.duration_ns > :since - 60000000000;
