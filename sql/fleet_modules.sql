-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: what the addresses of a fleet's stacks are in, see fleet_queries.sql.
SELECT toInt64(file) AS file_id, path, build_id, base, extent, elf_start
FROM modules_rows FINAL
