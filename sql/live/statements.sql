-- SPDX-License-Identifier: Apache-2.0
-- The statements from :from_ns on, by their sampled time inside SQLite, the most expensive first. So runs that have not
-- ended count, too. A wait counts from :from_ns on. Parameters: :from_ns, :now_ns, since 1970.
SELECT x.normalized_query_hash AS hash, x.query AS query, sum(r.ns) AS wall_ns,
       sum(iif(r.trace_type = 'CPU', r.ns, 0)) AS cpu_ns, sum(iif(r.cause = 1, r.ns, 0)) AS lock_ns,
       count(DISTINCT r.query) AS runs
FROM (
	SELECT s.query, s.wait & 255 AS cause, e.trace_type,
	       min(s.size + s.weight * e.period_ns, iif(e.trace_type = 'CPU', s.size + s.weight * e.period_ns, s.timestamp_ns - :from_ns)) AS ns
	FROM samples AS s JOIN series AS e ON e.id = s.series
	WHERE s.timestamp_ns BETWEEN :from_ns AND :now_ns AND e.trace_type IN ('CPU', 'OffCPU')) AS r
JOIN queries AS q ON q.id = r.query
JOIN statements AS x ON x.id = q.statement
GROUP BY 1 ORDER BY wall_ns DESC, hash LIMIT 50;
