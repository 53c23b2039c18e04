-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: the modules of stacks, see queries.sql.
SELECT toInt64(file) AS file_id, path, build_id, base, extent, elf_start
FROM modules_rows FINAL
