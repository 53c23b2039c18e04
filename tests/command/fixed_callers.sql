-- SPDX-License-Identifier: Apache-2.0
-- Loaded after fixed.sql. The shop is a Python program, and most runs have the line that began them. 2000 runs of the
-- search were not logged.
INSERT INTO call_stacks (id, hash, frames, caller, caller_function)
VALUES (1, 1, '[["/srv/shop/orm/query.py",12,"run"],["/srv/shop/orders.py",31,"Orders.search"],["/srv/shop/app.py",90,"<module>"]]',
        '/srv/shop/orders.py:31', 'Orders.search'),
       (2, 2, '[["/srv/shop/orm/query.py",12,"run"],["/srv/shop/orders.py",58,"Orders.newest"],["/srv/shop/app.py",91,"<module>"]]',
        '/srv/shop/orders.py:58', 'Orders.newest'),
       (3, 3, '[["/srv/shop/report.py",7,"<module>"]]', '/srv/shop/report.py:7', '<module>');
UPDATE queries SET call_stack = CASE id WHEN 1 THEN 1 WHEN 2 THEN 1 WHEN 3 THEN 2 WHEN 4 THEN 3 ELSE 0 END;
-- A short sampled run from each of two lines.
INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement, query_start_ns,
                     query_duration_ns, cpu_time_ns, database, thread_id, result_rows, samples_cpu, weight_cpu, call_stack)
SELECT id, 'short ' || id, 1, start, start + 180000, 1, id, 4, start, 180000, 100000, '/opt/shop/orders.db', 101, 3, 1, 1, id / 20
FROM (SELECT value AS id, 1795000007000000000 + value * 1000000 AS start FROM json_each('[20,21,22,40]'));
INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)
SELECT first_ns + 90000, 1, id, 1, 0, 1, 0, 0 FROM queries WHERE query_id LIKE 'short %';
