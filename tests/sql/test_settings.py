#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Settings in each way of SQL: PRAGMA with and without `system.`, UPDATE, set_setting(), in Python and in the shell.

usage: test_settings.py LIBRARY
"""

import subprocess
import unittest

from library import LIBRARY, Case, connect, in_new_process, rows, value

CPU = "query_profiler_cpu_time_period_ns"
BAD = f"{CPU} = 5: expected 0 (off) or 10us to 1h"

# Each way to set a setting to an SQL value.
WAYS = {
    "pragma": "PRAGMA {name} = {value}",
    "pragma with parentheses": "PRAGMA {name}({value})",
    "pragma with schema": "PRAGMA system.{name} = {value}",
    "pragma in disguise": " ; -- x\n pRaGmA /* y */ \"{name}\" = {value} -- z",
    "update": "UPDATE system.settings SET value = {value} WHERE name = '{name}'",
    "bare update": "UPDATE settings SET value = {value} WHERE name = '{name}'",
    "function": "SELECT set_setting('{name}', {value})",
}


def current(db, name=CPU):
    return value(db, "SELECT value FROM system.settings WHERE name = ?", name)


class Settings(Case):
    def test_every_way_sets(self):
        db = connect()
        for number, (way, text) in enumerate(WAYS.items(), 1):
            with self.subTest(way):
                wanted = number * 20000
                db.execute(text.format(name=CPU, value=wanted)).fetchall()
                self.assertEqual(current(db), wanted)
                self.assertEqual(value(db, f"PRAGMA {CPU}"), wanted)
                self.assertEqual(value(db, f"PRAGMA system.{CPU}"), wanted)
                self.assertEqual(value(db, "SELECT get_setting(?)", CPU), wanted)

    def test_every_way_refuses(self):
        db = connect()
        before = rows(db, "SELECT * FROM system.settings")
        for way, text in WAYS.items():
            with self.subTest(way):
                self.assertRefused(BAD, db, text.format(name=CPU, value=5))
                self.assertRefused(f"{CPU} = x: expected", db, text.format(name=CPU, value="'x'"))
                self.assertEqual(rows(db, "SELECT * FROM system.settings"), before)

    def test_every_way_restores_the_default(self):
        db = connect()
        for way, text in WAYS.items():
            with self.subTest(way):
                db.execute(f"PRAGMA {CPU} = 20000")
                db.execute(text.format(name=CPU, value="'default'")).fetchall()
                self.assertEqual(current(db), 10000000)

    def test_a_cached_statement_sets_again(self):
        """Python keeps prepared statements by their text."""
        db = connect()
        for form in ("PRAGMA {} = {}", "PRAGMA system.{} = {}"):
            for wanted in (20000, 30000, 20000, 30000):
                db.execute(form.format(CPU, wanted)).fetchall()
                self.assertEqual(current(db), wanted)
                self.assertEqual(value(db, f"PRAGMA {CPU}"), wanted)

    def test_a_pragma_gives_the_value_in_force(self):
        db = connect()
        cursor = db.execute(f"PRAGMA {CPU} = '1.5ms'")
        self.assertEqual([column[0] for column in cursor.description], [CPU])
        self.assertEqual(cursor.fetchall(), [(1500000,)])
        self.assertEqual(rows(db, "PRAGMA trace_log_path"), [("",)])

    def test_scripts_of_several_statements(self):
        db = connect()
        db.executescript(f"""CREATE TABLE t(a); -- ;
            PRAGMA {CPU} = 20000; INSERT INTO t VALUES (get_setting('{CPU}'));
            /* ; */ PRAGMA {CPU} = 30000 ;; INSERT INTO t VALUES (get_setting('{CPU}'));
            PRAGMA system.{CPU}=40000""")
        self.assertEqual(rows(db, "SELECT a FROM t"), [(20000,), (30000,)])
        self.assertEqual(current(db), 40000)

    def test_other_pragmas_stay_what_they_are(self):
        db = connect(self.path("a.db"))
        self.assertEqual(value(db, "PRAGMA journal_mode = wal"), "wal")
        self.assertEqual(value(db, "PRAGMA user_version"), 0)
        self.assertEqual(value(db, "PRAGMA system.user_version"), 0)
        self.assertEqual(rows(db, "PRAGMA no_such_pragma = 5"), [])
        self.assertEqual(rows(db, "PRAGMA system.user_version"), [(0,)])
        self.assertEqual(rows(db, "PRAGMA system.TABLE_INFO(metrics)")[0][1], "metric")

    def test_only_values_can_be_changed(self):
        db = connect()
        before = rows(db, "SELECT * FROM system.settings")
        self.assertRefused("system.settings.name cannot be changed", db, "UPDATE system.settings SET name = 'x'")
        self.assertRefused("system.settings.description cannot", db,
                           "UPDATE system.settings SET description = '', value = 1 WHERE name = 'log_queries'")
        self.assertRefused("only UPDATE works", db, "DELETE FROM system.settings WHERE name = 'log_queries'")
        self.assertRefused("only UPDATE works", db, "INSERT INTO system.settings(name) VALUES ('x')")
        self.assertRefused("only UPDATE works", db, "UPDATE system.settings SET rowid = 17 WHERE name = 'log_queries'")
        self.assertRefused("= NULL; expected a value", db, "UPDATE system.settings SET value = NULL")
        self.assertRefused("= NULL; expected a value", db, f"SELECT set_setting('{CPU}', NULL)")
        self.assertEqual(rows(db, "SELECT * FROM system.settings"), before)

    def test_update_of_several_from_an_expression(self):
        db = connect()
        db.execute(f"PRAGMA query_profiler_real_time_period_ns = 40000")
        db.execute("UPDATE system.settings SET value = value * 2 WHERE name GLOB 'query_profiler_*_ns'")
        self.assertEqual(current(db), 20000000)
        self.assertEqual(current(db, "query_profiler_real_time_period_ns"), 80000)
        self.assertEqual(rows(db, "SELECT name FROM system.settings WHERE changed ORDER BY 1"),
                         [(CPU,), ("query_profiler_real_time_period_ns",)])
        db.execute('UPDATE system.settings SET value = "default"')
        self.assertEqual(rows(db, "SELECT name FROM system.settings WHERE changed"), [])

    def test_unknown_names(self):
        db = connect()
        self.assertRefused("nothing: there is no such setting", db, "SELECT set_setting('nothing', 1)")
        self.assertRefused("nothing: there is no such setting", db, "SELECT get_setting('nothing')")
        self.assertEqual(rows(db, "SELECT set_setting(NULL, 1), get_setting(NULL)"), [(None, None)])
        for pragma in ("PRAGMA system.typo", "PRAGMA system.typo = 1", "PRAGMA system.typo(1)"):
            self.assertRefused("system.typo: neither a setting nor a PRAGMA of SQLite", db, pragma)
        before = rows(db, "SELECT * FROM system.settings")
        typo = "system.settings has no row with the name typo; SELECT name FROM system.settings lists them"
        for text in ("UPDATE system.settings SET value = 1 WHERE name = 'typo'",
                     "UPDATE settings SET value = value + 1 WHERE 'typo' = name",
                     "UPDATE system.settings SET value = 1 WHERE name IN ('typo', 'log_queries')"):
            self.assertRefused(typo, db, text)
        self.assertEqual(rows(db, "SELECT * FROM system.settings"), before)

    def test_reading_an_unknown_name_is_no_error(self):
        """It does not become an error in a transaction that has changed a setting, or in a statement that writes
        elsewhere, either."""
        db = connect()
        db.execute("CREATE TABLE t(a)")
        read = "SELECT value FROM system.settings WHERE name = 'typo'"
        db.execute("INSERT INTO t " + read)
        db.execute("BEGIN")
        db.execute("UPDATE system.settings SET value = 0 WHERE name = 'log_queries'")
        self.assertEqual(rows(db, read), [])
        db.execute("COMMIT")
        self.assertEqual(rows(db, read), [])
        self.assertEqual(rows(db, "SELECT * FROM t"), [])

    def test_the_newest_refusal_is_a_metric(self):
        db = connect()
        self.assertRefused(BAD, db, f"PRAGMA {CPU} = 5")
        self.assertEqual(value(db, "SELECT value FROM system.metrics WHERE metric = 'settings_error'"), BAD)

    def test_empty_tables_are_explained(self):
        """The explanation is for a user whose queries were all short. Its advice works."""
        in_new_process("""
