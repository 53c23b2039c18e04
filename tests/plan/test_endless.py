#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs that fail or do not end: their statement has a plan and its time so far, and is listed first, in a growing file and in
the file of a killed program.

usage: test_endless.py QUERYPROF"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

COMMAND = os.path.abspath(sys.argv.pop(1))
SECONDS_MAX = 200

# The statements before the tested one cannot have plans. queryprof reads plans at preparations for 5 ms, and then for 1 % of
# the time. A thread that lost its processor while another plan was read would have used that up, and a run that never ends
# has no later chance.
PROGRAM = """
import os, sqlite3, sys, threading, time
db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
db.execute("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT i FROM n")
for name in "uv":
    db.execute("CREATE TABLE " + name + " AS SELECT max(i) AS most FROM t WHERE i % 3 = 1")
print(os.getpid(), flush=True)
if sys.argv[1] == "interrupted":
    def interrupt():
        end = time.process_time() + 1
        while time.process_time() < end:
            time.sleep(0.01)
        db.interrupt()
    threading.Thread(target=interrupt).start()
try:
    print(db.execute(sys.argv[2]).fetchall())
except sqlite3.Error as error:
    print(error)
"""

ENDLESS = "SELECT count(*) FROM t AS a, t AS b, t AS c WHERE a.i < b.i + c.i"
# A third of a second of work, so that it has samples under any load.
FAILS = "SELECT sum(abs(iif(i < 200000, length(hex(zeroblob(400 + i % 2))), -9223372036854775808))) FROM t WHERE i % 7 < 7"


class Endless(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = os.path.join(self.folder.name, "trace")

    def start(self, how, sql):
        return subprocess.Popen([COMMAND, "record", "--quiet", "-o", self.trace, "--cpu", "1ms", "--setting",
                                 "query_profiler_max_overhead_percent=0", "--", sys.executable, "-c", PROGRAM, how, sql],
                                stdout=subprocess.PIPE, text=True)

    def show(self, *arguments):
        done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def wait_for_samples(self):
        """Waits until the file has half a second of the endless run, more than of all other runs, and samples."""
        end = time.monotonic() + SECONDS_MAX
        while True:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
            try:
                db = sqlite3.connect(f"file:{self.trace}?mode=ro", uri=True, timeout=10)
                row = db.execute("SELECT query_duration_ns - (SELECT total(query_duration_ns) FROM queries WHERE finished) "
                                 "FROM queries JOIN statements AS s ON s.id = statement WHERE NOT finished AND samples_cpu > 50 AND s.query = ?",
                                 (ENDLESS,)).fetchone()
                db.close()
            except sqlite3.OperationalError:
                continue
            if row and row[0] and row[0] > 500_000_000:
                return

    def check(self, sql, nodes):
        tree = self.show("plan", self.trace, "--like", sql[:40])
        for node in nodes:
            self.assertIn(node, tree)
        self.assertNotIn("no plan", tree)

    def check_is_first(self):
        for by in ([], ["--by", "wall"]):
            rows = json.loads(self.show("queries", self.trace, "--format", "json", *by))
            self.assertEqual(rows[0]["query"], ENDLESS)
            self.assertGreater(rows[0]["wall_ms"], 500)
            self.assertGreater(rows[0]["max_ms"], 500)
            self.assertIn("unfinished", rows[0]["notes"])
        report = self.show("report", self.trace, "--like", ENDLESS)
        self.assertRegex(report, "unfinished +1")
        self.assertIn("SCAN a", report)

    def test_without_end(self):
        with self.start("goes on", ENDLESS) as record:
            process = int(record.stdout.readline())
            try:
                self.wait_for_samples()
                self.check(ENDLESS, ("SCAN a", "SCAN b", "SCAN c"))
                self.check_is_first()
            finally:
                os.kill(process, signal.SIGKILL)
            record.wait(SECONDS_MAX)
        self.check(ENDLESS, ("SCAN a", "SCAN b", "SCAN c"))
        self.check_is_first()

    def test_interrupted(self):
        with self.start("interrupted", ENDLESS) as record:
            self.assertIn("interrupted", record.communicate(timeout=SECONDS_MAX)[0])
        self.check(ENDLESS, ("SCAN a", "SCAN b", "SCAN c"))

    def test_failed(self):
        with self.start("fails", FAILS) as record:
            self.assertIn("integer overflow", record.communicate(timeout=SECONDS_MAX)[0])
        self.check(FAILS, ("SCAN t",))


if __name__ == "__main__":
    unittest.main()
