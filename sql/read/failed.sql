-- SPDX-License-Identifier: Apache-2.0
-- What failed of the runs that are selected (see read/selected.sql): a line for each statement and result code. failed
-- is the number of all runs of the statement that failed, with any code, and NULL where single runs are chosen;
-- logged that of its logged runs with the code. error is the name of SQLite's extended result code. Parameters: those of selected.sql, :by (start: the newest first; else the most), :limit, :for_table (shorter: times without the year, ids
-- cut).
WITH failures AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, exception_code, library, count(*) AS logged,
	       max(query_start_ns) AS newest, query_id, exception, query
	FROM temp.selected_runs WHERE exception_code <> 0
	GROUP BY normalized_query_hash, exception_code),
counted AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, sum(errors) AS failed FROM statement_stats
	WHERE coalesce(:query_id, :since, :until, :min_duration, :database, :process, :thread, :last, :label, :host, :service) IS NULL
	GROUP BY 1)
SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
                newest / 1000000000, 'unixepoch') AS newest,
       logged, failed,
       iif(library, coalesce(name, ''), '') AS error, exception_code AS code, exception AS message,
       substr(printf('%016x', hash), 1, iif(:for_table, 8, 16)) AS statement,
       -- of the newest run; as much of a UUID as differs from the others
       CASE WHEN :for_table AND query_id GLOB '*-*-*-*-*' AND length(query_id) = 36
            THEN substr(query_id, 1, 18) ELSE query_id END AS query_id,
       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM failures LEFT JOIN counted USING (hash) LEFT JOIN temp.error_names ON error_names.code = exception_code
ORDER BY iif(:by = 'start', failures.newest, logged) DESC, failures.newest DESC, exception_code
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
