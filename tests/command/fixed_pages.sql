-- SPDX-License-Identifier: Apache-2.0
-- Loaded after fixed_plans.sql: reads and writes of a database's b-trees in four seconds. kind: see page_io.
INSERT INTO page_sums (process, thread_id, start_ns, kind, root, statement, reads, read_bytes, wal_read_bytes, writes, rewritten,
                       wal_bytes, database_bytes, journal_bytes, journal_read_bytes, database, btree, table_name)
VALUES (1, 101, 1795000003000100000, 1, 2, 904, 10, 40960, 0, 1000, 900, 4120000, 0, 0, 0, '/opt/shop/orders.db', 'orders', 'orders'),
       (1, 101, 1795000003000100000, 3, 3, 904, 800, 3276800, 4096, 6000, 5980, 24720000, 0, 0, 0, '/opt/shop/orders.db', 'orders_paid', 'orders'),
       (1, 101, 1795000004000200000, 3, 3, 903, 0, 0, 0, 2000, 2000, 8240000, 81920, 0, 0, '/opt/shop/orders.db', 'orders_paid', 'orders'),
       (1, 101, 1795000004000200000, 3, 4, 903, 20, 81920, 0, 1100, 300, 4532000, 2000000, 0, 0, '/opt/shop/orders.db', 'orders_note', 'orders'),
       (1, 101, 1795000004000200000, 3, 5, 903, 20, 81920, 0, 1500, 300, 6180000, 2000000, 0, 0, '/opt/shop/orders.db', 'sqlite_autoindex_orders_1', 'orders'),
       (1, 102, 1795000006000300000, 6, 2, 903, 2, 8192, 0, 100, 10, 412000, 200000, 0, 0, '/opt/shop/orders.db', 'orders', 'orders'),
       (1, 102, 1795000006000300000, 7, 0, 903, 0, 0, 0, 10, 10, 41200, 4096, 0, 0, '/opt/shop/orders.db', '', ''),
       (1, 102, 1795000006000300000, 5, 1, 0, 1, 4096, 0, 0, 0, 0, 0, 0, 0, '/opt/shop/orders.db', 'sqlite_schema', 'sqlite_schema'),
       (1, 102, 1795000006000300000, 0, 77, 0, 5, 20480, 0, 1, 0, 4120, 4096, 0, 0, '/opt/shop/orders.db', '', ''),
       (1, 102, 1795000006000400000, 2, 3, 914, 2, 8192, 0, 20, 1, 0, 81920, 0, 0, '/opt/shop/customers.db', 'customers', 'customers'),
       (1, 102, 1795000006000400000, 9, 0, 914, 0, 0, 0, 0, 0, 0, 0, 82432, 0, '/opt/shop/customers.db', '', '');
INSERT INTO plan_nodes (program, node, parent, detail, compared) VALUES (1, 20, 0, 'SEARCH orders USING INDEX orders_note (note=?)', '');
