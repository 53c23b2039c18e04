-- SPDX-License-Identifier: Apache-2.0
-- The open databases of a process that is not recorded, and the locks that any process has of them now; the first row of a
-- database without one has no lock.
SELECT d.path AS database, d.is_wal, k.lock, k.is_exclusive, k.process_id, k.program
FROM databases AS d LEFT JOIN locks AS k ON k.database = d.path
ORDER BY d.path, k.is_exclusive DESC, k.process_id, k.lock;
