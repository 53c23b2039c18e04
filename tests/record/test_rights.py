#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that give up root, before or after their first query.

usage: test_rights.py QUERYPROF"""

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
        # Nobody else can reach the file, as in /root.
        os.mkdir(os.path.join(self.folder, "closed"), 0o700)
        self.trace = os.path.join(self.folder, "closed", "app.trace")

    def run_script(self, script):
        done = self.record(PYTHON, "-c", GIVES_UP + script, cwd="/")
        self.assertEqual(done.returncode, 0, self.seen)
        return done.stderr

    def test_before_the_first_query(self):
        self.assertRegex(self.run_script("give_up(); work()"), " 1 process\\. ")
        self.expect_sampled(1)
        self.assertEqual(os.stat(self.trace).st_uid, 0)
        self.assertEqual(os.listdir(os.path.dirname(self.trace)), ["app.trace"])

    def test_between_queries(self):
        self.run_script("work(); give_up(); work()")
        self.expect_sampled(2)

    def test_workers(self):
        """As a server's that begins as root, with and without a query in its first process."""
        self.run_script("work()\nfor i in range(2): in_child(give_up, work)")
        self.expect_sampled(3)
        os.unlink(self.trace)
        self.run_script("for i in range(2): in_child(give_up, work)")
        self.expect_sampled(2)

    def test_fork_without_rights(self):
        """The process keeps what it has open; a child of it has no way to the file."""
        self.run_script("give_up(); work(); in_child(work); work()")
        self.assertGreaterEqual(len([query for query in self.queries() if query[0] == SLOW]), 2, self.seen)

    def test_another_users_program(self):
        """It never had the rights."""
        done = self.record("setpriv", "--reuid=65534", "--clear-groups", "sqlite3", "-init", "/dev/null", ":memory:",
                           SLOW)
        if "setpriv" in done.stderr:
            self.skipTest("others cannot run the program: " + done.stderr)
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), self.seen)
        self.assertRegex(done.stderr, r"not all could be stored \(1 process\): .*app.trace: Permission denied")
        self.assertIn("let that user run queryprof record", done.stderr)
        self.assertNotIn("no query took long enough", done.stderr)


unittest.main()
