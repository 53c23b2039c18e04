#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs under `record` while something disturbs the recording.

usage: test_record.py QUERYPROF ALARMS"""

import contextlib
import re
import resource

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

ALARMS = os.path.abspath(sys.argv.pop(1))
# Without samples, so that only rows of queries are counted.
EVERY = ("--cpu", "0", "--real", "60s", "--setting", "log_queries_min_query_duration_ns=0", "--off-cpu", "0")
COUNTED = """
import resource, sqlite3, sys, time
db = sqlite3.connect(':memory:')
def count(queries):
    for i in range(queries):
        db.execute('SELECT /* counted %d */ 1' % i).fetchall()
"""
ALL = 300
WAITING = COUNTED + "print('ready', flush=True)\nsys.stdin.readline()\ncount(%d)\n" % ALL
# Each query waits, and nearly all have a sample.
WAITED = WAITING.replace("def count", "db.create_function('nap', 0, lambda: time.sleep(0.001))\ndef count").replace(
    "*/ 1'", "*/ nap()'")
STORED = COUNTED + "count(%d)\nprint('ready', flush=True)\nsys.stdin.readline()\n" % ALL
LIMITED = COUNTED + "count(1)\nresource.setrlimit(int(sys.argv[1]), (int(sys.argv[2]),) * 2)\ncount(%d)\n" % (ALL - 1)
# Measures how long a process with queries to store takes to end. Prints the shortest time. A busy machine gets several
# attempts to be below the limit.
ENDS = """
import subprocess, sys, time
print('ready', flush=True)
sys.stdin.readline()
def end():
    with subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdout=subprocess.PIPE) as process:
        last = float(process.stdout.read())
        return time.monotonic() - last
took = [end()]
while min(took) >= float(sys.argv[2]) and len(took) < 20:
    took.append(end())
print(len(took), min(took))
"""
PATIENT_S = 1  # a process waits for 0.1 s; it once waited for 2 s

# The command gets the daemon's ring, and ends before most of the daemon's queries.
DAEMON = COUNTED + """
import os
begun, go, ends = sys.argv[1:]
def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)
if os.fork():
    wait_for(begun)
    os._exit(0)
os.setsid()
for stream in range(3):
    os.dup2(os.open('/dev/null', os.O_RDWR), stream)
