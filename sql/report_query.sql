-- What a report is about: one query (:query_id), those with :like in their text, or
-- all.
WITH selected AS MATERIALIZED (
	SELECT * FROM query_log
	WHERE CASE WHEN :query_id IS NOT NULL THEN query_id = :query_id
	           WHEN :like IS NOT NULL THEN query LIKE '%' || :like || '%'
	           ELSE 1 END)
SELECT what, value FROM (
	SELECT 1 AS line, 'query' AS what, :query_id AS value
	UNION ALL
	SELECT 2, 'queries', count(*) || CASE WHEN :like IS NULL THEN '' ELSE ' with ' || :like END
	FROM selected HAVING :query_id IS NULL OR count(*) > 1
	UNION ALL
	SELECT 3, 'from', min(query_start_time_microseconds) || ' UTC' FROM selected
	UNION ALL
	SELECT 4, 'to', max(query_start_time_microseconds) || ' UTC' FROM selected
	HAVING count(*) > 1
	UNION ALL
	SELECT 5, 'rows', sum(result_rows) FROM selected
	UNION ALL
	SELECT 6, 'failed', sum(exception_code <> 0) ||
	       CASE count(DISTINCT exception) WHEN 0 THEN '' ELSE ': ' || max(exception) END
	FROM selected HAVING sum(exception_code <> 0) > 0
	UNION ALL
	SELECT 7, 'text', max(trim(query)) FROM selected HAVING count(DISTINCT query) = 1
	UNION ALL
	SELECT 8, 'state', 'not finished'
	WHERE :query_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM selected))
WHERE value IS NOT NULL
ORDER BY line;
