-- SPDX-License-Identifier: Apache-2.0
-- A statement that is prepared nearly as often as it runs.
SELECT f.hash AS hash, prepare * (1 - 1.0 / prepares) AS saved, NULL AS error, printf('%,d', prepares) AS prepares, printf('%,d', runs) AS runs,
       duration(prepare) AS took, printf('%.0f', 100.0 * prepare / wall) AS share,
       iif((SELECT count(*) FROM statements WHERE normalized_query_hash = f.hash) > 1,
           'bind the values (?) instead of writing them into the text, and prepare the statement once', 'prepare the statement once, and keep it') AS cure
FROM temp.finding_statements AS f
WHERE prepares >= 20 AND prepares > 0.5 * runs AND prepare >= 0.2 * wall;
