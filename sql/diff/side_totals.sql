-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see sides.sql). After diff/stacks.sql.
SELECT coalesce(sum(known), 0), coalesce(sum(own_wall), 0), coalesce(sum(own_cpu), 0),
       (SELECT coalesce(sum(samples), 0) FROM temp.report_stacks),
       (SELECT coalesce(sum(value), 0) FROM temp.report_stacks),
       count(runs) > 0,
       (SELECT coalesce(sum(runs), 0) FROM temp.run_sums WHERE NOT finished),
       (SELECT group_concat(version, ', ') FROM (
		SELECT DISTINCT version FROM libraries WHERE id IN (SELECT library FROM temp.run_sums) ORDER BY id))
FROM temp.selected_parts;
