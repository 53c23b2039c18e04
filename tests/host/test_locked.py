#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`.load` on a database that another process holds exclusively returns at once, and
busy_timeout then still means what it says: in Python and in SQLite's shell.

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

    def test_python(self):
        db = sqlite3.connect(self.path, timeout=TIMEOUT_S, isolation_level=None)
        db.enable_load_extension(True)
        error, seconds = self.timed(db.load_extension, LIBRARY)
        self.assertIsNone(error)
        self.assertLess(seconds, TIMEOUT_S / 2)
        for sql in "SELECT * FROM t", "SELECT * FROM system.metrics", "SELECT * FROM trace_log":
            error, seconds = self.timed(db.execute, sql)
            self.assertEqual(error, "database is locked")
            self.assertGreaterEqual(seconds, TIMEOUT_S * 0.99)
            self.assertLess(seconds, 2 * TIMEOUT_S)
        self.unlock()
        self.assertGreater(db.execute("SELECT count(*) FROM system.metrics").fetchone()[0], 10)
        self.assertEqual(db.execute("PRAGMA busy_timeout").fetchone()[0], TIMEOUT_S * 1000)
        db.close()

    def test_shell(self):
        script = f".timeout {round(TIMEOUT_S * 1000)}\n.load {LIBRARY}\nSELECT 'loaded';\nSELECT * FROM t;\n"
        done, seconds = self.timed(lambda: subprocess.run(["sqlite3", "-batch", self.path], input=script, text=True,
                                                          capture_output=True, timeout=300, check=False))
        self.assertEqual(done.stdout, "loaded\n")
        self.assertIn("database is locked", done.stderr)
        self.assertLess(seconds, 1.6 * TIMEOUT_S)


if __name__ == "__main__":
    unittest.main()
