#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A connection's own labels and the labels in comments of its statements, in SQL.

usage: test_session_labels.py LIBRARY [unittest arguments]"""

import json
import os
import sqlite3
import sys
import tempfile
import unittest

LIBRARY = os.path.abspath(sys.argv.pop(1))
# About a third of a second, because samples come at ticks.
SPIN = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT count(*) FROM n"


class SessionLabels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="queryprof-session-labels-")
        os.environ["QUERYPROF_TRACE_LOG_PATH"] = os.path.join(cls.folder.name, "trace")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def connect(self):
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.enable_load_extension(True)
        db.load_extension(LIBRARY)
        db.execute("PRAGMA query_profiler_cpu_time_period_ns = 1000000")
        db.execute("SELECT set_setting('query_profiler_max_overhead_percent', '0')").fetchall()
        self.addCleanup(db.close)
        return db

    def run_as(self, db, name, sql=SPIN):
        db.execute("SELECT set_setting('query_id', ?)", (name,))
        db.execute(sql).fetchall()

    def labels(self, db, name):
        """Returns the labels of the query's row. Its samples must have the same labels."""
        line, = db.execute("SELECT labels FROM system.query_log WHERE query_id = ?", (name,)).fetchone()
        samples = db.execute("SELECT DISTINCT labels FROM system.trace_log WHERE query_id = ?", (name,)).fetchall()
        self.assertEqual(samples, [(line,)])
        return json.loads(line)

    def test_set_label(self):
        db = self.connect()
        self.run_as(db, "before")
        self.assertEqual(db.execute("SELECT set_label('tenant', 'acme'), set_label('shard', 7)").fetchone(), ("acme", 7))
        self.run_as(db, "tenant")
        self.assertEqual(db.execute("PRAGMA query_profiler_labels").fetchone(), ('{"shard":7,"tenant":"acme"}',))
        db.execute("SELECT set_label('tenant', NULL)")
        self.run_as(db, "shard")
        db.execute("PRAGMA query_profiler_labels = ''")
        self.run_as(db, "none")
        self.assertEqual(self.labels(db, "before"), {})
        self.assertEqual(self.labels(db, "tenant"), {"tenant": "acme", "shard": 7})
        self.assertEqual(self.labels(db, "shard"), {"shard": 7})
        self.assertEqual(self.labels(db, "none"), {})

    def test_pragma(self):
        db, other = self.connect(), self.connect()
        db.execute("""PRAGMA query_profiler_labels = '{"tenant": "ac\\u006de \\u00e4", "n": -3, "gone": null}'""")
        self.run_as(db, "pragma")
        self.run_as(other, "another connection")
        self.assertEqual(self.labels(db, "pragma"), {"tenant": "acme ä", "n": -3})
        self.assertEqual(self.labels(db, "another connection"), {})

    def test_refused(self):
        db = self.connect()
        for bad in ("[1]", "{", '{"a":1.5}', '{"a":{}}', '{"a":true}', '{"a"}', '{"":1}', '{"a":1}x', "x",
                    json.dumps({str(i): "x" * 100 for i in range(12)})):
            with self.subTest(bad):
                with self.assertRaisesRegex(sqlite3.OperationalError, "query_profiler_labels = .*JSON object"):
                    db.execute("SELECT set_setting('query_profiler_labels', ?)", (bad,)).fetchall()
        with self.assertRaisesRegex(sqlite3.OperationalError, "set_label: the key is empty"):
            db.execute("SELECT set_label('', 1)").fetchall()
        self.assertEqual(db.execute("PRAGMA query_profiler_labels").fetchone(), ("",))

    def test_comments(self):
        db = self.connect()
        trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        db.execute("SELECT set_label('controller', 'connection'), set_label('tenant', 'acme')")
        self.run_as(db, "comment", SPIN + f" /*action='sh%20ow',controller='users',traceparent='00-{trace}-{span}-01'*/")
        self.run_as(db, "plain")
        self.run_as(db, "prose", SPIN + " /* counts: all of them */")
        self.assertEqual(self.labels(db, "comment"), {"action": "sh ow", "controller": "users", "tenant": "acme",
                                                      "traceparent": f"00-{trace}-{span}-01"})
        self.assertEqual(self.labels(db, "plain"), {"controller": "connection", "tenant": "acme"})
        self.assertEqual(self.labels(db, "prose"), {"controller": "connection", "tenant": "acme"})
        for table in "trace_log", "query_log":
            self.assertEqual(db.execute(f"SELECT DISTINCT query_id, otel_trace_id, otel_span_id FROM system.{table}"
                                        " WHERE query_id IN ('comment', 'plain') ORDER BY 1").fetchall(),
                             [("comment", trace, span), ("plain", "", "")])
        # They are one statement, whatever the comment.
        self.assertEqual(db.execute("SELECT count(DISTINCT normalized_query_hash) FROM system.query_log"
                                    " WHERE query_id IN ('comment', 'plain', 'prose')").fetchone(), (1,))
        # The store cannot use this filter, so SQLite applies it.
        self.assertGreater(db.execute("SELECT count(*) FROM system.trace_log WHERE labels->>'action' = 'sh ow'")
                           .fetchone()[0], 0)

    def test_comments_off(self):
        db = self.connect()
        db.execute("PRAGMA query_comment_labels = 0")
        try:
            self.run_as(db, "off", SPIN + " /*off='yes'*/")
            self.assertEqual(self.labels(db, "off"), {})
        finally:
            db.execute("PRAGMA query_comment_labels = 1")

    def test_inside_an_engines_query(self):
        """Any program that reads the file sees in the view what the virtual table shows."""
        db = self.connect()
        db.execute("SELECT set_label('reader', 'both')")
        self.run_as(db, "reader", SPIN + " /*x='y'*/")
        seen = db.execute("SELECT count(*), min(labels), max(labels) FROM system.trace_log WHERE query_id = 'reader'").fetchone()
        with sqlite3.connect(os.environ["QUERYPROF_TRACE_LOG_PATH"]) as file:
            self.assertEqual(file.execute("SELECT count(*), min(labels), max(labels) FROM trace_log"
                                          " WHERE query_id = 'reader'").fetchone(), seen)
            self.assertEqual(json.loads(seen[1]), {"reader": "both", "x": "y"})


if __name__ == "__main__":
    unittest.main()
