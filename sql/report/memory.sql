-- SPDX-License-Identifier: Apache-2.0
-- The memory that SQLite allocated for the selected statements, by its samples. allocated: all bytes; live: of blocks that
-- were not freed, or not until their process ended. error: one standard error of allocated. :trace_type: MemoryLive sorts by live. :limit.
WITH sums AS MATERIALIZED (
	SELECT hash, logged, trace_type = 'MemoryLive' AS is_live, sum(value) AS value, sum(spread) AS spread
	FROM temp.selected_sums WHERE trace_type IN ('MemorySample', 'MemoryLive') GROUP BY 1, 2, 3),
lines AS MATERIALIZED (
	SELECT hash, logged, total(iif(is_live, 0, value)) AS value, sqrt(total(iif(is_live, 0, spread))) AS error, total(iif(is_live, value, 0)) AS live
	FROM sums GROUP BY 1, 2),
shown AS (
	SELECT *, row_number() OVER (ORDER BY value DESC, hash) AS by_value, row_number() OVER (ORDER BY live DESC, hash) AS by_live
	FROM lines)
SELECT share, allocated, error, live, statement, query FROM (
SELECT iif(:trace_type = 'MemoryLive', by_live, by_value) AS line, printf('%.1f %%', 100.0 * iif(:trace_type = 'MemoryLive', live / (SELECT sum(live) FROM lines), value / (SELECT sum(value) FROM lines))) AS share,
       iif(value < 1e4, printf('%d bytes', value), printf(iif(value < 1e7, '%.1f', '%.0f') || ' MB', value / 1e6)) AS allocated,
       '±' || printf('%.1f %%', 100.0 * error / value) AS error,
       iif(live < 1e4, printf('%d bytes', live), printf(iif(live < 1e7, '%.1f', '%.0f') || ' MB', live / 1e6)) AS live,
       iif(hash, substr(printf('%016x', hash), 1, 8), '') AS statement,
       iif(logged, (SELECT oneLine(query) FROM statements WHERE normalized_query_hash = shown.hash ORDER BY id LIMIT 1),
           '(outside the calls of statements: opening, binding, closing)') AS query
FROM shown
WHERE iif(:trace_type = 'MemoryLive', by_live, by_value) <= coalesce(CAST(:limit AS INTEGER), 10) OR min(by_live, by_value) <= 3 AND live > 0
UNION ALL
SELECT 1e9, '100.0 %', printf('%.1f MB', sum(value) / 1e6), '±' || printf('%.1f %%', 100.0 * sqrt(sum(error * error)) / sum(value)),
       printf('%.1f MB', sum(live) / 1e6), '', 'sum of ' || count(*)
FROM lines HAVING count(*) > 1)
ORDER BY line;
