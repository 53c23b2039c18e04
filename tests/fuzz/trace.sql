-- SPDX-License-Identifier: Apache-2.0
-- The trace file that targets/trace.c damages: one or two rows of each table, each next to the rows that it refers to.
INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) VALUES (1, 'host', 100, 1795000000000000000, '/usr/bin/app');
INSERT INTO threads VALUES (1, 1, 101, 'main'), (2, 1, 102, 'worker');
INSERT INTO series VALUES (1, 1, 'CPU', 1000000, 1, 'ns', 1), (2, 1, 'Real', 1000000, 1, 'ns', 2),
	(3, 2, 'OffCPU', 1, 1, 'ns', 1), (4, 2, 'MemorySample', 0, 1, 'bytes', 1), (5, 2, 'MemoryFree', 0, 1, 'bytes', 1);
INSERT INTO modules VALUES (1, 'a1b2', 'none.so', 4096, 1, 4096, 4096, 0), (2, '', '[heap]', 0, 0, 65536, 4096, 0);
INSERT INTO stacks VALUES (1, 1, 1, '[4100,4200,4611686018427387913]'), (2, 2, 1, '[4200]'), (3, 3, 1, '[]');
INSERT INTO names VALUES (1, 'walk(int)'), (2, '_Z4walki'), (3, '/src/walk.c'), (4, 'sqlite3VdbeExec');
INSERT INTO frames VALUES (4100, 0, 1, 1, 2, 3, 7), (4100, 1, 0, 4, 4, 3, 9), (4200, 0, 0, 4, 4, 0, 0);
INSERT INTO label_sets VALUES (1, 1, 1, '{"tenant":"acme","size":3}', '{"size":"bytes"}', '', '');
INSERT INTO label_values VALUES (1, 'tenant', 'acme', '', '"tenant":"acme"'), (1, 'size', 3, 'bytes', '"size":3');
INSERT INTO label_uses VALUES (1, 0, 1795000000000000000, 0, 1, 4100);
INSERT INTO trace_contexts VALUES (1, 1, '4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7');
INSERT INTO statements VALUES (1, 1, 11, 0, 'SELECT * FROM orders WHERE id = 1', 1), (2, 2, 22, 1, 'INSERT INTO orders', 0);
INSERT INTO statement_counters (normalized_query_hash, database, program, statement, calls, execution_time_ns, cpu_time_ns,
	duration_ns, min_ns, max_ns, first_seen_ns, runs_3)
VALUES (11, 'shop.db', 'app', 1, 3, 3000000, 2000000, 3000000, 100, 2000000, 1795000000000000000, 3),
	(22, 'shop.db', 'app', 2, 1, 1, 1, 1, 1, 1, 1, 1);
INSERT INTO libraries VALUES (1, '/usr/lib/libsqlite3.so.0', '3.40.1');
INSERT INTO plans VALUES (7, 'SCAN orders'), (8, 'SEARCH orders USING INDEX by_id (id=?)');
INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns) VALUES (1, 1, 1, 7, 1), (2, 1, 1, 8, 2);
INSERT INTO plan_nodes VALUES (1, 1, 0, 'SCAN orders', 'id'), (1, 2, 1, 'SEARCH lines', ''), (2, 1, 0, 'SEARCH orders', '');
INSERT INTO program_opcodes VALUES (1, 1, 1, 'Next', 0, 1, 2, 3), (1, 2, 0, 'Halt', 0, 0, 0, 0), (2, 1, 1, 'Column', 1, 1, 1, 0);
INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement, query_start_ns, query_duration_ns,
	cpu_time_ns, database, thread_id, samples_cpu, weight_cpu, library, labels, context, lock_wait_ns, rest_ns, program, batch)
VALUES (1, '0193a5b2-77c1-7aaa-8000-000000000001', 1, 1795000000000000000, 1795000000200000000, 1, 1, 1, 1795000000000000000,
		200000000, 100000000, 'shop.db', 101, 3, 3, 1, 1, 1, 50, 60, 1, 1),
	(2, '0193a5b2-77c1-7bbb-8000-000000000002', 1, 1795000000300000000, 1795000000400000000, 1, 2, 1, 1795000000300000000,
		900000000, 9000000, 'shop.db', 101, 1, 1, 1, 1, 1, 0, 0, 2, 1),
	(3, 'own', 1, 1795000000500000000, 1795000000500000001, 0, 3, 2, 1795000000500000000, 1, 1, '', 102, 0, 0, 0, 0, 0, 0, 0, 0, 1);
