# SPDX-License-Identifier: Apache-2.0
"""system.stack_trace shows what each known thread currently executes."""

import signal
import threading
import time

from library import *
from test_processes import ENDLESS, wait_for


class StackTrace(Case):
    def thread(self, work):
        done = threading.Event()
        ready = threading.Event()
        thread = threading.Thread(target=lambda: (work(ready), done.wait()))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(done.set)
        ready.wait()
        return thread.native_id

    @staticmethod
    def connect_patiently():
        """A thread may have to wait for a processor before it can respond."""
        db = connect()
        db.execute("PRAGMA stack_trace_timeout_ms = 60000")
        return db

    def known(self, ready):
        """The thread has one query, then none."""
        connect().execute(ENDLESS.format("x")).fetchone()
        ready.set()

    def test_columns(self):
        db = self.connect_patiently()
        identity = self.thread(self.known)
        cursor = db.execute("SELECT * FROM system.stack_trace WHERE thread_id = ?", (identity,))
        self.assertEqual([column[0] for column in cursor.description],
                         ["thread_name", "thread_id", "query_id", "trace", "truncated"])
        name, _, query_id, trace, truncated = cursor.fetchone()
        with open(f"/proc/self/task/{identity}/comm") as comm:
            self.assertEqual(name, comm.read().strip())
        self.assertEqual(query_id, "")
        self.assertEqual(truncated, 0)
        self.assertGreater(value(db, "SELECT json_array_length(?)", trace), 3)

    def test_symbols_and_lines(self):
        db = self.connect_patiently()
        identity = self.thread(self.known)
        symbols, text, lines = db.execute(
            "SELECT symbols, traceToText(trace, '|'), lines FROM system.stack_trace WHERE thread_id = ?",
            (identity,)).fetchone()
        self.assertEqual([symbol for symbol, in rows(db, "SELECT value FROM json_each(?)", symbols)],
                         text.split("|"))
        self.assertIn("/", lines)
        db.execute("PRAGMA allow_introspection_functions = 0")
        for column in ("symbols", "lines"):
            self.assertRefused("allow_introspection_functions", db, f"SELECT {column} FROM system.stack_trace")
        self.assertGreater(value(db, "SELECT count(trace) FROM system.stack_trace"), 1)

    def test_asking_thread_is_there(self):
        db = connect()
        db.execute("PRAGMA query_profiler_cpu_time_period_ns = 0")
        symbols, query_id = db.execute("SELECT symbols, query_id FROM system.stack_trace WHERE thread_id = ?",
                                       (threading.get_native_id(),)).fetchone()
        self.assertIn("sqlite3_step", symbols)
        self.assertEqual(query_id, "")

    def test_blocked_thread_has_no_trace(self):
        def block(ready):
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            self.known(ready)

        db = connect()
        identity = self.thread(block)
        self.assertEqual(rows(db, "SELECT trace, symbols FROM system.stack_trace WHERE thread_id = ?", identity),
                         [("[]", "[]")])

    def test_same_addresses_as_the_log(self):
        """In a second process, whose modules have other addresses than in the file."""
        script = """
import threading
db = connect()
db.execute("PRAGMA query_profiler_cpu_time_period_ns = '1ms'")
db.create_function("ask", 0, lambda: "")
db.execute("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 999999) SELECT sum(i) FROM c").fetchall()
def frames(table):
    return {frame for trace, in rows(db, f"SELECT trace FROM system.{table}")
            for frame, in rows(db, "SELECT value FROM json_each(?) WHERE addressToSymbol(value) = 'sqlite3_step'", trace)}
print(len(frames("trace_log")), len(frames("stack_trace")), frames("trace_log") & frames("stack_trace") == frames("stack_trace"))"""
        for _ in range(2):
            self.assertEqual(in_new_process(script, QUERYPROF_TRACE_LOG_PATH=self.path("two.trace")).split()[-2:],
                             ["1", "True"])

    def test_time_limit_is_a_setting(self):
        db = connect()
        self.assertEqual(value(db, "SELECT \"default\" FROM system.settings WHERE name = 'stack_trace_timeout_ms'"), 100)
        self.assertRefused("expected 1 ms to 60s", db, "PRAGMA stack_trace_timeout_ms = 0")


if __name__ == "__main__":
    unittest.main()
