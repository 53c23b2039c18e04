-- SPDX-License-Identifier: Apache-2.0
-- The losses by reason: samples, rows of logs, spans (NULL: their number is not known), and refused timers or connections. It
-- can be pasted into `queryprof sql FILE`.
SELECT reason, sum(samples) AS samples, sum(refusals) AS refusals FROM losses GROUP BY reason
UNION ALL
SELECT 'the file reached its limit (trace_log_max_bytes), so the oldest samples and rows were removed', NULL, 0 FROM state WHERE removals > 0
ORDER BY samples DESC, reason;