count(1)
open(begun, 'w').close()
wait_for(go)
count(%d)
open(ends, 'w').close()
""" % (ALL - 1)
ENDING_RUNS = 100
ENDING = COUNTED + "count(%d)\nprint(time.monotonic())\n" % ENDING_RUNS


class Attacked(Recording):
    def begin_anew(self):
        self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")

    @staticmethod
    def lost(err):
        return sum(int(count) for count in re.findall(r"(\d+) (?:sample, row or span|samples, rows or spans) lost: (?!runs were not)", err))

    def expect_account(self, err, runs=ALL):
        """Each row was stored, or reported as lost. The thread's name and the end of a connection may be lost, too."""
        stored = self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* counted%'")[0][0]
        self.assertIn(stored + self.lost(err), range(runs, runs + 4 * max(runs // ENDING_RUNS, 1)), self.seen)
        return stored

    def test_alarms_of_its_own(self):
        """The program, in the command's process group or not, gets no SIGALRM, whose default action would end it."""
        for begin in "", "import os; os.setsid()\n":
            script = begin + "import time; end = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass\nprint('alive')"
            done = self.record(PYTHON, "-c", script, options=("--quiet", "--append"),
                               env=dict(os.environ, LD_PRELOAD=" ".join(filter(None, (os.environ.get("LD_PRELOAD"), ALARMS)))))
            self.assertEqual((done.returncode, done.stdout), (0, "alive\n"), self.seen)

    def test_file_size(self):
        """SIGXFSZ does not end the command, and the program has its own action for that signal."""
        done = self.record(PYTHON, "-c", "import signal; print(signal.getsignal(signal.SIGXFSZ) == signal.SIG_DFL)",
                           restore_signals=False, preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_DFL))
        self.assertEqual((done.returncode, done.stdout), (0, "False\n"), self.seen)  # Python ignores it
        done = self.record("sh", "-c", "ulimit -c 0; kill -XFSZ $$; echo alive",
                           preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_DFL))
        self.assertEqual((done.returncode, done.stdout), (-signal.SIGXFSZ, ""), self.seen)
        self.assertFalse(os.path.exists(self.trace), "nothing was sampled")
        done = self.record("true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)))
        self.assertEqual(done.returncode, 125, self.seen)
        self.assertIn("queryprof: record: ", done.stderr)
        self.assertRegex(done.stderr, "File too large|disk I/O error")

    def meanwhile(self, harm, *program, options=EVERY):
        """Calls harm() with the file while the program waits. Returns what the program and the command printed after that."""
        process = subprocess.Popen(self.arguments(PYTHON, "-c", *program, options=options), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(read_line(process.stdout, "the program's first line"), "ready\n")
        wait_until(self.has_views, "the file")
        db = sqlite3.connect(self.trace, isolation_level=None, timeout=60)
        self.addCleanup(db.close)
        harm(db)
        out, err = process.communicate("\n", timeout=300)
        db.close()
        self.seen = "\nexit status %d\n%s%s" % (process.returncode, out, err)
        self.assertEqual(process.returncode, 0, self.seen)
        return out, err

    def has_all(self):
        return self.has_views() and self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* counted%'") == [(ALL,)]

    def test_locked_by_another(self):
        """The file is locked until the command ends. The command still ends, and reports what it could not store."""
        for how in "BEGIN EXCLUSIVE", "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE another(x)":
            with self.subTest(how=how):
                self.begin_anew()
                out, err = self.meanwhile(lambda db: db.executescript(how), ENDS, ENDING, str(PATIENT_S))
                processes, took = out.split()
                self.assertEqual(self.expect_account(err, int(processes) * ENDING_RUNS), 0, self.seen)
                self.assertRegex(err, r"\d+ samples, rows or spans lost: .*locked", self.seen)
                self.assertLess(float(took), PATIENT_S, self.seen)

    def test_locked_when_a_daemon_ends(self):
        """The daemon's collector waits for the lock, and stores all queries."""
        locked = patience = 2
        while locked >= patience:  # this process held the lock too long, so the daemon may have given up
            self.begin_anew()
            begun, go, ends = (os.path.join(os.path.dirname(self.trace), name) for name in ("begun", "go", "ends"))
            done = self.record(PYTHON, "-c", DAEMON, begun, go, ends, options=EVERY)
            self.assertEqual(done.returncode, 0, self.seen)
            with contextlib.closing(sqlite3.connect(self.trace, isolation_level=None, timeout=60)) as db:
                db.execute("BEGIN EXCLUSIVE")
                start = time.monotonic()
                self.file(go, "")
                wait_until(lambda: os.path.exists(ends), "the daemon's end")
                time.sleep(0.4)
            locked = time.monotonic() - start
        wait_until(self.has_all, "the daemon's queries")

    def test_table_dropped(self):
        for table in "queries", "samples":
            with self.subTest(table=table):
                self.begin_anew()
                _, err = self.meanwhile(lambda db: db.execute("DROP TABLE " + table), WAITING)
                self.assertIn("no such table: " + table, err, self.seen)
                # Runs without samples do not need the table of samples.
                stored = 0 if table == "queries" else self.rows(
                    "SELECT count(*) FROM queries JOIN statements AS s ON s.id = statement"
                    " WHERE s.query LIKE 'SELECT /* counted%'")[0][0]
                # The end of the connection has a row if it took a millisecond.
                self.assertIn(stored + self.lost(err), (ALL, ALL + 1), self.seen)

    def test_table_dropped_that_samples_need(self):
        """A batch with a sample cannot be stored. The command cannot count the file's content, and reports the losses."""
        _, err = self.meanwhile(lambda db: db.execute("DROP TABLE samples"), WAITED, options=EVERY[:-1] + ("10us",))
        self.assertIn("no such table: samples", err, self.seen)
        stored = self.rows("SELECT count(*) FROM queries JOIN statements AS s ON s.id = statement"
                           " WHERE s.query LIKE 'SELECT /* counted%'")[0][0]
        # Counts each run and nearly each sample; the length of a wait is an estimate.
        self.assertGreater(stored + self.lost(err), ALL, self.seen)

    def test_table_dropped_when_all_is_stored(self):
        """Nothing is lost if a table is dropped after everything was stored. The command reports what it cannot read."""
        for table in "samples", "losses":
            with self.subTest(table=table):
                self.begin_anew()
                def harm(db):
                    wait_until(self.has_all, "the queries")
                    db.execute("DROP TABLE " + table)
                _, err = self.meanwhile(harm, STORED)
                self.assertIn("no such table: " + table, err, self.seen)

    def test_limits_of_the_program(self):
        """The program sets its own limits after its first query."""
        for limit, value in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_FSIZE, 100000),
                             (resource.RLIMIT_NOFILE, 0), (resource.RLIMIT_NOFILE, 3)):
            with self.subTest(limit=limit, value=value):
                self.begin_anew()
                done = self.record(PYTHON, "-c", LIMITED, str(limit), str(value), options=EVERY)
                self.assertEqual(done.returncode, 0, self.seen)
                self.expect_account(done.stderr)


unittest.main()
