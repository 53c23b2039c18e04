-- The statements that ran, all runs of one together, the costliest first: queries
-- that differ only in their literals are one statement. Parameters as in
-- queries.sql.
SELECT count(*) AS runs,
       printf('%.1f', sum(query_duration_ns) / 1e6) AS time_ms,
       printf('%.1f', sum(cpu_time_ns) / 1e6) AS cpu_ms,
       printf('%.1f', max(query_duration_ns) / 1e6) AS max_ms,
       sum(samples_cpu) AS cpu, sum(samples_real) AS real, sum(result_rows) AS rows,
       sum(exception_code <> 0) AS failed,
       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM query_log
WHERE (:like IS NULL OR query LIKE '%' || :like || '%')
  AND (:since IS NULL OR query_start_time_microseconds >= :since)
  AND (:until IS NULL OR query_start_time_microseconds < :until)
GROUP BY normalized_query_hash
ORDER BY CASE :by WHEN 'time' THEN sum(query_duration_ns)
                  WHEN 'samples' THEN sum(samples_cpu + samples_real)
                  WHEN 'start' THEN max(query_start_time_microseconds)
                  ELSE sum(cpu_time_ns) END DESC
LIMIT coalesce(:limit, 20);
