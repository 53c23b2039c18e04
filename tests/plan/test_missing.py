#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The reason why a statement has no plan is in the trace file, in `plan`, in `report` and in the last lines of
`record`.

usage: test_missing.py QUERYPROF SOURCES"""

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

COMMAND, SOURCES = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))

# A third of a second of work on any machine, because samples come at its ticks.
PROGRAM = """
import sqlite3, time
db = sqlite3.connect(":memory:", isolation_level=None)
db.execute("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT i FROM n")
{setting}
end = time.thread_time() + 0.3
while time.thread_time() < end:
    db.execute("SELECT count(*) FROM t WHERE i % 7 = 3").fetchall()
"""

CASES = [
    ("db.set_authorizer(lambda *_: 0)", "the connection has an authorizer"),
    ("db.set_progress_handler(lambda: 0, 1000000)", "the connection has a progress handler"),
    ("db.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 50)", "the statement with EXPLAIN QUERY PLAN is longer than the connection allows"),
]


class Missing(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = os.path.join(self.folder.name, "trace")

    def record(self, *command):
        return subprocess.run([COMMAND, "record", "-o", self.trace, "--cpu", "1ms", "--setting",
                               "query_profiler_max_overhead_percent=0", "--", *command], check=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr

    def show(self, *arguments):
        done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def reasons(self):
        db = sqlite3.connect(self.trace)
        rows = db.execute("SELECT DISTINCT reason FROM missing_plans JOIN queries USING (program) JOIN statements AS s "
                          "ON s.id = statement WHERE s.query LIKE 'SELECT count%'").fetchall()
        db.close()
        return [reason for reason, in rows]

    def check(self, reason, said):
        self.assertEqual(self.reasons(), [reason])
        self.assertIn(f"no plan: {reason}: SELECT count(*)", self.show("plan", self.trace, "--like", "SELECT count"))
        self.assertRegex(self.show("report", self.trace, "--like", "SELECT count"), f"no plan +{reason}. To get one: .*queryprof analyze\n")
        self.assertRegex(said, rf"plans: \d of \d sampled statements? ha\w+ none: .*{reason} \(1\)")

    def test_callbacks(self):
        for setting, reason in CASES:
            with self.subTest(reason):
                self.trace = os.path.join(self.folder.name, str(len(reason)))
                self.check(reason, self.record("/usr/bin/python3", "-c", PROGRAM.format(setting=setting)))

    def test_interrupted_by_the_handler(self):
        """The handler takes precedence over the error that it caused, because there would be no plan without the error,
        either."""
        setting = """
stop = time.thread_time() + 0.3
db.set_progress_handler(lambda: time.thread_time() > stop, 1000)
try:
    db.execute("SELECT count(*) FROM t AS a, t AS b WHERE a.i < b.i").fetchall()
except sqlite3.OperationalError:
    pass
db.set_progress_handler(None, 0)
"""
        self.check("the connection has a progress handler",
                   self.record("/usr/bin/python3", "-c", PROGRAM[:PROGRAM.index("end =")].format(setting=setting)))

    def test_table_of_the_program(self):
        said = self.record("sqlite3", ":memory:", "SELECT count(*) FROM generate_series(1, 7000000)")
        self.assertEqual(self.reasons(), [])
        self.assertIn("SCAN generate_series VIRTUAL TABLE INDEX", self.show("plan", self.trace, "--like", "SELECT count"))
        self.assertNotIn("plans:", said)

    def test_callback_that_goes(self):
        # The library reads a plan again with a later run if it could not read it.
        setting = "for callback in (lambda *_: 0), None:\n    db.set_authorizer(callback)\n" + "".join(
            "    " + line + "\n" for line in PROGRAM[PROGRAM.index("end ="):].splitlines())
        said = self.record("/usr/bin/python3", "-c", PROGRAM.format(setting=setting))
        self.assertEqual(self.reasons(), [])
        self.assertIn("SCAN t", self.show("plan", self.trace, "--like", "SELECT count"))
        self.assertNotIn("authorizer", said)

    def test_samples_are_too_few(self):
        self.record("/usr/bin/python3", "-c", PROGRAM.format(setting="db.set_authorizer(lambda *_: 0)"))
        db = sqlite3.connect(self.trace)
        db.executescript("DELETE FROM missing_plans; UPDATE queries SET samples_cpu = 0, samples_real = 0")
        db.close()
        self.assertRegex(self.show("report", self.trace, "--like", "SELECT count"), "no plan +no run of it had a sample. To get one: more runs")

    def test_each_reason_has_a_remedy(self):
        with open(os.path.join(SOURCES, "src/sqlite/plan/missing.h"), encoding="utf-8") as file:
            reasons = re.findall(r'REASON\(\w+, "\w+", \w+,((?:[\s\\]*"[^"]*")+)\)', file.read())
        with open(os.path.join(SOURCES, "sql/read/run_plans.sql"), encoding="utf-8") as file:
            remedies = {reason.replace("''", "'") for reason in re.findall(r"^\('((?:[^']|'')*)',", file.read(), re.M)}
        reasons = {"".join(re.findall('"([^"]*)"', reason)) for reason in reasons}
        self.assertGreater(len(reasons), 10)
        self.assertEqual({reason for reason in reasons if not reason.startswith("SQLite explains only ")} - remedies, set())

    def test_all_have_plans(self):
        self.assertNotIn("plans:", self.record("/usr/bin/python3", "-c", PROGRAM.format(setting="")))


if __name__ == "__main__":
    unittest.main()
