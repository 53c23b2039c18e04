#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The recording has the labels of a killed process and of a forked process.

usage: test_killed.py QUERYPROF LIBRARY [unittest arguments]"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

QUERYPROF, LIBRARY = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))

PROGRAM = """
import ctypes, os, signal, sqlite3, sys
class Label(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("text", ctypes.c_char_p), ("number", ctypes.c_int64), ("unit", ctypes.c_char_p)]
library = ctypes.CDLL(sys.argv[1])
library.qp_labels_new.restype = ctypes.c_void_p
library.qp_labels_enter.restype = ctypes.c_uint64
library.qp_labels_enter.argtypes = [ctypes.c_void_p]

def enter(text):
    library.qp_labels_enter(library.qp_labels_new(ctypes.byref(Label(b"who", text, 0, None)), 1))

def query(comment):
    db = sqlite3.connect(":memory:")
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT count(*) FROM n"
               " /*route='%s'*/" % comment).fetchall()
    return db

enter(b"before")  # the ring does not exist yet
db = query("first")
child = os.fork()
if child == 0:
    db = query("child")
    enter(b"child")
    db = query("child%27s own")
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
enter(b"parent")
db = query("parent")
os.kill(os.getpid(), signal.SIGKILL)
"""


class Killed(unittest.TestCase):
    def test_killed(self):
        with tempfile.TemporaryDirectory(prefix="queryprof-label-killed-") as folder:
            trace = os.path.join(folder, "app.trace")
            # Nothing is stored before the processes end, so all data comes from the memory that
            # they leave.
            done = subprocess.run([QUERYPROF, "record", "-o", trace, "--no-symbols", "--cpu", "1ms", "--setting",
                                   "trace_log_flush_interval_ms=3600000", "--setting", "query_profiler_max_overhead_percent=0", "--",
                                   "/usr/bin/python3", "-c", PROGRAM, LIBRARY],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stdout + done.stderr)
            with sqlite3.connect(trace) as db:
                # Without sqlite3_close(), which may have a sample, too.
                seen = [json.loads(labels) for labels, in db.execute(
                    "SELECT DISTINCT labels FROM trace_log WHERE query_id IN (SELECT query_id FROM query_log WHERE query LIKE"
                    " '%route%') ORDER BY labels")]
                self.assertEqual(db.execute("SELECT count(*) FROM query_log WHERE labels = '{}' AND query LIKE '%route%'")
                                 .fetchone(), (0,))
            self.assertEqual(sorted(seen, key=str), sorted((
                {"route": "first", "who": "before"}, {"route": "child", "who": "before"},
                {"route": "child's own", "who": "child"}, {"route": "parent", "who": "parent"}), key=str),
                done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
