-- SPDX-License-Identifier: Apache-2.0
-- The data of the query in row :query. The last columns are the rows of its statement and of its call stack.
SELECT coalesce(query_id, ''), coalesce(database, ''), coalesce(statement, 0), coalesce(call_stack, 0)
FROM (SELECT :query AS query) AS wanted
LEFT JOIN queries ON queries.id = wanted.query;
