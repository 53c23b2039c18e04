-- SPDX-License-Identifier: Apache-2.0
-- How often the threads were sampled, by type: the period of the timer, and the shortest and longest time between two
-- signals. That time is longer than the period if sampling reached its budget. It can be pasted into `queryprof sql
-- FILE`.
SELECT trace_type, unit, count(DISTINCT thread) AS threads, min(period_ns) / 1e6 AS period_ms,
       min(period_ns * stretch) / 1e6 AS shortest_ms, max(period_ns * stretch) / 1e6 AS longest_ms
FROM series GROUP BY 1, 2 ORDER BY 1, 2;
