#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tables' columns. Constraints that SQLite passes to the store select the same rows as SQLite itself would.

usage: test_tables.py LIBRARY"""

import ast
import json
import os
import unittest

from library import Case, connect, in_new_process, rows, value

TRACE_LOG = """hostname process_id event_date event_time event_time_microseconds timestamp_ns trace_type cpu_id
    thread_id thread_name query_id stack_id trace truncated weight period_ns size session_id value unit labels otel_trace_id
    otel_span_id opcode wait_ns wait_cause wait_object span_id interval_ns trigger_opcode outside
    transaction_number ptr call_stack_id""".split()
QUERY_LOG = """query_id initial_query_id type query_start_time_microseconds query_duration_ns cpu_time_ns query
    normalized_query_hash database thread_id exception_code exception result_rows vm_steps fullscan_steps sorts
    autoindexes memory_usage samples_cpu samples_real weight_cpu weight_real samples_dropped samples_truncated
    prepare_time_ns worker_cpu_time_ns library_version library_path expanded_query session_id
    parent_query_id execution_time_ns threads labels otel_trace_id otel_span_id
    lock_wait_ns io_read_ns io_write_ns io_sync_ns mutex_wait_ns sleep_ns other_wait_ns run_delay_ns rest_ns
    reads read_bytes writes write_bytes syncs major_faults minor_faults voluntary_switches
    involuntary_switches plan_hash worker_wait_ns profiler_cost_ns caller caller_function call_stack_id
    execution_time_error_ns process_id program""".split()
SLOW = """WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 400000)
    SELECT count(*) FROM c WHERE printf('%d', i) LIKE '%9%'"""


def columns(db, table):
    return [column[0] for column in db.execute(f"SELECT * FROM {table} LIMIT 0").description]


class Tables(Case):
    @classmethod
    def setUpClass(cls):
        cls.db = connect()
        cls.db.execute("PRAGMA query_profiler_max_overhead_percent = 0")
        cls.db.execute("PRAGMA query_profiler_cpu_time_period_ns = 1000000")
        cls.db.execute("PRAGMA query_profiler_real_time_period_ns = 1000000")
        for name in ("first", "second", "third"):
            cls.db.execute(f"PRAGMA query_id = '{name}'")
            cls.db.execute(SLOW).fetchall()
        # From here on no rows are added, so copies can be compared.
        cls.db.execute("PRAGMA query_profiler_cpu_time_period_ns = 0")
        cls.db.execute("PRAGMA query_profiler_real_time_period_ns = 0")
        cls.db.execute("PRAGMA log_queries = 0")
        cls.db.execute("CREATE TEMP TABLE trace_copy AS SELECT * FROM system.trace_log")
        cls.db.execute("CREATE TEMP TABLE query_copy AS SELECT * FROM system.query_log")

    def test_columns(self):
        self.assertEqual(columns(self.db, "system.trace_log"), TRACE_LOG)
        self.assertEqual(columns(self.db, "system.query_log"), QUERY_LOG)
        self.assertEqual(columns(self.db, "system.settings"),
                         ["name", "value", "default", "changed", "min", "max", "unit", "scope", "description"])
        self.assertEqual(columns(self.db, "system.metrics"), ["metric", "value", "description"])

    def test_process_of_a_query(self):
        found = rows(self.db, "SELECT DISTINCT process_id, program FROM system.query_log WHERE query_id IN ('first', 'third')")
        self.assertEqual(found, [(os.getpid(), os.readlink("/proc/self/exe"))])

    def test_memory_of_a_sort(self):
        """SQLite's number covers the statement alone. So there is no number for a run that sorted, in memory or not."""
        found = in_new_process("""
import json
db = connect()
db.execute("PRAGMA query_profiler_real_time_period_ns = 1000000")
db.execute("PRAGMA log_queries_min_query_duration_ns = 0")
db.execute("PRAGMA temp_store = FILE")
db.execute("CREATE TABLE t AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 40000)"
           " SELECT i * 7919 % 10007 AS a, printf('%040d', i) AS b FROM c")
for name, pages in ("in memory", 100000), ("spilled", 10):
    db.execute(f"PRAGMA cache_size = {pages}")
    db.execute(f"PRAGMA query_id = '{name}'")
    db.execute("SELECT b FROM t ORDER BY a").fetchall()
db.execute("PRAGMA query_id = 'none'")
db.execute("SELECT count(*) FROM t WHERE b LIKE '%9'").fetchall()
print(json.dumps(rows(db, "SELECT query_id, sorts, memory_usage > 0, writes > 0 FROM system.query_log"
                          " WHERE query LIKE 'SELECT%FROM t %' ORDER BY query_start_time_microseconds")))
""")
        self.assertEqual(json.loads(found), [["in memory", 1, 0, 0], ["spilled", 1, 0, 1], ["none", 0, 1, 0]])

    def test_there_is_something_to_compare(self):
        self.assertGreater(value(self.db, "SELECT count(*) FROM trace_copy WHERE query_id = 'second'"), 10)
        self.assertEqual(rows(self.db, "SELECT query_id FROM query_copy WHERE query_id IN ('first','second','third')"
                                       " ORDER BY query_start_time_microseconds"),
                         [("first",), ("second",), ("third",)])

    def test_conditions(self):
        middle, stack, thread = self.db.execute(
            "SELECT timestamp_ns, stack_id, thread_id FROM trace_copy WHERE query_id = 'second'").fetchone()
        for condition in f"""
            1
            query_id = 'second'
            query_id = 'second' COLLATE NOCASE
            query_id = 'SECOND' COLLATE NOCASE
            query_id IN ('first', 'third')
            query_id IN (SELECT query_id FROM query_copy)
            query_id > 'second'
            query_id <> 'second'
            query_id IS NULL
            query_id = NULL
            query_id = x'7365636f6e64'
            query_id < x'00'
            query_id > 5
            timestamp_ns = {middle}
            timestamp_ns = '{middle}'
            timestamp_ns = {middle}.0
            timestamp_ns >= {middle}
            timestamp_ns < {middle}
            timestamp_ns BETWEEN {middle} AND {middle} + 100000000
            timestamp_ns > '{middle}' AND query_id = 'second'
            timestamp_ns < 'abc'
            timestamp_ns > 'abc'
            timestamp_ns > x''
            timestamp_ns < x''
            timestamp_ns > -1e300
            stack_id = {stack}
            stack_id + 0 = {stack}
            thread_id = '{thread}'
            thread_id <= {thread}.5
            thread_name >= 'a'
            trace_type = 'CPU'
            trace_type = 'Real' AND weight > 1
            event_date < 5
            event_time > 5
            event_date >= '2020-01-01' AND event_time < '2100'
            event_time_microseconds > '2020'
            trace LIKE '[%'
            trace = (SELECT trace FROM trace_copy LIMIT 1)
            truncated = 0 AND period_ns = 1000000 AND size = 0
            value = weight * period_ns AND unit = 'ns'
            value > '1000000'
            weight >= 1 OR query_id = 'first'
            query_id = 'first' OR timestamp_ns >= {middle}
            query_id = 'second' OR timestamp_ns = {middle}
            cpu_id = '0x0'
            """.strip().split("\n"):
            self.compare("trace", condition.strip())
        for condition in ("query_id = 'first'", "cpu_time_ns > 0 AND result_rows = 1", "exception_code = 0",
                          "query_id = 'third' OR query_id >= 'f' AND query_id < 'g'", "query LIKE 'WITH%'", "parent_query_id = ''", "query = '" + SLOW.replace("'", "''") + "'", "samples_cpu > '1'"):
            self.compare("query", condition)

    def compare(self, log, condition):
        """The virtual table and a plain copy of its rows agree, in any requested order."""
        for rest in ("", " ORDER BY 1", " ORDER BY 1 DESC LIMIT 3"):
            first = "timestamp_ns" if log == "trace" else "query_start_time_microseconds"
            sql = f"SELECT {first}, * FROM {{}} WHERE {condition}{rest}"
            expected = rows(self.db, sql.format(f"temp.{log}_copy"))
            got = rows(self.db, sql.format(f"system.{log}_log"))
            if not rest:
                expected.sort(key=repr), got.sort(key=repr)
            self.assertEqual(len(got), len(expected), f"{condition}{rest}")
            self.assertEqual(got, expected, f"{condition}{rest}")

    def test_joins(self):
        sql = """SELECT q.query_id, count(*), sum(weight) FROM {0}query{1} AS q JOIN {0}trace{1} AS t USING (query_id)
            GROUP BY 1 ORDER BY 1"""
        self.assertEqual(rows(self.db, sql.format("system.", "_log")), rows(self.db, sql.format("", "_copy")))
        sql = """SELECT query_id, (SELECT max(timestamp_ns) FROM {0}trace{1} AS t WHERE t.query_id = q.query_id)
            FROM {0}query{1} AS q ORDER BY 1"""
        self.assertEqual(rows(self.db, sql.format("system.", "_log")), rows(self.db, sql.format("", "_copy")))
        # The second pass of such a join skips the rows that the first pass has found.
        for log in ("query", "trace"):
            sql = f"SELECT a, query_id, count(*) FROM (SELECT 'second' AS a) RIGHT JOIN {{0}}{log}{{1}} ON query_id = a GROUP BY 1, 2"
            self.assertEqual(rows(self.db, sql.format("system.", "_log")), rows(self.db, sql.format("", "_copy")))
        # A text that is compared with a column of numbers is converted to a number.
        self.db.execute("CREATE TEMP TABLE numbers(n INTEGER)")
        self.db.execute("INSERT INTO numbers VALUES (0), (5)")
        for condition in ("event_date > n", "query_id <> '' AND query_id > n", "wait_cause <= n"):
            sql = f"SELECT n, count(*) FROM numbers LEFT JOIN {{0}}trace{{1}} ON {condition} GROUP BY 1"
            self.assertEqual(rows(self.db, sql.format("system.", "_log")), rows(self.db, sql.format("", "_copy")), condition)

    def test_order_of_texts(self):
        """The order depends on the database's encoding."""
        in_new_process("""
db = sqlite3.connect(":memory:", isolation_level=None)
db.execute("PRAGMA encoding = 'UTF-16le'")
db.execute("CREATE TABLE made(x)")
load(db)
db.execute("PRAGMA log_queries_min_query_duration_ns = 0")
for name in ("first", "\u0101", "zz"):
    db.execute(f"PRAGMA query_id = '{name}'")
    db.execute("SELECT 1 AS one").fetchall()
db.execute("PRAGMA log_queries = 0")
db.execute("CREATE TABLE copy AS SELECT * FROM system.query_log")
for condition in ("< 'f'", "> 'f'", "BETWEEN 'first' AND 'zz'", "= '\u0101'"):
    got, expected = (sorted(rows(db, f"SELECT query_id FROM {log} WHERE query_id {condition}")) for log in ("system.query_log", "copy"))
    assert got == expected and got, (condition, got, expected)
""")

    def test_labels_that_are_numbers(self):
        in_new_process("""
import ctypes, time
library = ctypes.CDLL(LIBRARY + ".so")
class Label(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("text", ctypes.c_char_p), ("number", ctypes.c_int64), ("unit", ctypes.c_char_p)]
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
library.qp_labels_new.restype = ctypes.c_void_p
library.qp_labels_run.argtypes = [ctypes.c_void_p, run, ctypes.c_void_p]
db = connect()
set_ = library.qp_labels_new(ctypes.byref(Label(b"shard", None, 5, None)), ctypes.c_size_t(1))
end = time.monotonic() + 300
while not rows(db, "SELECT 1 FROM system.label_history") and time.monotonic() < end:
    library.qp_labels_run(set_, run(lambda _: rows(db, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 999999) SELECT sum(i) FROM c")), None)
for condition in ("= 5", "= '5'", "IN (4, 5)", "> 4", "< '6'"):
    assert rows(db, f"SELECT key, value FROM system.label_history WHERE value {condition}") == [("shard", 5)], condition
""")

    def test_trace_is_json(self):
        for depth, trace in rows(self.db, "SELECT json_array_length(trace), trace FROM trace_copy LIMIT 20"):
            self.assertEqual(len(json.loads(trace)), depth)
            self.assertGreater(depth, 3)

    def test_symbols_and_lines(self):
        sql = "SELECT json_array_length(trace), symbols, lines, traceToText(trace, x) FROM system.trace_log, " \
              "(SELECT char(0x1f) AS x) LIMIT 50"
        for depth, symbols, lines, text in rows(self.db, sql):
            self.assertEqual(json.loads(symbols), text.split("\x1f"))
            self.assertEqual(len(json.loads(lines)), depth)
        self.db.execute("PRAGMA allow_introspection_functions = 0")
        for column in ("symbols", "lines"):
            self.assertRefused(f"trace_log.{column}: not allowed while", self.db, f"SELECT {column} FROM trace_log")
        self.assertEqual(len(rows(self.db, "SELECT trace FROM trace_log LIMIT 3")), 3)
        self.db.execute("PRAGMA allow_introspection_functions = 1")

    def test_parents(self):
        """Each query names the query that directly encloses it, and the outermost one."""
        db = connect()
        db.execute("PRAGMA log_queries_min_query_duration_ns = 0")
        db.create_function("deepest", 0, lambda: db.execute("SELECT 3 AS innermost").fetchone()[0])
        db.create_function("deeper", 0, lambda: db.execute("SELECT deepest() AS m").fetchone()[0])
        self.assertEqual(rows(db, "SELECT deeper() AS o"), [(3,)])
        db.execute("PRAGMA log_queries = 0")
        self.assertCountEqual(
            rows(db, """SELECT q.query, p.query, i.query FROM system.query_log AS q
                LEFT JOIN system.query_log AS p ON p.query_id = q.parent_query_id
                LEFT JOIN system.query_log AS i ON i.query_id = q.initial_query_id
                WHERE q.query IN ('SELECT deeper() AS o', 'SELECT deepest() AS m', 'SELECT 3 AS innermost')"""),
            [("SELECT deeper() AS o", None, "SELECT deeper() AS o"),
             ("SELECT deepest() AS m", "SELECT deeper() AS o", "SELECT deeper() AS o"),
             ("SELECT 3 AS innermost", "SELECT deepest() AS m", "SELECT deeper() AS o")])
        db.close()

    def test_logs_are_read_only(self):
        for log in ("trace_log", "query_log"):
            self.assertRefused("may not be modified", self.db, f"DELETE FROM system.{log}")

    def test_metrics(self):
        metrics = dict(rows(self.db, "SELECT metric, value FROM system.metrics"))
        for name, value_ in metrics.items():
            self.assertIsNotNone(value_, name)
        for name in ("query_profiler_runs", "query_profiler_signal_overruns", "samples", "samples_dropped", "ring_bytes",
                     "store_error", "timer_error", "timers_failed", "queries_started", "settings_environment_error"):
            self.assertIn(name, metrics)
        self.assertGreater(metrics["samples"], 10)
        for part in ("store_flusher_cpu_time_ns", "store_reader_cpu_time_ns"):
            self.assertGreater(metrics[part], 0, part)
        # The cost of the runs' samples is a part of the total cost.
        of_runs = value(self.db, "SELECT sum(profiler_cost_ns) FROM query_copy")
        self.assertGreater(of_runs, 0)
        self.assertLessEqual(of_runs, metrics["profiler_cost_ns"])
        self.assertEqual(metrics["signal"], int(metrics["signal"]))
        self.assertEqual(metrics["ring_bytes"], 8388608)
        self.assertEqual((metrics["store_error"], metrics["timer_error"], metrics["settings_environment_error"]), ("",) * 3)
        self.assertEqual(rows(self.db, "SELECT metric FROM system.metrics WHERE description = '' OR metric GLOB '*[A-Z ]*'"), [])
        self.assertRefused("system.metrics cannot be changed", self.db, "UPDATE system.metrics SET value = 0")

    def test_signals_add_up(self):
        """Every kind of signal that a test can cause occurs, during a query and after it."""
        script = """
import time
db = connect()
db.execute("PRAGMA query_profiler_cpu_time_period_ns = 1000000")
end, idle = time.monotonic() + 300, 0
while not idle and time.monotonic() < end:
    db.execute("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 99999) SELECT sum(i) FROM c").fetchall()
    sum(range(1000000))
    idle = value(db, "SELECT value FROM system.metrics WHERE metric = 'signals_idle'")
print(dict(rows(db, "SELECT metric, value FROM system.metrics WHERE typeof(value) = 'integer'")))"""
        metrics = ast.literal_eval(in_new_process(script))
        self.assertGreater(metrics["signals_idle"], 0, metrics)
        self.assertGreater(metrics["samples"], 0, metrics)
        self.assertEqual(
            metrics["query_profiler_runs"],
            sum(metrics[name] for name in ("samples", "samples_dropped", "signals_idle", "signals_asked",
                                           "signals_late", "signals_foreign", "signals_reentered")), metrics)


if __name__ == "__main__":
    unittest.main()
