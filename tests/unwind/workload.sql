-- SPDX-License-Identifier: Apache-2.0
-- Stacks of all kinds in SQLite; the last statement never ends.
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
INSERT INTO t SELECT n, printf('%d-%x', n * 7919 % 1000, n), random() FROM c;
CREATE INDEX i ON t(b, c);
SELECT length(group_concat(b)) FROM (SELECT b FROM t WHERE b LIKE '%7%' ORDER BY c DESC);
SELECT json_group_array(json_object('a', a, 'b', upper(b))) LIKE '%x%' FROM t;
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)
SELECT count(DISTINCT n % 1000 || printf('%.3f', n / 7.0)) FROM c;
