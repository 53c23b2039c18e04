# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the exports: the trace file of the command's tests, rows that are difficult for some formats, and
the expected stacks."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

QUERYPROF, SOURCE, FIXTURE = sys.argv[1:4]
READERS = os.environ.get("QUERYPROF_TEST_READERS")  # a folder with node_modules

import json_stacks  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file  # noqa: E402

from trace_file import BASE, MS, OWN, RUNNING, SLOW, START  # noqa: E402,F401

VERSION = trace_file.version(os.path.join(SOURCE, "sql", "schema", "store_schema.sql"))

BUILD_ID = "a1b2c3d4e5f60718"
WALK = "fixture::Thing::walk(char const*, int)"
WALK_SYMBOL = "_ZN7fixture5Thing4walkEPKci"
AT = trace_file.symbols(FIXTURE)
HOLE = "full.so+" + hex(AT["fixture_hole"])
OTHER = "0193a5b2-bbbb-7eee-8000-000000000005"
STATEMENT = "SELECT *\n\tFROM orders WHERE id = 1"
ODD_STATEMENT = "SELECT '</script>\u20ac\ufffd\"' --\x01"
ODD_DATABASE = "/data/a b;c.db"


def add_odd_rows(path):
    """Texts that are not UTF-8, or that end an HTML script or a column; a stack without its root, a missing stack, a
    sample without a query, another thread, another period."""
    db = sqlite3.connect(path)
    db.execute("INSERT INTO threads VALUES (2, 1, 102, 'sort;er\n')")
    db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (3, 2, 'CPU', ?, 1)", (2 * MS,))
    db.execute("INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query) VALUES (5, 0, 14, 0, CAST(? AS TEXT))",
               (b"SELECT '</script>\xe2\x82\xac\xff\"' --\x01",))
    start = START + 800 * MS
    db.execute("INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement,"
               " query_start_ns, query_duration_ns, cpu_time_ns, database, thread_id, samples_cpu)"
               " VALUES (6, ?, 1, ?, ?, 1, 6, 5, ?, ?, ?, ?, 102, 5)",
               (OTHER, start, start + 100 * MS, start, 100 * MS, 20 * MS, ODD_DATABASE))
    db.executemany("INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
                   " VALUES (?, ?, ?, ?, 0, ?, ?, 0)", [
        (start + 1, 3, 6, 1, 5, 0),
        (start + 2, 3, 6, 2, 1, 1),
        (start + 3, 3, 0, 1, 1, 0),
        (start + 4, 3, 6, 99, 3, 0),
    ])
    db.commit()
    db.close()


def changed_copy(source, path, sql):
    """Copies the trace file, runs the SQL in the copy, and returns its path."""
    shutil.copy(source, path)
    db = sqlite3.connect(path)
    db.executescript(sql)
    db.close()
    return path


HELP = subprocess.run([QUERYPROF, "export", "--help"], capture_output=True, text=True, check=True).stdout


def row(statement, *parameters, path):
    db = sqlite3.connect(path)
    try:
        return db.execute(statement, parameters).fetchone()
    finally:
        db.close()


class Exports(unittest.TestCase):
    """A folder with app.trace, and odd.trace with the odd rows."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-export-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        cls.odd = os.path.join(cls.folder, "odd.trace")
        schema = os.path.join(SOURCE, "sql", "schema", "store_schema.sql")
        trace_file.make(cls.trace, schema, FIXTURE, BUILD_ID)
        shutil.copy(cls.trace, cls.odd)
        add_odd_rows(cls.odd)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_export(self, *arguments):
        return subprocess.run([QUERYPROF, "export", *arguments], capture_output=True, timeout=300,
                              stdin=subprocess.DEVNULL, check=False)

    def export_bytes(self, path, form, *arguments):
        done = self.run_export(path, "--format", form, "-o", "-", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stdout[:2000])
        return done.stdout

    def export(self, path, form, *arguments):
        return self.export_bytes(path, form, *arguments).decode("utf-8")

    def stacks(self, path, *arguments):
        """The stacks of the JSON export, see json_stacks.py."""
        return json_stacks.read(self.export(path, "json", *arguments))

    def totals(self, path, trace_type="CPU", query_id=None):
        """Samples, weight and ns according to SQL."""
        return row("SELECT count(*), sum(weight), sum(weight * period_ns) FROM trace_log"
                   " WHERE trace_type = ? AND (?2 IS NULL OR query_id = ?2)", trace_type, query_id, path=path)

    def refused(self, code, *arguments):
        done = self.run_export(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, b""), done.stderr)
        self.assertTrue(done.stderr.startswith(b"queryprof: "), done.stderr)
        return done.stderr.decode()


class Spans(Exports):
    """Like Exports, with the traces of tests/command/fixed_traces.sql in spans.trace. One statement outlasts the span
    in which it began."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.spans = os.path.join(cls.folder, "spans.trace")
        db = sqlite3.connect(cls.spans)
        for path in ("sql/schema/store_schema.sql", "tests/command/fixed.sql", "tests/command/fixed_traces.sql"):
            with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
                db.executescript(file.read())
        db.execute("INSERT INTO span_batches (trace_hi, trace_lo, parent, first_span, thread, start_ns, dropped, flags,"
                   " lasted_ns, count, statements, spans) VALUES (1, 2, 0, 9000, 1, 1795000003000000000, 0, 0, 9000000, 2, 1,"
                   " '[[2,0,0,5000001],[3,1,1000,8000000],0]')")
        db.execute("PRAGMA application_id = %d" % 0x51505246)
        db.execute("PRAGMA user_version = %d" % VERSION)
        db.commit()
        db.close()

    def rows(self, statement):
        db = sqlite3.connect(self.spans)
        try:
            return db.execute(statement).fetchall()
        finally:
            db.close()


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
