#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""trace_log_symbolize: names are stored in the trace file while the process continues.

usage: LIBQUERYPROF=LIBRARY test_symbolize.py [unittest arguments]"""

import os
import shutil
import sqlite3
import tempfile
import time
import unittest

LIBRARY = os.environ["LIBQUERYPROF"]
WORK = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT sum(i) FROM n"


class Symbolize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-symbolize-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        cls.db = sqlite3.connect(":memory:")
        cls.db.enable_load_extension(True)
        cls.db.load_extension(LIBRARY)
        for setting in (f"trace_log_path = '{cls.trace}'", "trace_log_flush_interval_ms = 20",
                        "query_profiler_cpu_time_period_ns = 1000000"):
            cls.db.execute("PRAGMA " + setting)

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        shutil.rmtree(cls.folder)

    def ask(self, sql):
        db = sqlite3.connect(self.trace)
        try:
            return db.execute(sql).fetchone()[0]
        finally:
            db.close()

    def work_until(self, sql):
        """Works until the query on the file returns a true value. Returns the last value."""
        deadline = time.monotonic() + 300
        while not (said := self.ask(sql)) and time.monotonic() < deadline:
            self.db.execute(WORK).fetchall()
        return said

    def work_in_child(self):
        """Works until the file has the child, too, because its end waits at most a second for its flusher. Returns 3 if the
        flusher cannot store."""
        child = sqlite3.connect(":memory:")
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            child.execute(WORK).fetchall()
            error, = self.db.execute("SELECT value FROM system.metrics WHERE metric = 'store_error'").fetchone()
            if "forked while" in (error or ""):
                return 3
            if self.ask("SELECT count(*) FROM processes") > 1:
                return 0
        return 2

    def test(self):
        self.assertTrue(self.work_until("SELECT count(*) > 20 FROM samples"))
        self.assertEqual(self.db.execute("SELECT value, \"default\" FROM system.settings"
                                         " WHERE name = 'trace_log_symbolize'").fetchone(), (0, 0))
        self.assertEqual(self.ask("SELECT count(*) FROM frames"), 0)  # names were not requested
        self.db.execute("PRAGMA trace_log_symbolize = 1")
        named = "SELECT count(*) > 0 FROM frames JOIN names ON names.id = function WHERE name = 'sqlite3_step'"
        self.assertTrue(self.work_until(named))
        # Stacks that were stored before get names, too.
        old = ("SELECT EXISTS (SELECT 1 FROM stack_frames WHERE symbol <> ''"
               " AND stack_id = (SELECT min(stack) FROM samples))")
        self.assertTrue(self.work_until(old), self.ask("SELECT group_concat(DISTINCT function) FROM stack_frames"))
        self.assertEqual(self.ask("PRAGMA integrity_check"), "ok")
        # A child has its own flusher, which also stores names.
        self.db.execute(WORK).fetchall()
        cannot = True
        while cannot:
            if os.fork() == 0:
                status = 1
                try:
                    status = self.work_in_child()
                finally:
                    os._exit(status)
            status = os.waitstatus_to_exitcode(os.wait()[1])
            # fork() waits at most a second for the flusher, which a slow disk may delay longer.
            cannot = status == 3
        self.assertEqual(status, 0)
        self.assertEqual(self.ask("SELECT count(*) FROM processes"), 2)


if __name__ == "__main__":
    unittest.main(verbosity=1)
