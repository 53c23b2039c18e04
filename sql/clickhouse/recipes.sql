-- SPDX-License-Identifier: Apache-2.0
-- Questions to a fleet. Each runs alone, on one node and on a cluster; lines that end with "-- newer" are not for
-- servers before 20.8.

-- Which statements took the most CPU time in the last day, on how many hosts.
SELECT service, any(query) AS query, uniq(hostname) AS hosts, sum(value) / 1e9 AS cpu_s
FROM trace_log
WHERE trace_type = 'CPU' AND timestamp_ns > (toUInt64(toUnixTimestamp(now())) - 86400) * 1000000000
GROUP BY service, normalized_query_hash
ORDER BY cpu_s DESC
LIMIT 20;

-- Which statement got slower since yesterday, on which hosts: the mean of its logged runs, of the last
-- day and of the one before.
SELECT hostname, any(query) AS query,
       avgIf(execution_time_ns, is_new) / 1e6 AS ms, avgIf(execution_time_ns, NOT is_new) / 1e6 AS ms_before,
       countIf(is_new) AS runs, countIf(NOT is_new) AS runs_before
FROM (
	SELECT hostname, query, normalized_query_hash, execution_time_ns,
	       query_start_ns > (toUInt64(toUnixTimestamp(now())) - 86400) * 1000000000 AS is_new
	FROM query_log
	WHERE type = 'QueryFinish' AND query_start_ns > (toUInt64(toUnixTimestamp(now())) - 2 * 86400) * 1000000000)
GROUP BY hostname, normalized_query_hash
HAVING runs > 10 AND runs_before > 10 AND ms > 1.5 * ms_before
ORDER BY (ms - ms_before) * runs DESC
LIMIT 50;

-- The same of all runs, logged or not: what each hour added.
SELECT hour, hostname, any(query) AS query, sum(calls) AS calls_so_far, sum(execution_time_ns) / 1e9 AS s_so_far
FROM statement_stats_hours
GROUP BY hour, hostname, normalized_query_hash
ORDER BY hostname, normalized_query_hash, hour
LIMIT 1000;

-- A flame graph of a statement over the fleet, as flamegraph.pl, speedscope and Grafana take it: root
-- first, with the time in microseconds.
SELECT arrayStringConcat(arrayReverse(symbols), ';') AS stack, intDiv(sum(value), 1000) AS us
FROM trace_log
WHERE trace_type = 'CPU' AND normalized_query_hash = 1000003
GROUP BY stack
ORDER BY us DESC;

-- The same by ClickHouse's flameGraph(), in nanoseconds, where it takes names, as that of 26.5 does; addresses it
-- would name by ClickHouse's own program. It loses stacks that others go on from where it merges what
-- several streams have: they are ordered, which makes one of them.
SELECT arrayJoin(flameGraph(names, ns)) AS line -- newer
FROM ( -- newer
	SELECT arrayReverse(symbols) AS names, sum(value) AS ns -- newer
	FROM trace_log -- newer
	WHERE trace_type = 'CPU' AND normalized_query_hash = 1000003 -- newer
	GROUP BY names -- newer
	ORDER BY names) -- newer
;

-- The functions that used the most CPU time themselves, by service.
SELECT service, symbols[1] AS function, sum(value) / 1e9 AS self_s
FROM trace_log
WHERE trace_type = 'CPU'
GROUP BY service, function
ORDER BY self_s DESC
LIMIT 50;

-- The holders of locks that others waited for, and how long these waited.
SELECT service, holder_query, lock, count() AS waits, sum(wait_ns) / 1e9 AS waited_s, uniq(hostname) AS hosts
FROM lock_waits
GROUP BY service, holder_query, lock
ORDER BY waited_s DESC
LIMIT 20;

-- What is missing, and why.
SELECT hostname, reason, sum(samples) AS samples, sum(refusals) AS refusals
FROM losses
GROUP BY hostname, reason
ORDER BY samples DESC;
