-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints that ended after :since (ns since 1970), or up to a minute before, because rows are not stored in
-- the order of these times.
SELECT
	(SELECT identity FROM state) AS file,
	c.id AS checkpoint,
	k.timestamp_ns, k.hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	k.process_id, k.thread_id, k.query_id, k.query, k.normalized_query_hash, k.caller, k.database, k.mode,
	k.origin,
	coalesce(k.frames, 0) AS frames,
	coalesce(k.frames_copied, 0) AS frames_copied,
	coalesce(k.frames_left, 0) AS frames_left,
	k.stopped_by, k.waited_for, k.result, k.duration_ns, k.cpu_time_ns, k.write_ns, k.wal_sync_ns,
	k.database_sync_ns, k.lock_wait_ns, k.bytes, k.holder_query, k.holder_process_id
FROM wal_checkpoints AS c
JOIN processes AS p ON p.id = c.process
JOIN checkpoints AS k ON k.id = c.id
WHERE c.start_ns + c.duration_ns > :since - 60000000000;
