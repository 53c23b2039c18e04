-- SPDX-License-Identifier: Apache-2.0
-- A sentence if little of the time from the first query of the file to the last was inside SQLite; no row if that is not
-- known, or if an option selects runs. Several threads may be inside at the same time, so their sum is an upper bound of
-- the time in which any thread was. After read/findings.sql.
WITH whole AS (
	SELECT total(wall) AS inside,
	       (SELECT max(last_seen_ns) - min(first_seen_ns) FROM statement_counters WHERE first_seen_ns > 0) AS elapsed
	FROM temp.finding_statements)
SELECT printf('SQLite took %s of the %s from the first query to the last, %s. The rest is time of the program outside SQLite.',
              duration(inside), duration(elapsed), iif(100 * inside < elapsed, 'less than 1 %', printf('%.0f %%', 100.0 * inside / elapsed)))
FROM whole, temp.selected_limits WHERE is_all AND inside < 0.3 * elapsed AND elapsed - inside > 200000000;
