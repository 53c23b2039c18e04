-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see sides.sql): what may have changed its plans, if these are on one database. After
-- read/selected.sql.
SELECT '', at_ns, text FROM temp.schema_changes
WHERE place = (SELECT min(place) FROM temp.selected_periods HAVING min(place) = max(place));
