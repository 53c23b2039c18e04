-- SPDX-License-Identifier: Apache-2.0
-- Loaded after fixed.sql: plans of its statements, and a wait for a lock.
INSERT INTO plans (plan_hash, plan) VALUES (1, 'SCAN orders' || char(10)), (2, 'SCAN orders' || char(10) || 'USE TEMP B-TREE FOR ORDER BY' || char(10));

INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns)
VALUES (1, 1, 0, 1, 0), (2, 2, 0, 2, 0), (4, 4, 0, 1, 0);

INSERT INTO plan_nodes (program, node, parent, detail, compared)
VALUES (1, 3, 0, 'SCAN orders', 'total; in expressions: note'), (4, 3, 0, 'SCAN orders', 'total; in expressions: note'),
       (2, 3, 0, 'SCAN orders', ''), (2, 9, 0, 'USE TEMP B-TREE FOR ORDER BY', '');

INSERT INTO program_opcodes (program, address, node, opcode, p1, p2, p3, p5)
VALUES (1, 5, 3, 'Next', 0, 6, 0, 1), (4, 5, 3, 'Next', 0, 6, 0, 1), (2, 5, 3, 'Next', 0, 6, 0, 1), (2, 7, 9, 'SorterSort', 1, 8, 0, 0);

UPDATE queries SET program = CASE statement WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 4 THEN 4 ELSE 0 END,
                   fullscan_steps = iif(statement = 4, 5000, 0), sorts = statement = 2;
UPDATE samples SET opcode = iif(query = 4, iif(timestamp_ns % 3, 7, 5), iif(stack = 3, 0, 5)) WHERE query IN (1, 2, 3, 4);
UPDATE queries SET lock_wait_ns = 30000000, io_sync_ns = 20000000 WHERE id = 5;
UPDATE statement_counters SET fullscan_steps = 50000, runs_8 = 1980, runs_18 = 23 WHERE normalized_query_hash = 901;
UPDATE statement_counters SET sorts = 1, runs_19 = 1 WHERE normalized_query_hash = 902;
UPDATE statement_counters SET duration_ns = execution_time_ns + 40000000, prepares = 1200, prepare_time_ns = 2000000
WHERE normalized_query_hash = 914;

INSERT INTO waits_for_locks (query, start_ns, wait_ns, lock, refused, thread_id, process, database, holder, holder_query,
                             holder_session, holder_process_id, holder_thread_id, holder_transaction)
VALUES (5, 1795000004000000000, 30000000, 24, 0, 101, 1, '/opt/shop/orders.db', 4, 'BEGIN IMMEDIATE', 2, 100, 102, 7),
       (5, 1795000004030000000, 15000000, 24, 1, 101, 1, '/opt/shop/orders.db', 0, '', 0, 4711, 0, 0);

-- The holder was killed during its transaction, so there is no last statement.
INSERT INTO transactions (process, number, session, thread_id, start_ns, duration_ns, write_ns, exclusive_ns, idle_ns, statements, outcome, waited_for,
                          first, last, database, first_query, last_query)
VALUES (1, 7, 2, 102, 1795000003990000000, 600000000, 590000000, 0, 450000000, 0, 4, 1, 4, 0, '/opt/shop/orders.db', 'BEGIN IMMEDIATE', '');

INSERT INTO wal_events (process, session, thread_id, start_ns, duration_ns, event, frames, first_frame, last_frame, transactions, page_size,
                        query, statement, database, text)
VALUES (1, 1, 101, 1795000003000000000, 9000, 1, 0, 0, 0, 0, 4096, 4, 904, '/opt/shop/orders.db', 'BEGIN IMMEDIATE'),
       (1, 1, 101, 1795000003000100000, 900000000, 0, 9000, 1, 9000, 3, 4096, 4, 904, '/opt/shop/orders.db', 'INSERT INTO archive SELECT * FROM orders'),
       (1, 2, 102, 1795000004000000000, 500000000, 0, 1200, 9001, 10200, 900, 4096, 5, 905, '/opt/shop/orders.db', 'UPDATE orders SET paid = 1 WHERE id = ?');
INSERT INTO wal_checkpoints (process, session, thread_id, start_ns, duration_ns, cpu_ns, write_ns, wal_sync_ns, database_sync_ns, stopped_ns, bytes, result,
                             mode, origin, frames, copied_before, copied_after, page_size, obstacle, mark, mark_frame, holder, holder_session,
                             holder_process_id, holder_thread_id, holder_transaction, holder_since_ns, query, statement, database, text, holder_query)
VALUES (1, 2, 102, 1795000004300000000, 1000000, 900000, 0, 100000, 0, 500000, 4096, 0, 0, 0, 9700, 0, 1, 4096, 3, 1, 1, 0, 3, 100, 103, 9,
        1795000003000000000, 5, 905, '/opt/shop/orders.db', 'UPDATE orders SET paid = 1 WHERE id = ?', 'SELECT * FROM orders'),
       (1, 2, 102, 1795000004600000000, 340000000, 40000000, 200000000, 10000000, 90000000, 0, 41775104, 0, 0, 0, 10200, 1, 10200, 4096, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 5, 905, '/opt/shop/orders.db', 'UPDATE orders SET paid = 1 WHERE id = ?', '');
