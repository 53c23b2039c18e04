#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof check: which statements exceed limits, by counters that this test writes, and by a recorded program.

usage: as tool.py"""

import json
import os
import sqlite3
import tempfile
import xml.etree.ElementTree

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tool import *
from trace_file import MS, START, version

HERE = "shop/orders.py"
# Hash, text, runs; rows visited by full scans, in all runs and in the logged ones; sorts; automatic indexes; the
# longest run, all runs and the spread of one run (ms).
STATEMENTS = (
    (0xa1 << 56, "SELECT 'scan' < 2 & 1, \"q\"", 10, 50000, [5000, 100], 0, 0, 3, 20, 0.1),
    (0xa2 << 56, "SELECT\n'sorts: 100 %'", 10, 0, [], 20, 0, 3, 20, 0.1),
    (0xa3 << 56, "SELECT indexed", 1, 0, [0], 0, 700, 60, 60, 0),
    (0xa4 << 56, "SELECT mean", 4, 8000, [], 0, 0, 1, 4, 0.1),
    (0xa5 << 56, "SELECT unknown", 4, 1400, [200], 0, 0, 1, 4, 0.1),
    (0xa6 << 56, "SELECT logged", 2, 1800, [900, 900], 0, 0, 1, 2, 0.1),
)


def signed(number):
    return number - (1 << 64) if number >> 63 else number


class Check(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.realpath(tempfile.mkdtemp(prefix="queryprof-check-"))
        cls.trace = cls.make("app.trace", STATEMENTS)

    @classmethod
    def make(cls, name, statements):
        path = os.path.join(cls.folder, name)
        db = sqlite3.connect(path)

        def insert(table, **values):
            columns = {name: "" if kind == "TEXT" else 0 for _, name, kind, not_null, default, key in
                       db.execute("PRAGMA table_info(%s)" % table) if not_null and default is None and not key}
            columns.update(values)
            db.execute("INSERT INTO %s(%s) VALUES (%s)" % (table, ",".join(columns), ",".join("?" * len(columns))),
                       list(columns.values()))

        with open(SCHEMA, encoding="utf-8") as file:
            db.executescript(file.read())
        db.execute("PRAGMA application_id = %d" % 0x51505246)
        db.execute("PRAGMA user_version = %d" % version(SCHEMA))
        insert("processes", id=1, hostname="host", process_id=100, executable="/usr/bin/app")
        insert("call_stacks", id=1, frames="[]", caller=os.path.join(cls.folder, HERE) + ":31", caller_function="find<all>")
        insert("call_stacks", id=2, frames="[]", caller="/srv/old.py:1", caller_function="")
        run = 0
        for number, (key, text, runs, scanned, logged, sorts, indexed, longest, total, spread) in enumerate(statements, 1):
            insert("statements", id=number, normalized_query_hash=signed(key), query=text)
            mean = total / runs
            insert("statement_counters", normalized_query_hash=signed(key), database="main", program="/usr/bin/app",
                   statement=number, calls=runs, fullscan_steps=scanned, sorts=sorts, autoindexes=indexed,
                   max_ns=longest * MS, execution_time_ns=round((total + 1000) * MS), prepare_time_ns=1000 * MS,
                   execution_time_square=float(runs * (mean * mean + spread * spread) * MS * MS), last_seen_ns=START)
            for steps in logged:
                run += 1
                insert("queries", id=run, query_id="run %d" % run, process=1, statement=number, finished=1,
                       query_start_ns=START + run, first_ns=START + run, last_ns=START + run + 1, initial=run,
                       fullscan_steps=steps, call_stack=1 if steps == logged[-1] else 2)
        db.commit()
        db.close()
        return path

    def check(self, *arguments, trace=None):
        """Checks the status, and returns the statements found as (limit, first byte of the id)."""
        status, out, err = run("check", trace or self.trace, *arguments, "--format", "json")
        found = [(row["check"], int(row["statement"][:2], 16)) for row in json.loads(out or "[]")]
        self.assertEqual(status, 1 if found else 0, err)
        return found, err

    def test_limits(self):
        for limit, found in (("4999", [0xa1]), ("5000", [0xa1]), ("6000", []), ("2000", [0xa1]), ("1999", [0xa1, 0xa4]),
                             ("899", [0xa1, 0xa4, 0xa6]), ("900", [0xa1, 0xa4])):
            self.assertEqual(self.check("--max-scan", limit)[0], [("max-scan", key) for key in found], limit)
        self.assertEqual(self.check("--no-sort")[0], [("no-sort", 0xa2)])
        self.assertEqual(self.check("--no-auto-index")[0], [("no-auto-index", 0xa3)])
        self.assertEqual(self.check("--max-time", "59999us")[0], [("max-time", 0xa3)])
        self.assertEqual(self.check("--max-time", "60ms")[0], [])
        self.assertEqual(self.check("--no-sort", "--no-auto-index")[0], [("no-sort", 0xa2), ("no-auto-index", 0xa3)])
        self.assertEqual(self.check("--no-sort", "--no-auto-index", "--except", "a2", "--except", "a3000000")[0], [])

    def test_bursts(self):
        """A statement with many runs in a burst. Runs that are not logged belong to no burst, and the output reports
        that."""
        trace = self.make("bursts.trace", ((0xc1 << 56, "SELECT one", 30, 0, [0] * 30, 0, 0, 1, 30, 0), (0xc2 << 56, "SELECT two", 50, 0, [0], 0, 0, 1, 50, 0)))
        for limit, found, unknown in (("29", True, True), ("30", False, True), ("48", False, True), ("49", False, False)):
            seen, err = self.check("--max-runs", limit, trace=trace)
            self.assertEqual((seen, "--max-runs: 1 statement has runs that were not logged" in err), ([("max-runs", 0xc1)] * found, unknown), limit)
        self.assertEqual(run("check", trace, "--max-runs", "5")[1],
                         "max-runs: %s/shop/orders.py:31 (find<all>): 30 runs in one burst: SELECT one [c1000000]\n" % self.folder)

    def config(self, text, name="limits.toml"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_config(self):
        for text, arguments, found in (
                ("[limits]\nmax-scan = 4999\nno-sort = true # a comment\n", (), [("max-scan", 0xa1), ("no-sort", 0xa2)]),
                ("# only\n\n[limits]\nmax-scan=0\n[[statement]]\nlike = 'SELECT ''%' # x\n".replace("''", "") + "max-scan = 9000\n", (), []),
                ("[limits]\nno-sort = false\n[[statement]]\nid = \"a1\"\nmax-scan = 4999\n", (), [("max-scan", 0xa1)]),
                ("[limits]\nmax-scan = 1999\n[[statement]]\nlike = \"%mean\"\nexcept = true\n", (), [("max-scan", 0xa1)]),
                ("[limits]\nmax-scan = 1999\nmax-time = \"59ms\"\n", ("--max-scan", "10000"), [("max-time", 0xa3)]),
                ("[[statement]]\nlike = '%'\nmax-time = '1ms'\n[[statement]]\nid = 'a3'\nmax-time = '1h'\n", (), [("max-time", 0xa1), ("max-time", 0xa2)]),
                ("[limits]\nno-sort = true\n[[statement]]\nid = \"a2\"\nno-sort = false\n", (), [])):
            self.assertEqual(self.check("--config", self.config(text), *arguments)[0], found, text)
        os.chdir(self.folder)
        self.addCleanup(os.unlink, self.config("[limits]\nno-sort = true\n", ".queryprof.toml"))
        self.assertEqual(self.check()[0], [("no-sort", 0xa2)])

    def test_wrong_config(self):
        for text, said in (
                ("[limits]\nmax-scna = 1\n", "limits.toml:2: max-scna = 1; expected KEY = VALUE with a key of max-scan, no-sort"),
                ("max-scan = 1\n", ":1: max-scan = 1; expected [limits]"), ("[limits]\n[limits]\n", ":2: [limits]; expected [limits], once and first"),
                ("[[statement]]\nid = 'a'\n[limits]\n", ":3: [limits]; expected"), ("[limits] x\n", ":1: [limits] x; expected"),
                ("[other]\n", ":1: [other]; expected"), ("[limits]\nid = 'a'\n", ":2: id = 'a'; expected KEY"),
                ("[limits]\nmax-scan = many\n", ":2: max-scan = many; expected a whole number"), ("[limits]\nmax-scan = \n", "expected a whole number"),
                ("[limits]\nmax-scan = '5'\n", "expected a whole number"), ("[limits]\nmax-scan = 5 6\n", "expected a whole number"),
                ("[limits]\nmax-scan = -5\n", "expected a whole number"), ("[limits]\nno-sort = 1\n", "no-sort = 1; expected true or false"),
                ("[limits]\nmax-time = 50ms\n", "expected a time in quotes"), ("[limits]\nmax-time = \"50\"\n", "expected a time in quotes"),
                ("[[statement]]\nlike = \"a\n", "expected a text in quotes"), ("[[statement]]\nlike = \"\\n\"\n", "expected a text in quotes"),
                ("[[statement]]\nmax-scan = 1\n", ":1: [[statement]] needs either id or like"),
                ("[[statement]]\nid = 'a'\nlike = 'b'\n", "needs either id or like"), ("[[statement]]\nid = 'SELECT'\n", "expected the id of a statement"),
                ("[limits]\nmax-scan = 1\nmax-scan = 2\n", ":3: max-scan is given twice"), ("[limits]\n" + "#" * 5000, ":2: the line is longer"),
                ("", "no limit is given"), ("[limits]\nno-sort = false\n", "no limit is given"), ("[limits]\nmax-scan\n", "expected KEY = VALUE")):
            seen, out, err = run("check", self.trace, "--config", self.config(text))
            self.assertEqual((seen, out), (2, ""), (text, err))
            self.assertIn(said, err)
        self.assertIn("nowhere.toml: No such file", run("check", self.trace, "--config", "nowhere.toml")[2])

    def test_baseline(self):
        path = os.path.join(self.folder, "known.txt")
        limits = "--max-scan", "1999", "--no-sort", "--baseline", path
        self.assertIn("--update writes it", run("check", self.trace, *limits)[2])
        self.assertEqual(run("check", self.trace, *limits, "--update"), (0, path + ": 3 violations\n", ""))
        self.assertEqual(self.check(*limits), ([], ""))
        self.assertEqual(self.check(*limits, "--no-auto-index")[0], [("no-auto-index", 0xa3)])
        self.assertEqual(self.check("--max-scan", "9000", *limits[2:]), ([], "queryprof: %s: 1 entry exceeds no limit any more; --update removes it\n" % path))
        with open(path, "a", encoding="utf-8") as file:
            file.write("nonsense\n")
        self.assertIn("known.txt:5: expected a limit and the 16 digits", run("check", self.trace, *limits)[2])
        self.assertEqual(run("check", self.trace, "--no-sort", "--update")[0], 2)
        self.assertEqual(run("check", self.trace, "--no-sort", "--baseline", self.trace, "--update")[0], 1)
        self.assertEqual(self.check("--no-sort")[0], [("no-sort", 0xa2)])

    def test_what_is_not_known_is_said(self):
        # a4 has 8000 rows in four runs that were not logged, a5 1200 in three, a1 44,900 in eight.
        for limit, unknown in (("8000", "1 statement has"), ("6000", "2 statements have"), ("44900", None), ("1200", None),
                               ("1000", "1 statement has")):
            err = self.check("--max-scan", limit)[1]
            self.assertEqual(err and err.split("--max-scan: ")[1].split(" runs")[0], unknown or "", limit)
        self.assertEqual(self.check("--no-sort")[1], "")

    def test_regressed(self):
        def one(runs, mean, spread):
            return (0xb1 << 56, "SELECT b", runs, 0, [], 0, 0, 1, runs * mean, spread),

        base = self.make("base.trace", one(100, 1, 0.3))
        for number, (runs, mean, spread, ratio, is_found) in enumerate((
                (100, 2, 0.3, "1.9", False), (100, 2, 0.3, "1.8", True), (100, 2, 0.3, "2.5", False),
                (100, 1, 0.3, "1", False), (100, 2, 8, "1.3", False), (2, 2, 0.3, "1.3", False), (1, 50, 0, "1.3", False))):
            trace = self.make("now%d.trace" % number, one(runs, mean, spread))
            found, err = self.check("--regressed", ratio, "--against", base, trace=trace)
            self.assertEqual((found, err), ([("regressed", 0xb1)] if is_found else [], ""), (runs, mean, spread, ratio))
        out = run("check", os.path.join(self.folder, "now0.trace"), "--regressed", "1.3", "--against", base)[1]
        self.assertEqual(out, "regressed: a run takes 2.0000 ms, 2.00 times as long as before (1.0000 ms): SELECT b [b1000000]\n")

    def test_formats(self):
        os.chdir(self.folder)
        place = HERE + ":31 (find<all>): "
        scan = "a run visited 5,000 rows of whole tables: SELECT 'scan' < 2 & 1, \"q\" [a1000000]"
        sort = "20 sorts in 10 runs: SELECT 'sorts: 100 %' [a2000000]"
        limits = "check", self.trace, "--max-scan", "4500", "--no-sort", "--max-time", "1s"
        self.assertEqual(run(*limits)[1].splitlines(), ["max-scan: " + place + scan,
                                                        "no-sort: " + sort])
        self.assertEqual(run(*limits, "--format", "tap")[1].splitlines(), [
            "1..3", "not ok 1 - no run visits more than 4500 rows of whole tables", "# " + place + scan,
            "not ok 2 - no run sorts", "# " + sort, "ok 3 - no run takes longer than 1s"])
        self.assertEqual(run(*limits, "--format", "github")[1].splitlines(), [
            "::error file=%s,line=31,title=queryprof max-scan::%s" % (HERE, scan),
            "::error title=queryprof no-sort::" + sort.replace("%", "%25")])
        suite = xml.etree.ElementTree.fromstring(run(*limits, "--format", "junit")[1])
        self.assertEqual((suite.tag, suite.get("tests"), suite.get("failures")), ("testsuite", "3", "2"))
        self.assertEqual([(case.get("name"), [failure.text.strip() for failure in case]) for case in suite], [
            ("no run visits more than 4500 rows of whole tables", [place + scan]), ("no run sorts", [sort]),
            ("no run takes longer than 1s", [])])
        self.assertEqual(run("check", self.trace, "--max-time", "1s")[:2], (0, "6 statements checked, none exceeds a limit\n"))

    def test_mistakes(self):
        for arguments, status, message in (
                ((), 2, "no limit is given"), (("--max-scan", "many"), 2, "expected a whole number"),
                (("--max-time", "5x"), 2, "expected a time with its unit"), (("--max-time", "0ms"), 2, "expected a time"),
                (("--regressed", "1.3"), 2, "--against FILE"), (("--no-sort", "--against", self.trace), 2, "--regressed 1.3"),
                (("--regressed", "0.5", "--against", self.trace), 2, "at least 1"),
                (("--regressed", "nan", "--against", self.trace), 2, "at least 1"),
                (("--regressed", "2", "--against", "nowhere.trace"), 1, "No such file"),
                (("--no-sort", "--except", "SELECT"), 2, "the id of a statement"), (("--no-sort", "--format", "xml"), 2, "junit")):
            seen, out, err = run("check", self.trace, *arguments)
            self.assertEqual((seen, out), (status, ""), (arguments, err))
            self.assertIn(message, err)


if __name__ == "__main__":
    main()
