-- SPDX-License-Identifier: Apache-2.0
-- Questions to a fleet. Each query works on its own, on one node and on a cluster. Lines that end with "-- newer"
-- need a server of version 20.8 or later.

-- Which statements took the most CPU time in the last day, on how many hosts.
SELECT service, any(query) AS query, uniq(hostname) AS hosts, sum(value) / 1e9 AS cpu_s
FROM trace_log
WHERE trace_type = 'CPU' AND timestamp_ns > (toUInt64(toUnixTimestamp(now())) - 86400) * 1000000000
GROUP BY service, normalized_query_hash
ORDER BY cpu_s DESC
LIMIT 20;

-- Which statement got slower since yesterday, and on which hosts: the mean of its logged runs of the last day and of
-- the day before.
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

-- The same for all runs, logged or not, from the hourly differences.
SELECT hour, hostname, any(query) AS query, sum(calls) AS calls_so_far, sum(execution_time_ns) / 1e9 AS s_so_far
FROM statement_stats_hours
GROUP BY hour, hostname, normalized_query_hash
ORDER BY hostname, normalized_query_hash, hour
LIMIT 1000;

-- A flame graph of a statement over the fleet, in the format of flamegraph.pl, speedscope and Grafana: root first,
-- with the time in microseconds.
SELECT arrayStringConcat(arrayReverse(symbols), ';') AS stack, intDiv(sum(value), 1000) AS us
FROM trace_log
WHERE trace_type = 'CPU' AND normalized_query_hash = 1000003
GROUP BY stack
ORDER BY us DESC;

-- The same with ClickHouse's flameGraph(), in nanoseconds, if it accepts names, as in 26.5; it would resolve
-- addresses in ClickHouse's own program. When it merges several streams, it loses stacks that continue others.
-- Ordering makes them one stream.
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

-- The holders of locks that others waited for, and how long those waited.
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
