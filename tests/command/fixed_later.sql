-- SPDX-License-Identifier: Apache-2.0
-- The other side of a comparison: fixed.sql after a day of work. It has a newer SQLite at another address, a search
-- that reads less, and a new statement.
UPDATE modules SET path = '/opt/shop/lib/libsqlite3.so.0.9.1', build_id = 'cc03', base = base + 0x5000000000 WHERE id = 1;
UPDATE frames SET address = address + 0x5000000000 WHERE address BETWEEN 0x7f0000000000 AND 0x7f0000200000;
UPDATE stacks SET trace = (
	SELECT '[' || group_concat(CASE WHEN value BETWEEN 0x7f0000000000 AND 0x7f0000200000
	                                THEN value + 0x5000000000 ELSE value END) || ']' FROM json_each(trace));
UPDATE queries SET query_duration_ns = 100000000, cpu_time_ns = 92000000 WHERE id = 1;
UPDATE samples SET stack = 1 WHERE query = 1 AND stack = 3;
DELETE FROM samples WHERE query = 1 AND series = 1 AND timestamp_ns > 1795000000200000000;
DELETE FROM queries WHERE id = 4;
DELETE FROM samples WHERE query = 4;
INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query) VALUES (5, 0, 905, 0, 'SELECT count(*) FROM customers');
INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, statement, query_start_ns, query_duration_ns, cpu_time_ns)
VALUES (7, 'new', 1, 1795000003000000000, 1795000003000000000, 1, 5, 1795000003000000000, 30000000, 30000000);
UPDATE statement_counters SET execution_time_ns = 280000000, cpu_time_ns = 264000000, max_ns = 100000000,
	execution_time_square = 2.6e16, cpu_time_square = 2.2e16 WHERE normalized_query_hash = 901;
UPDATE statement_counters SET calls = 1500, execution_time_ns = 9000000, cpu_time_ns = 9000000
WHERE normalized_query_hash = 914;
DELETE FROM statement_counters WHERE normalized_query_hash = 902;
INSERT INTO statement_counters (normalized_query_hash, database, program, statement, calls, execution_time_ns, cpu_time_ns,
                                duration_ns, execution_time_square, cpu_time_square)
VALUES (905, '/opt/shop/orders.db', '/opt/shop/bin/shopd', 5, 1, 30000000, 30000000, 30000000, 9e14, 9e14);
