-- SPDX-License-Identifier: Apache-2.0
-- How far a file can be sent at once: after batch :batch and :samples samples of it the batches that
-- have about :most more, but one at least; of modules and spans the rows up to which, of spans those that
-- have about 20,000, but one at least; up to which time locks were waited for; and before which batch of them
-- counters of statements changed. Each transaction of a writer is a batch, and batch_samples has its samples,
-- whatever their times are; batches of which nothing is left are removed.
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
	-- where the newest rows were removed, others will get their numbers
	coalesce((SELECT max(id) FROM newer_spans WHERE total <= 20000), (SELECT min(id) FROM newer_spans),
	         (SELECT max(id) FROM span_batches), 0),
	coalesce((SELECT max(start_ns + wait_ns) FROM waits_for_locks), 0),
	statement_batches + 1
FROM state, last;
