-- SPDX-License-Identifier: Apache-2.0
-- The samples of the batches after :since up to :until, followed by the columns
-- that identify a profile: the type, its unit and the process. Ordered by type, by process if :by_process is 1, and
-- by time.
SELECT s.timestamp_ns, s.weight, r.period_ns, s.size, s.stack, s.truncated, coalesce(q.id, 0) AS run, r.thread,
       s.labels, s.wait, s.context, s.span,
       r.trace_type, r.unit, coalesce(t.process, 0) * :by_process AS process
FROM batch_samples AS b
CROSS JOIN samples AS s ON s.timestamp_ns = b.timestamp_ns
JOIN series AS r ON r.id = s.series
LEFT JOIN threads AS t ON t.id = r.thread
LEFT JOIN queries AS q ON q.id = s.query AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
WHERE b.batch > :since AND b.batch <= :until AND r.trace_type <> 'MemoryFree'
ORDER BY r.trace_type, process, s.timestamp_ns;
