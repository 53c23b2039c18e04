-- The trace file of the golden tests, after sql/schema/store_schema.sql: a program, its
-- library and the names of both, so that the machine's programs do not matter.
--
-- main calls run; run calls sort, into which compare is inlined and into that a C++
-- function; one place in the library has no name, one address is in no module.
INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) VALUES (1, 'host', 100, 1795000000000000000, '/opt/app/app');
INSERT INTO threads VALUES (1, 1, 101, 'main'), (2, 1, 102, 'worker');
INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (1, 1, 'CPU', 1000000, 1), (2, 2, 'CPU', 2000000, 1), (3, 1, 'Real', 1000000, 1);
INSERT INTO modules (id, build_id, path, file_size, mtime_ns, base, extent, elf_start) VALUES
	(1, 'aa11', '/opt/app/app', 1, 1, 0x10000, 0x1000, 0),
	(2, 'bb22', '/opt/app/lib/libwork.so.1', 1, 1, 0x20000, 0x1000, 0x400);
INSERT INTO names VALUES
	(1, 'main'), (2, 'run'), (3, 'sort'), (4, 'compare'), (5, 'std::less<int>::operator()(int, int)'),
	(6, '_ZNSt4lessIiEclEii'), (7, '/src/main.c'), (8, '/src/sort.c'), (9, '/src/less.h');
INSERT INTO frames (address, level, inlined, function, symbol, file, line) VALUES
	(0x10100, 0, 0, 1, 1, 7, 12),
	(0x10200, 0, 0, 2, 2, 7, 34),
	(0x20100, 0, 1, 5, 6, 9, 3), (0x20100, 1, 1, 4, 4, 8, 20), (0x20100, 2, 0, 3, 3, 8, 50),
	(0x20180, 0, 0, 3, 3, 8, 55);
INSERT INTO stacks (id, hash, epoch, trace) VALUES
	(1, 0, 1, '[131328,66048,65792]'), -- 0x20100 0x10200 0x10100
	(2, 0, 1, '[131456,66048,65792]'), -- 0x20180: sort itself
	(3, 0, 1, '[131840,66048,65792]'), -- 0x20300: no name
	(4, 0, 1, '[4611686018427400192,65792]'), -- in no module
	(5, 0, 1, '[66048]'); -- cut below run
INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query) VALUES
	(1, 0, 11, 0, 'SELECT * FROM orders ORDER BY total'),
	(2, 0, 12, 0, 'UPDATE "stock"
SET n = n - 1');
INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement, query_start_ns,
                     query_duration_ns, cpu_time_ns, database, thread_id, result_rows, samples_cpu, samples_real)
VALUES
	(1, 'sorted', 1, 1795000000000000000, 1795000000099999999, 1, 1, 1, 1795000000000000000, 100000000, 60000000,
	 '/data/shop.db', 101, 500, 8, 2),
	(2, 'updated', 1, 1795000000200000000, 1795000000299999999, 1, 2, 2, 1795000000200000000, 100000000, 9000000,
	 '/data/shop.db', 101, 0, 3, 0);
INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size) VALUES
	(1795000000001000000, 1, 1, 1, 0, 10, 0, 0),
	(1795000000002000000, 1, 1, 1, 1, 10, 0, 0),
	(1795000000003000000, 1, 1, 2, 0, 5, 0, 0),
	(1795000000004000000, 2, 1, 1, 2, 3, 0, 0),
	(1795000000005000000, 1, 1, 3, 0, 8, 0, 0),
	(1795000000006000000, 3, 1, 1, 0, 1, 0, 0),
	(1795000000007000000, 3, 1, 5, 0, 4, 1, 0),
	(1795000000201000000, 1, 2, 4, 0, 2, 0, 0),
	(1795000000202000000, 1, 2, 5, 0, 7, 1, 0),
	(1795000000400000000, 1, 0, 2, 0, 1, 0, 0);
