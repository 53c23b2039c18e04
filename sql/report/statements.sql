-- SPDX-License-Identifier: Apache-2.0
-- The costliest statements of a report, with the causes of their time in words. After read/statement_lines.sql and
-- read/causes.sql.
SELECT round(100 * share, 1) AS "share_%",
       round(wall / 1e6, 4) AS wall_ms,
       runs,
       round(each / 1e6, 4) AS each_ms,
       iif(runs IS NULL, nullif(logged, 0), NULL) AS logged,
       substr(printf('%016x', hash), 1, 8) AS statement,
       waits || iif(waits <> '' AND notes <> '', ', ', '') || notes AS why,
       oneLine(query) AS query
FROM temp.lines JOIN temp.line_causes USING (line)
ORDER BY line;
