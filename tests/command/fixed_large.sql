-- SPDX-License-Identifier: Apache-2.0
-- Loaded after fixed.sql: two runs that take hours, called from an interpreter. They scan, sort and build indexes.
INSERT INTO modules (id, build_id, path, file_size, mtime_ns, base, extent, elf_start)
VALUES (4, 'cc03', '/usr/lib/libqueryprof.so', 1, 1, 0x7f0001000000, 0x10000, 0),
       (5, 'dd04', '/usr/bin/python3.11', 1, 1, 0x570000000000, 0x100000, 0);

INSERT INTO names (id, name)
VALUES (101, 'sqlite3BtreeNext'), (102, 'wrap_sqlite3_step'), (103, 'pysqlite_step'), (104, '_PyEval_EvalFrameDefault'),
       (105, 'Py_BytesMain'), (106, 'main'), (107, '_start');

INSERT INTO frames (address, level, inlined, function, symbol, file, line)
VALUES (0x7f0000006000, 0, 0, 101, 101, 0, 0), (0x7f0001000100, 0, 0, 102, 102, 0, 0),
       (0x570000000100, 0, 0, 103, 103, 0, 0), (0x570000000200, 0, 0, 104, 104, 0, 0),
       (0x570000000300, 0, 0, 105, 105, 0, 0), (0x570000000400, 0, 0, 106, 106, 0, 0),
       (0x570000000500, 0, 0, 107, 107, 0, 0);

-- Scanning and comparing, from two calls of the interpreter; and a thread without main().
INSERT INTO stacks (id, hash, epoch, trace)
SELECT id, 0, 1, '[' || leaf || ',' || 0x7f0000002000 || ',' || 0x7f0000003000 || ',' || 0x7f0001000100 || ','
                 || 0x570000000100 || replace(printf('%.*c', depth, '.'), '.', ',' || 0x570000000200) || ends || ']'
FROM (SELECT column1 AS id, column2 AS leaf, column3 AS depth, column4 AS ends FROM (
	VALUES (101, 0x7f0000006000, 12, ',' || 0x570000000300 || ',' || 0x570000000400 || ',' || 0x570000000500),
	       (102, 0x7f0000001100, 12, ',' || 0x570000000300 || ',' || 0x570000000400 || ',' || 0x570000000500),
	       (103, 0x7f0000001100, 1, '')));

INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query)
VALUES (11, 0, 0x7c01d4f900000911, 0, 'SELECT count(*) FROM orders AS a, orders AS b WHERE a.note = b.note');

INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement, query_start_ns,
                     query_duration_ns, cpu_time_ns, database, thread_id, result_rows, fullscan_steps, sorts,
                     autoindexes, samples_cpu, weight_cpu)
SELECT column1, column2, 1, start, start + column4 * 1000000, 1, column1, 11, start, column4 * 1000000,
       column5 * 1000000, '/opt/shop/orders.db', 101, 1, column6, column7, column8, 3, 3
FROM (SELECT *, 1795000100000000000 + column3 * 1000000000 AS start FROM (
	VALUES (11, '0193a5b2-9001-7aaa-8000-000000000011', 0, 45000000, 44000000, 123456789, 2, 40000),
	       (12, '0193a5b2-9002-7aaa-8000-000000000012', 50000, 90000, 8000, 900, 0, 0)));

INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)
VALUES (1795000100000001000, 1, 11, 101, 0, 5000000, 0, 0), (1795000100000002000, 1, 11, 102, 0, 4000000, 0, 0),
       (1795000100000003000, 1, 11, 103, 0, 2000000, 0, 0), (1795050100000001000, 1, 12, 101, 0, 2000, 0, 0);