import re
db = connect()
why = "SELECT value FROM system.metrics WHERE metric = 'why_empty'"
db.execute("SELECT 1").fetchall()
assert rows(db, "SELECT * FROM query_log") == rows(db, "SELECT * FROM trace_log") == []
said = value(db, why)
assert said.startswith("no query was long enough for a sample or a row of query_log: PRAGMA "), said
db.execute(re.search("PRAGMA log[^,]* = 0", said)[0])
db.execute("SELECT 2").fetchall()
assert ("SELECT 2",) in rows(db, "SELECT query FROM query_log"), rows(db, "SELECT query FROM query_log")
assert value(db, why).startswith("no query was long enough for a sample: PRAGMA query"), value(db, why)
db.execute(re.search("PRAGMA query[^,]* = '1ms'", said)[0])
assert value(db, f"PRAGMA query_profiler_cpu_time_period_ns") == 1000000
""", QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS="3600000000000",  # from the first query on, so no sample comes by chance,
                       QUERYPROF_LOG_QUERIES_MIN_QUERY_DURATION_NS="3600000000000")  # and no row on a loaded machine

    def test_sessions_have_their_own(self):
        one, two = connect(), connect()
        one.execute(f"PRAGMA {CPU} = 20000")
        self.assertEqual(current(two), 10000000)
        one.execute("PRAGMA trace_log_flush_interval_ms = 123")
        self.assertEqual(current(two, "trace_log_flush_interval_ms"), 123)
        two.execute("PRAGMA trace_log_flush_interval_ms = default")
        self.assertEqual(current(one, "trace_log_flush_interval_ms"), 1000)

    def test_ring_is_fixed(self):
        db = connect()
        self.assertRefused("fixed at 8388608 bytes since the library started; set QUERYPROF_TRACE_LOG_RING_BYTES",
                           db, "PRAGMA trace_log_ring_bytes = 4096")

    def test_trace_log_path(self):
        db = connect()
        self.assertRefused("trace_log_path = /nonexistent/x: ", db, "PRAGMA trace_log_path = '/nonexistent/x'")
        self.assertEqual(current(db, "trace_log_path"), "")
        path = self.path("own.trace")
        self.assertEqual(value(db, f"PRAGMA trace_log_path = '{path}'"), path)
        self.assertEqual(value(db, "PRAGMA trace_log_path = default"), "")

    def test_environment(self):
        script = f"""
