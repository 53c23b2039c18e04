-- SPDX-License-Identifier: Apache-2.0
-- A scan that reads several pages for each row, because the columns that it needs are stored after a large one.
WITH reading AS MATERIALIZED (
	SELECT hash, sum(reads) AS reads, sum(read_bytes) AS bytes, sum(fullscan_steps) AS steps FROM temp.run_sums GROUP BY 1 HAVING sum(reads) > 4 * sum(fullscan_steps))
SELECT c.hash AS hash, sum(saved) AS saved, sqrt(sum(error * error)) AS error, shown AS "table", printf('%,.0f', 1.0 * r.reads / r.steps) AS pages,
       printf('%,.0f kB', r.bytes / r.steps / 1e3) AS size, printf('%,d', r.steps) AS visited, duration(sum(ns)) AS took
FROM temp.finding_scans AS c JOIN reading AS r ON r.hash = c.hash
WHERE compared = '' AND r.steps > 0 AND (SELECT count(*) FROM temp.finding_tables AS n WHERE n.hash = c.hash) = 1
GROUP BY c.hash;
