#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every run counts: statement_stats has the runs that are too short for a line, and failed
runs have lines however short they were.

usage: test_statements.py QUERYPROF SELECTS"""

from recording import *

SELECTS = os.path.abspath(sys.argv.pop(1))
RUNS = 20000


class Statements(Recording):
    def command(self, *arguments):
        done = subprocess.run([QUERYPROF, *arguments], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_all_runs_and_their_time(self):
        for attempt in range(5):
            self.trace = os.path.join(self.folder, "app%d.trace" % attempt)
            done = self.record(SELECTS, options=())
            self.assertEqual(done.returncode, 0, self.seen)
            calls, rows, ns, cpu, estimated, least, most, histogram, query_hash = self.rows(
                """SELECT calls, rows, execution_time_ns, cpu_time_ns, cpu_time_estimated_ns, min_ns, max_ns,
                   histogram, normalized_query_hash FROM statement_stats WHERE query LIKE '%BETWEEN%'""")[0]
            self.assertEqual((calls, rows), (RUNS, RUNS), self.seen)
            self.assertEqual(sum(eval(histogram)), RUNS)
            self.assertTrue(0 < least <= ns / RUNS <= most < ns, self.seen)
            self.assertTrue(0 < estimated <= cpu <= ns, self.seen)
            self.assertLess(os.path.getsize(self.trace), 1 << 20)
            self.assertEqual(self.rows("SELECT runs FROM top_queries WHERE normalized_query_hash = ?", query_hash),
                             [(RUNS,)])
            own = int(done.stdout)
            # The program's clock has what comes between two calls, too; on a busy machine,
            # the others' turns.
            self.assertLess(ns, 1.001 * own, self.seen)
            if ns > 0.95 * own:
                return
        self.fail("%d ns of %d" % (ns, own))

    def test_failed_runs_have_lines(self):
        self.record(SELECTS, options=())
        self.assertEqual(self.rows("SELECT calls, errors FROM statement_stats WHERE query LIKE 'INSERT INTO t VALUES%'"),
                         [(50, 50)], self.seen)
        lines = self.rows("SELECT exception, exception_code FROM query_log WHERE query LIKE 'INSERT INTO t VALUES%'")
        self.assertEqual(set(lines), {("UNIQUE constraint failed: t.a", 19)}, self.seen)
        # The first ones, and those with a sample on a busy machine.
        self.assertTrue(10 <= len(lines) <= 20, self.seen)

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
