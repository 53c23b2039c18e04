-- SPDX-License-Identifier: Apache-2.0
-- What processes that came after number :before have left in a trace file. queries: as many rows as
-- query_log has of them.
WITH
came AS (SELECT id, process FROM threads WHERE process > :before),
used AS (SELECT process, finished OR statement AS is_shown FROM queries WHERE process > :before AND id > 0)
SELECT
	(SELECT count(*) FROM samples WHERE series IN (
		SELECT id FROM series WHERE thread IN (SELECT id FROM came))) AS samples,
	(SELECT count(*) FROM used WHERE is_shown) AS queries,
	-- Also those whose runs were counted, and no more.
	(SELECT count(*) FROM (
		SELECT id FROM processes WHERE id > :before
		UNION SELECT process FROM used
		UNION SELECT process FROM came)) AS processes;
