#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The oldest supported SQLite, 3.15, in the form of Debian's SQLCipher: an encrypted database, recorded and with the
extension loaded.

usage: test_old.py QUERYPROF"""

import shutil
import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

SHELL = shutil.which("sqlcipher")
if not SHELL:
    print("skipped: sqlcipher is not here")
    sys.exit(SKIPPED)

STATEMENTS = ["CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)",
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30000)"
              " INSERT INTO t SELECT i, 'row ' || i FROM n",
              "SELECT count(*) FROM t WHERE b LIKE '%9%'"]


class Old(Recording):
    def setUp(self):
        super().setUp()
        self.script = ["PRAGMA key = 'secret'", *STATEMENTS, SLOW]
        self.database = os.path.join(self.folder, "cipher.db")

    def answer(self):
        done = subprocess.run([SHELL, ":memory:", *STATEMENTS, SLOW], capture_output=True, text=True, check=True)
        return done.stdout

    def test_recorded(self):
        done = self.record(SHELL, self.database, *self.script,
                           options=(*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0"))
        self.assertEqual((done.returncode, done.stdout), (0, self.answer()), self.seen)
        with open(self.database, "rb") as file:
            self.assertNotIn(b"SQLite format", file.read(16))
        rows = self.rows("SELECT query, type, library_version FROM query_log WHERE query LIKE '% t%'")
        self.assertEqual(rows, [(text, "QueryFinish", "3.15.2") for text in STATEMENTS], self.seen)
        self.assertEqual(self.rows("SELECT * FROM trace_log WHERE trace_type = 'CPU' AND truncated"), [])
        self.expect_sampled(1)
        # EXPLAIN QUERY PLAN of 3.15 numbers neither nodes nor parents. Node 0 is the statement's own work.
        nodes = self.rows("SELECT detail, node > 0, parent FROM plan_nodes JOIN programs AS g ON g.id = program"
                          " JOIN statements AS s ON s.id = statement WHERE query LIKE 'WITH%sum(x)%' ORDER BY node")
        self.assertEqual([node[1:] for node in nodes], [(1, 0)] * len(nodes), nodes)
        self.assertGreater(len(nodes), 1, self.seen)

    def test_failure(self):
        done = self.record(SHELL, ":memory:", "SELECT nothing", options=("--cpu", "1ms"))
        self.assertIn("no such column: nothing", done.stderr)
        # On a busy machine the end of the connection has a row, too.
        self.assertEqual(self.rows("SELECT exception FROM query_log WHERE query <> 'sqlite3_close()'"),
                         [("no such column: nothing",)], self.seen)

    def test_loaded(self):
        done = subprocess.run([SHELL, ":memory:", "-cmd", ".load " + LIBRARY,
                               "PRAGMA log_queries_min_query_duration_ns = 0", *STATEMENTS,
                               "SELECT query FROM query_log WHERE query LIKE '% t%'"],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.stdout.splitlines()[-3:], STATEMENTS, done)


if __name__ == "__main__":
    unittest.main(verbosity=2)
