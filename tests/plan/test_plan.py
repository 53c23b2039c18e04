#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Opcodes and plans of the installed SQLite: nodes equal those of EXPLAIN QUERY PLAN, a function's time is attributed
to the opcode and the node that call it, and the program notices nothing.

usage: test_plan.py LIBRARY QUERYPROF
"""

import contextlib
import ctypes
import glob
import gzip
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = os.path.abspath(sys.argv.pop(2))
LIBRARY = os.path.splitext(os.path.abspath(sys.argv.pop(1)))[0]

SCHEMA = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b, c TEXT);
WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 300)
INSERT INTO t SELECT x, x % 10, hex(randomblob(8)) FROM r;
CREATE INDEX tb ON t(b);
CREATE TABLE u(k INTEGER PRIMARY KEY, v);
INSERT INTO u SELECT a, c FROM t;
CREATE TABLE w(x, y);
CREATE INDEX wx ON w(x);
CREATE TABLE log(n);
CREATE TABLE unique_c(c TEXT UNIQUE COLLATE burning);
CREATE TRIGGER ut AFTER UPDATE ON u BEGIN INSERT INTO log VALUES (burn(new.k)); END;
"""

# Statement, and the node that calls burn().
BURNING = [
    ("SELECT count(*) FROM t WHERE burn(a)", "SCAN t USING COVERING INDEX tb"),
    ("SELECT count(*) FROM t AS x JOIN u AS y ON y.k = x.a WHERE burn(y.v) AND x.b < 5", "SEARCH y USING INTEGER PRIMARY KEY (rowid=?)"),
    ("SELECT burn(c) FROM t ORDER BY b, c", "SCAN t USING INDEX tb"),
    ("SELECT c FROM t ORDER BY c COLLATE burning LIMIT 3", "USE TEMP B-TREE FOR ORDER BY"),
    ("SELECT c FROM t WHERE a < 60 ORDER BY c COLLATE burning", "USE TEMP B-TREE FOR ORDER BY"),
    ("SELECT DISTINCT c COLLATE burning FROM t WHERE a < 60", "USE TEMP B-TREE FOR DISTINCT"),
    ("SELECT c COLLATE burning FROM t WHERE a < 60 UNION SELECT v FROM u WHERE k < 10", "UNION USING TEMP B-TREE"),
    ("INSERT INTO unique_c SELECT c FROM t WHERE a < 60", "MODIFY INDEXES OF unique_c"),
    ("SELECT sum((SELECT burn(v) FROM u WHERE k = a)) FROM t", "SEARCH u USING INTEGER PRIMARY KEY (rowid=?)"),
    ("SELECT b FROM t UNION ALL SELECT burn(v) FROM u", "SCAN u"),
    ("UPDATE u SET v = v || 'x' WHERE k < 200", "TRIGGER ut"),
    ("SELECT count(*) FROM t WHERE a IN (SELECT k FROM u) AND burn(c)", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"),
    ("SELECT count(*) FROM t WHERE (b = 5 OR a < 150) AND burn(c)", "MULTI-INDEX OR"),
]

# Statements whose plans are compared with EXPLAIN QUERY PLAN, too.
PLANNED = [
    "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 300) SELECT burn(a) FROM r JOIN t ON a = x",
    "SELECT DISTINCT c FROM t WHERE burn(a)",
    "SELECT c, count(*) FROM t WHERE burn(a) GROUP BY c ORDER BY 2",
    "SELECT v FROM u WHERE burn(k) UNION SELECT c FROM t ORDER BY 1",
    "SELECT count(*) FROM t WHERE b IN (SELECT x FROM w) OR burn(a)",
    "SELECT a, sum(b) OVER (ORDER BY c) FROM t WHERE burn(a)",
    "INSERT INTO w SELECT burn(a), b FROM t",
    "SELECT count(*) FROM w AS x JOIN w AS z ON x.y = z.y WHERE burn(x.y)",  # an automatic index
    "DELETE FROM w WHERE burn(y)",
    "DELETE FROM t WHERE a > 150 AND burn(b)",
    " SELECT ".lstrip() + " + ".join("burn(%d)" % i for i in range(200)),
    " UNION ALL ".join("SELECT burn(%d)" % i for i in range(300)),
]

# The trigger that fires, the statement, the node that calls burn(), and the node that contains it.
TRIGGERS = [
    ("CREATE TRIGGER it AFTER INSERT ON w BEGIN INSERT INTO log SELECT a FROM t WHERE burn(c); END",
     "INSERT INTO w VALUES (1, 2)", "SCAN t", "TRIGGER it"),
    ("CREATE TRIGGER it AFTER INSERT ON w WHEN (SELECT count(*) FROM u WHERE burn(v)) > 0 BEGIN DELETE FROM t WHERE a < 9; END",
     "INSERT INTO w VALUES (1, 2)", "SCAN u", "TRIGGER it"),
    ("CREATE TRIGGER it AFTER INSERT ON w BEGIN INSERT INTO log SELECT c FROM t ORDER BY c LIMIT 9; DELETE FROM u WHERE burn(v); END",
     "INSERT INTO w VALUES (1, 2)", "SCAN u", "TRIGGER it"),
    ("CREATE TRIGGER it AFTER INSERT ON w BEGIN INSERT INTO log VALUES (1); UPDATE t SET c = v FROM u WHERE k = a AND burn(v); END",
     "INSERT INTO w VALUES (1, 2)", "SEARCH u USING INTEGER PRIMARY KEY (rowid=?)", "SCAN t USING COVERING INDEX tb"),
    ("CREATE TRIGGER it AFTER UPDATE ON w BEGIN INSERT INTO log SELECT k FROM u WHERE burn(v) AND k < 30; END;"
     "INSERT INTO w VALUES (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)",
     "UPDATE w SET y = c FROM t WHERE a = x", "SEARCH u USING INTEGER PRIMARY KEY (rowid<?)", "TRIGGER it"),
    ("CREATE TRIGGER it AFTER INSERT ON w BEGIN INSERT INTO unique_c VALUES (new.x); INSERT INTO unique_c VALUES (new.y); END;"
     "CREATE TRIGGER inner AFTER INSERT ON unique_c BEGIN INSERT INTO log SELECT k FROM u WHERE burn(v); END",
     "INSERT INTO w VALUES (1, 2)", "TRIGGER inner", "TRIGGER it"),
]

# Reads a table of 300,000 rows. That takes a third of a second, so the timer fires under any load.
LONG_SCAN = "Select count(*) FROM t WHERE " + " OR ".join(f"b LIKE '%x{i}%'" for i in range(10))


# On a busy machine the budget would leave a statement only four samples, or by chance none.
WITHOUT_BUDGET = "--setting", "query_profiler_max_overhead_percent=0"

CALL_NS = 600_000  # of CPU time
ENOUGH = 150  # calls: enough ticks for each statement's samples
calls_left = 0
calls_done = samples_before = 0


def spin(turns):
    for _ in range(turns):
        pass


def turns_of(ns):
    """The number of turns that take `ns` of CPU time. The clock is not read again. On a busy machine, a thread that
    reads its CPU clock all the time gives up its processor between two ticks, so no timer hits it."""
    turns, took = 10_000, 0
    while took < 10 * ns:
        turns *= 2
        start = time.thread_time_ns()
        spin(turns)
        took = time.thread_time_ns() - start
    return turns * ns // took


CALL_TURNS = turns_of(CALL_NS)


class Metric(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64), ("text", ctypes.c_char_p), ("description", ctypes.c_char_p)]


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Metric))
def take_metric(_context, metric):
    global samples
    if metric.contents.name == b"samples":
        samples = metric.contents.value
    return 0


