-- SPDX-License-Identifier: Apache-2.0
-- ORDER BY rank of FTS5, which scores every match before it returns the first row.
SELECT n.hash AS hash, sum(ns) AS saved, sqrt(sum(error * error)) AS error, duration(sum(ns)) AS took, printf('%.0f', 100.0 * sum(ns) / f.wall) AS share,
       duration(f.wall / f.runs) AS each, printf('%,d', f.rows) AS returned
FROM temp.finding_nodes AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
WHERE virtualWords(detail) LIKE '%scores each match%'
GROUP BY n.hash HAVING sum(ns) >= 0.3 * f.wall AND f.wall >= 5000000.0 * f.runs;
