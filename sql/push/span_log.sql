-- SPDX-License-Identifier: Apache-2.0
-- The spans in the rows of span_batches after :since up to :until, for span_log_rows. After
-- span_texts.sql.
SELECT
	(SELECT identity FROM state) AS file,
	start_time_ns,
	finish_time_ns,
	hostname,
	coalesce(:service, fileName(executable)) AS service,
	process_id,
	thread_id,
	thread_name,
	trace_id,
	span_id,
	parent_span_id,
	operation_name,
	iif(is_server, 'SERVER', 'INTERNAL') AS kind,
	CASE status WHEN 1 THEN 'OK' WHEN 2 THEN 'ERROR' ELSE 'UNSET' END AS status,
	unended,
	query_id,
	attribute,
	file AS source_file,
	line AS source_line
FROM temp.span_texts
WHERE batch > :since AND batch <= :until;
