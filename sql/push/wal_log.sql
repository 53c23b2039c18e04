-- SPDX-License-Identifier: Apache-2.0
-- What happened to WALs after :since (ns since 1970), or up to a minute before: rows are not stored in the order of these times.
SELECT
	(SELECT identity FROM state) AS file,
	e.id AS change,
	e.start_ns AS timestamp_ns,
	p.hostname AS hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	p.process_id AS process_id,
	e.thread_id AS thread_id,
	CASE e.event WHEN 0 THEN 'append' WHEN 1 THEN 'restart' WHEN 2 THEN 'truncate' ELSE 'recover' END AS event,
	e.text AS query,
	e.statement AS normalized_query_hash,
	e.database AS database,
	e.duration_ns AS duration_ns,
	e.frames AS frames,
	e.first_frame AS first_frame,
	e.last_frame AS last_frame,
	e.transactions AS transactions,
	e.page_size AS page_size
FROM wal_events AS e
JOIN processes AS p ON p.id = e.process
WHERE e.start_ns + e.duration_ns > :since - 60000000000;
