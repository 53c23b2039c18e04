#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs under `record` where something works against it.

usage: test_record.py QUERYPROF ALARMS"""

import resource
import threading

from recording import *

ALARMS = os.path.abspath(sys.argv.pop(1))
EVERY = ("--cpu", "1ms", "--real", "0", "--setting", "log_queries_min_query_duration_ns=0")
# Queries until somebody writes a line, then as many as are asked for.
COUNTED = """
import sqlite3, sys
db = sqlite3.connect(':memory:')
print('ready', flush=True)
sys.stdin.readline()
for i in range(300):
    db.execute('SELECT /* counted %d */ 1' % i).fetchall()
"""


class Attacked(Recording):
    def stored(self):
        return self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* counted%'")[0][0]

    def test_alarms_of_its_own(self):
        """The program ends by SIGALRM's default action where it gets one. It has left the group, or is in it."""
        for begin in "", "import os; os.setsid()\n":
            script = begin + "import time; end = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass\nprint('alive')"
            done = self.record(PYTHON, "-c", script, options=("--quiet", "--append"),
                               env=dict(os.environ, LD_PRELOAD=" ".join(filter(None, (os.environ.get("LD_PRELOAD"), ALARMS)))))
            self.assertEqual((done.returncode, done.stdout), (0, "alive\n"), self.seen)

    def test_file_size(self):
        """No SIGXFSZ ends the command. The program has its own action for that signal."""
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

    def meanwhile(self, harm):
        """The program's queries come after harm() to the file, which returns what undoes it."""
        process = subprocess.Popen(self.arguments(PYTHON, "-c", COUNTED, options=EVERY), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        wait_until(self.has_views, "the file")
        with sqlite3.connect(self.trace, isolation_level=None, timeout=60, check_same_thread=False) as db:
            harm(db)
            process.stdin.write("\n")
            process.stdin.close()
            process.stdout.read()  # to the program's end; the command has let go of it
            ended = time.monotonic()
            with process:
                err = process.stderr.read()
            self.took = time.monotonic() - ended
        self.seen = "\nexit status %d\n%s" % (process.returncode, err)
        self.assertEqual(process.returncode, 0, self.seen)
        return db, err

    def test_locked_by_another(self):
        """To the end of the command, which comes all the same: what is not in the file is reported."""
        db, err = self.meanwhile(lambda db: db.execute("BEGIN EXCLUSIVE"))
        db.close()
        self.assertEqual(self.stored(), 0, self.seen)
        self.assertRegex(err, r"\d+ samples or lines of queries lost: .*locked", self.seen)
        # It is patient for 6 s, once for all that waits, and works for some milliseconds.
        self.assertLess(self.took, 25, self.seen)

    def test_table_dropped(self):
        db, err = self.meanwhile(lambda db: db.execute("DROP TABLE queries"))
        db.close()
        self.assertIn("no such table", err, self.seen)
        self.assertRegex(err, "lost|missing", self.seen)


unittest.main()
