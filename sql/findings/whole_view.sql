-- SPDX-License-Identifier: Apache-2.0
-- A view or subquery that SQLite computes for all its rows, although the statement keeps only a few of them.
SELECT v.hash AS hash, whole AS saved, whole_error AS error, duration(whole) AS took, printf('%.0f', 100.0 * whole / f.wall) AS share,
       printf('%,d', fullscan_steps) AS visited, printf('%,d', rows) AS returned, iif(name LIKE '(%', 'a view or subquery', name) AS name
FROM temp.finding_views AS v JOIN temp.finding_statements AS f ON f.hash = v.hash;
