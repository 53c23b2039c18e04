-- SPDX-License-Identifier: Apache-2.0
-- What could not be recorded, by reason: samples and rows of queries, and timers or connections that were refused. It can be pasted
-- into `queryprof sql FILE`.
SELECT reason, sum(samples) AS samples, sum(refusals) AS refusals FROM losses GROUP BY reason ORDER BY samples DESC, reason;
