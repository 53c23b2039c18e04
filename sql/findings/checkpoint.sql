-- SPDX-License-Identifier: Apache-2.0
-- Statements whose time is mostly a checkpoint, which also copies what other statements wrote. Closing the last connection
-- always runs one.
SELECT hash, total(ns) / sampled * wall AS saved, sqrt(sum(square)) / sampled * wall AS error, duration(total(ns) / sampled * wall) AS took,
       printf('%.0f', 100.0 * total(ns) / sampled) AS share
FROM temp.finding_sampled
WHERE checkpoint AND hash NOT IN (SELECT hash FROM temp.finding_statements WHERE query LIKE 'sqlite3\_close%' ESCAPE '\')
GROUP BY hash HAVING 100.0 * total(ns) / sampled >= 30
   -- The only commit of a program has to write its pages at some time.
   AND (SELECT runs FROM temp.finding_statements AS f WHERE f.hash = finding_sampled.hash) IS NOT 1;
