#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the time of each node of a plan with SQLite's own count of cycles. SQLite is a newer version, built with
SQLITE_ENABLE_STMT_SCANSTATUS.

SQLite counts a node's cycles of the opcodes that work on its cursors. So its share is at most the node's share here,
including all nodes below. SQLite counts some opcodes for no node, so the share here may be larger by these. So a node has
one or two bounds, and each is compared in standard errors of the samples.

More than a hundred right comparisons cannot all be within three standard errors. Each is beyond them by chance in 0.135 %
of runs, and at least one of 200 in each fourth run. So the test requires that no more of them are beyond three errors than
chance explains (in all but one of 10,000 runs), and that none is beyond 4.5 (200 comparisons: one run in 1,500). If fewer
than SAMPLES_MIN samples are expected, an error is not a useful measure, and the node counts as too short.

usage: test_scanstatus.py QUERYPROF SOURCE_DIR
       test_scanstatus.py --run DATABASE      (below queryprof record)
       test_scanstatus.py --explain DATABASE LIBRARY"""

import ctypes
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

SECONDS = 0.5  # of CPU time per statement
ERRORS, ERRORS_MOST = 3, 4.5
SAMPLES_MIN = 10
CHANCE = 1e-4
NLOOP, NVISIT, EXPLAIN, SELECT_ID, NCYCLE = 0, 1, 4, 5, 7  # SQLITE_SCANSTAT_…
COMPLEX = 1
DBCONFIG_STMT_SCANSTATUS = 1018

SCHEMA = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b, c TEXT, d REAL);
WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 20000)
INSERT INTO t SELECT x, x % 200, printf('%08x%08x', x * 7919 % 65521, x * 104729 % 65537), x * 1.5 FROM r;
CREATE INDEX tb ON t(b);
CREATE INDEX tcb ON t(c, b);
CREATE TABLE u(k INTEGER PRIMARY KEY, v, w);
INSERT INTO u SELECT a, b, c FROM t WHERE a % 3 = 0;
CREATE TABLE v(x, y);
INSERT INTO v SELECT b, a FROM t WHERE a % 10 = 0;
CREATE TABLE w(x, y, z, PRIMARY KEY (x, y)) WITHOUT ROWID;
INSERT INTO w SELECT b, a, c FROM t;
"""

STATEMENTS = """
select count(*) from t where c like '%AB%'
select c from t order by d desc
select c,d from t order by d desc limit 3000
select sum(length(c)) from t where b between 10 and 120
select count(*) from t as x join t as y on x.a=y.a+1 where x.c<>y.c
select count(distinct c) from t
select count(*) from t join u on u.k=t.a where u.w>'A'
with recursive r(x) as (values(1) union all select x+1 from r where x<30000) select sum(x) from r
select a,sum(b) over (partition by b order by a) from t
select b,count(*),max(c) from t group by b order by 3
select d,count(*) from t group by d%7
select distinct b from t
select distinct substr(c,1,2) from t
select c from t union select w from u
select c from t union all select w from u
select c from t intersect select w from u
select c from t except select w from u
select * from t where a in (select k from u)
select * from t left join u on u.k=t.a where u.k is null
select (select max(w) from u where u.k=t.a) from t
select * from t where exists (select 1 from v where v.y=t.a)
select count(*) from v as a join v as b on a.x=b.x
select count(*) from v as a join v as b on a.x=b.x and a.y<b.y
select x,max(y) from w group by x
select z from w where x between 3 and 100 order by z
select count(*) from w join t on w.y=t.a
select * from (select b,count(*) as n from t group by b) where n>5 order by n
select * from (select b,sum(d) as s from t group by b) as q join v on v.x=q.b
with m as materialized (select b,avg(d) as s from t group by b) select count(*) from t join m using (b) where d>s
select upper(c)||lower(c) from t where a%2=0
select a from t where c>'8' order by c,b limit 5000
select max(d),min(d) from t
select group_concat(c) from t where b<20
select row_number() over (order by d),a from t where b<100
select lag(c) over (order by a),lead(c) over (order by a) from t where b<60
select ntile(4) over (order by c) from t where b<60
select count(*) from t where b=5 or b=6 or b=7 or c like 'A%'
select t.b,count(*) from t,u where t.b=u.v and u.k<900 group by t.b
select count(*) from t where a not in (select y from v)
select a,b,c,d from t order by b,a desc
select cast(d as integer)%10 as g,count(distinct b) from t group by g
select json_extract('{"a":'||a||'}','$.a') from t where a<6000
with recursive f(n,a,b) as (select 1,0,1 union all select n+1,b,(a+b)%1000007 from f where n<20000) select count(*) from f
""".strip().split("\n")


