#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A process that is killed while it waits for a lock leaves who had it, and the time that it waited.

    test_killed_waiting.py QUERYPROF"""

import os
import signal
import sqlite3
import subprocess
import unittest

import recording

WAITS = """
import os, sqlite3, sys
print(os.getpid(), flush=True)
sqlite3.connect(sys.argv[1], timeout=600).execute("INSERT INTO t VALUES (1)")
"""
TOLD = "SELECT count(*) FROM lock_waits WHERE outcome = 'waiting' AND wait_ns >= 1000000000"


class Killed(recording.Recording):
    def kill(self, number):
        path = os.path.join(self.folder, "app.db")
        holder = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(holder.close)
        holder.execute("CREATE TABLE IF NOT EXISTS t(x)")
        holder.execute("BEGIN IMMEDIATE")
        with subprocess.Popen(self.arguments(recording.PYTHON, "-c", WAITS, path, options=("--quiet",)),
                              stdout=subprocess.PIPE, text=True) as command:
            waiting = int(command.stdout.readline())
            recording.wait_until(lambda: self.has_views() and self.rows(TOLD) == [(1,)], "a row of the wait")
            os.kill(waiting, number)
        holder.execute("COMMIT")
        return waiting

    def test_killed(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            waiting = self.kill(number)
            self.assertEqual(self.rows("SELECT process_id, lock, holder_process_id, query FROM lock_waits"),
                             [(waiting, "RESERVED", os.getpid(), "INSERT INTO t VALUES (1)")])
            waited, = self.rows("SELECT sum(value) FROM trace_log WHERE wait_cause = 'lock'")[0]
            told, = self.rows("SELECT wait_ns FROM lock_waits")[0]
            # The busy handler's sleeps until then, of 100 ms at most; a part of the time was a queue's.
            self.assertGreaterEqual(waited, told / 2)
            done = subprocess.run([recording.QUERYPROF, "locks", self.trace], capture_output=True, text=True, check=True)
            self.assertIn("%d" % os.getpid(), done.stdout)
            os.unlink(self.trace)


if __name__ == "__main__":
    unittest.main()
