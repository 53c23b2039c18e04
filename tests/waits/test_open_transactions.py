#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Transactions that get a row before they end, or never end: a write transaction, and a cursor that is not reset.

    test_open_transactions.py QUERYPROF"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

QUERYPROF = os.path.abspath(sys.argv.pop(1))

# Ends when the file "end" exists. With "kill", it then kills itself.
PROGRAM = textwrap.dedent("""
    import os, signal, sqlite3, sys, time
    def connect():
        return sqlite3.connect("app.db", isolation_level=None)
    a = connect(); a.execute("PRAGMA journal_mode=WAL"); a.execute("CREATE TABLE t(x)"); a.execute("INSERT INTO t VALUES (1), (2)")
    b = connect(); b.execute("SELECT 1 FROM t").fetchall()  # reads the schema, which is a transaction, too
    cursor = b.execute("SELECT x FROM t /* forgotten */"); next(cursor)
    a.execute("BEGIN IMMEDIATE"); a.execute("INSERT INTO t VALUES (3)"); a.execute("INSERT INTO t VALUES (4)")
    began = time.monotonic_ns()
    while not os.path.exists("end"):
        time.sleep(0.01)
    if sys.argv[1] == "kill":
        print(time.monotonic_ns() - began, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    a.execute(sys.argv[1]); cursor.close()
""")

ROWS = ("SELECT first_query, state, outcome, statements, duration_ns, idle_ns, write_lock_ns FROM transaction_log"
        " WHERE first_query LIKE '%forgotten%' OR first_query LIKE 'BEGIN%' ORDER BY first_query")


class OpenTransactions(unittest.TestCase):
    def run_until_open(self, how, least_ns=0):
        """Returns the rows of the two open transactions and the program's output."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = os.path.join(folder.name, "app.py")
        self.trace = os.path.join(folder.name, "app.trace")
        with open(script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        with subprocess.Popen([QUERYPROF, "record", "--quiet", "-o", self.trace, "--", "/usr/bin/python3", script, how],
                              cwd=folder.name, stdout=subprocess.PIPE, text=True) as program:
            until = time.monotonic() + 300
            # The program only sleeps from here on, so after a while the transactions have been idle
            # for most of their time.
            while len(open_ones := self.rows()) < 2 or min(each[4] for each in open_ones) < least_ns or any(
                    idle <= duration / 2 for *_, duration, idle, _ in open_ones):
                self.assertLess(time.monotonic(), until, "no rows of open transactions")
                self.assertIsNone(program.poll())
                time.sleep(0.05)
            with open(os.path.join(folder.name, "end"), "w", encoding="utf-8"):
                pass
            said = program.communicate(timeout=300)[0]
        return open_ones, said

    def rows(self):
        if not os.path.exists(self.trace):
            return []
        db = sqlite3.connect(self.trace)
        try:
            return db.execute(ROWS).fetchall()
        except sqlite3.OperationalError:  # queryprof is creating the file
            return []
        finally:
            db.close()

    def check(self, rows, states, outcomes):
        self.assertEqual([each[0] for each in rows], ["BEGIN IMMEDIATE", "SELECT x FROM t /* forgotten */"])
        self.assertEqual([each[1] for each in rows], states)
        self.assertEqual([each[2] for each in rows], outcomes)
        for _, _, _, _, duration, idle, write in rows:
            self.assertLessEqual(idle, duration)
            self.assertLessEqual(write, duration)
        self.assertGreaterEqual(rows[0][6], rows[0][5])
        self.assertEqual(rows[1][6], 0)

    def test_that_end(self):
        for how, state, outcome in (("COMMIT", "committed", "commit"), ("ROLLBACK", "rolled back", "rollback")):
            with self.subTest(how):
                before, _ = self.run_until_open(how)
                self.check(before, ["open", "open"], ["", ""])
                self.assertEqual([each[3] for each in before], [3, 0])
                after = self.rows()
                self.check(after, [state, "ended"], [outcome, "read"])
                self.assertEqual([each[3] for each in after], [4, 1])
                for earlier, later in zip(before, after):
                    self.assertGreater(later[4], earlier[4])
                    self.assertGreaterEqual(later[5], earlier[5])

    def test_that_are_killed(self):
        before, said = self.run_until_open("kill", 1500000000)
        self.check(before, ["open", "open"], ["", ""])
        after = self.rows()
        self.check(after, ["killed", "killed"], ["", ""])
        self.assertEqual([each[3] for each in after], [3, 0])
        for each in after:
            self.assertGreater(each[4], int(said))
        listed = json.loads(subprocess.run([QUERYPROF, "locks", self.trace, "--idle", "1s", "--format", "json"],
                                           capture_output=True, text=True, timeout=600, check=True).stdout)
        self.assertEqual({(each["first_query"], each["state"]) for each in listed},
                         {("BEGIN IMMEDIATE", "killed"), ("SELECT x FROM t /* forgotten */", "killed")})
        cause, = [each["cause"] for each in listed if "forgotten" in each["first_query"]]
        self.assertIn("stepped and not reset", cause)


if __name__ == "__main__":
    unittest.main()