INSERT INTO plan_loops VALUES (1, 1, 1, 100, 5), (1, 2, 100, 5, NULL);
INSERT INTO samples VALUES (1795000000000000001, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 72057594037927937, 0, 0, 0),
	(1795000000000000002, 1, 1, 2, 0, 2, 1, 0, 0, 0, 4294967297, 0, 0, 0, 0, 0, 0), (1795000000000000003, 2, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
	(1795000000000000004, 3, 1, 1, 1, 1, 0, 0, 1, 0, 0, 5000, 4353, 0, 0, 0, 0), (1795000000300000001, 1, 2, 3, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0),
	(1795000000500000000, 4, 3, 1, 0, 1, 0, 99, 0, 0, 0, 0, 0, 0, 0, 4096, 0), (1795000000500000001, 4, 3, 1, 0, 3, 0, 96, 0, 0, 0, 0, 0, 0, 0, 8192, 0),
	(1795000000500000002, 5, 0, 3, 0, 1, 0, -99, 0, 0, 0, 0, 0, 0, 0, 4096, 0);
INSERT INTO span_sites VALUES (1, 'checkout', 'shop.c', 7, 'pay', 0, 0), (2, '', '', 0, '', 11, 0), (3, 'lock', '', 0, '', 0, 4353);
INSERT INTO span_batches VALUES (1, 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0, 72057594037927936, 1, 1795000000000000000, 1, 2,
	300000000, 4, 1, 300000000,
	'[[1,0,0,300000000,100,2],[2,1,1000,200000000,200000000,0,1],0,[3,1,5000,100,100,1],[1,9,7,1,1,4]]');
INSERT INTO span_links VALUES (1, 1, 2, 3);
INSERT INTO span_waits VALUES (1795000000000005000, 1, 100, 72057594037927939);
INSERT INTO span_notes VALUES (1, 1, 72057594037927936, 0, '"user":"x"'), (2, 1, 72057594037927937, 1, '{"name":"retry","time":1}');
INSERT INTO batches VALUES (1, 1, 0, 1795000000000000001, 1795000000500000000, 6, 6, 2);
INSERT INTO late_samples VALUES (1795000000000000002, 1);
INSERT INTO losses VALUES (1, 'the ring was full', 1, 2, 3, 4);
INSERT INTO waits_for_locks VALUES (1, 1, 1795000000000000004, 5000, 19, 0, 101, 1, 'shop.db', 2, 'BEGIN IMMEDIATE', 1, 100, 102, 5, 1, 5, 4, 6, 'BEGIN', 'sqlite3', 'www-data');
INSERT INTO wal_events VALUES (1, 1, 1, 101, 1795000000000000001, 1000, 0, 30, 1, 30, 2, 4096, 1, 1, 'shop.db', 'INSERT INTO t'),
	(2, 1, 1, 101, 1795000000400000000, 1, 1, 30, 0, 0, 0, 4096, 0, 0, 'shop.db', '');
INSERT INTO connection_counts VALUES (1, 1, 1, 101, 1795000000200000000, 0, 100, 90, 3, NULL, 40960, 8192000, 'shop.db');
INSERT INTO page_sums VALUES (1, 1, 101, 1795000000200000000, 3, 4, 7, 10, 40960, 0, 5, 4, 20600, 0, 0, 0, 'shop.db', 'i_amount', 'asset'),
	(2, 9, 101, 1795000000300000000, 99, -1, 0, -1, 9223372036854775807, 1, 0, 0, 0, 0, 0, 0, '', '', '');
INSERT INTO open_statement_counts VALUES (1, 1, 1, 101, 1795000000200000000, 20000, 512, 20, 2000000, 40960, 7, 30, 90000, 'shop.db', 'INSERT INTO t'),
	(2, 9, 1, 101, 1795000000300000000, -1, 0, 0, 0, 0, 0, 0, 0, '', '');
INSERT INTO wal_checkpoints VALUES (1, 1, 1, 101, 1795000000200000000, 5000, 100, 2000, 300, 400, 50, 122880, 0, 0, 0, 30, 3, 20, 4096, 3, 1, 20, 2, 1, 100,
	102, 5, 1795000000100000000, 1, 1, 'shop.db', 'COMMIT', 'SELECT 1');
INSERT INTO transactions VALUES (1, 1, 5, 1, 102, 1, 2, 3, 4, 5, 6, 1, 1, 2, 2, 'shop.db', 'BEGIN', 'COMMIT', 7, 5, 3, 1);
