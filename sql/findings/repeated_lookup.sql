-- SPDX-License-Identifier: Apache-2.0
-- A statement that runs once for each row of another statement (N + 1): as often as the other statement returned rows, from
-- one line of the program.
WITH outer_rows AS (
	SELECT hash, query, rows, runs, caller FROM temp.finding_statements WHERE rows >= 100 AND runs < rows / 20 AND query LIKE 'SELECT%')
SELECT f.hash AS hash, f.wall AS saved, NULL AS error, printf('%,d', f.runs) AS runs, duration(f.each) AS each, duration(f.wall) AS took,
       iif(length(o.query) > 60, substr(o.query, 1, 57) || '...', o.query) AS around, min(abs(o.rows - f.runs)) AS best
FROM temp.finding_statements AS f JOIN outer_rows AS o ON o.hash <> f.hash AND f.runs BETWEEN 0.98 * o.rows AND 1.02 * o.rows
WHERE f.query LIKE 'SELECT%' AND f.query LIKE '% WHERE %' AND f.runs >= 100 AND f.is_one_caller
GROUP BY f.hash;
