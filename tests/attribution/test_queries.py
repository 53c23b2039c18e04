#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The columns of query_log for a query: its id, its text, its preparation, its values.

usage: test_queries.py LIBRARY
"""

import os
import sqlite3
import sys
import tempfile
import time
import unittest
import uuid

LIBRARY = os.path.splitext(os.path.abspath(sys.argv.pop(1)))[0]
BURN = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) SELECT /* %s */ sum(x) FROM c"
TRIES = 4


class Queries(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = self.connect(os.path.join(self.folder.name, "app.db"))
        self.set("trace_log_path", os.path.join(self.folder.name, "app.trace"))

    def tearDown(self):
        self.set("trace_log_path", "")
        self.db.close()

    def connect(self, path):
        db = sqlite3.connect(path, isolation_level=None)
        db.enable_load_extension(True)
        db.load_extension(LIBRARY)
        return db

    def set(self, name, value):
        self.db.execute("SELECT set_setting(?, ?)", (name, str(value))).fetchall()

    def log(self, columns, where, *values):
        return self.db.execute("SELECT %s FROM system.query_log WHERE %s ORDER BY query_start_time_microseconds, "
                               "system.query_log.query_id" % (columns, where), values).fetchall()

    def log_all(self):
        self.set("log_queries_min_query_duration_ns", 0)

    def test_texts(self):
        self.log_all()
        other = os.path.join(self.folder.name, "other.db")
        script = ["CREATE TABLE t(x)", "ATTACH '%s' AS other" % other, "BEGIN IMMEDIATE", "INSERT INTO t VALUES (?)",
                  "SAVEPOINT s", "RELEASE s", "COMMIT", "PRAGMA journal_mode = WAL", "PRAGMA table_info(t)",
                  "EXPLAIN QUERY PLAN SELECT * FROM t", "DETACH other", "BEGIN", "ROLLBACK", "VACUUM", "ANALYZE",
                  "DROP TABLE t"]
        for sql in script:
            self.db.execute(sql, ("a secret",) if "?" in sql else ()).fetchall()
        lines = self.log("query, type, exception_code, database, expanded_query, query_id = initial_query_id, "
                         "library_version, result_rows", "query NOT LIKE '%set_setting%'")
        self.assertEqual([line[0] for line in lines], script)
        for line in lines:
            self.assertEqual(line[1:7], ("QueryFinish", 0, os.path.join(self.folder.name, "app.db"), "", 1,
                                         sqlite3.sqlite_version), line)
        self.assertEqual([line[7] for line in lines if line[0].startswith("PRAGMA")], [1, 1])

    def test_ids(self):
        self.log_all()
        for number in range(200):
            self.db.execute("SELECT %d" % number).fetchall()
        lines = self.log("query, query_id", "query GLOB 'SELECT [0-9]*'")
        self.assertEqual([line[0] for line in lines], ["SELECT %d" % number for number in range(200)])
        ids = [line[1] for line in lines]
        self.assertEqual({uuid.UUID(one).version for one in ids}, {7})
        self.assertEqual({uuid.UUID(one).variant for one in ids}, {uuid.RFC_4122})
        self.assertEqual(ids, sorted(set(ids)), "each its own, in the order of time")

    def test_ids_after_fork(self):
        self.log_all()
        children = []
        for _ in range(4):
            child = os.fork()
            if not child:
                code = 1
                try:
                    db = sqlite3.connect(":memory:")
                    db.execute("SELECT set_setting('log_queries_min_query_duration_ns', '0')").fetchall()
                    for number in range(50):
                        db.execute("SELECT /* forked */ %d" % number).fetchall()
                    if db.execute("SELECT count(*) FROM query_log WHERE query LIKE '%/* forked */%' "
                                  "AND query NOT LIKE '%query_log%'").fetchone()[0] >= 50:
                        code = 0
                finally:
                    os._exit(code)
            children.append(child)
        for number in range(50):
            self.db.execute("SELECT /* forked */ %d" % number).fetchall()
        for child in children:
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        count, distinct, initial = self.log("count(*), count(DISTINCT query_id), sum(query_id = initial_query_id)",
                                            "query LIKE '%/* forked */%'")[0]
        self.assertEqual((count, distinct, initial), (250, 250, 250))

    def test_own_id(self):
        self.log_all()
        self.db.execute("PRAGMA query_id = 'the next'")
        self.db.execute("SELECT 'first'").fetchall()
        self.db.execute("SELECT 'second'").fetchall()
        ids = dict(self.log("query, query_id", "query IN ('SELECT ''first''', 'SELECT ''second''')"))
        self.assertEqual(ids["SELECT 'first'"], "the next")
        self.assertEqual(uuid.UUID(ids["SELECT 'second'"]).version, 7)

    def test_preparation(self):
        """A statement that takes long to parse, and no time to run."""
        self.log_all()
        self.set("query_profiler_max_overhead_percent", 0)
        self.set("query_profiler_cpu_time_period_ns", 1000000)
        terms = ", ".join("(%d, 'text %d')" % (i, i) for i in range(3000))
        self.db.execute("CREATE TABLE t(a, b)")
        # Several tries, because another process may take the processor while a statement runs.
        for number in range(TRIES):
            self.db.execute("INSERT /* parsed %d */ INTO t SELECT * FROM (VALUES %s) WHERE 0" % (number, terms))
            self.db.execute(BURN % (300000, "run %d" % number)).fetchall()
        with self.assertRaises(sqlite3.OperationalError):
            self.db.execute("INSERT /* wrong */ INTO t VALUES %s, (1)" % terms)
        self.set("query_profiler_cpu_time_period_ns", 0)
        parsed = self.log("query_duration_ns, prepare_time_ns, samples_cpu", "query LIKE 'INSERT /* parsed %'")
        print("parsed in %s ms" % ", ".join("%.1f of %.1f" % (prepare / 1e6, duration / 1e6) for duration, prepare, _ in parsed))
        self.assertEqual(len(parsed), TRIES)
        self.assertTrue(all(duration > prepare for duration, prepare, _ in parsed), parsed)
        self.assertTrue(any(prepare > duration / 2 for duration, prepare, _ in parsed), parsed)
        self.assertTrue(any(samples for _, _, samples in parsed), parsed)
        # Samples of the preparation come before its end, other samples after it. The two clocks may
        # differ by 2 ms.
        self.assertEqual(self.db.execute("""SELECT count(*) FROM (SELECT
                traceToText(trace) LIKE '%queryprof_prepare%' AS preparing,
                julianday(event_time_microseconds) * 86400e3 - julianday(query_start_time_microseconds) * 86400e3
                    - prepare_time_ns / 1e6 AS ms_behind
            FROM system.trace_log AS t JOIN system.query_log AS q USING (query_id)
            WHERE q.query LIKE 'INSERT /* parsed %')
            WHERE ms_behind > 2 AND preparing OR ms_behind < -2 AND NOT preparing""").fetchone()[0], 0)
        (duration, prepare), = self.log("query_duration_ns, prepare_time_ns", "query LIKE 'INSERT /* wrong */%'")
        self.assertEqual(duration, prepare, "it never came to run")
        run = self.log("query_duration_ns, prepare_time_ns", "query LIKE '%/* run %'")
        self.assertTrue(any(prepare < duration / 4 for duration, prepare in run), run)

    def test_values(self):
        self.log_all()
        self.db.execute("SELECT ?, :b", ("a secret", 1)).fetchall()
        self.set("log_query_parameters", 1)
        self.db.execute("SELECT ?, :b, x'00'", ("it's", 2)).fetchall()
        self.db.execute("SELECT 'none'").fetchall()
        self.db.execute("SELECT length(?)", (b"x" * 10000000,)).fetchall()
        self.set("log_query_parameters", 0)
        self.db.execute("SELECT ? AS again", ("a secret",)).fetchall()
        self.assertEqual(self.log("query, expanded_query", "query LIKE 'SELECT ?%' OR query LIKE 'SELECT ''none%' OR "
                                  "query LIKE 'SELECT length%'"),
                         [("SELECT ?, :b", ""), ("SELECT ?, :b, x'00'", "SELECT 'it''s', 2, x'00'"),
                          ("SELECT 'none'", ""), ("SELECT length(?)", ""), ("SELECT ? AS again", "")])
        # The limit that leaves the long value out was set in SQLite only for a moment.
        self.assertEqual(self.db.execute("SELECT length(zeroblob(900000000))").fetchone()[0], 900000000)
        # The values are nowhere else in the file.
        self.set("trace_log_path", "")
        with open(os.path.join(self.folder.name, "app.trace"), "rb") as file:
            self.assertNotIn(b"a secret", file.read())

    def test_own_preparation(self):
        """A statement about the profiler is not sampled from the planning of its tables on."""
        tables = ", ".join(f"system.settings t{i}" for i in range(60))
        same = " AND ".join(f"t{i}.name = t{i + 1}.name" for i in range(59))
        self.db.execute("PRAGMA query_profiler_cpu_time_period_ns = 0")
        self.db.execute("PRAGMA query_profiler_real_time_period_ns = 200000")
        start = time.monotonic_ns()
        for i in range(100):
            self.db.execute(f"SELECT {i} FROM {tables} WHERE t0.name = 'none' AND {same}").fetchall()
        took = time.monotonic_ns() - start
        self.db.execute("PRAGMA query_profiler_real_time_period_ns = 0")
        sampled = self.db.execute("SELECT total(weight * period_ns) FROM system.trace_log").fetchone()[0]
        self.assertLess(sampled, 0.7 * took)
        self.assertEqual(self.log("*", "1"), [])

    def test_later_connections(self):
        """Later connections of the process need not load the extension."""
        self.set("query_profiler_max_overhead_percent", 0)
        later = sqlite3.connect(":memory:")
        later.execute("PRAGMA query_profiler_cpu_time_period_ns = 1000000")
        later.execute(BURN % (2000000, "later")).fetchall()
        self.assertGreater(later.execute("SELECT count(*) FROM trace_log JOIN query_log USING (query_id) WHERE "
                                         "query LIKE '%/* later */%'").fetchone()[0], 5)
        later.close()
        # Loading is idempotent, and the library stays when its connection closes.
        for _ in range(3):
            again = self.connect(":memory:")
            again.load_extension(LIBRARY)
            again.close()
        self.assertEqual(self.db.execute("SELECT value FROM system.metrics WHERE metric = 'sessions'").fetchone()[0], 1)
        with open("/proc/self/maps", encoding="utf-8") as maps:
            self.assertIn("libqueryprof.so", maps.read())


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
