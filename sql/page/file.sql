-- SPDX-License-Identifier: Apache-2.0
-- What the file contains: programs, processes, and when the first run began and the last one was seen, in ms since 1970. It can
-- be pasted into `queryprof sql FILE`.
SELECT (SELECT group_concat(program, ', ')
        FROM (SELECT DISTINCT fileName(executable) || iif(script <> '', ' ' || fileName(script), '') AS program
              FROM processes ORDER BY id LIMIT 5)) AS programs,
       (SELECT count(*) FROM processes) AS processes,
       (SELECT min(iif(query_start_ns, query_start_ns, first_ns)) / 1000000 FROM queries WHERE id <> 0) AS first_ms,
       (SELECT max(last_ns) / 1000000 FROM queries WHERE id <> 0) AS last_ms;
