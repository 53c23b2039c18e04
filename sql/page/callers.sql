-- SPDX-License-Identifier: Apache-2.0
-- The ten lines of the program with most of the time of each statement of temp.lines, by the logged runs. After
-- read/statement_lines.sql. caller: '' if it is not known. :no_paths: if it is not NULL, files without their folders.
WITH called AS (
	SELECT c.hash AS hash, coalesce(b.caller, '') AS caller, coalesce(b.caller_function, '') AS function, sum(c.runs) AS logged, sum(c.ns) AS ns
	FROM temp.call_sums AS c LEFT JOIN call_stacks AS b ON b.id = c.call_stack
	WHERE c.hash IN (SELECT hash FROM temp.lines)
	GROUP BY 1, 2, 3),
placed AS (SELECT *, row_number() OVER (PARTITION BY hash ORDER BY ns DESC, caller, function) AS place FROM called)
SELECT printf('%016x', hash) AS statement, iif(:no_paths, fileName(caller), caller) AS caller, function, logged, round(ns / 1e6, 3) AS wall_ms
FROM placed WHERE place <= 10 ORDER BY hash, place;
