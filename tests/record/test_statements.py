#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every run counts: statement_stats includes runs that are too short for a row, and each failed run has a row. Times
equal those of the program's own clocks.

usage: test_statements.py QUERYPROF SELECTS ROWS"""

import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

SELECTS = os.path.abspath(sys.argv.pop(1))
ROWS = os.path.abspath(sys.argv.pop(1))
RUNS = 20000


class Statements(Recording):
    def command(self, *arguments):
        done = subprocess.run([QUERYPROF, *arguments], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def counted(self, text):
        return self.rows("""SELECT calls, rows, execution_time_ns, cpu_time_ns, cpu_time_estimated_ns, min_ns, max_ns,
            histogram, normalized_query_hash FROM statement_stats WHERE query LIKE ?""", text)[0]

    def test_all_runs_and_their_time(self):
        done = self.record(SELECTS, options=())
        self.assertEqual(done.returncode, 0, self.seen)
        calls, rows, ns, cpu, estimated, least, most, histogram, query_hash = self.counted("%BETWEEN%")
        self.assertEqual((calls, rows), (RUNS, RUNS), self.seen)
        self.assertEqual(sum(eval(histogram)), RUNS)
        self.assertTrue(0 < least <= ns / RUNS <= most < ns, self.seen)
        self.assertTrue(0 < estimated <= cpu <= ns, self.seen)
        self.assertLess(os.path.getsize(self.trace), 1 << 20)
        self.assertEqual(self.rows("SELECT runs FROM top_queries WHERE normalized_query_hash = ?", query_hash),
                         [(RUNS,)])
        self.assertRegex(self.command("queries", self.trace), r"(?m) %d .*BETWEEN" % RUNS)
        # The program's clocks include the time between two calls: its loop, binding and resetting, queryprof's own
        # work, and, on a busy machine, other threads' turns. The CPU time includes the first three, and the SELECTs
        # that do nothing measure how much of it is between two calls. Cold caches add an unknown amount; 20 to 90 us at
        # each context switch were seen. So the lower bound is the time that the program itself measures within a call.
        own, own_cpu, within, nothing_cpu = map(int, done.stdout.split())
        between = nothing_cpu - self.counted("SELECT ?1")[3]
        self.seen += "\nns %d of %d, CPU %d of %d, %d of them between, %d within" % (ns, own, cpu, own_cpu, between, within)
        self.assertLess(ns, 1.001 * own, self.seen)
        self.assertTrue(0 < between < own_cpu / 4, self.seen)
        self.assertLess(cpu - (own_cpu - between), 0.01 * own_cpu, self.seen)
        # If CPU time between two runs was counted for a run, up to 50 us at a switch, it is subtracted from the next
        # run.
        self.assertGreater(cpu, 0.95 * within, self.seen)
        self.assertGreater(within, own_cpu / 2, self.seen)

    def test_preparations_alone(self):
        """A process that prepares statements and runs none. A preparation that takes long counts when its statement ends."""
        program = ("import os, sqlite3\ndb = sqlite3.connect(':memory:')\nfor i in range(30):\n try: db.execute('SELECT ?, %d' % i)\n"
                   " except sqlite3.Error: pass\ndb.close()\nos._exit(0)\n")
        self.record(PYTHON, "-c", program, options=())
        self.assertEqual(self.rows("SELECT sum(prepares), sum(calls) FROM statement_stats WHERE query LIKE 'SELECT ?, %'"), [(30, 0)], self.seen)

    @unittest.skipIf(IN_COVERAGE, "handlers of a debug build take a tenth of the program's CPU time")
    def test_time_inside_and_between_rows(self):
        done = self.record(ROWS)
        self.assertEqual(done.returncode, 0, self.seen)
        inside, cpu_inside, all_of_it = map(int, done.stdout.split())
        (ns, cpu, duration), = self.rows("SELECT execution_time_ns, cpu_time_ns, query_duration_ns FROM query_log"
                                         " WHERE query LIKE 'WITH%'")
        self.seen += "\n%d of %d, CPU %d of %d, duration %d of %d" % (ns, inside, cpu, cpu_inside, duration, all_of_it)
        # On a busy machine other threads may have their turn in queryprof's part of a call. The program's clock around
        # the call includes that, the time inside SQLite does not. CPU time is the same.
        self.assertLess(ns, 1.001 * inside, self.seen)
        self.assertLess(abs(cpu - cpu_inside), 0.05 * cpu_inside, self.seen)
        self.assertLessEqual(cpu, ns, self.seen)
        # The time between two rows contains the program's work, and nothing that the program did not measure.
        between = duration - ns
        self.assertLess(all_of_it - inside, 1.001 * between, self.seen)
        self.assertLess(duration, 1.001 * all_of_it, self.seen)
        reported = re.search(r"(?m)^between rows +([\d.]+) (ms|s)$", self.command("report", self.trace, "WITH"))
        self.assertTrue(reported, self.seen)
        between_ms = float(reported[1]) * {"ms": 1, "s": 1000}[reported[2]]
        self.assertLess(abs(between_ms - between / 1e6), 0.01 * between_ms, self.seen)

    def test_failed_runs_have_lines(self):
        self.record(SELECTS, options=())
        self.assertEqual(self.rows("SELECT calls, errors FROM statement_stats WHERE query LIKE 'INSERT INTO t VALUES%'"),
                         [(50, 50)], self.seen)
        lines = self.rows("SELECT exception, exception_code FROM query_log WHERE query LIKE 'INSERT INTO t VALUES%'")
        self.assertEqual(set(lines), {("UNIQUE constraint failed: t.a", 1555)}, self.seen)
        # The first runs, and runs with a sample on a busy machine.
        self.assertTrue(10 <= len(lines) <= 20, self.seen)

    def test_a_close_without_work_is_no_run(self):
        self.record("sqlite3", "-init", "/dev/null", ":memory:", "SELECT 1", options=("--cpu", "0", "--real", "60s"))
        # A close that had to wait for its turn on a busy machine counts as a run.
        closes = self.rows("SELECT max_ns FROM statement_stats WHERE query = 'sqlite3_close()'")
        self.assertTrue(all(ns >= 1000000 for (ns,) in closes), closes)
        report = self.command("report", self.trace)
        self.assertRegex(report, r"(?m)^runs +%d$" % (1 + len(closes)))
        if not closes:
            self.assertRegex(report, r"(?m)^text +SELECT 1$")
        if not self.rows("SELECT 1 FROM query_log"):
            self.assertRegex(report, r"(?m)^logged runs +none: ")

    def test_processes_add_up(self):
        script = self.file("family.py", """
import os, sqlite3
def work():
    db = sqlite3.connect(':memory:')
    for i in range(100):
        db.execute('SELECT %d + ?' % i, (i,)).fetchall()
work()
for worker in range(3):
    if not os.fork():
        work()
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
""")
        self.record(PYTHON, script)
        self.assertEqual(self.rows("""SELECT calls, prepares, rows, program FROM statement_stats
            WHERE query LIKE 'SELECT % + ?'"""), [(400, 400, 400, os.path.realpath(PYTHON))], self.seen)

    def test_nothing_is_counted_where_nothing_is_logged(self):
        for name, value in ("LOG_QUERIES", "0"), ("LOG_STATEMENTS_MAX", "0"):
            self.trace = os.path.join(self.folder, name)
            self.record(SELECTS, options=(), env={**os.environ, "QUERYPROF_" + name: value})
            self.assertEqual(self.rows("SELECT count(*) FROM statement_stats"), [(0,)], self.seen)


if __name__ == "__main__":
    unittest.main()
