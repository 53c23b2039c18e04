-- SPDX-License-Identifier: Apache-2.0
-- Statements that got slower or faster: exact times, in ms per run. :limit. Those that change the total most, by
-- their time or by their number of runs, come first. See diff/sides.sql and diff/means.sql.
SELECT CASE WHEN na THEN printf('%.4f', ma / 1e6) ELSE '' END AS A_ms,
       CASE WHEN nb THEN printf('%.4f', mb / 1e6) ELSE '' END AS B_ms,
       CASE WHEN na AND nb THEN printf('%+.4f', (mb - ma) / 1e6) ELSE '' END AS change_ms,
       CASE WHEN na AND nb AND ma > 0 THEN printf('%+.1f', 100.0 * (mb - ma) / ma) ELSE '' END AS "change_%",
       noise,
       coalesce(na, 0) AS runs_A, coalesce(nb, 0) AS runs_B,
       printf('%+.1f', (coalesce(xb, 0) - coalesce(xa, 0)) / 1e6) AS total_ms,
       oneLine(query) AS query
FROM side_means
ORDER BY iif(noise = '~', abs(nb - na) * ma, abs(coalesce(xb, 0) - coalesce(xa, 0))) DESC, hash
LIMIT coalesce(CAST(:limit AS INTEGER), 15);
