-- SPDX-License-Identifier: Apache-2.0
-- What happened to WALs after :since (ns since 1970), or up to a minute before: rows are not stored in the order of these times.
SELECT
	(SELECT identity FROM state) AS file,
	e.id AS change,
	k.timestamp_ns AS timestamp_ns,
	k.hostname AS hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	k.process_id AS process_id,
	k.thread_id AS thread_id,
	k.event AS event,
	k.query AS query,
	k.normalized_query_hash AS normalized_query_hash,
	k.database AS database,
	k.duration_ns AS duration_ns,
	k.frames AS frames,
	k.first_frame AS first_frame,
	k.last_frame AS last_frame,
	k.transactions AS transactions,
	k.page_size AS page_size
FROM wal_events AS e
JOIN processes AS p ON p.id = e.process
JOIN wal_log AS k ON k.id = e.id
WHERE e.start_ns + e.duration_ns > :since - 60000000000;
