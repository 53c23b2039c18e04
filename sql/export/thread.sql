-- SPDX-License-Identifier: Apache-2.0
-- The data of the thread in row :thread, and of its process.
SELECT coalesce(thread_name || ' (' || threads.thread_id || ')', ''), coalesce(executable, ''), coalesce(hostname, ''), coalesce(script, ''),
       coalesce(threads.process, 0), coalesce(processes.process_id, 0), coalesce(threads.thread_id, 0)
FROM (SELECT :thread AS thread) AS wanted
LEFT JOIN threads ON threads.id = wanted.thread
LEFT JOIN processes ON processes.id = threads.process;
