-- SPDX-License-Identifier: Apache-2.0
-- What processes that came after number :before have left in a trace file.
SELECT
	(SELECT count(*) FROM samples WHERE series IN (
		SELECT id FROM series WHERE thread IN (
			SELECT id FROM threads WHERE process > :before))) AS samples,
	(SELECT count(*) FROM queries WHERE process > :before AND id > 0) AS queries,
	(SELECT count(*) FROM processes WHERE id > :before) AS processes;
