-- SPDX-License-Identifier: Apache-2.0
-- A sentence if little of the time from the first query of a process to its last was inside SQLite; no row if that is not
-- known, if the file has more than one process, which may have run one after the other, or if an option selects runs.
-- Several threads may be inside at the same time, so their sum is an upper bound of the time in which any thread was.
WITH whole AS (
	SELECT total(own_wall) AS inside, (SELECT count(*) FROM processes) AS recorded,
	       (SELECT max(last_seen_ns) - min(first_seen_ns) FROM statement_counters WHERE first_seen_ns > 0) AS elapsed
	FROM temp.selected_parts)
SELECT printf('SQLite took %s of the %s from the first query to the last, %s. The rest is time of the program outside SQLite.',
              duration(inside), duration(elapsed), iif(100 * inside < elapsed, 'less than 1 %', printf('%.0f %%', 100.0 * inside / elapsed)))
FROM whole, temp.selected_limits WHERE is_all AND recorded = 1 AND inside < 0.3 * elapsed AND elapsed - inside > 200000000;
