#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that may write no files, or only small ones, end as they do alone. The command reports why they are not
recorded.

usage: test_file_size.py QUERYPROF"""

import resource

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# Each process logs 200 lines of its own: the parent, and three children that it forks one after the other.
FORKS = """
import os, signal, sqlite3
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
def work(who):
    db = sqlite3.connect(':memory:')
    for i in range(200):
        db.execute('SELECT /* counted %s %d */ 1' % (who, i)).fetchall()
    print(db.execute('SLOW').fetchone(), flush=True)
work('parent')
for child in range(3):
    if not os.fork():
        work('child %d' % child)
        os._exit(0)
    assert os.wait()[1] == 0
work('parent again')
""".replace("SLOW", SLOW)
ANSWERS = ("(%s,)\n" % ANSWER) * 5
LINES = 5 * 200
EVERY = (*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0")


class FileSize(Recording):
    def limited(self, limit, *command):
        """Sets the limit in the program, because the command itself writes a file."""
        return ("prlimit", "--fsize=%d" % limit, *command)

    def test_limits(self):
        """The limit applies to the shared memory, too, because that is a file."""
        for limit in 0, 512, 100000, 3 << 20, 1 << 30:
            with self.subTest(limit=limit):
                self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
                done = self.record(*self.limited(limit, PYTHON, "-c", FORKS), options=EVERY)
                self.assertEqual((done.returncode, done.stdout), (0, ANSWERS), self.seen)
                is_large = limit == 1 << 30
                self.assertEqual("the limit of file sizes (ulimit -f) is smaller than the shared memory" in done.stderr, not is_large,
                                 self.seen)
                self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* counted%'"),
                                 [(LINES if is_large else 0,)], self.seen)
        self.expect_sampled(5)

    def test_programs_without_sqlite(self):
        """The command's last words about them do not need a file."""
        done = self.record(*self.limited(0, "sh", "-c", "true; ls / >/dev/null; exit 3"))
        self.assertEqual(done.returncode, 3, self.seen)
        self.assertIn("started loaded a SQLite library", done.stderr)

    def test_debug_log(self):
        """The log cannot be written, and the host gets no signal for that."""
        done = self.record(*self.limited(0, PYTHON, "-c", FORKS), options=EVERY,
                           env={**os.environ, "QUERYPROF_DEBUG": "all", "QUERYPROF_DEBUG_FILE": self.folder + "/debug.log"})
        self.assertEqual((done.returncode, done.stdout), (0, ANSWERS), self.seen)

    def test_pending_signal(self):
        """A pending signal of the host stays pending, and no signal of the library becomes pending."""
        for sent in False, True:
            with self.subTest(sent=sent):
                script = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGXFSZ, signal.SIGPIPE])
if %r:
    os.kill(os.getpid(), signal.SIGXFSZ)
    os.kill(os.getpid(), signal.SIGPIPE)
""" % sent + FORKS.replace("signal.signal(signal.SIGXFSZ, signal.SIG_DFL)", "") + """
print(sorted(signal.sigpending()) == (sorted([signal.SIGXFSZ, signal.SIGPIPE]) if %r else []))
""" % sent
                done = self.record(*self.limited(0, PYTHON, "-c", script), options=(*EVERY, "--append"),
                                   env={**os.environ, "QUERYPROF_DEBUG": "all",
                                        "QUERYPROF_DEBUG_FILE": self.folder + "/debug.log"})
                self.assertEqual((done.returncode, done.stdout), (0, ANSWERS + "True\n"), self.seen)


unittest.main()
