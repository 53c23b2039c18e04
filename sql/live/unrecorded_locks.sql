-- SPDX-License-Identifier: Apache-2.0
-- The databases that a process that is not recorded has open, and all locks on them now. A database without locks has one
-- row.
SELECT d.path AS database, d.is_wal, k.lock, k.is_exclusive, k.process_id, k.program
FROM databases AS d LEFT JOIN locks AS k ON k.database = d.path
ORDER BY d.path, k.is_exclusive DESC, k.process_id, k.lock;
