#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with few descriptors or little memory end as they do alone, and losses are reported.

usage: test_limited.py QUERYPROF"""

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

EVERY = (*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0")

# The program prints a line at each stage, and sets the limit at one of them.
STAGES = """
import os, resource, sqlite3, sys, time
limit, limited_at = int(sys.argv[1]), sys.argv[2]
db = sqlite3.connect(':memory:')
def work(stage):
    if stage == limited_at:
        if sys.argv[3] == 'full':
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, 64), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            try:
                while True:
                    os.dup(2)
            except OSError:
                pass
        else:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for i in range(200):
        db.execute('SELECT /* counted %s %d */ 1' % (stage, i)).fetchall()
work('first')
work('second')
time.sleep(float(sys.argv[4]))
work('third')
time.sleep(0.5)
work('last')
if len(sys.argv) > 5:
    if not os.fork():
        if sys.argv[5] != 'idle':
            work('child')
        if sys.argv[5] == 'grandchild':
            if not os.fork():
                work('grandchild')
                os._exit(0)
            assert os.wait()[1] == 0
        os._exit(0)
    assert os.wait()[1] == 0
print('end')
"""
LINES = 4 * 200


class Descriptors(Recording):
    def lines(self, done):
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), self.seen)
        return self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* counted%'")[0][0]

    def test_limit(self):
        """The process can neither open its file nor make a connection. The command stores its runs."""
        for limit, how in (0, "limit"), (3, "limit"), (8, "limit"), (40, "limit"), (64, "full"):
            for stage in "second", "third":
                with self.subTest(limit=limit, how=how, stage=stage):
                    self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
                    pause = "1.5" if stage == "third" else "0"
                    done = self.record(PYTHON, "-c", STAGES, str(limit), stage, how, pause, options=EVERY)
                    self.assertEqual(self.lines(done), LINES, self.seen)
                    self.assertNotIn("lost", done.stderr)
                    self.assertNotIn("missing", done.stderr)

    def test_child(self):
        """The child has no ring, file or pipe. Its parent's memory reports it if it ran a query."""
        for limit, child, lines, times in (0, "child", 4, 1), (0, "grandchild", 4, 2), (0, "idle", 4, 0), (16, "child", 5, 0):
            with self.subTest(limit=limit, child=child):
                self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
                done = self.record(PYTHON, "-c", STAGES, str(limit), "last", "limit", "0", child, options=EVERY)
                self.assertEqual(self.lines(done), lines * 200, self.seen)
                said = "samples missing, refused %d time%s: a forked child could not hand its memory over\n" % (times, "s" * (times > 1))
                self.assertEqual(said in done.stderr, times > 0, self.seen)
                self.assertEqual("missing" in done.stderr, times > 0, self.seen)

    def test_limit_of_the_command(self):
        """Its runs are stored, or the command says that it has lost them."""
        for limit in range(8, 20):
            with self.subTest(limit=limit):
                self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
                done = self.record(PYTHON, "-c", STAGES, "0", "never", "", "0", options=EVERY,
                                   around=("bash", "-c", 'ulimit -n %d; exec "$@"' % limit, "bash"))
                if done.stdout == "end\n" and self.lines(done) != LINES:
                    self.assertRegex(done.stderr, "samples missing, refused|lost: |are missing in")
                    self.assertNotIn("nothing was recorded", done.stderr)

    def test_limit_at_the_first_query(self):
        """By then nothing can be opened, so it is not known whether a query ran."""
        done = self.record(PYTHON, "-c", STAGES, "0", "first", "limit", "0", options=EVERY)
        self.assertEqual(self.lines(done), 0, self.seen)
        self.assertNotIn("ran no query", done.stderr)
        self.assertIn("nothing was recorded: SQLite was loaded, but the process reported no query. Either it ran none, or it could not open "
                      "a file (ulimit -n)", done.stderr)


# A table that takes this many MiB of memory, and the sum of its first column.
FILL = ("CREATE TABLE t(n, x); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d)"
        " INSERT INTO t SELECT x, zeroblob(100000) FROM c; SELECT count(*) FROM t;")


