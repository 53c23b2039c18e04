-- SPDX-License-Identifier: Apache-2.0
-- What is known of the query in row :query and the thread in row :thread. After selected.sql.
SELECT coalesce(query_id, ''), coalesce(thread_name || ' (' || threads.thread_id || ')', ''),
       coalesce(database, ''), trim(coalesce(statements.query, '')), coalesce(normalized_query_hash, 0),
       (SELECT runs FROM temp.selected_statements WHERE hash = normalized_query_hash),
       coalesce(processes.process_id, 0), coalesce(threads.thread_id, 0)
FROM (SELECT :query AS query, :thread AS thread) AS wanted
LEFT JOIN queries ON queries.id = wanted.query
LEFT JOIN statements ON statements.id = statement
LEFT JOIN threads ON threads.id = wanted.thread
LEFT JOIN processes ON processes.id = threads.process;
