#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The commands' output for small programs that were recorded.

usage: test_shown.py QUERYPROF"""

import csv
import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

FAILURES = """
import sqlite3, sys
a, b = (sqlite3.connect(sys.argv[1], isolation_level=None) for _ in range(2))
a.execute('PRAGMA journal_mode=WAL'); a.execute('CREATE TABLE t(x UNIQUE, y NOT NULL)')
a.execute('BEGIN'); a.execute('SELECT count(*) FROM t').fetchall(); b.execute('INSERT INTO t VALUES (1, 1)')
for sql in ('INSERT INTO t VALUES (2, 2)', 'ROLLBACK', 'INSERT INTO t VALUES (1, 1)', 'INSERT INTO t VALUES (1, 2)',
            'INSERT INTO t VALUES (3, NULL)'):
    try: a.execute(sql)
    except sqlite3.Error as error: print(error.sqlite_errorcode, error.sqlite_errorname, error)
"""
PLANS = """
import sqlite3
db = sqlite3.connect(':memory:')
db.execute('CREATE TABLE t(a)')
db.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200000) INSERT INTO t SELECT i FROM n')
if len(sys.argv) > 1:
    db.execute('SELECT max(a + 1) FROM t').fetchall()
""".replace("import sqlite3", "import sqlite3, sys")


# Measures its thread's CPU time of the process's first statement.
FIRST = """
import sqlite3, time
db = sqlite3.connect(':memory:', isolation_level=None)
start = time.thread_time_ns()
db.execute('SELECT 1').fetchall()
print(time.thread_time_ns() - start)
"""


class Shown(Recording):
    def ask(self, *arguments):
        return subprocess.run([QUERYPROF, *arguments], capture_output=True, text=True, check=True).stdout

    def test_failures(self):
        """Shows the extended result codes by their names."""
        done = self.record(PYTHON, "-c", FAILURES, os.path.join(self.folder, "db"))
        self.assertEqual(done.returncode, 0, done.stderr)
        wanted = {}
        for code, name, message in (line.split(" ", 2) for line in done.stdout.splitlines()):
            wanted[(int(code), name, message)] = wanted.get((int(code), name, message), 0) + 1
        self.assertEqual({code for code, _, _ in wanted}, {517, 1299, 2067})
        rows = list(csv.DictReader(self.ask("queries", "--failed", "--format", "csv", self.trace).splitlines()))
        self.assertEqual({(int(row["code"]), row["error"], row["message"]): int(row["logged"]) for row in rows}, wanted)
        # Two errors belong to one statement, because its literals do not count (NULL does not count as a literal).
        self.assertEqual({(int(row["code"]), row["failed"], row["all_failed"]) for row in rows},
                         {(517, "1", "3"), (2067, "2", "3"), (1299, "1", "1")})
        report = self.ask("report", self.trace)
        for _, name, message in wanted:
            self.assertIn("%s, %s" % (name, message), report)
        self.assertEqual(sorted(self.rows("SELECT exception_code, exception FROM query_log WHERE exception_code <> 0")),
                         sorted((code, message) for (code, _, message), count in wanted.items() for _ in range(count)))

    def test_first_statement(self):
        """queryprof's own work in a process's first statement does not count for the statement, although it takes most
        of the program's time."""
        done = self.record(PYTHON, "-c", FIRST)
        self.assertEqual(done.returncode, 0, self.seen)
        (cpu_ns,), = self.rows("SELECT cpu_time_ns FROM statement_stats WHERE query = 'SELECT 1'")
        self.assertLess(cpu_ns, int(done.stdout) / 4)

    def test_headings_of_plans(self):
        done = self.record(PYTHON, "-c", PLANS, "both")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = self.ask("plan", self.trace)
        self.assertEqual(re.findall(r"(?m)^1 run, [^:]*:[^:]*:[^:]*:[^:]*:[^:]*: (\w+) .*\nQUERY PLAN", shown),
                         ["WITH", "SELECT"], shown)
        os.remove(self.trace)
        done = self.record(PYTHON, "-c", PLANS)
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = self.ask("plan", self.trace)
        self.assertEqual(shown.count("QUERY PLAN"), 1)
        self.assertRegex(shown, r"1 run, [^\n]*: WITH")  # not the only statement
        self.assertNotIn("1 run", self.ask("plan", self.trace, "WITH"))

    def closes(self):
        """On a busy machine, closing a connection can take long enough to be counted as a run."""
        return self.rows("SELECT coalesce(sum(calls), 0) FROM statement_stats WHERE query = 'sqlite3_close()'")[0][0]

    def test_number_of_processes(self):
        """Processes whose runs are counted but not logged count, too."""
        done = self.record("sh", "-c", "for i in 1 2; do sqlite3 :memory: 'SELECT 1'; done; sqlite3 :memory: \"$0\"; :", SLOW)
        self.assertEqual(done.returncode, 0, done.stderr)
        closes = self.closes()
        self.assertIn(" %d runs, 3 processes (" % (3 + closes), done.stderr)
        # The second recording counts only its own.
        done = self.record("sh", "-c", "sqlite3 :memory: \"$0\"; sqlite3 :memory: 'SELECT 1'", SLOW)
        self.assertIn(" %d runs, 2 processes (" % (2 + self.closes() - closes), done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
