-- SPDX-License-Identifier: Apache-2.0
-- The plans of the selected statements over time (see read/selected.sql), for plan_changes.sql.
CREATE TEMP VIEW side_plans AS
SELECT 'A' AS side, hash, query, place, plan_hash, substr(plan, 1, 20000) AS plan, start_ns, last_ns, temp.selected_periods.runs, ns
FROM temp.selected_periods JOIN temp.selected_statements USING (hash) JOIN plans USING (plan_hash);
