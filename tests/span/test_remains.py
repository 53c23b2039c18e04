#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Spans of threads that were inside a trace when their process ended, recorded by `queryprof record`.

usage: test_remains.py QUERYPROF PROGRAM [unittest arguments]"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

QUERYPROF, PROGRAM = sys.argv.pop(1), sys.argv.pop(1)
THREADS, SPANS = 3, 2503


class Remains(unittest.TestCase):
    def record(self, how):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "ends.trace")
            result = subprocess.run([QUERYPROF, "record", "-o", trace, "--", PROGRAM, how], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, -9 if how == "kill" else 0, result.stderr)
            db = sqlite3.connect(trace)
            try:
                self.check(db)
                if how == "fork":
                    self.assertEqual(db.execute("SELECT spans, threads FROM traces WHERE root = 'child'").fetchall(),
                                     [(1, 1)] * 2)
            finally:
                db.close()

    def check(self, db):
        traces = db.execute("SELECT spans, dropped, root, threads FROM traces WHERE root <> 'child'").fetchall()
        self.assertEqual(traces, [(SPANS, 0, "outer", 1)] * THREADS)
        rows = db.execute("SELECT s.name, sum(r.flags & 1), count(*), count(DISTINCT r.span) FROM span_rows AS r"
                          " JOIN span_sites AS s ON s.id = r.site WHERE s.name <> 'child' GROUP BY 1 ORDER BY 1").fetchall()
        self.assertEqual(rows, [("", 0, THREADS, THREADS), ("inner", 0, THREADS * (SPANS - 3), THREADS * (SPANS - 3)),
                                ("last", THREADS, THREADS, THREADS), ("outer", THREADS, THREADS, THREADS)])
        # All are children of their root, which lasts until the newest known time.
        self.assertEqual(db.execute("SELECT count(*) FROM span_rows AS r WHERE r.parent NOT IN (SELECT o.span FROM span_rows AS o"
                                    " JOIN span_sites AS s ON s.id = o.site WHERE s.name = 'outer') AND r.parent <> 0").fetchone(), (0,))

    def test_killed(self):
        self.record("kill")

    def test_exec(self):
        self.record("exec")

    def test_fork(self):
        self.record("fork")

    def test_exit(self):
        self.record("exit")


if __name__ == "__main__":
    unittest.main()