# The number of rows depends on the parameter.
RUNS = 4
COUNTED = [
    "select count(*) from t cross join u on u.k=t.a where t.a>19800+? and burn(u.w)",
    "select * from t left join u on u.k=t.a where u.k is null and t.a>19900+? and burn(t.c) order by t.d desc",
    "select (select count(*) from v where v.y=t.a),burn(t.a) from t where t.a>19900+?",
    "select c from t where t.a>19900+? and burn(t.c) union select w from u",
]


def fetch():
    """The folder of the newer sources, or None if they are not available here."""
    done = subprocess.run([os.path.join(SOURCE, "third_party/npm/fetch"), os.path.join(SOURCE, "tests/plan/sources")],
                          stdout=subprocess.PIPE, text=True, check=False)
    return None if done.returncode else os.path.join(done.stdout.strip(), "node_modules/better-sqlite3/deps/sqlite3")


class Scanned:
    """A connection, and SQLite's counts of its statements."""

    def __init__(self, path):
        self.library = ctypes.CDLL("libsqlite3.so.0")
        self.db = sqlite3.connect(path, isolation_level=None)
        self.handle = ctypes.c_void_p.from_address(id(self.db) + object.__basicsize__)
        self.library.sqlite3_next_stmt.restype = ctypes.c_void_p
        self.library.sqlite3_next_stmt.argtypes = [ctypes.c_void_p] * 2
        self.library.sqlite3_sql.restype = ctypes.c_char_p
        self.library.sqlite3_sql.argtypes = [ctypes.c_void_p]
        self.library.sqlite3_stmt_scanstatus_reset.argtypes = [ctypes.c_void_p]
        self.library.sqlite3_stmt_scanstatus_v2.argtypes = [ctypes.c_void_p] + [ctypes.c_int] * 3 + [ctypes.c_void_p]
        self.library.sqlite3_db_config(self.handle, DBCONFIG_STMT_SCANSTATUS, ctypes.c_int(1), None)

    def number(self, stmt, node, what, of=COMPLEX):
        """Returns None if there is no such node. `of` 0: counts loops only."""
        to = ctypes.c_int64(0)
        return None if self.library.sqlite3_stmt_scanstatus_v2(stmt, node, what, of, ctypes.byref(to)) else to.value

    def text(self, stmt, node):
        to = ctypes.c_char_p()
        self.library.sqlite3_stmt_scanstatus_v2(stmt, node, EXPLAIN, COMPLEX, ctypes.byref(to))
        return (to.value or b"").decode()

    def find(self, sql):
        stmt = self.library.sqlite3_next_stmt(self.handle, None)
        while self.library.sqlite3_sql(stmt).decode() != sql:
            stmt = self.library.sqlite3_next_stmt(self.handle, stmt)
        return stmt

    def count(self, sql):
        """The counts of the statement's loops in all of its runs since they were reset: for each node, its starts and
        its rows."""
        stmt = self.find(sql)
        counts = {}
        while self.number(stmt, len(counts), NLOOP, 0) is not None:
            of = [self.number(stmt, len(counts), what, 0) for what in (SELECT_ID, NLOOP, NVISIT)]
            counts[of[0]] = of[1:]
        return counts

    def run_counted(self, sql):
        """The counts that each run added. Before the third run the program resets the counts. Before the fourth run the
        schema changes, and SQLite prepares the statement again in that run."""
        runs = []
        before = {}
        for number in range(RUNS):
            if number == 2:
                self.library.sqlite3_stmt_scanstatus_reset(self.find(sql))
            elif number == 3:
                self.db.execute("create table another%d(x)" % COUNTED.index(sql))
            self.db.execute(sql, (number * 10,)).fetchall()
            now = self.count(sql)
            before = {} if number >= 2 else before
            runs.append({node: [a - b for a, b in zip(of, before.get(node, (0, 0)))] for node, of in now.items()})
            before = now
        return runs

    def run(self, sql):
        """All cycles, and text and cycles of each node. Takes the least of the runs, because cycles continue to count
        while other threads have the processor."""
        least = None
        end = time.thread_time() + SECONDS
        while time.thread_time() < end or not least:
            self.db.execute(sql).fetchall()
            stmt = self.find(sql)
            cycles = [self.number(stmt, -1, NCYCLE)]
            while self.number(stmt, len(cycles) - 1, NLOOP) is not None:
                cycles.append(max(0, self.number(stmt, len(cycles) - 1, NCYCLE)))
            least = [min(pair) for pair in zip(least or cycles, cycles)]
            self.library.sqlite3_stmt_scanstatus_reset(stmt)
        return least[0], [(self.text(stmt, i), number) for i, number in enumerate(least[1:])]


