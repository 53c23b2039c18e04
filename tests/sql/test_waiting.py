#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reading a system table waits for the flusher. sqlite3_interrupt() and a limit end the wait.

usage: test_waiting.py LIBRARY"""

import unittest

from library import Case, in_new_process


class Waiting(Case):
    def test_interrupt_ends_waiting(self):
        """Another connection keeps the trace file locked, so that the flusher cannot store anything."""
        script = """
import threading, time
path = sys.argv[1]
db = connect(check_same_thread=False)
db.execute("PRAGMA query_profiler_cpu_time_period_ns = 1000000")
db.execute("SELECT set_setting('trace_log_path', ?)", (path,)).fetchall()
db.execute("SELECT count(*) FROM system.query_log").fetchall()
other = sqlite3.connect(path, isolation_level=None)
other.execute("BEGIN IMMEDIATE")
db.execute("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300000) SELECT sum(i) FROM c").fetchall()
ended = []
def read():
    try:
        ended.append(db.execute("SELECT count(*) FROM system.query_log").fetchall())
    except sqlite3.Error as error:
        ended.append(str(error))
start = time.monotonic()
thread = threading.Thread(target=read)
thread.start()
time.sleep(0.5)
waited = not ended
while thread.is_alive():
    db.interrupt() # it may not have begun
    thread.join(0.1)
print([waited, ended[0], time.monotonic() - start < 40]) # the limit is a minute
other.execute("ROLLBACK")
# And afterwards it reads as ever.
print(db.execute("SELECT count(*) > 0 FROM system.query_log").fetchall())"""
        waited, rest = in_new_process(script, self.path("trace.db")).splitlines()
        self.assertEqual(waited, "[True, 'interrupted', True]")
        self.assertEqual(rest, "[(1,)]")


if __name__ == "__main__":
    unittest.main()
