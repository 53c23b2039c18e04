#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that give up root, before or after their first query.

usage: test_rights.py QUERYPROF"""

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

if os.getuid():
    print("skipped: only root has rights to give up")
    sys.exit(SKIPPED)

GIVES_UP = """
import os, sqlite3, sys
def work():
    return sqlite3.connect(':memory:').execute(%r).fetchone()
def give_up():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
def in_child(*steps):
    pid = os.fork()
    if not pid:
        for step in steps:
            step()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
""" % SLOW


class Rights(Recording):
    def setUp(self):
        super().setUp()
        # No other user can reach the file, as in /root.
        os.mkdir(os.path.join(self.folder, "closed"), 0o700)
        self.trace = os.path.join(self.folder, "closed", "app.trace")

    def run_script(self, script):
        done = self.record(PYTHON, "-c", GIVES_UP + script, cwd="/")
        self.assertEqual(done.returncode, 0, self.seen)
        return done.stderr

    def test_before_the_first_query(self):
        self.assertRegex(self.run_script("give_up(); work()"), " 1 process \\(.*\\)\\. ")
        self.expect_sampled(1)
        self.assertEqual(os.stat(self.trace).st_uid, 0)
        self.assertEqual(os.listdir(os.path.dirname(self.trace)), ["app.trace"])

    def test_between_queries(self):
        self.run_script("work(); give_up(); work()")
        self.expect_sampled(2)

    def test_workers(self):
        """A server that begins as root, with and without a query in its first process."""
        self.run_script("work()\nfor i in range(2): in_child(give_up, work)")
        self.expect_sampled(3)
        os.unlink(self.trace)
        self.run_script("for i in range(2): in_child(give_up, work)")
        self.expect_sampled(2)

    def test_fork_without_rights(self):
        """The command stores the samples of a child and a grandchild that may not open the file."""
        self.run_script("give_up(); work(); in_child(work, lambda: in_child(work)); work()")
        self.expect_sampled(4)
        self.assertEqual(self.rows("SELECT count(DISTINCT process_id) FROM trace_log"), [(3,)])
        self.expect_nothing_lost()

    def expect_nothing_lost(self):
        self.assertEqual(self.rows("SELECT reason, samples, refusals FROM losses"), [], self.seen)
        self.assertNotRegex(self.seen, "lost|missing|Permission denied")

    def as_another_user(self, *command):
        return ("setpriv", "--reuid=65534", "--clear-groups", *command)

    def test_another_users_program(self):
        """The program never had the rights. The command stores its samples."""
        done = self.record(*self.as_another_user("sqlite3", "-init", "/dev/null", ":memory:", SLOW))
        if "setpriv" in done.stderr:
            self.skipTest("others cannot run the program: " + done.stderr)
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), self.seen)
        self.expect_sampled(1)
        self.expect_nothing_lost()
        self.assertRegex(done.stderr, " 1 process \\(.*\\)\\. ")
        self.assertEqual(self.rows("SELECT count(*) FROM stack_frames WHERE function LIKE 'sqlite3%'")[0][0] > 0, True)

    def test_another_users_server(self):
        """The rows exceed the program's ring, so the command stores them while the program runs."""
        script = GIVES_UP + """
db = sqlite3.connect(':memory:')
for line in sys.stdin:
    for i in range(int(line)):
        db.execute('SELECT /* %s */ 1' % (i * '-' + '%0500d' % i)[-500:]).fetchall()
    work()
"""
        options = ("--cpu", "0", "--real", "10ms", "--setting", "log_queries_min_query_duration_ns=0",
                   "--setting", "trace_log_ring_bytes=65536")

        def lines():
            return self.has_views() and self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /*%'")[0][0]

        with subprocess.Popen(self.arguments(*self.as_another_user(PYTHON, "-c", script), options=options), cwd="/",
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for done in range(20, 201, 20):  # each batch fits into the ring, all of them do not
                process.stdin.write("20\n")
                process.stdin.flush()
                wait_until(lambda: lines() == done, "%d lines in the file" % done)
            self.seen = process.communicate()[1]
        self.expect_nothing_lost()
        self.assertEqual(self.rows("SELECT query LIKE 'SELECT /*%', calls, rows FROM statement_stats"
                                   " WHERE query LIKE 'SELECT /*%' OR query LIKE 'WITH%' ORDER BY 1"),
                         [(0, 10, 10), (1, 200, 200)], self.seen)

    def test_alone_at_the_end(self):
        """A daemon of another user that outlives the command continues to run."""
        folder = os.path.join(self.folder, "open")
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        script = GIVES_UP + """
if os.fork():
    os._exit(0)
os.setsid()
os.close(0), os.close(1), os.close(2)
while not os.path.exists('go'):
    work()
for i in range(10):
    work()
open('done', 'w').close()
"""
        done = self.record(*self.as_another_user(PYTHON, "-c", script), cwd=folder)
        self.assertEqual(done.returncode, 0, self.seen)
        self.assertEqual(done.stdout, "")
        self.file("open/go", "")
        wait_until(lambda: os.path.exists(os.path.join(folder, "done")), "the daemon's end")


unittest.main()
