#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Waits in Debian's python3, which is not position independent and takes the addresses of functions
that both it and SQLite call. fsync() and fdatasync() are hooked in both, and each call reaches
the real function.

test_python.py LIBRARY"""

import os
import sqlite3
import sys
import tempfile
import threading
import time
import unittest

LIBRARY = os.path.abspath(sys.argv.pop(1))


class Waits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.db = sqlite3.connect(os.path.join(folder.name, "app.db"), isolation_level=None, check_same_thread=False)
        self.db.enable_load_extension(True)
        self.db.load_extension(LIBRARY)
        self.db.execute("PRAGMA query_profiler_off_cpu_period_ns = '1ms'")
        self.db.execute("PRAGMA log_queries_min_query_duration_ns = 0")
        self.file = os.open(os.path.join(folder.name, "x"), os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, self.file)
        self.addCleanup(self.db.close)

    def run_as(self, name, sql):
        self.db.execute(f"PRAGMA query_id = '{name}'")
        self.db.execute(sql).fetchall()

    def log(self, name, columns):
        return self.db.execute(f"SELECT {columns} FROM system.query_log WHERE query_id = ?", (name,)).fetchone()

    def test_syncs(self):
        self.db.create_function("sync", 0, lambda: os.fsync(self.file) or os.fdatasync(self.file))
        self.run_as("makes", "CREATE TABLE t(x)")
        self.run_as("inserts", "INSERT INTO t VALUES (1)")
        self.run_as("syncs", "SELECT sync()")
        self.assertGreaterEqual(self.log("inserts", "syncs")[0], 2)
        self.assertEqual(self.log("syncs", "syncs")[0], 2)

    def test_a_thread_of_python(self):
        """An SQL function of the host waits for another thread. The other thread's waits do not
        belong to the query."""
        event = threading.Event()
        observer = sqlite3.connect(":memory:", check_same_thread=False)
        self.addCleanup(observer.close)
        observer.enable_load_extension(True)
        observer.load_extension(LIBRARY)

        def set_later():
            """Sets the event after the query has waited for 0.2 s, however late it began."""
            end = time.monotonic() + 300
            while time.monotonic() < end and not observer.execute(
                    "SELECT count(*) FROM system.processes WHERE query_id = 'waits' AND wait_ns >= 200000000").fetchone()[0]:
                time.sleep(0.001)
            event.set()

        self.db.create_function("wait", 0, event.wait)
        other = threading.Thread(target=set_later)
        other.start()
        self.run_as("waits", "SELECT wait()")
        other.join()
        execution, waited, cpu = self.log("waits", "execution_time_ns, other_wait_ns + mutex_wait_ns, cpu_time_ns")
        self.assertLessEqual(waited, execution)
        self.assertGreater(waited, 100000000)
        self.assertLess(cpu, waited)


if __name__ == "__main__":
    unittest.main()
