-- SPDX-License-Identifier: Apache-2.0
-- Threads that wait for one of SQLite's mutexes.
SELECT s.hash AS hash, total(ns) / sampled * wall AS saved, sqrt(sum(square)) / sampled * wall AS error, o.name AS mutex,
       duration(total(ns) / sampled * wall) AS took,
       CASE WHEN o.name LIKE '%allocator%' THEN 'sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) before the first connection: each allocation counts bytes under this mutex'
            WHEN o.name LIKE '%page cache%' THEN 'a SQLite that is built without SQLITE_ENABLE_MEMORY_MANAGEMENT has a page cache for each connection'
            WHEN o.name LIKE '%connection%' THEN 'a connection for each thread' ELSE 'queryprof report shows the stacks that wait' END AS cure
FROM temp.finding_sampled AS s CROSS JOIN wait_objects AS o ON o.object = s.wait >> 8
WHERE trace_type = 'OffCPU' AND s.wait & 255 = 7 AND o.name <> 'other'
GROUP BY s.hash, o.name HAVING sum(ns) >= 0.1 * sampled;
