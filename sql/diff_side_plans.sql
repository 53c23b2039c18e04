-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see diff_sides.sql): its runs whose plan is known. All count
-- as runs of one database (place ''): two files have the same one under other names.
-- After selected.sql.
SELECT normalized_query_hash, query, '', g.plan_hash, substr(plan, 1, 20000), query_start_ns, execution_time_ns
FROM temp.selected_runs JOIN programs AS g ON g.id = program JOIN plans USING (plan_hash)
WHERE finished;
