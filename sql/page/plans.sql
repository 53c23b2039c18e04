-- SPDX-License-Identifier: Apache-2.0
-- The nodes of the plans of temp.lines, with their own time and its error. After read/statement_lines.sql, and
-- read/plan_nodes.sql in temp.page_plans. Nodes below 0 are not part of the plan (see there); they are listed if they
-- took time. :no_text: if it is not NULL, only SQLite's operations, without names.
SELECT statement, plan, runs, seen, node, parent,
       CASE WHEN :no_text IS NULL OR detail LIKE 'USE TEMP B-TREE FOR %' OR detail GLOB '(*' THEN detail
            ELSE substr(detail, 1, instr(detail || ' ', ' ') - 1) END AS detail,
       iif(:no_text OR detail LIKE '% VIRTUAL TABLE INDEX %', '', compared) AS compared, round(ns / 1e6, 3) AS self_ms, round(sqrt(square) / 1e6, 3) AS error_ms, loops, rows
FROM temp.page_plans
WHERE statement IN (SELECT printf('%016x', hash) FROM temp.lines) AND (node > 0 OR ns > 0)
ORDER BY rowid;
