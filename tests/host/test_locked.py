#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`.load` on a database that another process has locked exclusively returns immediately, and
busy_timeout keeps its meaning, in Python and in SQLite's shell.

usage: test_locked.py LIBRARY
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY = os.path.splitext(os.path.abspath(sys.argv.pop(1)))[0]
TIMEOUT_S = 1.5
LONG_S = 300  # a load that waits this long is noticed on any machine
ATTEMPTS = 5  # a wait takes its time in every attempt; a busy machine does not delay every attempt

LOCKER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


class Locked(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.db")
        db = sqlite3.connect(self.path)
        db.execute("CREATE TABLE t(x)")
        db.close()
        self.locker = subprocess.Popen([sys.executable, "-c", LOCKER, self.path], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.locker.stdout.readline(), "locked\n")
        self.addCleanup(self.unlock)

    def unlock(self):
        self.locker.communicate()

    def timed(self, call, *arguments):
        before = time.monotonic()
        try:
            return call(*arguments), time.monotonic() - before
        except sqlite3.OperationalError as error:
            return str(error), time.monotonic() - before

    def soonest(self, call, *arguments):
        """Returns the first attempt that was too short for two waits, or the last attempt."""
        for _ in range(ATTEMPTS):
            done, seconds = self.timed(call, *arguments)
            if seconds < 2 * TIMEOUT_S:
                break
        return done, seconds

    def test_python(self):
        db = sqlite3.connect(self.path, timeout=TIMEOUT_S, isolation_level=None)
        db.enable_load_extension(True)
        self.assertIsNone(db.load_extension(LIBRARY))
        for sql in "SELECT * FROM t", "SELECT * FROM system.metrics", "SELECT * FROM trace_log":
            error, seconds = self.soonest(db.execute, sql)
            self.assertEqual(error, "database is locked")
            self.assertGreaterEqual(seconds, TIMEOUT_S * 0.99)
            self.assertLess(seconds, 2 * TIMEOUT_S)
        self.unlock()
        self.assertGreater(db.execute("SELECT count(*) FROM system.metrics").fetchone()[0], 10)
        self.assertEqual(db.execute("PRAGMA busy_timeout").fetchone()[0], TIMEOUT_S * 1000)
        db.close()

    def test_load_does_not_wait(self):
        db = sqlite3.connect(self.path, timeout=LONG_S, isolation_level=None)
        db.enable_load_extension(True)
        error, seconds = self.timed(db.load_extension, LIBRARY)
        self.assertIsNone(error)
        self.assertLess(seconds, LONG_S)
        self.assertEqual(db.execute("PRAGMA busy_timeout").fetchone()[0], LONG_S * 1000)
        db.close()

    def test_shell(self):
        now = "SELECT julianday('now');\n"
        script = f".timeout {round(TIMEOUT_S * 1000)}\n{now}.load {LIBRARY}\n{now}SELECT * FROM t;\n{now}"
        for _ in range(ATTEMPTS):
            done = subprocess.run(["sqlite3", "-batch", self.path], input=script, text=True, capture_output=True,
                                  timeout=300, check=False)
            self.assertIn("database is locked", done.stderr)
            start, loaded, end = (float(day) * 86400 for day in done.stdout.split())
            self.assertGreaterEqual(end - loaded, TIMEOUT_S * 0.99)
            if loaded - start < TIMEOUT_S and end - loaded < 2 * TIMEOUT_S:
                return
        self.fail("loaded in %.1f s, waited %.1f s" % (loaded - start, end - loaded))


if __name__ == "__main__":
    unittest.main()