def explain(path, library):
    """For a few statements, the loops and rows that SQLite counts for each node in a run, and the numbers of explain_analyze()."""
    scanned = Scanned(path)
    scanned.db.enable_load_extension(True)
    scanned.db.execute("SELECT load_extension(?)", (library,))
    both = {}
    for sql in STATEMENTS[:24]:
        scanned.db.execute(sql).fetchall()
        explained = scanned.db.execute("SELECT node, loops, rows, estimated_rows, time_ns FROM explain_analyze(?)", (sql,)).fetchall()
        both[sql] = scanned.count(sql), explained
    print(json.dumps(both))


def burn(_value):
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass
    return 1


def run(path):
    scanned = Scanned(path)
    scanned.db.create_function("burn", 1, burn)
    scanned.db.executescript(SCHEMA)
    print(json.dumps([{sql: scanned.run(sql) for sql in STATEMENTS}, {sql: scanned.run_counted(sql) for sql in COUNTED}]))


class Node:
    def __init__(self, number, parent, detail):
        self.number, self.parent, self.detail = number, parent, detail
        self.time = self.square = 0


class Plan:
    """A statement's nodes with their times."""

    def __init__(self, db, sql):
        self.nodes = {}
        program = db.execute("SELECT program FROM queries JOIN statements AS s ON s.id = statement "
                             "WHERE s.query = ? AND program", (sql,)).fetchone()
        for row in db.execute("SELECT node, parent, detail FROM plan_nodes WHERE program = ?", program):
            self.nodes[row[0]] = Node(*row)
        self.nodes[0] = Node(0, None, "")
        self.samples = 0
        for number, ns, square, count in db.execute(
                "SELECT o.node, sum(p.value), sum(1.0 * p.value * p.value), count(*) FROM queries AS q "
                "JOIN statements AS s ON s.id = q.statement JOIN sample_values AS p ON p.query = q.id "
                "JOIN program_opcodes AS o ON o.program = q.program AND o.address = p.opcode "
                "WHERE s.query = ? AND p.opcode GROUP BY 1", (sql,)):
            self.nodes[number].time, self.nodes[number].square = ns, square
            self.samples += count
        self.whole = sum(node.time for node in self.nodes.values())

    def below(self, node, seen):
        """The node and the nodes that it waits for, including the coroutine that a loop reads. SQLite counts the
        columns that go into a sorter for the sort; here they count for the loop over their table."""
        if node not in seen:
            seen.add(node)
            made = "CO-ROUTINE " + node.detail.partition("SCAN ")[2]
            sorts = node.detail.startswith("USE TEMP")
            for other in self.nodes.values():
                if other.parent == node.number or other.detail == made or (
                        sorts and other.detail.startswith(("SCAN", "SEARCH"))):
                    self.below(other, seen)
        return seen

    def share(self, nodes, expected):
        """The nodes' share of the whole, its error, and the number of samples if `expected` is the truth, because few
        samples estimate it badly."""
        time_ = sum(node.time for node in nodes)
        a_sample = sum(node.square for node in self.nodes.values()) / self.whole
        most = max(time_, expected * self.whole)
        return time_ / self.whole, math.sqrt(most * a_sample) / self.whole, most / a_sample


def most_by_chance(count):
    """The most of `count` comparisons that are beyond ERRORS in all runs but CHANCE."""
    one = math.erfc(ERRORS / math.sqrt(2)) / 2
    left, most = 1.0, -1
    while left > CHANCE:
        most += 1
        left -= math.comb(count, most) * one**most * (1 - one) ** (count - most)
    return most


