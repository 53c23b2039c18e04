-- SPDX-License-Identifier: Apache-2.0
-- The ended traces of requests, the slowest first. Parameters, which may be NULL: :by (duration, cpu, wait, spans,
-- start: the newest first), :limit, :like (in the name of the root), :since, :until (ns since 1970), :min_duration
-- (ns), :process (number or program), :for_table (shorter: times without the year). dropped: spans that were lost.
SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
                start_time_ns / 1000000000, 'unixepoch') AS started,
       round(duration_ns / 1e6, 3) AS wall_ms,
       round(cpu_time_ns / 1e6, 3) AS cpu_ms,
       round(wait_time_ns / 1e6, 3) AS wait_ms,
       spans,
       statements,
       threads,
       dropped,
       trace_id,
       trim(replace(replace(replace(root, char(10), ' '), char(13), ' '), char(9), ' ')) AS root
FROM traces
WHERE (:like IS NULL OR root LIKE '%' || :like || '%')
  AND (:since IS NULL OR start_time_ns >= CAST(:since AS INTEGER))
  AND (:until IS NULL OR start_time_ns < CAST(:until AS INTEGER))
  AND (:min_duration IS NULL OR duration_ns >= CAST(:min_duration AS INTEGER))
  AND (:process IS NULL OR :process IN (process_id || '', program, fileName(program)))
ORDER BY CASE coalesce(:by, 'duration') WHEN 'cpu' THEN cpu_time_ns
                                        WHEN 'wait' THEN wait_time_ns
                                        WHEN 'spans' THEN spans
                                        WHEN 'start' THEN start_time_ns
                                        ELSE duration_ns END DESC, start_time_ns, trace_id
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
