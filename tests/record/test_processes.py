#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""More than one process under `queryprof record`: forks, other programs, daemons.

usage: test_processes.py QUERYPROF EXECUTOR: a program that becomes another one after a query"""

import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

EXECUTOR = os.path.abspath(sys.argv.pop(1))

WORK = """
import os, sqlite3, sys, time
SLOW = %r
def work(text=SLOW):
    return sqlite3.connect(':memory:').execute(text).fetchone()
""" % SLOW

EVERY_RUN = ("--cpu", "0", "--real", "60s", "--off-cpu", "0", "--setting", "log_queries_min_query_duration_ns=0")


class Processes(Recording):
    def test_forking_server(self):
        """Workers that end with _exit(), like a server's workers, lose nothing."""
        done = self.record(PYTHON, "-c", WORK + """
work()
workers = []
for i in range(3):
    pid = os.fork()
    if not pid:
        work()
        os._exit(i)
    workers.append(pid)
print([os.waitpid(pid, 0)[1] >> 8 for pid in workers])
work()""")
        self.assertEqual((done.returncode, done.stdout), (0, "[0, 1, 2]\n"), self.seen)
        found = self.expect_sampled(5)
        self.assertEqual(len({query[3] for query in found}), 4, found)
        self.assertRegex(done.stderr, " 4 processes \\(python3[0-9.]*\\)\\.")

    def test_forked_before_sqlite(self):
        """The process has no SQLite yet when it forks."""
        done = self.record(PYTHON, "-c", """
import os, sys
if not os.fork():
%s
    work()
    sys.exit()
print(os.wait()[1])""" % "\n".join("    " + line for line in WORK.splitlines()))
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"), self.seen)
        self.expect_sampled(1)

    def test_programs_of_programs(self):
        done = self.record("sh", "-c", 'sqlite3 -init /dev/null :memory: "$0"; sqlite3 -init /dev/null :memory: "$0" | cat', SLOW)
        self.assertEqual((done.returncode, done.stdout), (0, 2 * (ANSWER + "\n")), self.seen)
        self.expect_sampled(2)

    def test_exec_in_place(self):
        """A program that becomes another program, with queries in both."""
        done = self.record(PYTHON, "-c", WORK + """
work()
os.execvp('sqlite3', ['sqlite3', '-init', '/dev/null', ':memory:', SLOW])""")
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), self.seen)
        self.expect_sampled(2)

    def test_exec_at_once(self):
        """No signal of queryprof reaches a program that has no handler for it."""
        done = subprocess.run([EXECUTOR, LIBRARY], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "0 of 24 killed\n"), done.stderr)
        done = self.record(EXECUTOR)
        self.assertEqual((done.returncode, done.stdout), (0, "0 of 24 killed\n"), self.seen)
        self.assertGreater(self.rows("SELECT count(*) FROM trace_log")[0][0], 24, self.seen)

    def test_multiprocessing(self):
        path = self.file("pool.py", WORK + """
import multiprocessing
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool:
        print(len(pool.map(work, [SLOW] * 4)))
        pool.close()
        pool.join()
""")
        if subprocess.run([PYTHON, path], capture_output=True, timeout=300, check=False).returncode:
            self.skipTest("multiprocessing does not work here (it needs /dev/shm)")
        done = self.record(PYTHON, path)
        self.assertEqual((done.returncode, done.stdout), (0, "4\n"), self.seen)
        self.expect_sampled(4)

    def test_looked_up_by_name(self):
        """ctypes finds the functions with dlsym()."""
        done = self.record(PYTHON, "-c", """
import ctypes, sys
lib = ctypes.CDLL('libsqlite3.so.0')
db, stmt = ctypes.c_void_p(), ctypes.c_void_p()
lib.sqlite3_open(b':memory:', ctypes.byref(db))
lib.sqlite3_prepare_v2(db, sys.argv[1].encode(), -1, ctypes.byref(stmt), None)
print(lib.sqlite3_step(stmt))
lib.sqlite3_column_int64.restype = ctypes.c_int64
print(lib.sqlite3_column_int64(stmt, 0))
lib.sqlite3_finalize(stmt)
lib.sqlite3_close(db)""", SLOW)
        self.assertEqual((done.returncode, done.stdout), (0, "100\n" + ANSWER + "\n"), self.seen)
        self.expect_sampled(1)

    def test_by_the_library(self):
        """qp_record() does the same in a program that calls it, once SQLite is loaded."""
        done = subprocess.run([PYTHON, "-c", """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.qp_record())
""" + WORK + """
db = sqlite3.connect(':memory:')
print(library.qp_record(), library.qp_record())
work()
print(db.execute(SLOW).fetchone()[0])""", LIBRARY], capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, "QUERYPROF_TRACE_LOG_PATH": self.trace,
                                   "QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS": "1ms",
                                   "QUERYPROF_QUERY_PROFILER_REAL_TIME_PERIOD_NS": "1ms",
                                   "QUERYPROF_QUERY_PROFILER_MAX_OVERHEAD_PERCENT": "0"})
        self.assertEqual((done.returncode, done.stdout), (0, "7\n0 0\n%s\n" % ANSWER), done.stderr)
        self.expect_sampled(2)

    def test_threads(self):
        done = self.record(PYTHON, "-c", WORK + """
import threading
threads = [threading.Thread(target=work) for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()""")
        self.assertEqual(done.returncode, 0, self.seen)
        self.expect_sampled(3)
        # Only the three queries count: Python's main thread may close their connections at its end.
        self.assertEqual(self.rows("SELECT count(DISTINCT thread_id) FROM trace_log WHERE query_id IN"
                                   " (SELECT query_id FROM query_log WHERE query = ?)", SLOW), [(3,)])

    def test_daemon_that_outlives(self):
        """The daemon is still recorded after the command has ended."""
        done = self.record(PYTHON, "-c", WORK + """
work()
go = sys.argv[1]
if os.fork():
    os._exit(3)
os.setsid()
null = os.open('/dev/null', os.O_RDWR)
for i in range(3): os.dup2(null, i)
while not os.path.exists(go): time.sleep(0.01)
work(SLOW + ' -- later')
""", os.path.join(self.folder, "go"))
        self.assertEqual(done.returncode, 3, self.seen)
        self.expect_sampled(1)
        self.file("go", "")
        # A running query has a row, too.
        wait_until(lambda: self.rows("SELECT 1 FROM query_log WHERE query LIKE '%-- later' AND type = 'QueryFinish'"), "the daemon's query")
        self.expect_sampled(1, SLOW + " -- later")

    def test_two_runs_in_one_file(self):
        self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW)
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW)
        self.expect_sampled(2)
        self.assertRegex(done.stderr, " 1 process \\(sqlite3\\)\\.", "the report is of the second run")

    def expect_counted(self, condition, count):
        """Each run has its row and is counted, and nothing is lost."""
        self.assertEqual(self.rows("SELECT count(*), count(DISTINCT query) FROM query_log WHERE query " + condition),
                         [(count, count)], self.seen)
        self.assertEqual(self.rows("SELECT sum(calls) FROM statement_stats WHERE query " + condition), [(count,)], self.seen)
        self.assertEqual(self.rows("SELECT * FROM losses"), [], self.seen)
        self.assertNotRegex(self.seen, "lost|missing")

    def test_a_hundred_at_once(self):
        """All processes exist when the first one ends. Every second one is killed."""
        done = self.record(PYTHON, "-c", WORK + """
work('SELECT 1')
ready, is_ready = os.pipe()
go, is_go = os.pipe()
workers = []
for i in range(100):
    workers.append(os.fork())
    if not workers[-1]:
        os.close(is_go)
        db = sqlite3.connect(':memory:')
        for run in range(9):
            db.execute('SELECT %d AS worker /* %d */' % (i, run)).fetchall()
        os.write(is_ready, b'.')
        os.read(go, 1)
        db.execute('SELECT %d AS worker /* 9 */' % i).fetchall()
        if i % 2:
            os.kill(os.getpid(), 9)
        os._exit(0)
for i in range(100):
    os.read(ready, 1)
os.close(is_go)
print(sum(os.waitpid(pid, 0)[1] for pid in workers))""", options=EVERY_RUN)
        self.assertEqual((done.returncode, done.stdout), (0, "450\n"), self.seen)
        self.expect_counted("LIKE '% AS worker%'", 1000)
        self.assertEqual(self.rows("SELECT count(DISTINCT process_id) FROM query_log WHERE query LIKE '% AS worker%'"), [(100,)])

    def test_brief_lives(self):
        """There is only one query between the fork and the end."""
        done = self.record(PYTHON, "-c", WORK + """
db = sqlite3.connect(':memory:')
db.execute('SELECT 1').fetchall()
for i in range(150):
    pid = os.fork()
    if not pid:
        db.execute('SELECT %d AS brief' % i).fetchall()
        os._exit(0)
    os.waitpid(pid, 0)""", options=EVERY_RUN)
        self.assertEqual(done.returncode, 0, self.seen)
        self.expect_counted("LIKE '% AS brief%'", 150)

    def test_several_recordings_in_one_file(self):
        """The recordings run at the same time, with children."""
        recordings = [subprocess.Popen(self.arguments(PYTHON, "-c", WORK + """
db = sqlite3.connect(':memory:')
for child in range(3):
    if child and os.fork():
        continue
    for i in range(500):
        db.execute('SELECT %s AS recording, %d, %d' % (sys.argv[1], child, i)).fetchall()
    if child:
        os._exit(0)
for child in range(2):
    os.wait()""", str(i), options=(*EVERY_RUN, "--append")), stderr=subprocess.PIPE, text=True) for i in range(4)]
        for recording in recordings:
            self.seen += recording.communicate(timeout=300)[1]
            self.assertEqual(recording.returncode, 0, self.seen)
        # With instrumented code, one command may not get the file for four seconds, because the other commands have it.
        # It reports that.
        if re.search("lost: .*: locked by another process", self.seen):
            return
        self.expect_counted("LIKE '% AS recording%'", 6000)
        self.assertEqual(self.rows("SELECT count(DISTINCT process_id) FROM query_log WHERE query LIKE '% AS recording%'"), [(12,)])


unittest.main()