class ScanStatus(unittest.TestCase):
    def note(self, sql, detail, over, error, samples):
        """Notes by how much a bound is exceeded."""
        if samples < SAMPLES_MIN:
            self.short += 1
        else:
            self.deviations.append((over / error, sql, detail))

    def compare(self, db, sql, total, counted):
        plan = Plan(db, sql)
        is_flat = all(detail.startswith(("SCAN", "SEARCH", "USE TEMP")) for detail, _ in counted)
        rest = max(0, 1 - sum(cycles for _, cycles in counted) / total)
        for detail in sorted({detail for detail, _ in counted}):
            # Nodes with the same text are compared together.
            expected = sum(cycles for other, cycles in counted if other == detail) / total
            nodes = [node for node in plan.nodes.values() if node.detail == detail]
            if not nodes:  # SQLite adds it only to count
                self.alone.append(detail)
                continue
            self.checked += 1
            share, error, samples = plan.share(set().union(*(plan.below(node, set()) for node in nodes)), expected)
            self.note(sql, detail, expected - share, error, samples)
            if is_flat:
                share, error, samples = plan.share(nodes, expected + rest)
                self.note(sql, detail, share - expected - rest, error, samples)

    def compare_counts(self, db, sql, runs):
        counted = [{} for _ in runs]
        queries = db.execute("SELECT DISTINCT q.id, q.query_start_ns FROM queries AS q JOIN statements AS s ON s.id = statement "
                             "WHERE s.query = ? ORDER BY 2", (sql,)).fetchall()
        self.assertEqual(len(queries), len(runs))
        for number, (query, _) in enumerate(queries):
            for node, *of in db.execute("SELECT p.node, p.loops, p.rows FROM plan_times AS p JOIN queries AS q USING (query_id) "
                                        "WHERE q.id = ? AND p.loops IS NOT NULL", (query,)):
                counted[number][str(node)] = of
        self.assertEqual(counted, runs)

    def test_nodes_have_their_time(self):
        sources = fetch()
        if not sources:
            self.skipTest("no newer sources of SQLite")
        with tempfile.TemporaryDirectory() as folder:
            # Without optimisation, each opcode is known.
            subprocess.run(["cc", "-O0", "-g", "-shared", "-fPIC", "-w", "-DSQLITE_ENABLE_STMT_SCANSTATUS", "-Wl,-soname,libsqlite3.so.0",
                            "-o", os.path.join(folder, "libsqlite3.so.0"), os.path.join(sources, "sqlite3.c"), "-lm"], check=True)
            trace = os.path.join(folder, "trace")
            out = subprocess.run([COMMAND, "record", "-o", trace, "--cpu", "1ms", "--", sys.executable, os.path.abspath(__file__),
                                  "--run", os.path.join(folder, "db")], env=dict(os.environ, LD_LIBRARY_PATH=folder),
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
            self.checked = self.short = 0
            self.deviations, self.alone = [], []
            timed, counted = json.loads(out.splitlines()[0])
            both = subprocess.run([sys.executable, os.path.abspath(__file__), "--explain", os.path.join(folder, "db"), os.path.join(os.path.dirname(COMMAND), "libqueryprof")],
                                  env=dict(os.environ, LD_LIBRARY_PATH=folder), stdout=subprocess.PIPE, text=True, check=True).stdout
            for sql, (counts, explained) in json.loads(both).items():
                with self.subTest("explain_analyze: " + sql):
                    # A program that makes an automatic index has other numbers than EXPLAIN QUERY PLAN. Loops over subqueries are not counted.
                    of = iter([loops, rows] for node, loops, rows, estimate, time_ns in explained if estimate is not None)
                    self.assertTrue(all(counts[node] in of for node in sorted(counts, key=int)), (counts, explained))
                    self.assertTrue(all(0 <= time_ns <= explained[0][4] for *_, time_ns in explained if time_ns is not None))
                    self.assertGreater(sum(time_ns or 0 for node, *_, time_ns in explained if node), 0)
            db = sqlite3.connect(trace)
            for sql, (total, nodes) in timed.items():
                with self.subTest(sql):
                    self.compare(db, sql, total, nodes)
            for sql, runs in counted.items():
                with self.subTest(sql):
                    self.compare_counts(db, sql, runs)
            db.close()
            tree = subprocess.run([COMMAND, "plan", trace, "--like", "left join u"], check=True, stdout=subprocess.PIPE, text=True).stdout
            self.assertRegex(tree, r"SEARCH u .* loops, \d+ rows, [0-9.]+ a loop, [0-9.]+ estimated")
        self.deviations.sort(reverse=True)
        beyond = [one for one in self.deviations if one[0] > ERRORS]
        print(f"{self.checked} nodes of {len(STATEMENTS)} statements, {len(self.deviations)} bounds compared and {self.short} "
              f"too short, {len(beyond)} crossed by {ERRORS} errors, the most {self.deviations[0]}; for counting alone: {self.alone}")
        self.assertGreater(self.checked, 60)
        self.assertGreater(len(self.deviations), 80)
        self.assertLessEqual(len(beyond), most_by_chance(len(self.deviations)), beyond)
        self.assertLessEqual(self.deviations[0][0], ERRORS_MOST, beyond)


if __name__ == "__main__":
    if sys.argv[1] == "--explain":
        explain(*sys.argv[2:])
        sys.exit()
    if sys.argv[1] == "--run":
        run(sys.argv[2])
        sys.exit()
    SOURCE = os.path.abspath(sys.argv.pop(2))
    COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main()