class Memory(Recording):
    def expect_as_alone(self, limit, mib, *more, option="-v"):
        """The program has that limit in MiB, and needs `mib` of them."""
        command = ("bash", "-c", 'ulimit %s %d; %s exec sqlite3 -init /dev/null :memory: "$0"'
                   % (option, limit << 10, "".join(more)), FILL % (mib * 10))
        expected = 0, "%d\n" % (mib * 10)
        self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
        done = self.record(*command, options=EVERY)
        if (done.returncode, done.stdout) != expected:
            alone = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual((alone.returncode, alone.stdout), expected, "alone")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("Error")), (*expected, 0), self.seen)
        return done

    def test_little(self):
        """A program that needs most of its limit is left alone."""
        for option, what in ("-v", "address space"), ("-d", "data"):
            for limit, mib in (60, 40), (110, 90) if option == "-d" else (400, 370):
                with self.subTest(option=option, limit=limit):
                    done = self.expect_as_alone(limit, mib, option=option)
                    self.assertRegex(done.stderr, r"nothing was recorded: /usr/bin/sqlite3: \d+ of the %d MiB of %s" % (limit, what))

    def test_enough(self):
        for option, limit, mib in ("-v", 1000, 300), ("-d", 300, 150):
            with self.subTest(option=option):
                done = self.expect_as_alone(limit, mib, option=option)
                self.assertNotIn("MiB", done.stderr)
                self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT count(*)%'"), [(1,)], self.seen)

    def test_later(self):
        """The limit is set between loading SQLite and the first query."""
        done = self.record(PYTHON, "-c", """
import resource, sqlite3
resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))
db = sqlite3.connect(':memory:')
for i in range(600):
    db.execute('SELECT zeroblob(100000)').fetchall()
print(db.execute('SELECT length(zeroblob(60000000))').fetchone())
""", options=EVERY)
        self.assertEqual((done.returncode, done.stdout), (0, "(60000000,)\n"), self.seen)
        self.assertRegex(done.stderr, r"samples missing, refused 1 time: \d+ of the 100 MiB of address space \(ulimit -v\) are left")


class OfTheCommand(Recording):
    """Limits under which the command itself runs."""

    names = ()

    def test_stack(self):
        done = subprocess.run(["prlimit", "--stack=131072:131072", *self.arguments(PYTHON, "-c",
                               "import sqlite3\nprint(sqlite3.connect(':memory:').execute(%r).fetchone()[0])" % SLOW)],
                              capture_output=True, text=True, check=False)
        self.seen = done.stdout + done.stderr
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), self.seen)
        self.expect_sampled(1)
        shown = subprocess.run(["prlimit", "--stack=131072:131072", QUERYPROF, "report", self.trace], capture_output=True,
                               text=True, check=False)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("sqlite3_step", shown.stdout)

    def test_signals_under_a_small_stack(self):
        """The program has the limit, and gets each of the command's signals once."""
        script = "ulimit -s; trap 'echo got' TERM; trap 'exit 3' INT; echo ready; while :; do sleep 0.01; done"
        with subprocess.Popen(["prlimit", "--stack=131072:131072", *self.arguments("sh", "-c", script)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, start_new_session=True) as us:
            self.assertEqual([read_line(us.stdout, "the program's lines") for _ in range(2)], ["128\n", "ready\n"])
            us.send_signal(signal.SIGTERM)
            self.assertEqual(read_line(us.stdout, "SIGTERM"), "got\n")
            us.send_signal(signal.SIGINT)
            with bounded("the end of the program's output, after SIGINT"):
                self.assertEqual(us.stdout.read(), "")
            self.assertEqual(us.wait(300), 3)

    def test_file_size(self):
        """The command reports it, and the remaining file does not hinder the next recording."""
        for limit in 0, 1024:
            done = subprocess.run(["prlimit", "--fsize=%d" % limit, *self.arguments("echo", "begun")], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
            self.assertIn("files of this process can have %d bytes at most: ulimit -f" % limit, done.stderr)
        done = subprocess.run([QUERYPROF, "record", "--new", "-o", self.trace, *OPTIONS, "--", "sqlite3", ":memory:", "SELECT 42"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), done.stderr)


unittest.main()
