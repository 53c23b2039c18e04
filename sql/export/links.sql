-- SPDX-License-Identifier: Apache-2.0
-- Where each span of the file lies, in temp.linked_batches, for export/link.sql: a batch has spans from first_span
-- on. Run again, this takes what is new. A new row gets the number behind the last, which may have been another's
-- that is gone: so only up to a row that is still the same all are known.
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
