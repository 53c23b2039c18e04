-- SPDX-License-Identifier: Apache-2.0
-- The plans of a statement over time, if it had several: the periods in which it had one plan, and the changes of the schema between
-- them. Only statements of temp.lines, at most 20 periods each, the newest. plan: as in page/plans.sql; NULL: that plan is not shown. :no_text: if it is
-- not NULL, only the kind of a change. After read/statement_lines.sql, and read/plan_nodes.sql in temp.page_plans.
WITH
shown AS MATERIALIZED (
	SELECT DISTINCT p.statement AS statement, p.plan AS plan, g.plan_hash AS plan_hash FROM temp.page_plans AS p JOIN programs AS g ON g.id = p.plan),
schema AS MATERIALIZED (SELECT * FROM temp.schema_changes),
changed AS MATERIALIZED (SELECT hash FROM temp.selected_periods WHERE hash IN (SELECT hash FROM temp.lines) GROUP BY 1 HAVING count(DISTINCT plan_hash) > 1),
periods AS MATERIALIZED (
	SELECT *, row_number() OVER (PARTITION BY hash ORDER BY start_ns DESC) AS nth,
	       lag(last_ns) OVER (PARTITION BY hash, place ORDER BY start_ns) AS before_ns
	FROM temp.selected_periods WHERE hash IN (SELECT hash FROM changed))
SELECT printf('%016x', r.hash) AS statement, s.plan AS plan, fileName(r.place) AS database, r.start_ns / 1000000 AS from_ms, r.last_ns / 1000000 AS to_ms, r.runs AS runs,
       round(r.ns / 1e6 / max(r.runs, 1), 4) AS each_ms,
       (SELECT group_concat(iif(:no_text, substr(text, 1, instr(text || ' ', ' ') - 1), substr(text, 1, 200)), '; ')
        FROM schema AS c WHERE c.place = r.place AND c.at_ns BETWEEN r.before_ns AND r.start_ns) AS changes
FROM periods AS r LEFT JOIN shown AS s ON s.statement = printf('%016x', r.hash) AND s.plan_hash = r.plan_hash
WHERE nth <= 20 ORDER BY r.hash, r.start_ns DESC;
