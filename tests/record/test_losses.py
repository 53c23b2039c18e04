#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Losses and their reasons are in the file, in the last line of `queryprof record`, and at the beginning of a report.

usage: test_losses.py QUERYPROF"""

import glob
import re
import resource

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# All run on one processor, so the flusher has to wait for its turn.
SEED = int(os.environ.get("QUERYPROF_TEST_SEED", "1"))
MANY = """
import os, random, sqlite3, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
numbers = random.Random(%d)
db = sqlite3.connect(':memory:')
for i in range(int(sys.argv[1])):
    db.execute('SELECT /* %%s %%d */ 1' %% (numbers.randbytes(int(sys.argv[2])).hex(), i)).fetchall()
""" % SEED

# Each of these threads needs two timers while it has a query, so that a limit of two is not enough.
THREADS = """
import sqlite3, threading
together = threading.Barrier(3)
def work():
    db = sqlite3.connect(':memory:')
    db.create_function('meet', 0, together.wait)
    db.execute('SELECT meet()').fetchall()
threads = [threading.Thread(target=work) for _ in range(together.parties)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

# No samples, because the test counts only rows of query_log.
EVERY_QUERY = ("--cpu", "0", "--real", "60s", "--off-cpu", "0", "--setting", "log_queries_min_query_duration_ns=0")

# 20 threads run a query and end after 20 others have run one. The others continue until each had time to request its
# timer again.
LATER_THREADS = """
import sqlite3, sys, threading, time
ready, later_ran = threading.Barrier(40), threading.Barrier(40)
def query(db):
    db.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) SELECT max(x) FROM c").fetchall()
def first():
    db = sqlite3.connect(":memory:")
    query(db)
    ready.wait()
    later_ran.wait()
def later():
    db = sqlite3.connect(":memory:")
    ready.wait()
    query(db)
    later_ran.wait()
    end = time.monotonic() + 5
    while time.monotonic() < end or time.thread_time() < 0.3:
        query(db)
        time.sleep(0.01)
    sys.stdout.write("%d\\n" % threading.get_native_id())  # print() writes twice
threads = [threading.Thread(target=run) for run in [first] * 20 + [later] * 20]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

# Sends messages as recorded programs do (src/recorder/mark.h), but tries again, for a while, until there is space.
MESSAGES = """
import os, time
end = time.monotonic() + 100
pipe = os.open(os.environ["QUERYPROF_RECORD"], os.O_WRONLY | os.O_NONBLOCK)
for line in ["> 1 sh/bin/sh"] * 20000 + ["! 1 at last"]:
    while time.monotonic() < end:
        try:
            os.write(pipe, line.replace(" ", "", 1).encode() + b"\\n")
            break
        except BlockingIOError:
            time.sleep(0.01)
"""

# Runs queries, and more of them when the file appears.
TWICE = """
import os, sqlite3, sys, time
db = sqlite3.connect(":memory:")
def query(count):
    for i in range(count):
        db.execute("SELECT /* %d */ 1" % i).fetchall()
query(100)
while os.path.isdir(os.path.dirname(sys.argv[1])) and not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
query(int(sys.argv[2]))
"""


class Losses(Recording):
    def lines(self):
        return self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /*%'")[0][0]

    def expect_account(self, lost):
        """Each row was stored or lost. The name of the thread and the end of the connection may be lost, too."""
        lines = self.lines()
        self.assertIn(lines + lost, range(3000, 3005), self.seen)

    def lost(self, condition):
        return self.rows("SELECT coalesce(sum(samples), 0), coalesce(sum(refusals), 0), max(reason) FROM losses"
                         " WHERE " + condition)[0]

    def reported(self, done, reason):
        """The number of lost samples in the last line about them. Runs that were not counted have a line of their
        own."""
        last = [line for line in done.stderr.splitlines() if "missing in statement_stats" not in line][-1]
        self.assertIn(reason, last, self.seen)
        return int(re.search(r": (\d+) (?:sample, row or span|samples, rows or spans) lost: ", last).group(1))

    def test_nothing_lost(self):
        done = self.record(PYTHON, "-c", MANY, "100", "10", options=EVERY_QUERY)
        self.assertEqual(self.lost("1"), (0, 0, None), self.seen)
        self.assertNotIn("lost", done.stderr)

    def test_full_ring(self):
        """The rows exceed the ring, and the flusher does not empty it meanwhile."""
        done = self.record(PYTHON, "-c", MANY, "3000", "500",
                           options=(*EVERY_QUERY, "--setting", "trace_log_ring_bytes=65536"))
        lost, _, reason = self.lost("reason LIKE 'the ring was full%'")
        self.assertGreater(lost, 0, self.seen)
        self.assertEqual(self.reported(done, "the ring was full"), lost)
        self.expect_account(lost)
        self.assertEqual(self.rows("SELECT count(*) FROM losses JOIN processes ON processes.id = process"
                                   " WHERE first_ns BETWEEN 1 AND last_ns AND executable LIKE '%python%'"), [(1,)])
        report = subprocess.run([QUERYPROF, "report", self.trace], capture_output=True, text=True, check=True)
        self.assertRegex(report.stdout, r"(?m)^lost .*" + re.escape(reason))

    def test_limit_of_the_file(self):
        """Rows that were stored and removed again are missed, too. Runs that are counted are all counted."""
        options = (*EVERY_QUERY, "--setting", "trace_log_max_bytes=1MiB")
        done = self.record(PYTHON, "-c", MANY, "6000", "500", options=options)
        self.assertLess(self.lines(), 6000)
        self.assertEqual(self.rows("SELECT sum(calls) FROM statement_stats WHERE query LIKE 'SELECT /*%'"), [(6000,)], self.seen)
        self.assertIn("queryprof: %s: the file reached its limit of 1048576 bytes, so the oldest samples and logged runs were removed"
                      % self.trace, done.stderr)
        report = subprocess.run([QUERYPROF, "report", self.trace], capture_output=True, text=True, check=True)
        self.assertRegex(report.stdout, r"(?m)^removed +the oldest samples and logged runs")
        done = self.record(PYTHON, "-c", "import sqlite3", options=("--append",))
        self.assertNotIn("reached its limit", done.stderr)

    def test_many_messages(self):
        """Processes may send more messages than the pipe keeps, and the last one counts."""
        done = self.record(PYTHON, "-c", MESSAGES)
        self.assertIn("samples missing, refused 1 time: at last\n", done.stderr)

    def test_removed_file(self):
        """What the new file lacks is said. It may have nothing."""
        for count in 0, 10:
            go = os.path.join(self.folder, "go%d" % count)
            command = subprocess.Popen(self.arguments(PYTHON, "-c", TWICE, go, str(count), options=EVERY_QUERY), stderr=subprocess.PIPE,
                                       text=True)
            wait_until(lambda: self.has_views() and self.lines() == 100, "the first rows")
            for name in glob.glob(self.trace + "*"):
                os.unlink(name)
            open(go, "w").close()
            self.seen = command.communicate(timeout=300)[1]
            self.assertEqual(self.seen.splitlines()[-1], "queryprof: %s: the file was removed or renamed during the recording; "
                             "this one lacks what was stored before" % self.trace)
            self.assertNotIn("nothing was recorded", self.seen)
            self.assertEqual(self.lines(), count, self.seen)
            os.unlink(self.trace)

    def record_on_disk(self, size, *command):
        """Records on a separate file system, which a user may mount in a namespace. Keeps its files."""
        disk = os.path.join(self.folder, "disk")
        os.makedirs(disk, exist_ok=True)
        self.trace = os.path.join(disk, "app.trace")
        inside = ["unshare", "--mount", "--map-root-user", "--user"] if os.getuid() else ["unshare", "--mount"]
        script = 'mount -t tmpfs -o size=%s tmpfs "$0" && "$@"; status=$?; cp "$0"/* "$0/../"; exit $status' % size
        if subprocess.run([*inside, "sh", "-c", "mount -t tmpfs tmpfs " + disk], capture_output=True, check=False).returncode:
            self.skipTest("no file system may be mounted")
        done = subprocess.run([*inside, "sh", "-c", script, disk, *self.arguments(*command, options=EVERY_QUERY)],
                              capture_output=True, text=True, timeout=300, check=False)
        self.seen = "\nexit status %d\n%s%s" % (done.returncode, done.stdout, done.stderr)
        self.trace = os.path.join(self.folder, "app.trace")
        return done

    def test_full_disk(self):
        done = self.record_on_disk("1500k", PYTHON, "-c", MANY, "3000", "500")
        self.assertEqual(done.returncode, 0, self.seen)
        reported = self.reported(done, "full")
        self.assertGreater(reported, 0)
        self.expect_account(reported)

    def test_full_disk_at_the_start(self):
        """One page has room for the file's name, the second for the beginning of its schema. The program does not
        start."""
        for size in "4k", "8k":
            done = self.record_on_disk(size, "echo", "begun")
            self.assertEqual((done.returncode, done.stdout), (125, ""), self.seen)
            self.assertRegex(done.stderr, "^queryprof: record: .*/disk/app.trace: database or disk is full\n", self.seen)

    def expect_refused_timers(self, limit, *command, options=OPTIONS):
        user = {}
        if not os.getuid():  # root may have all timers
            os.chmod(self.folder, 0o777)
            user = {"user": "nobody"}
        done = self.record(*command, options=options, **user,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_SIGPENDING, (limit, limit)))
        samples, refusals, reason = self.lost("reason LIKE '%timer%'")
        self.assertEqual(samples, 0)
        self.assertGreater(refusals, 0, self.seen)
        self.assertIn(reason, done.stderr.strip().splitlines()[-1])
        return done

    def test_refused_timers(self):
        self.expect_refused_timers(0, PYTHON, "-c", MANY, "100", "10")

    def test_refused_timers_of_some_threads(self):
        self.expect_refused_timers(2, PYTHON, "-c", THREADS)

    def test_refused_threads_ask_again(self):
        """Some threads have all timers, and end. Other threads were refused a timer, and are sampled afterwards."""
        done = self.expect_refused_timers(24, PYTHON, "-c", LATER_THREADS, options=("--cpu", "5ms", "--real", "0"))
        db = sqlite3.connect(self.trace)
        sampled = {row[0] for row in db.execute("SELECT DISTINCT thread_id FROM trace_log WHERE trace_type = 'CPU'")}
        self.assertEqual(set(map(int, done.stdout.split())) - sampled, set())

    def test_refused_connection(self):
        """One connection cannot get queryprof's functions. Another connection has samples."""
        script = """
import sqlite3
db = sqlite3.connect(':memory:')
db.create_function('demangle', 1, str)
rows = db.execute('SELECT 1 UNION ALL SELECT 2')
rows.fetchone()
db.enable_load_extension(True)
try:
    db.load_extension(%r)
except sqlite3.OperationalError as error:
    print(error)
sqlite3.connect(':memory:').execute(%r).fetchall()
""" % (LIBRARY, SLOW)
        done = self.record(PYTHON, "-c", script)
        self.assertIn("demangle", done.stdout, self.seen)
        self.assertEqual(self.lost("1"), (0, 1, "a connection could not be followed"), self.seen)
        self.assertIn("samples missing, refused 1 time: a connection could not be followed",
                      done.stderr.strip().splitlines()[-1])
        report = subprocess.run([QUERYPROF, "report", self.trace], capture_output=True, text=True, check=True)
        self.assertRegex(report.stdout, r"(?m)^missing +samples, of all; refused 1 time: a connection could not be followed$")


if __name__ == "__main__":
    print("QUERYPROF_TEST_SEED=%d" % SEED)
    unittest.main()
