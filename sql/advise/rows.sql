-- SPDX-License-Identifier: Apache-2.0
-- The lines after the table: SQL to paste, and what was not measured.
WITH writes AS (
	SELECT -total(saved_ns) AS cost FROM results WHERE kind = 'write' AND saved_ns < 0)
SELECT line FROM (
	SELECT 1 AS part, rowid AS place,
	       printf('%s; -- %s%.1f MB, saves %.1f ms ± %.1f ms of all recorded runs', sql, iif(bytes < 0, 'frees ', ''), abs(bytes) / 1e6, saved_ns / 1e6, saved_error_ns / 1e6) AS line
	FROM results WHERE kind IN ('index', 'drop')
	UNION ALL
	SELECT 2, 0, printf('-- writes take %.1f ms longer in all, which is subtracted', cost / 1e6)
	FROM writes WHERE cost > 0 AND EXISTS (SELECT 1 FROM results WHERE kind = 'index')
	UNION ALL
	SELECT 3, rowid, printf('-- not replayed: %s: %s', reason, substr(trim(replace(replace(sql, char(10), ' '), char(9), ' ')), 1, 100))
	FROM results WHERE kind = 'not replayed')
ORDER BY part, place;
