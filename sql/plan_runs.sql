-- SPDX-License-Identifier: Apache-2.0
-- The runs that are selected (see selected.sql) whose plan is known, for plan_changes.sql.
CREATE TEMP VIEW side_plans AS
SELECT 'A' AS side, normalized_query_hash AS hash, query, database AS place, g.plan_hash,
       substr(plan, 1, 20000) AS plan, query_start_ns AS start_ns, execution_time_ns AS ns
FROM temp.selected_runs JOIN programs AS g ON g.id = program JOIN plans USING (plan_hash)
WHERE finished;