def count_samples():
    """Does not use SQL, which would have opcodes of its own."""
    ctypes.CDLL(LIBRARY + ".so").qp_metrics(take_metric, None)
    return samples


def catch_up():
    """A tick comes after about seven calls. If a thread of another program wakes just before each tick, for example for
    seconds by a timer of 1 ms, ticks hit that thread and never this one. So this continues until some have hit."""
    for _ in range(200):
        if count_samples() - samples_before >= calls_done // 20:
            return
        spin(10 * CALL_TURNS)


def burn(_value):
    """Uses CPU time until the statement has had its share."""
    global calls_left, calls_done
    if calls_left > 0:
        calls_left -= 1
        spin(CALL_TURNS)
        calls_done += 1
        if calls_done >= 40 and calls_done % 10 == 0:
            catch_up()
    return 1


def compare(left, right):
    burn(left)
    return (left > right) - (left < right)


class Plans(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = sqlite3.connect(os.path.join(self.folder.name, "app.db"), isolation_level=None)
        self.addCleanup(self.db.close)
        self.db.create_function("burn", 1, burn)
        self.db.create_collation("burning", compare)
        self.db.executescript(SCHEMA)
        self.db.enable_load_extension(True)
        self.db.load_extension(LIBRARY)
        self.set("trace_log_path", os.path.join(self.folder.name, "app.trace"))
        self.set("query_profiler_cpu_time_period_ns", 1000000)
        self.set("query_profiler_max_overhead_percent", 0)
        self.addCleanup(self.set, "trace_log_path", "")

    def set(self, name, value):
        self.db.execute("SELECT set_setting(?, ?)", (name, str(value))).fetchall()

    def run_as(self, name, sql, parameters=(), calls=ENOUGH):
        global calls_left, calls_done, samples_before
        self.set("query_id", name)
        calls_left, calls_done, samples_before = calls, 0, count_samples()
        self.db.execute(sql, parameters).fetchall()
        calls_left = 0

    def times(self, name):
        return self.db.execute("SELECT node, parent, detail, self_ms, total_ms, self_percent, samples "
                               "FROM system.plan_times WHERE query_id = ?", (name,)).fetchall()

    def metric(self, name):
        return self.db.execute("SELECT value FROM system.metrics WHERE metric = ?", (name,)).fetchone()[0]

    def check_is_at(self, begin, rows):
        """Nine of ten samples are at a node, within three standard errors. Counts samples, not weights, because on a
        busy machine one sample may stand for several periods."""
        samples = sum(row[6] for row in rows)
        at_node = sum(row[6] for row in rows if row[2].startswith(begin))
        self.assertGreater(at_node, max(0, 0.9 * samples - 3 * math.sqrt(0.9 * 0.1 * samples)), rows)

    def described(self, name):
        """Details for a failure's message."""
        return (self.db.execute("SELECT samples_cpu, cpu_time_ns, plan_hash FROM system.query_log WHERE query_id = ?",
                                (name,)).fetchall(),
                self.db.execute("SELECT metric, value FROM system.metrics WHERE metric LIKE 'plans%'").fetchall())

    def test_burnt_time_is_the_callers(self):
        for number, (sql, node) in enumerate(BURNING):
            with self.subTest(sql):
                name = "burn %d" % number
                explained = self.explain(sql)
                self.run_as(name, sql)
                rows = self.times(name)
                self.check_planned(name, rows, explained)
                total = sum(row[3] for row in rows)
                self.assertGreater(total, 0, (rows, self.described(name)))
                self.check_is_at(node, rows)
                cpu = self.db.execute("SELECT sum(value) FROM system.trace_log WHERE query_id = ? AND trace_type = 'CPU'",
                                      (name,)).fetchone()[0]
                self.assertAlmostEqual(total, cpu / 1e6, delta=1)

    def test_triggers(self):
        for number, (schema, sql, node, parent) in enumerate(TRIGGERS):
            with self.subTest(schema):
                self.db.executescript(schema)
                self.db.execute("BEGIN")
                self.run_as(f"trigger {number}", sql)
                rows, described = self.times(f"trigger {number}"), self.described(f"trigger {number}")
                self.db.execute("ROLLBACK")
                self.db.executescript("DROP TRIGGER it; DROP TRIGGER IF EXISTS inner; DELETE FROM w")
                self.assertTrue(rows, described)
                self.check_is_at(node, [row for row in rows if row[0]] or rows)
                details = {row[0]: row[2] for row in rows}
                self.assertEqual({details[row[1]] for row in rows if row[2] == node and row[6]}, {parent}, rows)

    def test_statements_of_a_trigger(self):
        # The second statement has none of the first one's nodes, and another table.
        values = " + ".join(100 * ["burn(1)"])
        self.db.execute("CREATE TRIGGER it AFTER INSERT ON w BEGIN DELETE FROM u WHERE k = 9;"
                        f" INSERT INTO log VALUES ({values}); END")
        self.run_as("two", "INSERT INTO w VALUES (1, 2)")
        rows = self.times("two")
        self.check_is_at("TRIGGER it", [row for row in rows if row[0]] or rows)
        trigger = [row[0] for row in rows if row[2] == "TRIGGER it"]
        self.assertEqual(sorted(row[2] for row in rows if [row[1]] == trigger),
                         ["MODIFY TABLE log", "MODIFY TABLE u", "SEARCH u USING INTEGER PRIMARY KEY (rowid=?)"])

    def test_trigger_is_shown(self):
        self.db.executescript(TRIGGERS[0][0])
        sql, node, parent = TRIGGERS[0][1:]
        self.run_as("shown", sql)
        caller = [row[0] for row in self.db.execute("EXPLAIN " + sql) if row[1] == "Program"]
        function = [row[0] for row in self.db.execute("EXPLAIN " + sql) if row[1] in ("Function", "PureFunc")]
        opcodes = self.db.execute("SELECT opcode, trigger_opcode, count(*) FROM system.trace_log WHERE query_id = 'shown' AND "
                                  "substr(symbols, 1, instr(symbols, 'sqlite3_step')) LIKE '%PyEval%' AND trigger_opcode >= 0 GROUP BY 1, 2"
                                  ).fetchall()
        self.assertEqual([row[:2] for row in opcodes], [(caller[0], function[0])], opcodes)
        # The same statement, whose trigger has another plan.
        self.db.execute("DROP TRIGGER it")
        self.db.executescript(TRIGGERS[0][0].replace("WHERE", "WHERE b = 5 AND"))
        self.run_as("other", sql)
        hashes = self.db.execute("SELECT count(DISTINCT plan_hash) FROM system.query_log WHERE query_id IN ('shown', 'other')")
        self.assertEqual(hashes.fetchone(), (2,))
        self.times("other")
        self.set("trace_log_path", "")
        trace = os.path.join(self.folder.name, "app.trace")
        for command in (("plan", trace, "--query", "shown"), ("report", trace, "--query", "shown")):
            self.assertRegex(self.command(*command), rf"─ {parent} .*\n[│ ] +[├└]─ {node} ")
        self.assertRegex(self.command("plan", trace, "--query", "shown", "--opcodes"),
                         rf"\n +{caller[0]} +{function[0]} +\w*Func\w* .* {node}\n")
        stacks = self.command("export", trace, "--query", "shown", "--format", "collapsed", "--plan", "-o", "-")
        self.assertIn(f";sqlite3_step;{parent};{node};sqlite3VdbeExec;", stacks)
        self.assertRegex(self.command("diff", trace, "--query", "shown", "--with", "other"), f" {node} +SEARCH t USING INDEX tb ")

    def test_trigger_that_two_opcodes_call(self):
        self.db.executescript("PRAGMA recursive_triggers = ON; CREATE TABLE two(a INTEGER PRIMARY KEY, b UNIQUE);"
                              "CREATE TRIGGER gone AFTER DELETE ON two BEGIN INSERT INTO log SELECT a FROM t WHERE burn(c) AND a < 90; END;"
                              "INSERT INTO two VALUES (1, 1), (2, 2)")
        for name, values in (("by key", "(1, 3)"), ("by index", "(5, 2)")):
            self.run_as(name, "REPLACE INTO two SELECT * FROM (VALUES " + values + ")")
            rows = self.times(name)
            self.check_is_at("SEARCH t", [row for row in rows if row[0]] or rows)
            self.assertEqual(len([row for row in rows if row[2].startswith("SEARCH t")]), 1, rows)

    def test_burnt_opcode_is_the_function(self):
        sql = BURNING[0][0]
        self.run_as("opcodes", sql)
        calls = {row[0] for row in self.db.execute("EXPLAIN " + sql) if row[1] in ("Function", "PureFunc")}
        opcodes = self.db.execute(
            "SELECT opcode, count(*) FROM system.trace_log WHERE query_id = 'opcodes' AND "
            "substr(symbols, 1, instr(symbols, 'sqlite3_step')) LIKE '%PyEval%' GROUP BY 1").fetchall()
        # Samples in Python that SQLite has called. Python also calls the statement itself. Some samples have no known
        # opcode (a truncated stack), but none has another opcode.
        known = [row for row in opcodes if row[0] is not None]
        self.assertEqual({opcode for opcode, _ in known}, calls, opcodes)
        self.assertGreater(sum(count for _, count in known), 0.8 * sum(count for _, count in opcodes), opcodes)

    def without_opcode(self):
        """Samples without an opcode: the number stored, and the number counted. Turns sampling off."""
        self.set("query_profiler_cpu_time_period_ns", 0)
        self.set("query_profiler_off_cpu_period_ns", 0)
        stored = self.db.execute("SELECT count(*) FROM system.trace_log WHERE opcode IS NULL").fetchone()[0]
        return stored, self.metric("samples_without_opcode")

    def test_most_opcodes_are_known(self):
        # At least 97 % of statements' samples have an opcode, within chance. The rest is counted.
        statements = ["WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 200000) "
                      "INSERT OR REPLACE INTO many SELECT x, x % 1000, hex(randomblob(8)) FROM r",
                      "SELECT count(*) FROM many WHERE c LIKE '%AB%'", "SELECT b, count(*), max(c) FROM many GROUP BY b ORDER BY 3",
                      "SELECT count(*) FROM many AS x JOIN many AS y ON x.a = y.a WHERE x.c <> y.c",
                      "UPDATE many SET b = b + 1 WHERE a % 3 = 0", "SELECT c FROM many ORDER BY c DESC"]
        before, dropped = self.without_opcode(), self.metric("samples_dropped")
        self.db.execute("CREATE TABLE many(a INTEGER PRIMARY KEY, b, c)")
        for period in (0, 1000000):  # the first pass prepares them, because those samples belong to no statement
            self.set("query_profiler_cpu_time_period_ns", period)
            for sql in statements:
                self.db.execute(sql).fetchall()
        stored, counted = (after - other for after, other in zip(self.without_opcode(), before))
        self.assertGreaterEqual(counted, stored)
        self.assertLessEqual(counted, stored + self.metric("samples_dropped") - dropped)
        known = self.db.execute("SELECT count(opcode) FROM system.trace_log WHERE trace_type = 'CPU'").fetchone()[0]
        self.assertGreater(known, 0)
        # Five standard errors, because the few unknown samples are far from normally distributed.
        error = math.sqrt(0.97 * 0.03 / (known + counted))
        self.assertGreater(known / (known + counted) + 5 * error, 0.97, (known, counted))

    def test_nodes_are_explains(self):
        explained = {}
        for number, sql in enumerate(PLANNED):
            explained[number] = self.explain(sql)
            self.run_as("plan %d" % number, sql)
        for number, sql in enumerate(PLANNED):
            with self.subTest(sql[:80]):
                self.check_planned("plan %d" % number, self.times("plan %d" % number), explained[number])

    def explain(self, sql, parameters=()):
        return sorted(row[3] for row in self.db.execute("EXPLAIN QUERY PLAN " + sql, parameters))

    def check_planned(self, name, rows, explained):
        rows = [row for row in rows if row[0]]
        self.assertEqual(sorted(row[2] for row in rows if not row[2].startswith(("MODIFY", "TRIGGER"))), explained, self.described(name))
        self.assertLessEqual({row[1] for row in rows}, {row[0] for row in rows} | {0})

    def check_nodes(self, name, sql, parameters=()):
        """The nodes of a run are the nodes that EXPLAIN QUERY PLAN shows now."""
        self.assertEqual(sorted(row[2] for row in self.times(name) if row[0]), self.explain(sql, parameters), self.described(name))

    def test_attached(self):
        self.db.execute("ATTACH ? AS other", (os.path.join(self.folder.name, "other.db"),))
        self.db.execute("CREATE TABLE other.t(a INTEGER PRIMARY KEY, d)")
        self.db.execute("INSERT INTO other.t SELECT a, c FROM main.t WHERE a <= 100")
        sql = "SELECT count(*) FROM other.t AS o CROSS JOIN main.t AS m ON m.a = o.a WHERE burn(m.c)"
        self.run_as("attached", sql)
        self.check_nodes("attached", sql)
        self.check_is_at("SEARCH m", self.times("attached"))
        # The same text, but another schema defines its names.
        sql = "SELECT count(*) FROM other.t WHERE d > '' AND burn(a)"
        self.run_as("first", sql)
        self.check_nodes("first", sql)
        self.db.execute("DETACH other")
        self.db.execute("ATTACH ':memory:' AS other")
        self.db.execute("CREATE TABLE other.t(a INTEGER PRIMARY KEY, d)")
        self.db.execute("CREATE INDEX other.td ON t(d)")
        self.db.execute("INSERT INTO other.t SELECT a, c FROM main.t WHERE a <= 100")
        self.run_as("second", sql)
        self.check_nodes("second", sql)
        hashes = self.db.execute("SELECT count(DISTINCT plan_hash) FROM system.query_log WHERE query_id IN ('first', 'second')")
        self.assertEqual(hashes.fetchone(), (2,))

    def test_compared_columns(self):
        self.db.execute("ATTACH ':memory:' AS other")
        self.db.execute("CREATE TABLE other.t(d, e, f)")
        self.db.execute("INSERT INTO other.t SELECT a, b, c FROM main.t")
        self.db.execute("CREATE TABLE \"odd name\"(\"x y\", z)")
        self.db.execute("INSERT INTO \"odd name\" SELECT a, b FROM main.t")
        self.db.execute("CREATE VIEW seen AS SELECT v AS w FROM u")
        for number, (sql, node, columns) in enumerate([
                ("SELECT count(*) FROM t WHERE burn(a) AND c LIKE '%A%' AND b + 1 > 3", "SCAN t", "in expressions: a, c, b"),
                ("SELECT count(*) FROM other.t AS o WHERE burn(d) AND f > '5' AND e IN (1, 2, ?)", "SCAN o", "f, e; in expressions: d"),
                ("SELECT count(*) FROM other.t AS o WHERE e = 77 OR burn(d) OR f", "SCAN o", "e; in expressions: d, f"),
                ("SELECT count(*) FROM t AS z WHERE burn(z.a) AND length(c) > 3", "SCAN z", "in expressions: a, c"),
                ("SELECT count(*) FROM other.t AS o WHERE burn(d) AND ? < f", "SCAN o", "f; in expressions: d"),
                ("SELECT count(*) FROM other.t AS o WHERE burn(d) AND CAST(e AS INTEGER) = 5", "SCAN o", "in expressions: d, e"),
                ("SELECT count(*) FROM other.t AS o WHERE burn(d) AND coalesce(e, 0) > 1 AND ifnull(f, d) > 0", "SCAN o", "in expressions: d, e, f"),
                ("SELECT count(*) FROM other.t AS o WHERE burn(d) AND CASE WHEN e > 5 THEN d ELSE f END > 0", "SCAN o", "in expressions: d, e, f"),
                ("SELECT count(*) FROM other.t AS o WHERE burn(d) AND (e IS NULL OR e > 5)", "SCAN o", "e; in expressions: d"),
                ("SELECT count(*) FROM other.t AS o WHERE burn(d) AND (e > 5 AND f > '1' OR f > '2')", "SCAN o", "e, f; in expressions: d"),
                # The alias is also the name of another table.
                ("SELECT count(*) FROM u AS t WHERE burn(v) AND v > '1'", "SCAN t", "v"),
                ("SELECT count(*) FROM seen WHERE burn(w)", "SCAN u", "in expressions: v"),
                ("SELECT count(*) FROM \"odd name\" WHERE \"x y\" > 0 AND burn(z)", "SCAN odd name", "x y; in expressions: z"),
                ("SELECT burn(c), b FROM t", "SCAN t", "")]):
            with self.subTest(sql):
                name = f"compared {number}"
                self.run_as(name, sql, (1,) if "?" in sql else ())
                rows = dict(self.db.execute("SELECT detail, compared FROM system.plan_times WHERE query_id = ?", (name,)))
                self.assertEqual([sorted(part.split(", ")) for part in rows[node].replace("in expressions: ", "").split("; ")],
                                 [sorted(part.split(", ")) for part in columns.replace("in expressions: ", "").split("; ")],
                                 self.described(name))
                self.assertEqual("in expressions: " in rows[node], "in expressions: " in columns)

    def test_count_of_all_rows(self):
        """SQLite counts them in one opcode, before the opcode that names the scan."""
        self.db.execute("CREATE TABLE many(a)")
        self.db.execute("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 300000) INSERT INTO many SELECT x FROM r")
        for number in range(200):
            self.run_as(f"count {number}", "SELECT count(*) FROM many")
            sampled = {row[2]: row[3] for row in self.times(f"count {number}") if row[6]}
            if "SCAN many" in sampled:
                break
        self.assertGreaterEqual(sampled["SCAN many"], 0.5 * sum(sampled.values()), sampled)

    def test_compared_in_a_trigger(self):
        """A trigger compares a column with a value of the row that fires it."""
        self.db.execute("CREATE TRIGGER it AFTER INSERT ON w BEGIN INSERT INTO log SELECT k FROM u WHERE v > new.x AND burn(k); END")
        self.run_as("compared in a trigger", "INSERT INTO w VALUES (1, 2)")
        rows = dict(self.db.execute("SELECT detail, compared FROM system.plan_times WHERE query_id = 'compared in a trigger'"))
        self.assertEqual(rows["SCAN u"], "v; in expressions: k", self.described("compared in a trigger"))

    def test_unused_index(self):
        """The reason why an index that begins with a compared column is not used. No reason is given if the collation
        belongs to the host."""
        called = []
        self.db.create_collation("mine", lambda a, b: (a > b) - (a < b))
        self.db.execute("ATTACH ':memory:' AS third")
        self.db.execute("CREATE TABLE third.names(n TEXT, k INT, m TEXT COLLATE mine)")
        self.db.execute("INSERT INTO third.names SELECT '5', 5, '5' FROM main.t")
        self.db.execute("CREATE INDEX third.\"by n\" ON names(n)")
        self.db.execute("CREATE INDEX third.by_m ON names(m)")
        self.db.create_collation("mine", lambda a, b: called.append(a) or (a > b) - (a < b))
        for number, (condition, compared) in enumerate([
                ("n = ?1 COLLATE NOCASE", "n; index by n (n) is not searched: the comparison has the collation NOCASE; in expressions: k"),
                ("n <= ?1 COLLATE rtrim", "n; index by n (n) is not searched: the comparison has the collation RTRIM; in expressions: k"),
                ("n = CAST(?1 AS INT)", "n; index by n (n) is not searched: the comparison is of numbers; in expressions: k"),
                ("(n = ?1 OR ?1 IS NULL)", "n; index by n (n) is not searched: why is not known, no sqlite_stat1; in expressions: k"),
                ("m = ?1 COLLATE NOCASE", "m; in expressions: k"),
                ("k = ?1", "k")]):
            with self.subTest(condition):
                name = f"unused {number}"
                self.run_as(name, "SELECT count(*) FROM third.names WHERE burn(k) AND " + condition, ("5",))
                rows = dict(self.db.execute("SELECT detail, compared FROM system.plan_times WHERE query_id = ?", (name,)))
                self.assertEqual(sorted(rows["SCAN third.names"].split("; ")), sorted(compared.split("; ")), self.described(name))
        self.assertEqual(called, [])

    def test_marked_scan(self):
        trace = os.path.join(self.folder.name, "marked.trace")
        sql = "CREATE TABLE t(a, b); INSERT INTO t SELECT value, hex(value) FROM generate_series(1, 300000); " + LONG_SCAN
        subprocess.run([COMMAND, "record", "-o", trace, "--cpu", "1ms", *WITHOUT_BUDGET, "--", "sqlite3", ":memory:", sql],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertRegex(self.command("plan", trace, "LIKE"),
                         "the whole table, compares in expressions: b, 300000 rows visited and 1 returned a run\n")

    def test_marks(self):
        """The mark depends on rows visited per row returned, also for min() and max() over a whole table, and for
        look-ups."""
        trace = os.path.join(self.folder.name, "marks.trace")
        rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT i, hex(i) FROM n;"
        statements = [f"SELECT max(a) FROM o; SELECT count(*) FROM o; SELECT count(*) FROM o WHERE b = 'x{i}';"
                      "SELECT sum(length(p.b)) FROM o CROSS JOIN p ON p.a = o.a;" for i in range(30)]
        subprocess.run([COMMAND, "record", "--quiet", "-o", trace, "--cpu", "1ms", *WITHOUT_BUDGET, "--", "sqlite3", ":memory:",
                        "CREATE TABLE o(a, b); INSERT INTO o " + rows + "CREATE TABLE p(a INTEGER PRIMARY KEY, b); INSERT INTO p " +
                        rows + "".join(statements)], check=True, stdout=subprocess.DEVNULL)
        self.assertRegex(self.command("plan", trace, "max(a)"), r"SEARCH o .*  the whole table, 300000 rows visited and 1 returned a run")
        self.assertRegex(self.command("plan", trace, "b = "), r"SCAN o .*  the whole table, compares b, 300000 rows visited")
        self.assertRegex(self.command("plan", trace, "CROSS JOIN"), r"SCAN o .*  the whole table.*300000 rows visited")
        self.assertRegex(self.command("report", trace, "--like", "b = "),
                         r"scanned +[\d,]+ rows of whole tables for \d+ rows returned; an index on o \(b\) may save most of that\n")
        self.assertNotIn("may save", self.command("report", trace, "--like", "max(a)"))

    def test_error_log_is_quiet(self):
        # A statement that has run cannot be prepared again, because the table exists already or is gone. SQLite reports
        # that to its log.
        trace = os.path.join(self.folder.name, "quiet.trace")
        sql = ["CREATE TABLE t AS SELECT value AS a, hex(value) AS b FROM generate_series(1, 300000)", "CREATE INDEX tb ON t(b)",
               "/* a */ -- b\n" + LONG_SCAN, "DROP TABLE t"]
        logged = subprocess.run([COMMAND, "record", "--quiet", "-o", trace, "--cpu", "1ms", *WITHOUT_BUDGET, "--", "sqlite3", ":memory:",
                                 ".log stdout", *sql], check=True, capture_output=True, text=True).stdout
        self.assertRegex(logged, r"^\d+\n$")
        self.assertIn("SCAN t", self.command("plan", trace))

    def test_error_log_says_nothing_twice(self):
        # What SQLite reports of a preparation: these statements take too little time for a sample, after which their plan
        # is read. On a busy machine one may have a sample.
        sql = [".log stdout", "CREATE TABLE t(a, b); CREATE TABLE u(a, b)", "SELECT \"zz\" FROM t",
               "SELECT count(*) FROM t JOIN u ON t.a = u.b"]
        record = [COMMAND, "record", "--quiet", "-o", os.path.join(self.folder.name, "twice.trace"), "--"]

        def log(*prefix):
            return subprocess.run([*prefix, "sqlite3", ":memory:", *sql], check=True, capture_output=True, text=True).stdout

        alone = log()
        self.assertIn(alone, (log(*record) for _ in range(10)))
        self.assertIn("automatic index", alone)

    def test_large_programs(self):
        columns = ["length(c || 'x%d' || a)" % i for i in range(1900)]
        for name, sql in (("opcodes", "SELECT burn(a), " + ", ".join(columns) + " FROM t WHERE a < 250"),
                          ("terms", " UNION ALL ".join(f"SELECT burn({i})" for i in range(500)))):
            with self.subTest(name):
                if name == "opcodes":
                    self.assertGreater(len(self.db.execute("EXPLAIN " + sql).fetchall()), 10000)
                self.run_as(name, sql, calls=2 * ENOUGH)  # so the run takes longer than its preparation
                self.check_nodes(name, sql)
        rows = self.times("opcodes")
        known = [row for row in rows if row[0]]  # the remaining samples are in its preparation
        self.check_is_at("SEARCH t", known)
        self.assertGreater(sum(row[3] for row in known), 0.5 * sum(row[3] for row in rows), rows)

    def test_other_bindings(self):
        # One statement of the program's, which caches it.
        sql = "SELECT count(*) FROM t WHERE b < ? AND burn(a)"
        for value in (4, 7):
            self.run_as(f"bound {value}", sql, (value,))
            self.check_nodes(f"bound {value}", sql, (value,))
            self.check_is_at("SEARCH t USING COVERING INDEX tb (b<?)", self.times(f"bound {value}"))

    def test_bindings_that_change_the_plan(self):
        # SQLite prepares the statement again when the pattern changes, as with stat4. queryprof explains it with the pattern.
        different = self.metric("plans_different")
        self.db.execute("CREATE TABLE n(s TEXT COLLATE NOCASE, x)")
        self.db.execute("INSERT INTO n SELECT 'k' || a, a FROM t")
        self.db.execute("CREATE INDEX ns ON n(s)")
        self.db.execute("CREATE INDEX nt ON n(s COLLATE BINARY)")
        for name, sql in (("like", "SELECT count(*) FROM n WHERE s LIKE ? AND burn(x)"),
                          ("glob", "SELECT count(*) FROM n WHERE x < ? + 1e6 AND s COLLATE BINARY GLOB ? AND burn(x)"),
                          ("named", "SELECT count(*) FROM n WHERE s COLLATE BINARY GLOB @pattern AND burn(x)"),
                          ("both", "SELECT count(*) FROM n WHERE (s LIKE ?2 OR s COLLATE BINARY GLOB 'k1''*') AND burn(x + ?1)")):
            any_of = "*" if "GLOB" in sql and "LIKE" not in sql else "%"
            for begin in "k1", any_of + "1":
                pattern = begin + any_of
                values = {"pattern": pattern} if "@" in sql else (pattern,) if name == "like" else (5, pattern)
                with self.subTest(name, pattern=pattern):
                    self.run_as(name + begin, sql, values)
                    self.check_nodes(name + begin, sql, values)
                    self.assertEqual(any(row[2].startswith("SEARCH") for row in self.times(name + begin)), begin == "k1")
        self.assertEqual(self.metric("plans_different"), different)
        # Of other values that it planned for, the plan is unknown and counted, and no other plan is shown.
        self.run_as("different", "SELECT count(*) FROM n WHERE s LIKE (?) AND burn(x)", ("k1%",))
        self.assertEqual({row[2] for row in self.times("different") if row[0]}, set())
        self.assertEqual(self.metric("plans_different"), different + 1)
        for path in glob.glob(os.path.join(self.folder.name, "app.trace*")):
            with open(path, "rb") as file:
                self.assertNotRegex(file.read(), rb"k1[%*]", path)

    def test_lost_plans_are_published_again(self):
        sql = "SELECT count(*) FROM t WHERE b < 5 AND burn(a + 1)"
        lost = self.metric("plans_lost")
        path = os.path.join(self.folder.name, "app.trace")
        self.times("the file is there")
        with contextlib.closing(sqlite3.connect(path, timeout=300)) as file:
            file.executescript("DELETE FROM samples; CREATE UNIQUE INDEX refuse ON samples (series)")
            end = time.monotonic() + 300
            while self.metric("plans_lost") == lost:
                self.assertLess(time.monotonic(), end, "no plan was lost")
                self.run_as("lost", sql)
                self.times("lost")  # read again and stored with the table's next statement
            file.execute("DROP INDEX refuse")
        while not any(row[0] for row in self.times("found")):
            self.assertLess(time.monotonic(), end, "the plan never came again")
            self.run_as("found", sql)
        self.check_nodes("found", sql)

    def test_plan_changes(self):
        sql = "SELECT count(burn(y.c)) FROM t AS x JOIN t AS y ON y.b < 5 WHERE x.b = 3 AND x.a < 50"
        hashes = []
        for step in ("", "DROP INDEX tb", "CREATE INDEX tb ON t(b)"):
            self.db.execute(step)
            self.run_as("change " + step, sql)
            hashes += self.db.execute("SELECT plan_hash FROM system.query_log WHERE query_id = ?", ("change " + step,)).fetchone()
        self.assertNotIn(0, hashes)
        self.assertNotEqual(hashes[0], hashes[1])
        self.assertEqual(hashes[0], hashes[2])

    def test_change_is_reported(self):
        sql = "SELECT count(burn(y.c)) FROM t AS x JOIN t AS y ON y.b < 3 WHERE x.b = 3 AND x.a < 30"
        self.run_as("before", sql, calls=math.inf)
        self.db.execute("DROP INDEX tb")
        for step in (1000, 2000):
            self.db.execute("INSERT INTO t SELECT a + ?, b, c FROM t", (step,))
        self.run_as("after", sql, calls=math.inf)
        self.times("after")

        def mean_ns(name):
            return self.db.execute("SELECT avg(execution_time_ns) FROM system.query_log WHERE query_id LIKE ?", (name,)).fetchone()[0]

        # The report shows wall time, and a busy machine may stretch the first run to more than four times its work.
        end = time.monotonic() + 300
        while mean_ns("after%") <= mean_ns("before"):
            self.assertLess(time.monotonic(), end, "no run takes longer")
            step *= 2
            self.db.execute("INSERT INTO t SELECT a + ?, b, c FROM t", (step,))
            self.run_as(f"after, from {step} on", sql, calls=math.inf)
        self.set("trace_log_path", "")
        trace = os.path.join(self.folder.name, "app.trace")
        rows = json.loads(self.command("queries", trace, "--regressed", "--format", "json"))
        row = next(row for row in rows if row["query"] == sql)
        self.assertIn("USING", row["was"])
        self.assertIn("SCAN", row["now"])
        self.assertNotIn("INDEX tb", row["now"])
        self.assertGreater(row["after_ms"], row["before_ms"])
        diff = self.command("diff", trace, "--query", "before", "--with", "after")
        self.assertIn("Plans that changed", diff)
        self.assertIn(row["now"].split(" + ")[0], diff)
        same = self.command("diff", trace, "--query", "after", "--with", "after")
        self.assertNotIn("Plans that changed", same)

    def command(self, *arguments):
        return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True).stdout

    def test_exports_have_the_nodes(self):
        sql, node = BURNING[1]
        self.run_as("exported", sql)
        self.times("exported")
        self.set("trace_log_path", "")
        export = ["export", os.path.join(self.folder.name, "app.trace"), "--query", "exported", "--format", "collapsed", "-o", "-"]
        self.assertNotIn(node, self.command(*export))
        exported = json.loads(self.command(*export, "--plan", "--format", "json"))
        self.assertNotIn(None, exported["stacks"])
        self.assertEqual({sample["stack"] for sample in exported["samples"]}, set(range(len(exported["stacks"]))))
        weights = {True: 0, False: 0}
        for line in self.command(*export, "--plan").splitlines():
            stack, weight = line.rsplit(" ", 1)
            frames = stack.split(";")
            weights[node in frames] += int(weight)
            if node in frames:  # a loop in the other plan, below the interpreter
                at = frames.index(node)
                self.assertRegex(frames[at - 1], "^(SCAN|SEARCH) x")
                self.assertEqual(frames[at - 2], "sqlite3_step", stack)
                self.assertEqual(frames[at + 1], "sqlite3VdbeExec", stack)
        self.assertGreater(weights[True], weights[False])

    def test_other_exports_have_the_nodes(self):
        sql, node = BURNING[1]
        self.run_as("exported", sql)
        self.times("exported")
        self.set("trace_log_path", "")
        for number, options in enumerate(([], ["--plan"])):
            out = os.path.join(self.folder.name, f"out{number}")
            for form in ("pprof", "flamegraph"):
                with self.subTest(form=form, options=options):
                    self.command("export", os.path.join(self.folder.name, "app.trace"), "--query", "exported", "--format", form,
                                 *options, "-o", out)
                    with open(out, "rb") as file:
                        content = file.read()
                    if form == "pprof":
                        content = gzip.decompress(content)
                    self.assertEqual(node.encode() in content, bool(options))
                    self.assertIn(b"sqlite3VdbeExec", content)

    def test_foreign_keys(self):
        self.db.execute("PRAGMA foreign_keys = ON")
        self.db.executescript("""
            CREATE TABLE parent(k INTEGER PRIMARY KEY);
            CREATE TABLE child(p REFERENCES parent ON DELETE CASCADE);
            CREATE INDEX cp ON child(p);
            CREATE TRIGGER ct AFTER DELETE ON child BEGIN INSERT INTO log VALUES (burn(old.p)); END;
            INSERT INTO parent SELECT a FROM t;
            INSERT INTO child SELECT k FROM parent;""")
        self.run_as("foreign", "DELETE FROM parent WHERE k <= 100")
        rows = self.times("foreign")
        self.check_is_at("TRIGGER ct", rows)
        action = [row[0] for row in rows if row[2] == "FOREIGN KEY ACTION"]
        inside = {row[2].split(" ")[0] for row in rows if [row[1]] == action}
        self.assertEqual(inside, {"SCAN", "MODIFY", "TRIGGER"}, rows)

    def test_changes_of_virtual_tables(self):
        """Such changes have a node of their own, also in a trigger."""
        self.db.executescript("""
            CREATE VIRTUAL TABLE box USING rtree(id, x0, x1);
            CREATE VIRTUAL TABLE words USING fts5(c);
            CREATE TABLE docs(c);
            CREATE TRIGGER it AFTER INSERT ON docs BEGIN INSERT INTO words VALUES (new.c); END;""")
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
        for name, sql, node in (
                ("insert", many + "INSERT INTO box SELECT i, i % 777, i % 777 + 1 FROM n", "MODIFY VIRTUAL TABLE (rtree)"),
                ("update", "UPDATE box SET x0 = x0 - 1", "MODIFY VIRTUAL TABLE (rtree)"),
                ("delete", "DELETE FROM box WHERE id > 10", "MODIFY VIRTUAL TABLE (rtree)"),
                ("trigger", many + "INSERT INTO docs SELECT 'w' || i % 999 || ' v' || i % 777 || ' u' || i % 555 FROM n", "MODIFY VIRTUAL TABLE (fts5)")):
            self.run_as(name, sql)
            rows = self.times(name)
            changes = [row for row in rows if row[2] == node]
            self.assertEqual(len(changes), 1, (rows, self.described(name)))
            self.assertEqual(max(rows, key=lambda row: row[6]), changes[0], rows)
            if name == "trigger":
                self.assertEqual([row[2] for row in rows if row[0] == changes[0][1]], ["TRIGGER it"], rows)

    def test_words_of_virtual_tables(self):
        self.db.executescript("""
            CREATE VIRTUAL TABLE box USING rtree(id, x0, x1);
            INSERT INTO box SELECT a, a, a + 1 FROM t;
            CREATE VIRTUAL TABLE words USING fts5(c, d);
            INSERT INTO words SELECT 'w v', c FROM t;""")
        asked = {
            "SELECT burn(1) FROM words WHERE words MATCH 'w' ORDER BY rank": "full text: MATCH, scores each match to give them by rank",
            "SELECT burn(1) FROM words WHERE words MATCH 'w' AND rowid > 3": "full text: MATCH and rowid >= ?",
            "SELECT burn(1) FROM words WHERE words MATCH 'w' ORDER BY rowid DESC": "full text: MATCH, by rowid descending",
            "SELECT burn(1) FROM box WHERE x0 > 3 AND x1 <= 200": "R-Tree: coordinate 1 > ?, 2 <= ?",
        }
        for number, sql in enumerate(asked):
            self.run_as("asked %d" % number, sql)
            self.assertTrue(self.times("asked %d" % number), self.described("asked %d" % number))
        self.set("trace_log_path", "")
        for number, words in enumerate(asked.values()):
            shown = self.command("plan", os.path.join(self.folder.name, "app.trace"), "--query", "asked %d" % number)
            self.assertIn("  " + words + "\n", shown)

    def test_rows(self):
        # Each statement's number of returned rows is known. With this library, its loops' counts are unknown.
        self.run_as("rows", "INSERT INTO w VALUES (1, 2) RETURNING " + ", ".join(150 * ["burn(x)"]))
        self.run_as("loops", BURNING[2][0])
        rows = [self.db.execute("SELECT node, loops, rows FROM system.plan_times WHERE query_id = ?", (name,)).fetchall()
                for name in ("rows", "loops")]
        self.assertIn((0, None, 1), rows[0])
        self.assertTrue(rows[1])
        for node, loops, count in rows[1]:
            self.assertEqual((loops, count), (None, 300 if node == 0 else None))

    def test_program_notices_nothing(self):
        self.db.execute("UPDATE u SET v = 1 WHERE k < 20").fetchall()
        before = self.db.execute("SELECT changes(), total_changes(), last_insert_rowid()").fetchone()
        self.assertEqual(before[0], 19)
        texts = []
        self.db.set_trace_callback(texts.append)
        self.run_as("quiet", "SELECT count(*) FROM t WHERE burn(a) /* quiet */")
        self.db.execute("SELECT 1").fetchall()
        self.db.set_trace_callback(None)
        self.assertFalse([text for text in texts if "EXPLAIN" in text])
        self.assertEqual(self.db.execute("SELECT changes(), total_changes(), last_insert_rowid()").fetchone(), before)
        self.assertFalse(self.db.in_transaction)
        self.assertTrue(self.times("quiet"))

    def test_authorizer_is_not_asked(self):
        self.db.execute("SELECT 1").fetchall()
        asked = []

        def authorize(action, *_):
            asked.append(action)
            return sqlite3.SQLITE_OK

        sql = "SELECT count(*) FROM t WHERE burn(a) /* asked */"
        self.db.set_authorizer(authorize)
        self.run_as("asked", sql)
        once = len(asked)
        self.run_as("asked", sql)  # prepared already
        self.db.set_authorizer(None)
        self.assertEqual(len(asked), once)
        self.assertFalse(self.times("asked"))

    def test_command(self):
        trace = os.path.join(self.folder.name, "recorded.trace")
        sql = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 2000000) SELECT max(x) FROM r ORDER BY 1"
        subprocess.run([COMMAND, "record", "-o", trace, "--cpu", "1ms", *WITHOUT_BUDGET, "--", "sqlite3", ":memory:", sql],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tree = subprocess.run([COMMAND, "plan", trace, "RECURSIVE", "--opcodes"], check=True, capture_output=True,
                              text=True).stdout
        for word in ("QUERY PLAN", "└─ ", "RECURSIVE STEP", "SCAN r", "ResultRow"):
            self.assertIn(word, tree)
        report = subprocess.run([COMMAND, "report", trace], check=True, capture_output=True, text=True).stdout
        self.assertIn("QUERY PLAN", report)
        none = subprocess.run([COMMAND, "plan", trace, "no such text"], capture_output=True, text=True, check=False)
        self.assertEqual(none.returncode, 1)


if __name__ == "__main__":
    unittest.main()
