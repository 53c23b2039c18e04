-- SPDX-License-Identifier: Apache-2.0
-- The content of the file: programs, processes, the start of the first run, and when the last was seen, in ms since
-- 1970. It can be pasted into `queryprof sql FILE`.
SELECT (SELECT group_concat(program, ', ')
        FROM (SELECT DISTINCT fileName(executable) || iif(script <> '', ' ' || fileName(script), '') AS program
              FROM processes ORDER BY id LIMIT 5)) AS programs,
       (SELECT count(*) FROM processes) AS processes,
       (SELECT min(iif(query_start_ns, query_start_ns, first_ns)) / 1000000 FROM queries WHERE id <> 0) AS first_ms,
       (SELECT max(last_ns) / 1000000 FROM queries WHERE id <> 0) AS last_ms;
