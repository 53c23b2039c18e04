#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""system.statement_stats shows the process's counts so far.

usage: test_statement_stats.py LIBRARY"""

import unittest

from library import Case, connect, in_new_process, rows, value

COLUMNS = """normalized_query_hash query database program calls errors rows execution_time_ns cpu_time_ns
    cpu_time_estimated_ns duration_ns min_ns max_ns histogram execution_time_square cpu_time_square nested_time_ns
    nested_cpu_time_ns prepares prepare_time_ns vm_steps fullscan_steps sorts autoindexes reprepares first_seen_ns
    last_seen_ns""".split()


class StatementStats(Case):
    def setUp(self):
        super().setUp()
        self.db = connect(self.path("a.db"))

    def stats(self, columns, like, db=None):
        return rows(db or self.db, f"SELECT {columns} FROM system.statement_stats WHERE query LIKE ?", like)

    def test_columns(self):
        self.assertEqual([column[0] for column in
                          self.db.execute("SELECT * FROM system.statement_stats LIMIT 0").description], COLUMNS)

    def test_runs_are_there_at_once(self):
        for i in range(50):
            self.db.execute(f"SELECT 'at once', {i} UNION ALL VALUES (1, 2)").fetchall()
        self.assertEqual(self.stats("calls, errors, rows, prepares, database", "%at once%"),
                         [(50, 0, 100, 50, self.path("a.db"))])
        self.assertEqual(self.stats("min_ns > 0 AND min_ns <= max_ns AND max_ns <= execution_time_ns AND"
                                    " execution_time_ns <= duration_ns AND prepare_time_ns < duration_ns AND"
                                    " cpu_time_estimated_ns <= cpu_time_ns AND vm_steps > 50 AND"
                                    " first_seen_ns < last_seen_ns", "%at once%"), [(1,)])
        # The histogram contains all runs. The log contains the runs with a sample, and longer runs on a busy machine.
        self.assertEqual(sum(eval(self.stats("histogram", "%at once%")[0][0])), 50)
        self.assertEqual(value(self.db, """SELECT count(*) FROM query_log WHERE query LIKE '%at once%' AND
            query_duration_ns < 10000000 AND samples_cpu + samples_real = 0"""), 0)

    def test_counters(self):
        self.db.execute("CREATE TABLE t(a, b)")
        self.db.executemany("INSERT INTO t VALUES (?, ?)", [(i, -i) for i in range(100)])
        text = "SELECT a FROM t AS counted ORDER BY b"
        for _ in range(3):
            self.db.execute(text).fetchall()
        self.db.execute("CREATE INDEX i ON t(a)")
        self.db.execute(text).fetchall()
        self.assertEqual(self.stats("calls, rows, fullscan_steps, sorts, autoindexes, reprepares", text),
                         [(4, 400, 396, 4, 0, 1)])

    def test_failures(self):
        self.db.execute("CREATE TABLE u(a UNIQUE)")
        self.db.execute("INSERT INTO u VALUES (1)")
        for i in range(30):
            with self.assertRaises(Exception):
                self.db.execute(f"INSERT INTO u SELECT 1 WHERE {i} = {i}")
            with self.assertRaises(Exception):
                self.db.execute(f"SELECT nonsense {i} 'failing'")
        self.assertEqual(self.stats("calls, errors", "INSERT INTO u SELECT%"), [(30, 30)])
        self.assertEqual(self.stats("calls, errors", "%failing%"), [(30, 30)])
        # The first ten runs, and runs with a sample or of 10 ms on a busy machine.
        self.assertEqual(rows(self.db, """SELECT exception_code, count(*) >= 10,
            sum(query_duration_ns < 10000000 AND samples_cpu + samples_real = 0) <= 10 FROM query_log
            WHERE query LIKE 'INSERT INTO u SELECT%' OR query LIKE '%failing%' GROUP BY 1 ORDER BY 1"""),
                         [(1, 1, 1), (2067, 1, 1)])

    def test_the_profilers_own_are_not_counted(self):
        self.stats("calls AS of_our_own", "%")
        value(self.db, "SELECT count(*) AS of_our_own FROM query_log")
        self.assertEqual(self.stats("query", "%of_our_own%"), [])

    def test_nested_time_is_known(self):
        inner = connect()
        self.db.create_function("asks", 1, lambda x: value(inner, "SELECT sum(1) AS inside FROM"
                                " (WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 2000)"
                                " SELECT i FROM c)"))
        self.db.execute("SELECT asks(1) AS outside").fetchall()
        self.assertEqual(self.stats("calls, nested_time_ns = execution_time_ns", "%inside%"), [(1, 1)])
        self.assertEqual(self.stats("calls, nested_time_ns", "%outside"), [(1, 0)])
        self.assertEqual(rows(self.db, """SELECT o.execution_time_ns > i.execution_time_ns
            FROM system.statement_stats AS o, system.statement_stats AS i
            WHERE o.query LIKE '%outside' AND i.query LIKE '%inside%'"""), [(1,)])

    def test_bound(self):
        in_new_process("""
db = connect()
db.execute("PRAGMA log_statements_max = 20")
for i in range(200):
    db.execute(f"SELECT 1 AS c{i}").fetchall()
    if i % 10 == 9:
        value(db, "SELECT count(*) FROM query_log")
db.execute("SELECT 1 AS last").fetchall()
kept = value(db, "SELECT value FROM system.metrics WHERE metric = 'statements'")
folded = value(db, "SELECT value FROM system.metrics WHERE metric = 'statements_folded'")
assert kept <= 20, kept
assert folded > 10, folded
# log_statements_max = 0 stops counting; what was counted stays.
assert value(db, "SELECT sum(calls) FROM system.statement_stats WHERE query GLOB 'SELECT 1 AS [cl]*' OR query = '(other)'") >= 201
db.execute("PRAGMA log_statements_max = 0")
before = value(db, "SELECT sum(calls) FROM system.statement_stats")
db.execute("SELECT 2 AS later").fetchall()
assert value(db, "SELECT sum(calls) FROM system.statement_stats") == before
""")

    def test_of_other_sessions(self):
        in_new_process("""
import ctypes
db = connect()
db.execute("SELECT 'secret'").fetchall()
library = ctypes.CDLL(LIBRARY + ".so")
assert library.qp_set(None, b"show_queries_of_other_sessions", b"0") == 0
assert rows(connect(), "SELECT * FROM system.statement_stats") == []
assert value(db, "SELECT count(*) FROM system.statement_stats WHERE query LIKE '%secret%'") == 1
""")


if __name__ == "__main__":
    unittest.main()
