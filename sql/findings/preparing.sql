-- SPDX-License-Identifier: Apache-2.0
-- A statement that is prepared nearly as often as it runs.
SELECT f.hash AS hash, prepare * (1 - 1.0 / prepares) AS saved, NULL AS error, printf('%,d', prepares) AS prepares, printf('%,d', runs) AS runs,
       duration(prepare) AS took, printf('%.0f', 100.0 * prepare / wall) AS share,
       iif(query LIKE 'PRAGMA %', 'run this PRAGMA once for each connection',
       iif(query LIKE 'SAVEPOINT %' OR query LIKE 'RELEASE %' OR query LIKE 'ROLLBACK % TO %' OR query LIKE 'ROLLBACK TO %',
           'give savepoints of the same depth the same name, so that each of their statements is prepared once',
       -- A list of parameters, as in IN (?, ?), has another text for each length.
       iif(query LIKE '% IN (?,%' OR query LIKE '% IN (?, ?%', 'IN (SELECT value FROM json_each(?)), whose text is the same for lists of any length; then prepare the statement once',
       iif((SELECT count(*) FROM statements WHERE normalized_query_hash = f.hash) > 1,
           'bind the values (?) instead of writing them into the text, and prepare the statement once', 'prepare the statement once, and keep it')))) AS cure
FROM temp.finding_statements AS f
WHERE prepares >= 20 AND prepares > 0.5 * runs AND prepare >= 0.2 * wall
  AND query NOT LIKE 'PRAGMA%(%' -- schema_reading; a PRAGMA has no parameters
  -- If each connection prepares it once, the finding is another one (reconnecting).
  AND NOT EXISTS (SELECT 1 FROM temp.finding_connections WHERE f.hash IN (SELECT hash FROM temp.finding_reconnected) OR f.prepares <= 1.1 * expected);
