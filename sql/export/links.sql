-- SPDX-License-Identifier: Apache-2.0
-- The location of each span of the file, in temp.linked_batches, for export/link.sql. A batch has spans from
-- first_span on. A second run adds new rows. A new row gets the number after the last one, which may have belonged to
-- a removed row; so only rows up to one that is unchanged are complete.
CREATE TEMP TABLE IF NOT EXISTS linked_batches (batch INTEGER PRIMARY KEY, first_span INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS temp.linked_batches_by_span ON linked_batches (first_span);

DELETE FROM temp.linked_batches WHERE batch < (SELECT min(id) FROM span_batches);
DELETE FROM temp.linked_batches
WHERE batch > coalesce((
	SELECT batch FROM temp.linked_batches AS l
	CROSS JOIN span_batches AS b ON b.id = l.batch AND b.first_span = l.first_span
	ORDER BY batch DESC LIMIT 1), 0);

INSERT INTO temp.linked_batches
SELECT id, first_span FROM span_batches
WHERE id > coalesce((SELECT max(batch) FROM temp.linked_batches), 0);
