-- SPDX-License-Identifier: Apache-2.0
-- For ClickHouse: the losses of a fleet, see fleet_queries.sql.
SELECT toInt64(cityHash64(file, process)) AS process, reason, first_ns, last_ns, samples, refusals
FROM losses_rows FINAL
WHERE 1 /* and */
