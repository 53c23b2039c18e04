-- SPDX-License-Identifier: Apache-2.0
-- What is known of the query in row :query, the thread in row :thread and the label set in row
-- :labels; the last two are label sets, that of the statement's comments counts first.
SELECT coalesce(query_id, ''), coalesce(thread_name || ' (' || threads.thread_id || ')', ''),
       coalesce(database, ''), trim(coalesce(statements.query, '')), coalesce(normalized_query_hash, 0),
       coalesce(h.labels || h.units, ''), coalesce(g.labels || g.units, '')
FROM (SELECT :query AS query, :thread AS thread, :labels AS labels) AS wanted
LEFT JOIN queries ON queries.id = wanted.query
LEFT JOIN statements ON statements.id = statement
LEFT JOIN threads ON threads.id = wanted.thread
LEFT JOIN label_sets AS h ON h.id = statements.labels
LEFT JOIN label_sets AS g ON g.id = wanted.labels;