db = connect()
print(rows(db, "SELECT value, \\"default\\", changed FROM system.settings WHERE name = '{CPU}'"))
db.execute("PRAGMA {CPU} = 20000"), db.execute("PRAGMA {CPU} = default")
print(rows(db, "SELECT get_setting('{CPU}'), get_setting('trace_log_ring_bytes'), get_setting('log_queries')"))
print(value(db, "SELECT value FROM system.metrics WHERE metric = 'settings_environment_error'"))"""
        self.assertEqual(
            in_new_process(script, QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS="3ms",
                           QUERYPROF_TRACE_LOG_RING_BYTES="64KiB", QUERYPROF_LOG_QUERIES="x").split("\n"),
            ["[(3000000, 3000000, 0)]", "[(3000000, 65536, 1)]",
             "environment: log_queries = x: expected 0 (off) or 1 (on)"])

    def test_shell(self):
        done = subprocess.run(["sqlite3", "-batch", ":memory:"], capture_output=True, text=True, timeout=300, input=f"""
.load {LIBRARY}
PRAGMA {CPU} = 1000000;
PRAGMA {CPU} = 5;
PRAGMA {CPU};
PRAGMA log_queries = off; PRAGMA
  log_queries;
PRAGMA query_id = 'a;b';
""")
        self.assertEqual(done.stdout, "1000000\n1000000\n0\n0\na;b\n", done.stderr)
        self.assertIn(BAD, done.stderr)


if __name__ == "__main__":
    unittest.main()
