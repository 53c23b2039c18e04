-- The samples of an export, in the order of time: :trace_type (CPU or Real), of one
-- query (:query_id), of those with :like in their text, or all (both NULL). `query`,
-- `thread` and `stack` are row numbers, see export_labels.sql.
WITH picked_ids AS MATERIALIZED (
	SELECT :query_id AS query_id WHERE :query_id IS NOT NULL
	UNION
	SELECT query_id FROM query_log WHERE :query_id IS NULL AND query LIKE '%' || :like || '%'),
picked AS MATERIALIZED (
	SELECT id, first_ns, last_ns FROM picked_ids CROSS JOIN queries USING (query_id)),
picked_samples AS (
	SELECT timestamp_ns, series, query, stack, truncated, weight
	FROM picked CROSS JOIN samples
	  ON timestamp_ns BETWEEN first_ns AND last_ns AND query = picked.id
	UNION ALL
	-- Samples may outlive the row of their query, or be of none.
	SELECT timestamp_ns, series, coalesce(queries.id, 0), stack, truncated, weight
	FROM samples LEFT JOIN queries
	  ON queries.id = query AND timestamp_ns BETWEEN first_ns AND last_ns
	WHERE :query_id IS NULL AND :like IS NULL)
SELECT timestamp_ns, weight, period_ns, stack, truncated, query, thread
FROM picked_samples JOIN series ON series.id = series
WHERE trace_type = coalesce(:trace_type, 'CPU')
ORDER BY timestamp_ns;
