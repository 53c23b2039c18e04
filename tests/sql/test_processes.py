# SPDX-License-Identifier: Apache-2.0
"""system.processes shows the queries that currently run, on any thread, and no others."""

import threading
import time

from library import *

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"


def processes(db, columns="*", condition="1"):
    cursor = db.execute(f"SELECT {columns} FROM system.processes WHERE {condition}")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor]


def wait_for(what):
    """Waits until `what` returns a true value."""
    for _ in range(30000):
        result = what()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError("it did not come")


class Processes(Case):
    def in_thread(self, path, sql, setting=None):
        """A query on its own thread and connection, which ends with the test."""
        def work():
            db = sqlite3.connect(path, isolation_level=None)
            db.set_progress_handler(stop.is_set, 1000)
            if setting:
                db.execute(setting)
            try:
                db.execute(sql).fetchall()
            except sqlite3.OperationalError:
                pass
            db.close()

        stop = threading.Event()
        thread = threading.Thread(target=work)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)
        return stop, thread

    def test_queries_of_other_threads(self):
        db = connect()
        path = self.path("other.db")
        sql = ENDLESS.format("count(*)") + " -- " + "long " * 20000 + "end"
        stop, thread = self.in_thread(path, sql, "PRAGMA query_id = 'mine'")
        row = wait_for(lambda: processes(db, condition="query_id = 'mine' AND samples_cpu > 3"))[0]
        self.assertEqual(row["query"], sql)
        self.assertEqual(row["database"], path)
        self.assertEqual(row["initial_query_id"], "mine")
        self.assertEqual(row["is_initial_query"], 1)
        self.assertEqual(row["is_running"], 1)
        self.assertEqual(row["process_id"], os.getpid())
        self.assertEqual(row["thread_id"], thread.native_id)
        with open(f"/proc/self/task/{thread.native_id}/comm") as name:
            self.assertEqual(row["thread_name"], name.read().strip())
        self.assertEqual(row["library_version"], sqlite3.sqlite_version)
        self.assertIn("libsqlite3", row["library_path"])
        self.assertEqual(row["elapsed"], row["elapsed_ns"] / 1e9)
        self.assertGreater(row["cpu_time_ns"], 0)
        self.assertLessEqual(row["cpu_time_ns"], row["elapsed_ns"])
        later = processes(db, "elapsed_ns, cpu_time_ns, samples_cpu", "query_id = 'mine'")[0]
        for column, then in later.items():
            self.assertGreaterEqual(then, row[column], column)
        stop.set()
        thread.join()
        self.assertEqual(processes(db, condition="query_id = 'mine'"), [])

    def test_between_two_steps(self):
        db = connect()
        other = connect()
        cursor = other.execute(ENDLESS.format("x"))
        for _ in range(10):
            cursor.fetchone()
        row, = processes(db)
        self.assertEqual(row["is_running"], 0)
        self.assertEqual(row["query"], ENDLESS.format("x"))
        self.assertIn(row["result_rows"], (10, 11))  # Python steps one row ahead
        self.assertEqual(row["thread_id"], threading.get_native_id())
        self.assertNotEqual(row["session_id"], 0)
        self.assertGreater(row["query_start_time_microseconds"], "2026-01-01 00:00:00.000000")
        cursor.close()
        self.assertEqual(processes(db), [])

    def test_query_inside_a_query(self):
        def inner():
            cursor = other.execute(ENDLESS.format("x"))
            cursor.fetchone()
            found.extend(processes(asking, "query_id, initial_query_id, parent_query_id, is_initial_query, is_running"))

        asking, outer, other, found = connect(), connect(), connect(), []
        outer.create_function("nest", 0, inner)
        outer.execute("PRAGMA query_id = 'outer'")
        outer.execute("SELECT nest()").fetchall()
        by_id = {row["query_id"]: row for row in found}
        self.assertEqual(by_id.pop("outer"), {"query_id": "outer", "initial_query_id": "outer", "parent_query_id": "",
                                              "is_initial_query": 1, "is_running": 1})
        (query_id, row), = by_id.items()
        self.assertEqual(row, {"query_id": query_id, "initial_query_id": "outer", "parent_query_id": "outer",
                               "is_initial_query": 0, "is_running": 0})

    def test_sessions_have_numbers(self):
        db = connect()
        others = [connect() for _ in range(3)]
        cursors = [other.execute(ENDLESS.format("x")) for other in others + others]
        numbers = [row["session_id"] for row in processes(db)]
        self.assertEqual(len(numbers), 6)
        self.assertEqual(len(set(numbers)), 3, numbers)
        del cursors

    def test_the_profilers_own_are_not_there(self):
        db = connect()
        self.assertEqual(processes(db), [])
        self.assertEqual(rows(db, "SELECT p.query FROM (SELECT 1) LEFT JOIN system.processes AS p"), [(None,)])
        other = connect()
        cursor = other.execute("SELECT * FROM system.settings")
        cursor.fetchone()
        self.assertEqual(processes(db), [])

    def test_nothing_while_timers_are_off(self):
        db = connect()
        other = connect()
        other.execute("PRAGMA query_profiler_cpu_time_period_ns = 0")
        cursor = other.execute(ENDLESS.format("x"))
        cursor.fetchone()
        self.assertEqual(processes(db), [])

    def test_cannot_be_changed(self):
        db = connect()
        self.assertRefused("system.processes cannot be changed", db,
                           "INSERT INTO system.processes (query) VALUES (1)")

    def test_while_statements_and_connections_come_and_go(self):
        """Each text in the table is a complete text that was run."""
        def work(number):
            for i in range(10 ** 9):
                path = self.path(f"{number}.db")
                with_schema = sqlite3.connect(path, isolation_level=None, cached_statements=0)
                for size in (1, 100, 5000, 20):
                    filler = chr(ord("a") + size % 26) * size
                    cursor = with_schema.execute(f"SELECT '{number} {filler} {number}' UNION ALL SELECT 2")
                    cursor.fetchone()
                with_schema.close()
                if stop.is_set():
                    return

        db = connect()
        stop = threading.Event()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        seen = 0
        try:
            while seen < 300:
                for row in processes(db, "query, database"):
                    if row["query"] is not None:
                        self.assertRegex(row["query"], r"^(SELECT '(\d) (.)\3* \2' UNION ALL SELECT 2|sqlite3_close\(\))$")
                        seen += 1
                    self.assertIsNotNone(row["database"])
        finally:
            stop.set()
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    unittest.main()
