-- SPDX-License-Identifier: Apache-2.0
-- The data of the statement in row :statement. The last column is the row of the label set of its comments. After
-- read/selected.sql.
SELECT trim(coalesce(query, '')), coalesce(normalized_query_hash, 0),
       (SELECT runs FROM temp.selected_statements WHERE hash = normalized_query_hash), coalesce(labels, 0)
FROM (SELECT :statement AS statement) AS wanted
LEFT JOIN statements ON statements.id = wanted.statement;
