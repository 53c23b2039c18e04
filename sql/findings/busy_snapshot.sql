-- SPDX-License-Identifier: Apache-2.0
-- Writes that fail because their transaction read an older state: waiting cannot help.
SELECT x.normalized_query_hash AS hash, NULL AS saved, NULL AS error, count(*) AS failed
FROM queries AS q JOIN temp.selected AS s ON s.id = q.id JOIN statements AS x ON x.id = q.statement
WHERE q.exception_code = 517 GROUP BY 1;
