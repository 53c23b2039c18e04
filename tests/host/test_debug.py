#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""QUERYPROF_DEBUG: a host's debug log, and the message for a bad value.

usage: test_debug.py LIBRARY
"""

import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.path.splitext(os.path.abspath(sys.argv.pop(1)))[0]

HOST = """
import sqlite3, sys
db = sqlite3.connect(":memory:", isolation_level=None)
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
db.execute("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300000) SELECT sum(i) FROM c").fetchall()
print(db.execute("SELECT value FROM system.metrics WHERE metric = 'debug_error'").fetchone()[0])
"""


class Debug(unittest.TestCase):
    def run_host(self, topics):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["/usr/bin/python3", "-c", HOST, LIBRARY], capture_output=True, text=True, timeout=300,
                                  env={**os.environ, "TMPDIR": folder, "QUERYPROF_DEBUG": topics}, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = []
            for name in os.listdir(folder):
                if name.startswith("queryprof-debug."):
                    with open(os.path.join(folder, name), encoding="utf-8") as log:
                        lines += log.read().splitlines()
            return done.stdout.strip(), lines

    def test_off(self):
        self.assertEqual(self.run_host(""), ("", []))

    def test_topics(self):
        error, lines = self.run_host("hooks,store,timers")
        self.assertEqual(error, "")
        for part in " hooks: sqlite3_step of ", ": patched", " store: state running", " made its CPU timer":
            self.assertTrue([line for line in lines if part in line], part)
        self.assertFalse([line for line in lines if " symbols: " in line])

    def test_bad_value(self):
        error, lines = self.run_host("hooks,everything")
        self.assertIn('"everything" is not one of hooks, symbols, store, timers, all', error)
        self.assertEqual(lines, [])


if __name__ == "__main__":
    unittest.main()
