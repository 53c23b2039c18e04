-- SPDX-License-Identifier: Apache-2.0
-- The data of the query in row :query. The last columns are the rows of the label set of its statement's comments and of its
-- call stack. After read/selected.sql.
SELECT coalesce(query_id, ''), coalesce(database, ''), trim(coalesce(statements.query, '')), coalesce(normalized_query_hash, 0),
       (SELECT runs FROM temp.selected_statements WHERE hash = normalized_query_hash), coalesce(statements.labels, 0),
       coalesce(call_stack, 0)
FROM (SELECT :query AS query) AS wanted
LEFT JOIN queries ON queries.id = wanted.query
LEFT JOIN statements ON statements.id = statement;
