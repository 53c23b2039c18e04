-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: the losses, see queries.sql.
SELECT toInt64(cityHash64(file, process)) AS process, reason, first_ns, last_ns, samples, refusals
FROM losses_rows FINAL
WHERE 1 /* and */
