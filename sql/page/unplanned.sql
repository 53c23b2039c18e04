-- SPDX-License-Identifier: Apache-2.0
-- The statements without a known plan, and why. After read/selected.sql.
SELECT printf('%016x', hash) AS statement, reason FROM temp.selected_without_plan ORDER BY ns DESC LIMIT 200;
