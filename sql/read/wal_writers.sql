-- SPDX-License-Identifier: Apache-2.0
-- Which statements appended the frames of the WALs.
SELECT
	sum(frames) AS frames,
	round(100.0 * sum(frames) / sum(sum(frames)) OVER (), 1) AS "share_%",
	sum(transactions) AS transactions,
	round(sum(frames * (page_size + 24)) / 1e6, 1) AS mb,
	query
FROM wal_log WHERE event = 'append'
GROUP BY iif(normalized_query_hash, normalized_query_hash, query)
ORDER BY frames DESC, query
LIMIT coalesce(CAST(:limit AS INTEGER), 5);
