-- SPDX-License-Identifier: Apache-2.0
-- A trace file whose reports are known to the letter (golden/). It is loaded after sql/schema/store_schema.sql. The
-- data is a shop whose orders are searched (three runs, one of them slow), sorted with a helper thread, and reported by
-- a statement that fails. The programs do not exist. The file contains their names and lines, except one module's.
INSERT INTO processes (id, hostname, process_id, start_time_ns, executable)
VALUES (1, 'shop-1', 100, 1795000000000000000, '/opt/shop/bin/shopd');

INSERT INTO threads (id, process, thread_id, thread_name)
VALUES (1, 1, 101, 'shopd'), (2, 1, 102, 'sorter');

INSERT INTO series (id, thread, trace_type, period_ns, epoch)
VALUES (1, 1, 'CPU', 4000000, 1), (2, 1, 'Real', 10000000, 1), (3, 2, 'CPU', 4000000, 1);

INSERT INTO modules (id, build_id, path, file_size, mtime_ns, base, extent, elf_start)
VALUES (1, 'aa01', '/opt/shop/lib/libsqlite3.so.0.8.6', 1, 1, 0x7f0000000000, 0x200000, 0),
       (2, 'bb02', '/opt/shop/bin/shopd', 1, 1, 0x560000000000, 0x100000, 0),
       (3, '', '/opt/shop/lib/libplugin.so', 1, 1, 0x7f0000400000, 0x10000, 0);

INSERT INTO names (id, name)
VALUES (1, 'sqlite3VdbeExec'), (2, 'sqlite3_step'), (3, 'patternCompare'), (4, 'vdbe.c'),
       (5, 'void std::vector<std::pair<Order, Customer>, std::allocator<std::pair<Order, Customer> > >::_M_realloc_insert<std::pair<Order, Customer> >(__gnu_cxx::__normal_iterator<std::pair<Order, Customer>*, std::vector<std::pair<Order, Customer>, std::allocator<std::pair<Order, Customer> > > >, std::pair<Order, Customer>&&)'),
       (6, '_ZNSt6vectorISt4pairI5Order8CustomerESaIS3_EE17_M_realloc_insertIJS3_EEEvN9__gnu_cxx17__normal_iteratorIPS3_S5_EEDpOT_'), (7, 'orders.cpp'), (8, 'vdbeSorterSort'), (9, 'shop::Orders::search(std::string_view)'),
       (10, '_ZN4shop6Orders6searchESt17basic_string_viewIcE'), (11, 'sqlite3Utf8Read'), (12, 'func.c'),
       (13, 'pread64');

-- sqlite3Utf8Read is inlined into patternCompare at 0x7f0000001200.
INSERT INTO frames (address, level, inlined, function, symbol, file, line)
VALUES (0x7f0000001100, 0, 0, 3, 3, 12, 730), (0x7f0000001200, 0, 1, 11, 11, 12, 160),
       (0x7f0000001200, 1, 0, 3, 3, 12, 735), (0x7f0000002000, 0, 0, 1, 1, 4, 4400),
       (0x7f0000003000, 0, 0, 2, 2, 0, 0), (0x7f0000004000, 0, 0, 8, 8, 0, 0),
       (0x7f0000005000, 0, 0, 13, 13, 0, 0), (0x560000001000, 0, 0, 9, 10, 7, 55),
       (0x560000002000, 0, 0, 5, 6, 7, 90);

-- search: in itself, in the inlined function, reading, in a plugin without names; then the sort; a stack only in the
-- program; an address outside of all modules.
INSERT INTO stacks (id, hash, epoch, trace)
VALUES (1, 0, 1, printf('[%d,%d,%d,%d]', 0x7f0000001100, 0x7f0000002000, 0x7f0000003000, 0x560000001000)),
       (2, 0, 1, printf('[%d,%d,%d,%d]', 0x7f0000001200, 0x7f0000002000, 0x7f0000003000, 0x560000001000)),
       (3, 0, 1, printf('[%d,%d,%d,%d]', 0x7f0000005000, 0x7f0000002000, 0x7f0000003000, 0x560000001000)),
       (4, 0, 1, printf('[%d,%d,%d,%d]', 0x7f0000400123, 0x7f0000002000, 0x7f0000003000, 0x560000001000)),
       (5, 0, 1, printf('[%d,%d]', 0x7f0000004000, 0x7f0000003000)),
       (6, 0, 1, printf('[%d,%d]', 0x560000002000, 0x560000001000)),
       (7, 0, 1, printf('[%d]', 0x4000000000001234));

INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query)
VALUES (1, 0, 901, 0, 'SELECT id, total FROM orders' || char(10) || 'WHERE note LIKE ''%größe%'' AND total > 100'),
       (2, 0, 902, 0, 'SELECT * FROM orders ORDER BY customer, total DESC'),
       (3, 0, 903, 0, 'INSERT INTO report SELECT day, sum(total) FROM orders GROUP BY day'),
       (4, 0, 901, 0, 'SELECT id, total FROM orders' || char(10) || 'WHERE note LIKE ''%farbe%'' AND total > 20'),
       (9, 0, 904, 0, 'DELETE FROM orders WHERE day < 20200101');

INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement, query_start_ns,
                     query_duration_ns, cpu_time_ns, database, thread_id, exception_code, exception, result_rows,
                     worker_cpu_time_ns, samples_cpu, samples_real, weight_cpu, weight_real, samples_dropped)
SELECT id, query_id, 1, start, start + duration, 1, id, statement, start, duration, cpu, '/opt/shop/orders.db', 101,
       code, CASE code WHEN 0 THEN '' ELSE 'disk is full' END, rows,
       CASE id WHEN 4 THEN 236000000 ELSE 0 END, n_cpu, n_wall, n_cpu, n_wall, dropped
FROM (SELECT column1 AS id, column2 AS query_id, column3 AS statement, 1795000000000000000 + column4 * 1000000 AS start,
             column5 * 1000000 AS duration, column6 * 1000000 AS cpu, column7 AS code, column8 AS rows,
             column9 AS n_cpu, column10 AS n_wall, column11 AS dropped
      FROM (VALUES (1, '0193a5b2-77c1-7aaa-8000-000000000001', 1,    0, 400, 200, 0,  12, 50, 40, 0),
                   (2, '0193a5b2-77c2-7bbb-8000-000000000002', 4, 1000,  84,  80, 0,   3, 20,  8, 0),
                   (3, '0193a5b2-77c3-7ccc-8000-000000000003', 4, 2000,  88,  84, 0,   3, 21,  9, 0),
                   (4, 'the big sort',                         2, 3000, 300, 240, 0, 900, 80, 30, 2),
                   (5, '0193a5b2-77c5-7eee-8000-000000000005', 3, 4000,  60,   8, 13,  0,  2,  6, 0)));

-- An unfinished run: its samples are the source of its numbers.
INSERT INTO queries (id, query_id, process, first_ns, last_ns, initial, statement, query_start_ns, query_duration_ns,
                     cpu_time_ns, thread_id, samples_cpu, weight_cpu)
VALUES (6, '0193a5b2-77c6-7fff-8000-000000000006', 1, 1795000005000000000, 1795000005040000000, 6, 9,
        1795000005000000000, 40000000, 12000000, 101, 3, 3);

-- query, its start in ms, series, stack, number of samples, weight of each, ms between them.
INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)
SELECT 1795000000000000000 + start * 1000000 + (i - 1) * step * 1000000 + series * 1000 + stack, series, query, stack,
       0, weight, 0, 0
FROM (SELECT column1 AS query, column2 AS start, column3 AS series, column4 AS stack, column5 AS n, column6 AS weight,
             column7 AS step
      FROM (VALUES (1,    0, 1, 1, 20, 1, 20), (1,    0, 1, 2, 20, 1, 20), (1,    1, 1, 3, 6, 1, 20),
                   (1,    2, 1, 4,  4, 1, 20), (1,    0, 2, 3, 22, 1, 18), (1,    3, 2, 1, 18, 1, 20),
                   (2, 1000, 1, 1, 16, 1,  5), (2, 1000, 1, 2,  2, 1,  5), (2, 1001, 1, 6,  2, 1,  5),
                   (2, 1000, 2, 1,  8, 1, 10), (3, 2000, 1, 1, 18, 1,  4), (3, 2001, 1, 2,  3, 1,  4),
                   (3, 2000, 2, 1,  9, 1,  9), (4, 3000, 1, 5, 20, 3, 15), (4, 3000, 3, 5, 60, 1,  5),
                   (4, 3000, 2, 5, 30, 1, 10), (5, 4000, 1, 1,  2, 1, 10), (5, 4000, 2, 3,  6, 1, 10),
                   (6, 5000, 1, 1,  3, 1, 10), (0, 6000, 1, 7,  2, 1, 10)))
JOIN (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) SELECT i FROM n) ON i <= n;

-- Counters of all runs: also of short ones, and of a statement that was never logged.
INSERT INTO statement_counters (
	normalized_query_hash, database, program, statement, calls, errors, rows, execution_time_ns, cpu_time_ns,
	cpu_time_estimated_ns, duration_ns, min_ns, max_ns, execution_time_square, cpu_time_square, first_seen_ns,
	last_seen_ns)
SELECT hash, '/opt/shop/orders.db', '/opt/shop/bin/shopd', statement, calls, errors, rows, ms * 1000000, cpu * 1000000,
       short * 1000000, ms * 1000000, ms * 1000000 / calls / 2, longest * 1000000, ms * longest * 5e11,
       cpu * longest * 5e11, 1795000000000000000, 1795000000000000000
FROM (SELECT column1 AS hash, column2 AS statement, column3 AS calls, column4 AS errors, column5 AS rows,
             column6 AS ms, column7 AS cpu, column8 AS short, column9 AS longest
      FROM (VALUES (901, 1, 2003, 0, 6018, 580, 372, 8, 400), (902, 2, 1, 0, 900, 300, 240, 0, 300),
                   (903, 3, 1, 1, 0, 60, 8, 0, 60), (914, 16, 1200, 0, 1190, 6, 6, 6, 1)));
INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query)
VALUES (16, 0, 914, 0, 'SELECT name FROM customers WHERE id = ?');
