-- SPDX-License-Identifier: Apache-2.0
-- The open runs of live/runs.sql, in temp.page_runs, without the machine's folders.
SELECT process_id, program, thread_id, thread_name, is_running, round(elapsed_ns / 1e6, 1) AS elapsed_ms, round(outside_ns / 1e6, 1) AS outside_ms,
       state, wait_cause, wait_object, round(wait_ns / 1e6, 1) AS wait_ms, holder_process_id, holder_program, holder_thread_name,
       round(holder_transaction_ns / 1e6, 1) AS holder_transaction_ms, holder_first_query, substr(query, 1, 10000) AS query,
       fileName(database) AS database, plan_node, round(sample_age_ns / 1e6, 1) AS sample_age_ms, fileName(caller) AS caller, caller_function
FROM temp.page_runs ORDER BY rowid LIMIT 200;
