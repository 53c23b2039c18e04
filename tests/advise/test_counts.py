#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The loops, rows and estimates of queryprof analyze are SQLite's own, and those of the right node, for statements of many kinds.

usage: test_counts.py QUERYPROF SCAN_COUNTS       (scan_counts.c)"""

import json
import os
import sqlite3
import subprocess
import sys
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")]
from recording import *

SCAN_COUNTS = os.path.abspath(sys.argv.pop(1))

SCHEMA = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b, c TEXT, d REAL);
WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 2000)
INSERT INTO t SELECT x, x % 200, printf('%08x', x * 7919 % 65521), x * 1.5 FROM r;
CREATE INDEX tb ON t(b);
CREATE INDEX tcb ON t(c, b);
CREATE INDEX half ON t(d) WHERE b < 100;
CREATE INDEX lowered ON t(lower(c));
CREATE TABLE u(k INTEGER PRIMARY KEY, v, w UNIQUE);
INSERT INTO u SELECT a, b, c || a FROM t WHERE a % 3 = 0;
CREATE TABLE v(x, y);
INSERT INTO v SELECT b, a FROM t WHERE a % 10 = 0;
CREATE TABLE w(x, y, z, PRIMARY KEY (x, y)) WITHOUT ROWID;
INSERT INTO w SELECT b, a, c FROM t;
CREATE VIEW s AS SELECT b, sum(d) AS total FROM t GROUP BY b;
CREATE VIRTUAL TABLE f USING fts5(body);
INSERT INTO f SELECT 'word' || (a % 7) || ' and ' || c FROM t;
CREATE VIRTUAL TABLE g USING rtree(id, x0, x1, y0, y1);
INSERT INTO g SELECT a, a, a + 1, b, b + 1 FROM t;
CREATE TABLE logged(x);
CREATE TRIGGER log AFTER DELETE ON v BEGIN INSERT INTO logged SELECT x FROM w WHERE x = OLD.x LIMIT 2; END;
CREATE TABLE tree(id INTEGER PRIMARY KEY, parent);
INSERT INTO tree SELECT a, a / 3 FROM t;
CREATE INDEX children ON tree(parent);
"""

STATEMENTS = """
select count(*) from t
select count(*) from t where c like '%a%'
select c from t order by d desc limit 30
select sum(length(c)) from t where b between 10 and 120
select count(*) from t as x join t as y on x.a = y.a + 1 where x.c <> y.c
select * from t left join u on u.k = t.a where u.k is null
select * from v left join (t join u on u.v = t.b) on v.y = t.a
select count(*) from v right join u on u.k = v.y
select count(*) from v full join u on u.k = v.y
select b, count(*), max(c) from t group by b order by 3
select d, count(*) from t group by d % 7
select distinct b from t
select max(d), min(d) from t
select max(b) from t
select (select max(w) from u where u.k = t.a) from t
select * from t where exists (select 1 from v where v.y = t.a)
select * from t where a in (select k from u)
select * from t where b in (1, 2, 3, 5) and c > '4'
select count(*) from t where a not in (select y from v)
select count(*) from v where y in (select y from v where x in (select x from v where y > 500))
select count(*) from t where b = 5 or c = '00001eef' or a = 7
select count(*) from t where (b = 5 or c = '00001eef') and exists (select 1 from u where u.v = t.b or u.k = 9)
select c from t union select w from u
select c from t union all select w from u
select c from t intersect select w from u order by 1
select count(*) from v as a join v as b on a.x = b.x
select x, max(y) from w group by x
select z from w where x between 3 and 100 order by z
select * from s where total > 100
select * from s join v on v.x = s.b where v.y < 900
with m as materialized (select b, avg(d) as s from t group by b) select count(*) from t join m using (b) where d > s
with recursive r(x) as (values(1) union all select x + 1 from r where x < 3000) select sum(x) from r
with recursive below(id) as (select 3 union select tree.id from tree join below on tree.parent = below.id) select count(*) from below
select a, sum(b) over (partition by b order by a) from t
select lag(c) over (order by a), row_number() over (order by d) from t where b < 60
select count(*) from t where d > 30 and b < 100
select a from t where lower(c) = '00001eef'
select value from json_each('[1, 2, 3, 4]') where value > 1
select t.a, j.value from t join json_each('[' || t.a || ',' || t.b || ']') as j where t.a < 20
select rowid from f where f match 'word3' order by rank limit 5
select count(*) from f join t on t.a = f.rowid where f match 'word1 OR word2' and t.b < 50
select count(*) from g where x0 > 100 and x1 < 200 and y0 < 150
select count(*) from t join g on g.id = t.a where t.b = 7
with q(m, n) as (values (1, 2), (3, 4)) select * from q join t on t.a = q.m
insert into u(k, v, w) select a, b, c from t where a < 50 on conflict(k) do update set v = excluded.v + 1
insert into v select b, a from t where b = 3
update t set d = d + 1 where b = 9
update v set x = t.b + 1 from t where t.a = v.y and t.b < 40
delete from v where x = 30
delete from t where a in (select y from v where x > 150)
""".strip().split("\n")


class Counts(unittest.TestCase):
    def test_equal(self):
        """SQLite lists the loops in the order in which it made them; their addresses are in the order of the nodes."""
        folder = tempfile.mkdtemp(prefix="queryprof-counts-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "app.db")
        db = sqlite3.connect(path)
        db.executescript(SCHEMA)
        db.close()
        truth = subprocess.run([SCAN_COUNTS, path], input="\n".join(STATEMENTS) + "\n", stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        self.assertEqual(len(truth), len(STATEMENTS))
        loops = 0
        for sql, line in zip(STATEMENTS, truth):
            with self.subTest(sql):
                done = subprocess.run([QUERYPROF, "analyze", path, sql, "--for", "1s", "--format", "json"], stdout=subprocess.PIPE, text=True, check=True)
                rows = [[row[name] for name in ("detail", "loops", "rows", "estimated_rows")] for row in json.loads(done.stdout) if row["loops"] is not None]
                self.assertEqual(rows, [row[1:] for row in sorted(json.loads(line))])
                loops += len(rows)
        print(f"{loops} loops of {len(STATEMENTS)} statements")
        self.assertGreater(loops, len(STATEMENTS))


if __name__ == "__main__":
    unittest.main()
