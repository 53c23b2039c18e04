-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see sides.sql). After diff/stacks.sql.
SELECT coalesce(sum(known), 0), coalesce(sum(own_wall), 0), coalesce(sum(own_cpu), 0),
       (SELECT coalesce(sum(samples), 0) FROM temp.report_stacks),
       (SELECT coalesce(sum(value), 0) FROM temp.report_stacks),
       count(runs) > 0,
       (SELECT coalesce(sum(runs), 0) FROM temp.run_sums WHERE NOT finished),
       (SELECT group_concat(version, ', ') FROM (
		SELECT DISTINCT version FROM libraries
		WHERE id IN (SELECT library FROM temp.run_sums WHERE library
		             UNION ALL
		             -- If no run took long enough to be logged.
		             SELECT library FROM temp.selected_statements AS s JOIN statements AS x ON x.normalized_query_hash = s.hash
		             JOIN programs AS g ON g.statement = x.id
		             WHERE NOT EXISTS (SELECT 1 FROM temp.run_sums WHERE library))
		ORDER BY id))
FROM temp.selected_parts;
