-- SPDX-License-Identifier: Apache-2.0
-- When a statement's plan changed on a database (side_plans), and the time of a run before and after the change, up
-- to the neighbouring changes. since: the newest logged statement that may have changed plans (schema_changes), between the
-- last run with the old plan and the first with the new one. until: when the next change was, and after which statement.
-- was, now: the lines that only one of the plans has. Only the first thousand lines of a plan, in its first 20,000
-- characters, are compared, because cutting off each line copies the rest, and a stranger may have written the file.
-- Parameters, which may be NULL: :slower (not NULL: only if a run takes longer now), :limit, :for_table.
WITH RECURSIVE steps AS (
	SELECT *, lag(plan_hash) OVER following AS was_hash
	FROM side_plans WINDOW following AS (PARTITION BY hash, place ORDER BY side, start_ns, plan_hash)),
numbered AS (
	SELECT *, sum(was_hash IS NOT plan_hash) OVER (
		PARTITION BY hash, place ORDER BY side, start_ns, plan_hash ROWS UNBOUNDED PRECEDING) AS number
	FROM steps),
-- of one plan without interruption
times AS MATERIALIZED (
	SELECT hash, place, CAST(number AS INTEGER) AS number, plan_hash, min(query) AS query, min(start_ns) AS start_ns,
	       max(last_ns) AS last_ns, sum(runs) AS runs, sum(ns) AS ns
	FROM numbered GROUP BY hash, place, number),
lines (plan_hash, line, number, rest) AS (
	SELECT plan_hash, '', 0, max(plan) FROM side_plans GROUP BY 1
	UNION ALL
	SELECT plan_hash, trim(substr(rest, 1, instr(rest || char(10), char(10)) - 1)), number + 1,
	       substr(rest, instr(rest || char(10), char(10)) + 1)
	FROM lines WHERE rest <> '' AND number < 1000),
changes AS (
	SELECT now.place AS place, min(now.query) AS query, was.plan_hash AS was_hash, now.plan_hash AS plan_hash,
	       max(was.last_ns) AS was_last_ns, max(now.start_ns) AS at_ns, max(now.last_ns) AS last_ns,
	       iif(max(next.number) > max(now.number), max(next.start_ns), NULL) AS next_ns, count(*) AS times, sum(was.runs) AS was_runs, sum(now.runs) AS now_runs,
	       1.0 * sum(was.ns) / sum(was.runs) AS was_ns, 1.0 * sum(now.ns) / sum(now.runs) AS now_ns
	FROM times AS now JOIN times AS was ON was.hash = now.hash AND was.place = now.place AND was.number = now.number - 1
	LEFT JOIN times AS next ON next.hash = now.hash AND next.place = now.place AND next.number = now.number + 1
	GROUP BY now.hash, now.place, was.plan_hash, now.plan_hash)
SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
                at_ns / 1000000000, 'unixepoch') AS changed,
       round(was_ns / 1e6, 4) AS before_ms, round(now_ns / 1e6, 4) AS after_ms,
       printf('%.1f', now_ns / was_ns) AS slower_times, was_runs AS runs_before, now_runs AS runs_after,
       iif(times > 1, times, NULL) AS changes,
       (SELECT text FROM schema_changes AS c
        WHERE c.place = changes.place AND c.at_ns > was_last_ns AND c.at_ns <= changes.at_ns ORDER BY c.at_ns DESC LIMIT 1) AS since,
       strftime('%H:%M:%S', next_ns / 1000000000, 'unixepoch')
       || coalesce((SELECT ' ' || text FROM schema_changes AS c
                    WHERE c.place = changes.place AND c.at_ns > last_ns AND c.at_ns <= next_ns ORDER BY c.at_ns DESC LIMIT 1), '') AS until,
       coalesce((SELECT group_concat(line, ' + ') FROM (
			SELECT line FROM lines WHERE plan_hash = was_hash AND line NOT IN (
				SELECT line FROM lines WHERE lines.plan_hash = changes.plan_hash)
			ORDER BY number)),
                'another order') AS was,
       coalesce((SELECT group_concat(line, ' + ') FROM (
			SELECT line FROM lines WHERE lines.plan_hash = changes.plan_hash AND line NOT IN (
				SELECT line FROM lines WHERE plan_hash = was_hash)
			ORDER BY number)),
                (SELECT group_concat(line, ' + ') FROM (
			SELECT line FROM lines WHERE lines.plan_hash = changes.plan_hash AND number > 0 ORDER BY number))) AS now,
       oneLine(query) AS query
FROM changes
WHERE :slower IS NULL OR now_ns > was_ns
ORDER BY (now_ns - was_ns) * now_runs DESC, at_ns, changes.place
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
