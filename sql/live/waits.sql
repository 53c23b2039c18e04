-- SPDX-License-Identifier: Apache-2.0
-- The causes of waits inside SQLite from :from_ns on, the longest first, as sql/live/statements.sql counts them.
SELECT coalesce(w.name, 'not known') AS cause, sum(min(s.size + s.weight * e.period_ns, s.timestamp_ns - :from_ns)) AS ns
FROM samples AS s
JOIN series AS e ON e.id = s.series
LEFT JOIN wait_causes AS w ON w.cause = s.wait & 255
WHERE s.timestamp_ns BETWEEN :from_ns AND :now_ns AND e.trace_type = 'OffCPU'
GROUP BY 1 ORDER BY ns DESC LIMIT 8;
