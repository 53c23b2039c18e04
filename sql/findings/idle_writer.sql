-- SPDX-License-Identifier: Apache-2.0
-- Others waited for a transaction that was idle for most of its time: its program did something else.
SELECT x.normalized_query_hash AS hash, sum(w.wait_ns) AS saved, NULL AS error, duration(sum(w.wait_ns)) AS waited, count(*) || iif(count(*) = 1, ' wait', ' waits') AS waits,
       duration(max(t.duration_ns)) AS longest, duration(max(t.idle_ns)) AS idle
FROM waits_for_locks AS w
JOIN transactions AS t ON t.process = w.process AND t.number = w.holder_transaction AND t.idle_ns > 0.5 * t.duration_ns
LEFT JOIN (SELECT query, max(normalized_query_hash) AS normalized_query_hash FROM statements GROUP BY 1) AS x ON x.query = t.first_query
WHERE w.holder_transaction <> 0 AND w.query IN (SELECT id FROM temp.selected)
GROUP BY 1;
