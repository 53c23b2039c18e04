-- SPDX-License-Identifier: Apache-2.0
-- The texts of logged runs of the statement ?1 on the database ?2, the newest first: with the values of their parameters, if
-- these were logged.
WITH runs AS (
	SELECT q.id AS id, expanded_query, query
	FROM queries AS q JOIN statements AS s ON s.id = q.statement
	WHERE normalized_query_hash = ?1 AND database = ?2 AND NOT is_cut AND length(expanded_query) < 65000)
SELECT iif(expanded_query <> '', expanded_query, query) AS text
FROM runs
WHERE (expanded_query <> '') = (SELECT max(expanded_query <> '') FROM runs)
GROUP BY text
ORDER BY max(id) DESC
LIMIT 16;
