#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several files define a column of a log: the view in the schema, the virtual table, the reference, ClickHouse's table, and
the SQL of push and pull. Compares all of them.

usage: test_columns.py LIBRARY"""

import os
import re
import sqlite3
import unittest

from library import connect

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LOGS = ("trace_log", "query_log", "statement_stats")
VIEWS = LOGS + ("span_log", "traces", "lock_waits", "transaction_log", "checkpoints", "wal_log", "connections", "open_statements",
                "label_history", "plan_times")

# Columns of the view that ClickHouse's table lacks.
NOT_SENT = {
    "trace_log": {"event_date", "event_time", "event_time_microseconds", "session_id", "interval_ns", "trigger_opcode", "call_stack_id"},
    "query_log": {"query_start_time_microseconds", "weight_cpu", "weight_real", "library_path", "expanded_query", "session_id", "threads", "reads", "writes", "syncs", "major_faults", "minor_faults", "voluntary_switches", "involuntary_switches", "worker_wait_ns", "profiler_cost_ns", "call_stack_id", "execution_time_error_ns"},
    "statement_stats": {"cpu_time_estimated_ns", "reprepares"},
}

# Columns of ClickHouse's table that the view lacks. They identify a row, its file and its program, or save readers a
# join.
ADDED = {
    "trace_log": {"file", "service", "program", "normalized_query_hash", "query", "database"},
    "query_log": {"file", "run", "version", "query_start_ns", "hostname", "service"},
    "statement_stats": {"file", "hour_ns", "version", "hostname", "service"},
}

# Columns that replace columns of sql/push/NAME.sql in the rows that are sent.
SENT_AS = {"stack": ["trace", "symbols", "lines"], "statement_labels": []}

# The query of sql/pull/ that reads ClickHouse's table, and the columns that it leaves out.
PULLED = {
    "trace_log": ("samples", {"service", "normalized_query_hash", "query", "database", "stack_id", "symbols", "lines", "span_id", "outside"}),
    "query_log": ("queries", {"service", "version", "library_version", "plan_hash", "caller", "caller_function", "otel_trace_id", "otel_span_id"}),
    "statement_stats": ("statements", {"file", "hour_ns", "service", "version", "histogram", "hostname"}),
}


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def without_comments(sql):
    return re.sub(r"--[^\n]*", "", sql)


def clickhouse_columns(log):
    body = re.search(r"CREATE TABLE IF NOT EXISTS %s_rows \(\n(.*?)\n\) ENGINE" % log, read("sql", "clickhouse", "tables.sql"),
                     re.S).group(1)
    return [line.split()[0] for line in body.splitlines()]


def documented_columns(log):
    section = re.search(r"\n### %s: .*?\n(.*?)(?=\n### )" % log, read("docs", "sql-reference.md"), re.S).group(1)
    rows = re.search(r"^\| column \|.*\n\|---.*\n((?:\|.*\n?)+)", section, re.M).group(1).splitlines()
    return [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def split(columns):
    """Splits at the commas outside of parentheses."""
    items, depth = [""], 0
    for character in columns:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return items


class Columns(unittest.TestCase):
    def setUp(self):
        self.file = sqlite3.connect(":memory:")
        self.file.create_function("fileName", 1, os.path.basename) # the command's
        self.addCleanup(self.file.close)
        self.file.executescript(read("sql", "schema", "store_schema.sql"))
        self.file.executescript(read("sql", "read", "span_texts.sql"))

    def view_columns(self, log):
        return [row[1] for row in self.file.execute("PRAGMA table_info(%s)" % log)]

    def test_virtual_table(self):
        here = connect()
        self.addCleanup(here.close)
        for log in VIEWS:
            with self.subTest(log=log):
                shown = [row[1] for row in here.execute("PRAGMA system.table_xinfo(%s)" % log)]  # including hidden columns
                self.assertEqual(sorted(shown), sorted(self.view_columns(log)))

    def test_document(self):
        for log in VIEWS:
            with self.subTest(log=log):
                self.assertEqual(sorted(documented_columns(log)), sorted(self.view_columns(log)))

    def test_clickhouse(self):
        for log in LOGS:
            with self.subTest(log=log):
                there, here = set(clickhouse_columns(log)), set(self.view_columns(log))
                self.assertEqual(here - there, NOT_SENT[log])
                self.assertEqual(there - here, ADDED[log])

    def test_push(self):
        for log in re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)_rows ", read("sql", "clickhouse", "tables.sql")):
            with self.subTest(log=log):
                self.file.execute("CREATE TEMP TABLE IF NOT EXISTS batch_samples (batch, timestamp_ns)")
                rows = self.file.execute(read("sql", "push", log + ".sql"), {"since": 0, "until": 0, "service": None, "missed": 0})
                sent = [name for column in rows.description for name in SENT_AS.get(column[0], [column[0]])]
                self.assertEqual(sent, clickhouse_columns(log))

    def test_pull(self):
        for log, (query, left) in PULLED.items():
            with self.subTest(log=log):
                words = set(re.findall(r"\w+", without_comments(read("sql", "pull", query + ".sql"))))
                self.assertEqual({name for name in clickhouse_columns(log) if name not in words}, left)

    def test_pulled_columns_are_loaded(self):
        load = set(re.findall(r"\w+", without_comments(read("sql", "pull", "load.sql"))))
        for log, (query, _) in PULLED.items():
            with self.subTest(log=log):
                columns = re.search(r"SELECT(.*)\nFROM", without_comments(read("sql", "pull", query + ".sql")), re.S).group(1)
                self.assertEqual([name for name in (item.split()[-1] for item in split(columns)) if name not in load], [])


if __name__ == "__main__":
    unittest.main()
