-- SPDX-License-Identifier: Apache-2.0
-- The time of the selected statements, over all their runs: as the clocks measured it, and as the sum of the samples.
-- Threads that helped them (workers) are separate. In temp.report_clocks, for report/times.sql and
-- report/functions.sql. After read/selected.sql and report/samples.sql.
--
-- error_ms is one standard error of the sampled time. Samples are taken at equal distances, the period p, and the
-- first moment is equally likely everywhere in a period. A stretch of x periods is hit floor(x) times or, with the
-- probability f = x - floor(x), once more. The variance of that number is f (1 - f), which is at most 1/4 and at most
-- x. For R independent stretches (each a logged run on a thread), for runs too short for a row, which together are S
-- periods long, and with N samples, the variance is at most min(R / 4 + S, N), and the error p * sqrt(min(R / 4 + S,
-- N)). If the period changes C times within the stretches (to limit the cost of sampling), each change begins a new
-- phase and adds at most 1: min(R / 4 + S + C, N).
-- p is the mean time of a sample, each weighted by its time, and N the corresponding number of samples, so weights
-- above 1 increase the error; both follow from the sum of times and the sum of their squares. In 95 of 100 cases the
-- true value is within twice the error.
--
-- Time that no sample can have seen is a line of its own ("not sampled") and a part of the error. If the sum of the
-- samples is less than the exact time by more than twice the error, it is the whole difference. It consists of waits
-- and run queues of runs that are too short to be logged, and of CPU time of threads that end before their timer is
-- armed. The exact times include it; shares of samples do not.
--
-- Samples are taken inside SQLite, so the exact times are also those inside SQLite: "wall" is execution_time_ns. The
-- program's own time between two rows of a query is a line of its own.
DROP TABLE IF EXISTS temp.report_clocks;

CREATE TEMP TABLE report_clocks AS
WITH runs AS MATERIALIZED (
	SELECT sum(workers) FILTER (WHERE finished) AS workers,
	       sum(ns) FILTER (WHERE finished) AS ended_wall, sum(cpu) FILTER (WHERE finished) AS ended_cpu,
	       coalesce(sum(runs) FILTER (WHERE NOT finished), 0) AS unfinished,
	       sum(ns) FILTER (WHERE NOT finished) AS open_wall, sum(cpu) FILTER (WHERE NOT finished) AS open_cpu,
	       -- so far; that of nested ones counts once
	       sum(ns) FILTER (WHERE NOT finished AND NOT (nested AND is_all)) AS going
	FROM temp.run_sums, (SELECT EXISTS (SELECT 1 FROM temp.selected WHERE id = 0) AS is_all)),
exact AS MATERIALIZED (
	SELECT has_ended, going, iif(has_ended, sum(own_wall), going) AS wall, iif(has_ended, sum(own_cpu), NULL) AS cpu, sum(outside) AS outside, workers
	FROM temp.selected_parts, (
		SELECT coalesce((SELECT sum(known) FROM temp.selected_parts) > 0, 0)
		       OR NOT (unfinished OR EXISTS (SELECT 1 FROM temp.report_parts WHERE NOT finished)) AS has_ended,
		       going, workers
		FROM runs)),
short AS MATERIALIZED (
	SELECT max(0, exact.wall - coalesce(iif(has_ended, ended_wall, open_wall), 0)) AS wall,
	       max(0, exact.cpu - coalesce(iif(has_ended, ended_cpu, open_cpu), 0)) AS cpu
	FROM exact, runs),
-- Runs without a sample are stretches, too.
sampled AS MATERIALIZED (
	SELECT trace_type, is_worker, sum(samples) AS samples, sum(value) AS ns,
	       sum(square) / sum(value) * sqrt(min(1.0 * sum(value) * sum(value) / sum(square),
	           max(sum(stretches), iif(is_worker, 0, (SELECT runs FROM temp.selected_limits))) / 4.0
	           + sum(changes) + coalesce((SELECT CASE trace_type WHEN 'Real' THEN wall WHEN 'CPU' THEN cpu ELSE wall - cpu END FROM short WHERE is_worker = 0), 0)
	             * sum(value) / sum(square))) AS error
	FROM temp.report_parts WHERE trace_type IN ('CPU', 'Real', 'OffCPU') AND finished = (SELECT has_ended FROM exact)
	GROUP BY trace_type, is_worker HAVING sum(value) > 0),
-- Off the CPU: the samples of waits, or the wall clock's minus the CPU's. Without samples of the wall clock, the sum
-- of both is the wall time.
off AS MATERIALIZED (
	SELECT samples, ns, error FROM sampled WHERE trace_type = 'OffCPU' AND NOT is_worker
	UNION ALL
	SELECT NULL, max(real.ns - coalesce(cpu.ns, 0), 0), sqrt(real.error * real.error + cpu.error * cpu.error)
	FROM sampled AS real LEFT JOIN sampled AS cpu ON cpu.trace_type = 'CPU' AND NOT cpu.is_worker
	WHERE real.trace_type = 'Real' AND NOT real.is_worker
	  AND NOT EXISTS (SELECT 1 FROM sampled WHERE trace_type = 'OffCPU' AND NOT is_worker)),
wall AS MATERIALIZED (
	SELECT samples, ns, error FROM sampled WHERE trace_type = 'Real' AND NOT is_worker
	UNION ALL
	SELECT sum(samples), sum(ns), sqrt(sum(error * error)) FROM sampled
	WHERE trace_type IN ('CPU', 'OffCPU') AND NOT is_worker
	  AND NOT EXISTS (SELECT 1 FROM sampled WHERE trace_type = 'Real' AND NOT is_worker)
	  AND EXISTS (SELECT 1 FROM series WHERE trace_type = 'OffCPU')
	HAVING count(*)),
measured AS (
	SELECT 1 AS line, 'wall' AS clock, exact.wall AS exact, samples, ns, error
	FROM exact LEFT JOIN wall
	UNION ALL
	SELECT 2, 'on CPU', cpu, samples, ns, error
	FROM exact LEFT JOIN sampled ON trace_type = 'CPU' AND NOT is_worker
	UNION ALL
	SELECT 3, 'off CPU', exact.wall - cpu, samples, ns, error
	FROM exact LEFT JOIN off),
clocks AS (
	SELECT *, iif(exact - ns > 2 * error, exact - ns, 0) AS unseen FROM measured
	UNION ALL
	SELECT 5, 'between rows', outside, NULL, NULL, NULL, 0 FROM exact WHERE outside >= 100000
	UNION ALL
	SELECT 6, 'workers', workers, samples, ns, error, 0
	FROM exact LEFT JOIN sampled ON trace_type = 'CPU' AND is_worker WHERE workers > 0
	UNION ALL
	SELECT 7, 'wall, unfinished', going, samples, ns, NULL, 0
	FROM exact LEFT JOIN (SELECT sum(samples) AS samples, sum(value) AS ns FROM temp.report_parts WHERE trace_type = 'Real' AND NOT finished)
	WHERE has_ended
	UNION ALL
	-- these have no exact value
	SELECT 8, iif(trace_type = 'CPU', 'on CPU', 'off CPU') || ', unfinished', NULL, sum(samples), sum(value), NULL, 0
	FROM temp.report_parts
	WHERE trace_type IN ('CPU', 'OffCPU') AND NOT finished AND (SELECT has_ended FROM exact)
	GROUP BY trace_type)
SELECT line, clock, exact, samples, ns, sqrt(error * error + 1.0 * unseen * unseen) AS error, unseen
FROM clocks WHERE exact IS NOT NULL OR ns IS NOT NULL;
