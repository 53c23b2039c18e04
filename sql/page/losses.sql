-- SPDX-License-Identifier: Apache-2.0
-- The losses by reason: samples, rows of logs, spans, and refused timers or connections. It can be pasted into `queryprof
-- sql FILE`.
SELECT reason, sum(samples) AS samples, sum(refusals) AS refusals FROM losses GROUP BY reason ORDER BY samples DESC, reason;
