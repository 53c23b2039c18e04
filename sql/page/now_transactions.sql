-- SPDX-License-Identifier: Apache-2.0
-- The open transactions of live/transactions.sql, in temp.page_transactions, without the machine's folders.
SELECT process_id, program, thread_id, thread_name, state, fileName(database) AS database, round(age_ns / 1e6, 1) AS age_ms,
       round(write_lock_ns / 1e6, 1) AS write_lock_ms, statements, substr(first_query, 1, 10000) AS first_query, substr(query, 1, 10000) AS query,
       is_oldest_reader
FROM temp.page_transactions ORDER BY rowid LIMIT 200;
