#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python functions that run SQL inside a statement's step: on another connection, which keeps its statements to step
them again, and on the same one. Also Python's own tests of its sqlite3 module.

    test_nested.py QUERYPROF LIBRARY"""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

QUERYPROF, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:3])
ROUNDS = 200

PROGRAM = """
import io, os, sqlite3, sys, threading, unittest
folder, rounds = sys.argv[1], int(sys.argv[2])
db = sqlite3.connect(folder + "/main.db", isolation_level=None, check_same_thread=False)
if len(sys.argv) > 3:
    db.enable_load_extension(True)
    db.load_extension(sys.argv[3])
    db.execute("PRAGMA query_profiler_cpu_time_period_ns = 1000000")
log = sqlite3.connect(folder + "/log.db", isolation_level=None, check_same_thread=False)
log.execute("PRAGMA synchronous = OFF")
log.execute("CREATE TABLE log(x)")

def write(x):
    log.execute("INSERT INTO log VALUES (?)", (x,))
    return log.execute("SELECT count(*) FROM log").fetchone()[0]

def change(x):
    log.execute(f"CREATE TABLE t{x}_{write(x)}(a)")
    return db.execute("SELECT ?", (x,)).fetchone()[0]

db.create_function("write", 1, write)
db.create_function("change", 1, change)
for i in range(rounds):
    rows = db.execute("SELECT write(value) FROM json_each('[1,2,3,4,5]')").fetchall()
    assert len(rows) == 5 and rows[4][0] - rows[0][0] == 4
for i in range(rounds // 10):
    assert db.execute("SELECT change(value) FROM json_each('[1,2,3]')").fetchall() == [(1,), (2,), (3,)]

def work():
    for i in range(rounds):
        try:
            db.execute("SELECT no_such_column").fetchall()
        except sqlite3.Error as error:
            assert "no_such" in str(error) or "json" in str(error), error
        try:
            db.execute("SELECT json('[')").fetchall()
        except sqlite3.Error:
            pass

# CPython reads sqlite3_errmsg() without the connection's mutex: on a busy machine AddressSanitizer saw
# the text freed by another thread. The library's own part is in test_threads.c.
is_sanitized = "libasan" in os.environ.get("LD_PRELOAD", "")
threads = [threading.Thread(target=work) for i in range(1 if is_sanitized else 4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]

def suite():
    try:
        import test.test_sqlite3 as tests
    except ImportError:
        return -1
    found = unittest.defaultTestLoader.loadTestsFromModule(tests)
    return unittest.TextTestRunner(io.StringIO()).run(found).testsRun

db.create_function("suite", 0, suite)
print("in a function:", db.execute("SELECT suite()").fetchone()[0], "tests")
if len(sys.argv) > 3:
    db.execute("SELECT count(*) FROM query_log").fetchall()  # stores everything; the end has two seconds for that
db.close()
log.close()
"""


# Debian's Python is without these tests. Other builds often lack load_extension().
HAS_TESTS = """
import _sqlite3, sqlite3, test.test_sqlite3
sqlite3.connect(":memory:")
if not any("libsqlite3.so" in line for line in open("/proc/self/maps")): raise SystemExit(1)
"""


def python_with_tests():
    """Returns a Python with the tests of its sqlite3 module and SQLite as a shared library, or else
    Debian's."""
    path = shutil.which("python3")
    usable = path and not subprocess.run([path, "-c", HAS_TESTS], capture_output=True, check=False).returncode
    if not usable:
        return "/usr/bin/python3"
    # the executable, not a script that starts it
    return subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True,
                          check=True).stdout.strip()


class Nested(unittest.TestCase):
    def run_program(self, python, *command, loaded=()):
        with tempfile.TemporaryDirectory(prefix="queryprof-nested-") as folder:
            trace = os.path.join(folder, "trace")
            done = subprocess.run([*(part.replace("TRACE", trace) for part in command), python, "-c", PROGRAM,
                                   folder, str(ROUNDS), *loaded], env={**os.environ, "QUERYPROF_TRACE_LOG_PATH": trace,
                                   "QUERYPROF_LOG_QUERIES_MIN_QUERY_DURATION_NS": "0"}, capture_output=True, text=True, timeout=300, check=False)
            print(done.stdout.strip())
            self.assertEqual(done.returncode, 0, done.stderr)
            queries, = sqlite3.connect(trace).execute(
                "SELECT count(*) FROM query_log WHERE query LIKE 'INSERT INTO log%' AND query_id <> initial_query_id"
            ).fetchone()
            self.assertGreaterEqual(queries, 5 * ROUNDS)

    def test_loaded(self):
        self.run_program("/usr/bin/python3", loaded=(LIBRARY,))

    def test_recorded(self):
        self.run_program(python_with_tests(), QUERYPROF, "record", "--quiet", "--no-symbols", "-o", "TRACE", "--cpu", "1ms", "--real",
                         "1ms", "--setting", "log_queries_min_query_duration_ns=0", "--")


unittest.main(argv=sys.argv[:1])
