-- SPDX-License-Identifier: Apache-2.0
-- How much of a file one request can send, after batch :batch, which ends with sample number :samples. The columns: the
-- file; the last batch, with about :most more samples, but at least one batch; its last sample; the last row of modules;
-- the last row of spans, with about 20,000 spans, but at least one row; the time up to which lock waits and changes of
-- WALs are sent; and the batch before which the counters of statements changed. Each transaction of a writer is a batch.
-- batch_samples lists its samples, whatever their times. A batch without remaining samples is removed.
WITH newer AS MATERIALIZED (
	SELECT id, total FROM batches WHERE id > :batch),
last AS MATERIALIZED (
	SELECT coalesce((SELECT max(id) FROM newer WHERE total - :samples <= :most), (SELECT min(id) FROM newer),
	                :batch) AS id),
newer_spans AS MATERIALIZED (
	SELECT id, sum(count) OVER (ORDER BY id) AS total
	FROM (SELECT id, count FROM span_batches WHERE id > :spans ORDER BY id LIMIT 2000))
SELECT
	identity,
	last.id,
	coalesce((SELECT total FROM batches WHERE batches.id = last.id), :samples),
	coalesce((SELECT max(id) FROM modules), 0),
	-- if the newest rows were removed, other rows may get their numbers
	coalesce((SELECT max(id) FROM newer_spans WHERE total <= 20000), (SELECT min(id) FROM newer_spans),
	         (SELECT max(id) FROM span_batches), 0),
	max(coalesce((SELECT max(start_ns + wait_ns) FROM waits_for_locks), 0),
	    coalesce((SELECT max(start_ns + duration_ns) FROM wal_checkpoints), 0),
	    coalesce((SELECT max(start_ns + duration_ns) FROM wal_events), 0)),
	statement_batches + 1
FROM state, last;
