-- SPDX-License-Identifier: Apache-2.0
-- Statements that SQLite prepares again when they run, because the schema has changed since they were prepared, as each
-- CREATE or DROP of a temporary table changes it. Only one row, for the statement that did it most often.
WITH counts AS MATERIALIZED (
	SELECT f.hash AS hash, f.query AS query, f.wall AS wall, sum(c.calls) AS calls, sum(c.reprepares) AS again,
	       query LIKE 'CREATE %' OR query LIKE 'DROP %' OR query LIKE 'ALTER %' OR query LIKE 'ATTACH %' OR query LIKE 'DETACH %' OR query LIKE 'ANALYZE%' OR query LIKE 'REINDEX%'
	       OR query LIKE 'VACUUM%' AS changes_schema
	FROM temp.finding_statements AS f JOIN statement_counters AS c ON c.normalized_query_hash = f.hash GROUP BY f.hash),
victims AS MATERIALIZED (SELECT * FROM counts WHERE again >= 0.2 * calls AND NOT changes_schema),
changes AS MATERIALIZED (SELECT * FROM counts WHERE changes_schema ORDER BY calls DESC)
SELECT (SELECT hash FROM victims ORDER BY again DESC, wall DESC LIMIT 1) AS hash, NULL AS saved, NULL AS error,
       printf('%,d', sum(again)) AS again, printf('%,d', sum(calls)) AS calls, printf('%,d', count(*)) AS statements, duration(sum(wall)) AS took,
       coalesce('the program ran ' || printf('%,d statements that can change the schema: ', (SELECT sum(calls) FROM changes))
                || (SELECT group_concat(text, ', ') FROM (SELECT printf('%,d × ', calls) || iif(length(query) > 60, substr(query, 1, 57) || '...', query) AS text FROM changes LIMIT 2)),
                'the schema changed, or a value was bound on which the plan depends; which of them is not known') AS why,
       CASE WHEN EXISTS (SELECT 1 FROM changes WHERE query LIKE 'CREATE TEMP%')
            THEN 'create the temporary table once for each connection, and empty it with DELETE; or pass the values as WHERE id IN (SELECT value FROM json_each(?))'
            WHEN EXISTS (SELECT 1 FROM changes) THEN 'change the schema before the program prepares its statements; attach a database once for each connection'
            ELSE 'if another program changes the schema, let it do that once; if LIKE ? or GLOB ? is bound to ever new patterns, nothing but another operator avoids it' END AS cure
FROM victims HAVING sum(again) >= 100 AND sum(wall) >= 0.05 * (SELECT sum(wall) FROM temp.finding_statements);
