#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A preloaded library writes to descriptors of the process in malloc(), fstat() and other functions, on any thread that calls
them (writer.c). Nothing of this reaches the trace file, and the recording and earlier ones are whole.

usage: test_writer.py QUERYPROF WRITER"""

import contextlib
import os
import sys

WRITER = os.path.abspath(sys.argv.pop(2))

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# Uses threads, a forked child, and names of functions, because libdw calls malloc().
PROGRAM = """
import os, sqlite3, sys, threading
def connect():
    db = sqlite3.connect(':memory:', isolation_level=None)
    if len(sys.argv) > 1:
        db.enable_load_extension(True)
        db.load_extension(sys.argv[1])
        for setting in 'log_queries_min_query_duration_ns = 0', 'query_profiler_real_time_period_ns = 1000000', \\
                       'query_profiler_max_overhead_percent = 0':
            db.execute('PRAGMA ' + setting)
    return db
def work():
    db = connect()
    for i in range(20):
        db.execute('SELECT /* marked */ ?', (i,)).fetchall()
    db.execute('WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) SELECT sum(x) FROM c').fetchall()
    if len(sys.argv) > 1: # whoever ends by _exit() stores before
        db.execute('SELECT count(*) FROM query_log').fetchall()
    db.close()
if len(sys.argv) > 1:
    first = connect()
    first.execute("PRAGMA trace_log_path = '%s'" % sys.argv[2])
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if os.fork() == 0:
    work()
    os._exit(0)
if len(sys.argv) > 1:
    assert 'sqlite3' in first.execute('SELECT flameGraph(trace) FROM trace_log').fetchone()[0]
print(os.wait()[1])
"""
MARKED = 80
COUNTS = """SELECT (SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* marked%'), (SELECT count(*) FROM samples),
            (SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok')"""


class Writer(Recording):
    def counts(self):
        with contextlib.closing(sqlite3.connect(self.trace)) as db:
            return db.execute(COUNTS).fetchone()

    def check_appended(self, run, **environment):
        for _ in range(10):
            done, samples = self.append(run, **environment)
            # The child has no file if its parent's flusher needs more than the second for which fork() waits.
            if "while its parent's trace file was in use" not in done.stderr:
                break
            for suffix in "", "-wal", "-shm":
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.trace + suffix)
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"), done.stderr)
        marked, more, whole = self.counts()
        self.assertEqual((marked, whole), (2 * MARKED, 1), done.stderr)
        self.assertGreater(more, samples)

    def append(self, run, **environment):
        """Makes a recording, and runs the command that adds another one. Returns its output, and the number of samples before."""
        self.record(PYTHON, "-c", PROGRAM, options=(*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0"))
        marked, samples, whole = self.counts()
        self.assertEqual((marked, whole), (MARKED, 1), self.seen)
        return subprocess.run(run, capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, **environment}), samples

    def appending(self, *command):
        return [QUERYPROF, "record", "-o", self.trace, "--append", *OPTIONS, "--setting",
                "log_queries_min_query_duration_ns=0", "--", *command]

    def test_recorded_program(self):
        self.check_appended(self.appending("env", "LD_PRELOAD=%s %s" % (WRITER, LIBRARY.replace("queryprof.so", "queryprof-preload.so")),
                                           PYTHON, "-c", PROGRAM))

    def test_command_too(self):
        self.check_appended(self.appending(PYTHON, "-c", PROGRAM), LD_PRELOAD=WRITER)

    def test_extension(self):
        self.check_appended([PYTHON, "-c", PROGRAM, LIBRARY, self.trace], LD_PRELOAD=WRITER)


if __name__ == "__main__":
    unittest.main()
