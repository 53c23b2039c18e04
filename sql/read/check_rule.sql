-- SPDX-License-Identifier: Apache-2.0
-- Gives some statements limits of their own: those whose id begins with :id, and whose text is LIKE :like; NULL: any.
-- The other parameters are those of read/check_limits.sql, and NULL leaves the limit as it is. :except '1': no limit.
UPDATE temp.check_limits SET
	max_scan = coalesce(CAST(:max_scan AS INTEGER), max_scan), no_sort = coalesce(CAST(:no_sort AS INTEGER), no_sort),
	no_auto_index = coalesce(CAST(:no_auto_index AS INTEGER), no_auto_index), max_time = coalesce(CAST(:max_time AS INTEGER), max_time),
	max_runs = coalesce(CAST(:max_runs AS INTEGER), max_runs)
WHERE hash IN (SELECT hash FROM temp.selected_statements
               WHERE (:id IS NULL OR substr(printf('%016x', hash), 1, length(:id)) = :id) AND (:like IS NULL OR query LIKE :like));
DELETE FROM temp.selected_statements
WHERE :except = '1' AND (:id IS NULL OR substr(printf('%016x', hash), 1, length(:id)) = :id) AND (:like IS NULL OR query LIKE :like);
