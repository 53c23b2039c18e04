-- SPDX-License-Identifier: Apache-2.0
-- The errors of the selected runs (see read/selected.sql): a line for each statement and result code. logged is the
-- number of its logged runs with the code, failed that of all its runs with the code, all_failed that of all its
-- failed runs, with any code. failed and all_failed are NULL if single runs are selected. failed is also NULL if it
-- cannot be computed, because the file counts only the sum over all codes, and logs the first 10 runs of a process
-- with each code (see statement_stats_is_first_failure()). error is the name of SQLite's extended result code.
-- cause, cure: of the newest run, if it failed because of a lock, or was a close that SQLite refused.
-- Parameters: :by (start: the newest first; otherwise the most), :limit, :for_table (shorter: times without the year,
-- ids cut, no all_failed equal to failed).
WITH failures AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, exception_code, library, count(*) AS logged,
	       max(query_start_ns) AS newest, query_id, exception, query
	FROM temp.selected_runs WHERE exception_code <> 0
	GROUP BY normalized_query_hash, exception_code),
codes AS MATERIALIZED (
	SELECT hash, sum(logged) AS logged, count(*) AS codes, sum(logged >= 10) AS cut
	FROM (SELECT normalized_query_hash AS hash, exception_code, count(*) AS logged
	      FROM queries JOIN statements ON statements.id = statement
	      WHERE exception_code <> 0 AND normalized_query_hash IN (SELECT hash FROM failures) GROUP BY 1, 2)
	GROUP BY 1),
-- If nothing was lost and only one code can have more runs than are logged, the others are its runs.
known AS MATERIALIZED (
	SELECT f.*, c.failed AS all_failed, library AND exception_code & 255 = 5 AND exception LIKE 'unable to close due to%' AS is_close,
	       CASE WHEN c.failed = k.logged THEN f.logged
	            WHEN is_whole AND k.cut = 1 THEN iif(f.logged < 10, f.logged, c.failed - k.logged + f.logged) END AS failed
	FROM failures AS f
	JOIN (SELECT *, codes <= 3 AND (SELECT removals = 0 FROM state) AND NOT EXISTS (SELECT 1 FROM losses WHERE samples) AS is_whole
	      FROM codes) AS k USING (hash)
	LEFT JOIN temp.selected_failures AS c ON c.hash = f.hash AND c.failed >= k.logged),
stories AS MATERIALIZED (
	SELECT lock_story.query_id AS query_id, cause, cure, max(timestamp_ns) FROM lock_story
	WHERE query_id IN (SELECT query_id FROM failures) AND outcome NOT IN ('SQLITE_OK', 'waiting') GROUP BY 1),
shown AS MATERIALIZED (
	SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
	                newest / 1000000000, 'unixepoch') AS newest,
	       logged, failed, nullif(all_failed, iif(:for_table, failed, NULL)) AS all_failed,
	       iif(library, coalesce(name, ''), '') AS error, exception_code AS code, exception AS message,
	       CASE WHEN is_close THEN 'sqlite3_close() failed with SQLITE_BUSY, and the connection stays open with its memory and its files: statements, BLOB handles or backups of it are not finished.'
	            ELSE coalesce(cause, '') END AS cause,
	       CASE WHEN is_close THEN 'Finalize them first (sqlite3_next_stmt() finds the statements), or call sqlite3_close_v2(), which closes the connection after the last of them.'
	            ELSE coalesce(cure, '') END AS cure,
	       substr(printf('%016x', hash), 1, iif(:for_table, 8, 16)) AS statement,
	       -- of the newest run; the part of a UUID that distinguishes it
	       CASE WHEN :for_table AND known.query_id GLOB '*-*-*-*-*' AND length(known.query_id) = 36
	            THEN substr(known.query_id, 1, 18) ELSE known.query_id END AS query_id,
	       oneLine(query) AS query
	FROM known LEFT JOIN temp.error_names ON error_names.code = exception_code
	LEFT JOIN stories ON stories.query_id = known.query_id AND library AND exception_code & 255 IN (5, 6)
	ORDER BY iif(:by = 'start', known.newest, coalesce(failed, logged)) DESC, known.newest DESC, exception_code
	LIMIT coalesce(CAST(:limit AS INTEGER), 20))
SELECT * FROM shown
UNION ALL
-- A statement's runs count once in all_failed, whatever the number of its codes.
SELECT NULL, sum(logged), iif(count(failed) = count(*), sum(failed), NULL), NULL, NULL, NULL, NULL, '', '', NULL, NULL, 'sum of ' || count(*)
FROM shown WHERE :for_table HAVING count(*) > 1;
