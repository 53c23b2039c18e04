#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The limits of the Python package and its pytest plugin: for each limit an example that keeps it and one that exceeds
it.

    test_python.py SOURCE_DIR LIBRARY
"""
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SOURCE, LIBRARY = sys.argv[1:3]
del sys.argv[1:3]
FOLDER = tempfile.mkdtemp(prefix="queryprof-limits-")
shutil.copytree(os.path.join(SOURCE, "packaging/python/queryprof"), os.path.join(FOLDER, "queryprof"))
os.mkdir(os.path.join(FOLDER, "queryprof", "lib"))
os.symlink(LIBRARY, os.path.join(FOLDER, "queryprof", "lib", "libqueryprof.so"))
sys.path.insert(0, FOLDER)
sys.dont_write_bytecode = True
import queryprof

EXAMPLE = """
import sqlite3
import pytest

@pytest.fixture
def connection():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER)")
    connection.executemany("INSERT INTO orders VALUES (?, ?)", ((i, i) for i in range(2000)))
    return connection

def test_kept(connection, queryprof_limits):
    queryprof_limits(connection, max_scan=1000)
    connection.execute("SELECT * FROM orders WHERE id = 7").fetchall()

def test_exceeded(connection, queryprof_limits):
    queryprof_limits(connection, max_scan=1000)
    connection.execute("SELECT * FROM orders WHERE customer = 7").fetchall()
"""


class Limits(unittest.TestCase):
    def setUp(self):
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.addCleanup(self.db.close)
        self.db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
        self.db.executemany("INSERT INTO t VALUES (?, ?)", ((i, i) for i in range(1000)))

    def exceeded(self, work, **limits):
        try:
            with queryprof.limits(self.db, **limits):
                work()
        except queryprof.LimitExceeded as error:
            return [name for name, _ in error.violations]
        return []

    def test_each(self):
        def run(sql, times=1):
            return lambda: [self.db.execute(sql).fetchall() for _ in range(times)]

        for work, limits, found in (
                (run("SELECT count(*) FROM t WHERE b = 5"), {"max_scan": 998}, ["max_scan"]), (run("SELECT count(*) FROM t WHERE b = 5"), {"max_scan": 999}, []),
                (run("SELECT * FROM t WHERE a = 5"), {"max_scan": 0, "no_sort": True, "no_auto_index": True}, []),
                (run("SELECT * FROM t ORDER BY b"), {"no_sort": True}, ["no_sort"]), (run("SELECT * FROM t ORDER BY a"), {"no_sort": True}, []),
                (run("SELECT count(*) FROM t AS x JOIN t AS y ON x.b = y.b"), {"no_auto_index": True}, ["no_auto_index"]),
                (run("SELECT * FROM t"), {"max_time": 0}, ["max_time"]), (run("SELECT * FROM t"), {"max_time": 3600}, []),
                (run("SELECT * FROM t WHERE a = 5", 6), {"max_runs": 5}, ["max_runs"]), (run("SELECT * FROM t WHERE a = 5", 5), {"max_runs": 5}, [])):
            self.assertEqual(self.exceeded(work, **limits), found, limits)

    def test_what_is_checked(self):
        """Limits apply only to this connection in the block. An error in the block is raised. Settings and labels are
        restored."""
        queryprof.load(self.db, log_queries_min_query_duration_ns=12345)
        scan = "SELECT count(*) FROM t WHERE b = 5"
        self.db.execute(scan).fetchall()
        other = queryprof.load(sqlite3.connect(":memory:", isolation_level=None))
        other.execute("CREATE TABLE t(b)")
        other.executemany("INSERT INTO t VALUES (?)", ((i,) for i in range(1000)))
        self.assertEqual(self.exceeded(lambda: other.execute(scan).fetchall(), max_scan=10), [])
        other.close()
        with self.assertRaises(ZeroDivisionError), queryprof.limits(self.db, max_scan=10):
            self.db.execute(scan).fetchall()
            raise ZeroDivisionError
        self.assertEqual(str(self.db.execute("SELECT get_setting('log_queries_min_query_duration_ns')").fetchone()[0]), "12345")
        self.assertIn(self.db.execute("PRAGMA query_profiler_labels").fetchone()[0], (None, "", "{}"))
        with self.assertRaises(queryprof.LimitExceeded) as caught, queryprof.limits(self.db, max_scan=10):
            self.db.execute(scan).fetchall()
        self.assertEqual(str(caught.exception), "max_scan: a run visited 999 rows of whole tables: " + scan)

    def test_pytest(self):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("no pytest")
        path = os.path.join(FOLDER, "test_example.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(EXAMPLE)
        done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "queryprof.pytest_plugin", "-p", "no:cacheprovider", path], cwd=FOLDER,
                              env=dict(os.environ, PYTHONPATH=FOLDER), capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("max_scan: a run visited 1999 rows of whole tables: SELECT * FROM orders WHERE customer = 7", done.stdout)
        self.assertIn("test_exceeded", done.stdout)
        self.assertRegex(done.stdout, r"2 passed, 1 error")


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        shutil.rmtree(FOLDER)
