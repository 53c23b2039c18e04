-- SPDX-License-Identifier: Apache-2.0
-- What processes that came after number :before have left in a trace file. queries: as many rows as
-- query_log has of them. runs: all that have been counted since there were :runs_before, and those that have not ended;
-- where runs are not counted, those rows.
WITH
came AS (SELECT id, process FROM threads WHERE process > :before),
used AS (SELECT process, finished, finished OR statement AS is_shown FROM queries WHERE process > :before AND id > 0)
SELECT
	(SELECT count(*) FROM samples WHERE series IN (
		SELECT id FROM series WHERE thread IN (SELECT id FROM came))) AS samples,
	(SELECT count(*) FROM used WHERE is_shown) AS queries,
	-- Also those whose runs were counted, and no more.
	(SELECT count(*) FROM (
		SELECT id FROM processes WHERE id > :before
		UNION SELECT process FROM used
		UNION SELECT process FROM came)) AS processes,
	max(coalesce((SELECT sum(calls) FROM statement_counters), 0) - :runs_before
	    + (SELECT count(*) FROM used WHERE is_shown AND NOT finished),
	    (SELECT count(*) FROM used WHERE is_shown)) AS runs,
	EXISTS (SELECT 1 FROM stacks WHERE id > 0) AS has_stacks;
