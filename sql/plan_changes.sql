-- SPDX-License-Identifier: Apache-2.0
-- When a statement's plan changed, from one run to the next on a database whose plan is known
-- (side_plans), and what a run took there before and after. was and now: the lines that only one of the plans has. A plan
-- is known of runs with samples, and of short runs few have any: the means are theirs. The lines are
-- the first thousand of a plan, in its first 20,000 characters: each is cut off the rest, which is
-- copied for that, and the file may be anybody's.
-- Parameters, which may be NULL: :slower (not NULL: only where a run takes longer now), :limit,
-- :for_table.
WITH RECURSIVE steps AS (
	SELECT hash, place, query, plan_hash, start_ns, lag(plan_hash) OVER following AS was_hash
	FROM side_plans WINDOW following AS (PARTITION BY hash, place ORDER BY side, start_ns)),
means AS (SELECT hash, place, plan_hash, count(*) AS runs, avg(ns) AS ns FROM side_plans GROUP BY 1, 2, 3),
lines (plan_hash, line, number, rest) AS (
	SELECT plan_hash, '', 0, max(plan) FROM side_plans GROUP BY 1
	UNION ALL
	SELECT plan_hash, trim(substr(rest, 1, instr(rest || char(10), char(10)) - 1)), number + 1,
	       substr(rest, instr(rest || char(10), char(10)) + 1)
	FROM lines WHERE rest <> '' AND number < 1000),
changes AS (
	SELECT hash, place, min(query) AS query, was_hash, plan_hash, max(start_ns) AS at_ns, count(*) AS times
	FROM steps WHERE was_hash <> plan_hash GROUP BY hash, place, was_hash, plan_hash)
SELECT strftime(CASE WHEN :for_table THEN '%m-%d %H:%M:%S' ELSE '%Y-%m-%d %H:%M:%S' END,
                at_ns / 1000000000, 'unixepoch') AS changed,
       round(was.ns / 1e6, 3) AS before_ms, round(now.ns / 1e6, 3) AS after_ms,
       printf('%.1f', 1.0 * now.ns / was.ns) AS slower_times, was.runs AS runs_before, now.runs AS runs_after,
       iif(times > 1, times, NULL) AS changes,
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
       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM changes
JOIN means AS was ON was.hash = changes.hash AND was.place = changes.place AND was.plan_hash = was_hash
JOIN means AS now ON now.hash = changes.hash AND now.place = changes.place AND now.plan_hash = changes.plan_hash
WHERE :slower IS NULL OR now.ns > was.ns
ORDER BY (now.ns - was.ns) * now.runs DESC, at_ns, changes.place
LIMIT coalesce(CAST(:limit AS INTEGER), 20);
