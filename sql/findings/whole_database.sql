-- SPDX-License-Identifier: Apache-2.0
-- Statements that read the whole database to check it, in a program that does other work, too.
SELECT hash, wall AS saved, NULL AS error, iif(runs IS NULL, 'the selected runs', printf(iif(runs = 1, '%,d run', '%,d runs'), runs)) AS runs, duration(wall) AS took,
       iif(query LIKE '%integrity%', 'integrity_check', 'quick_check') AS pragma,
       iif(query LIKE '%integrity%', '; PRAGMA quick_check does not compare tables with their indexes', '') AS other
FROM temp.finding_statements
WHERE (query LIKE 'PRAGMA%integrity\_check%' ESCAPE '\' OR query LIKE 'PRAGMA%quick\_check%' ESCAPE '\')
  AND EXISTS (SELECT 1 FROM temp.finding_statements WHERE query NOT LIKE 'PRAGMA%' AND query NOT LIKE 'sqlite3\_%' ESCAPE '\');
