#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The recording of a connection with the extension is stored if its process ends by _exit() or executes another
program, also in a forked child.

    test_own_ends.py LIBRARY"""

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.path.abspath(sys.argv.pop(1))
RUNS = 5

PROGRAM = f"""
import os, sqlite3, sys
db = sqlite3.connect(":memory:", isolation_level=None)
db.enable_load_extension(True)
db.load_extension({LIBRARY!r})
for name, value in ("trace_log_path", sys.argv[1]), ("log_queries_min_query_duration_ns", 0), ("query_profiler_cpu_time_period_ns", 1000000):
    db.execute(f"PRAGMA {{name}} = '{{value}}'").fetchall()
def run():
    for i in range({RUNS}):
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT sum(i) FROM n").fetchall()
if sys.argv[2] == "forks":
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    os.waitpid(child, 0)
run()
if sys.argv[2] == "becomes":
    os.execv("/bin/true", ["true"])
os._exit(0)
"""


TRIES = 10  # a process waits 1 s for its flusher, and a busy machine sometimes needs longer


class OwnEnds(unittest.TestCase):
    def stored(self, end):
        """Returns the number of logged runs, of their threads, and of counted runs; None if the process did not even make its
        file."""
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "app.trace")
            subprocess.run(["/usr/bin/python3", "-c", PROGRAM, trace, end], check=True, timeout=300)
            with contextlib.closing(sqlite3.connect(trace)) as db:
                if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'query_log'").fetchone():
                    return None
                runs = db.execute("SELECT count(*), count(DISTINCT thread_id) FROM query_log"
                                  " WHERE type = 'QueryFinish' AND query LIKE 'WITH RECURSIVE%'").fetchone()
                return *runs, *db.execute("SELECT sum(calls) FROM statement_stats WHERE query LIKE 'WITH RECURSIVE%'").fetchone()

    def test_ends(self):
        for end, processes in ("exits", 1), ("becomes", 1), ("forks", 2):
            wanted = processes * RUNS, processes, processes * RUNS
            for _ in range(TRIES):
                stored = self.stored(end)
                if stored == wanted:
                    break
            with self.subTest(end):
                self.assertEqual(stored, wanted)


if __name__ == "__main__":
    unittest.main()
