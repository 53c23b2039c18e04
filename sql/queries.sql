-- The queries that ran, the costliest first. Parameters, all of which may be left
-- NULL: :by (cpu, time, samples, start), :like, :since, :until (UTC), :limit.
-- cpu_ms is the time of the thread that began the query. In the sqlite3 shell on a
-- trace file: .read sql/queries.sql
SELECT substr(query_start_time_microseconds, 1, 19) AS started,
       printf('%.1f', query_duration_ns / 1e6) AS time_ms,
       printf('%.1f', cpu_time_ns / 1e6) AS cpu_ms,
       samples_cpu AS cpu, samples_real AS real, result_rows AS rows,
       -- as much of a UUID as tells it from the others
       CASE WHEN query_id GLOB '*-*-*-*-*' AND length(query_id) = 36
            THEN substr(query_id, 1, 18) ELSE query_id END AS query_id,
       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM query_log
WHERE (:like IS NULL OR query LIKE '%' || :like || '%')
  AND (:since IS NULL OR query_start_time_microseconds >= :since)
  AND (:until IS NULL OR query_start_time_microseconds < :until)
ORDER BY CASE :by WHEN 'time' THEN query_duration_ns
                  WHEN 'samples' THEN samples_cpu + samples_real
                  WHEN 'start' THEN query_start_time_microseconds
                  ELSE cpu_time_ns END DESC
LIMIT coalesce(:limit, 20);
