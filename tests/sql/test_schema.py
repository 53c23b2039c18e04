#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The `system` schema in every state that a connection can have; the host's databases stay unchanged.

usage: test_schema.py LIBRARY
"""

import hashlib
import os
import sqlite3
import subprocess
import threading
import unittest

from library import Case, connect, in_new_process, load, rows, value

TABLES = ["trace_log", "query_log", "metrics", "settings"]


def make(path, encoding="UTF-8"):
    """Uses the shell, because connections of this process may have the schema."""
    subprocess.run(["sqlite3", "-batch", path], check=True, text=True, timeout=300, input=f"""
        PRAGMA encoding = '{encoding}';
        CREATE TABLE t(a);
        WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 999) INSERT INTO t SELECT i FROM c;
        """)
    return path


def content(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Schema(Case):
    def use(self, db):
        """Everything that the schema offers works, by its full name and alone."""
        tables = [row[0] for row in rows(db, "SELECT name FROM system.sqlite_schema ORDER BY 1")]
        self.assertTrue(set(TABLES) <= set(tables), tables)
        for table in TABLES:
            self.assertEqual(value(db, f"SELECT count(*) > -1 FROM system.{table}"), 1)
            self.assertEqual(value(db, f"SELECT count(*) > -1 FROM {table}"), 1)
        db.execute("UPDATE system.settings SET value = 0 WHERE name = 'log_queries'")
        self.assertEqual(value(db, "PRAGMA system.log_queries"), 0)
        self.assertEqual(value(db, "PRAGMA log_queries = default"), 1)
        self.assertEqual(value(db, "PRAGMA system.integrity_check"), "ok")

    def test_database_stays_as_it_is(self):
        path = make(self.path("a.db"))
        before = content(path)
        db = connect(path)
        schema = rows(db, "SELECT * FROM main.sqlite_schema")
        self.assertEqual(db.total_changes, 0)
        self.use(db)
        self.assertEqual(rows(db, "SELECT * FROM main.sqlite_schema"), schema)
        self.assertFalse(db.in_transaction)
        db.close()
        self.assertEqual(content(path), before)
        self.assertEqual(os.listdir(self.directory), ["a.db"])

    def test_nobody_waits_for_us(self):
        """There are open readers of every table, an UPDATE among them, and a second connection that takes every
        lock."""
        path = make(self.path("a.db"))
        for mode in ("delete", "wal"):
            other = sqlite3.connect(path, isolation_level=None, timeout=0)
            other.execute(f"PRAGMA journal_mode = {mode}")
            db = connect(path)
            cursors = [db.execute(f"SELECT * FROM system.{table}") for table in ("settings", "metrics")]
            for cursor in cursors:
                cursor.fetchone()
            other.execute("BEGIN EXCLUSIVE")
            other.execute("INSERT INTO t VALUES (1)")
            db.execute("UPDATE system.settings SET value = value WHERE name = 'log_queries'")
            self.assertEqual(value(db, "PRAGMA system.log_queries"), 1)
            other.execute("COMMIT")
            for cursor in cursors:
                cursor.fetchall()
            db.close()
            other.close()

    def test_read_only(self):
        path = make(self.path("a.db"))
        before = content(path)
        db = load(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None))
        self.use(db)
        db.close()
        self.assertEqual(content(path), before)

    def test_query_only(self):
        """The host forbids UPDATE. The other ways do not write."""
        db = connect()
        db.execute("PRAGMA query_only = 1")
        self.assertRefused("readonly", db, "UPDATE system.settings SET value = 0 WHERE name = 'log_queries'")
        self.assertEqual(value(db, "PRAGMA log_queries = 0"), 0)

    def test_tables_cannot_be_dropped(self):
        db = connect()
        db.execute("CREATE TABLE main.mine(a)")
        for table in TABLES:
            for name in (f"system.{table}", table):
                self.assertRefused("readonly", db, f"DROP TABLE {name}")
        db.execute("BEGIN")
        self.assertRefused("readonly", db, "DROP TABLE system.trace_log")
        db.execute("DROP TABLE mine")
        db.execute("COMMIT")
        self.use(db)

    def test_encodings(self):
        for encoding in ("UTF-8", "UTF-16le", "UTF-16be"):
            with self.subTest(encoding):
                path = make(self.path(encoding), encoding)
                db = connect(path)
                self.use(db)
                self.assertEqual(value(db, "PRAGMA encoding"), encoding)
                self.assertEqual(value(db, "SELECT count(*) FROM t"), 1000)

    def test_the_image_has_every_table(self):
        """The library's build makes the image from the list of modules."""
        db = connect()
        tables = {row[0] for row in rows(db, "SELECT name FROM system.sqlite_schema")}
        modules = {row[0] for row in rows(db, "SELECT name FROM pragma_module_list WHERE name LIKE 'queryprof\\_%' "
                                              "ESCAPE '\\'")}
        self.assertEqual({"queryprof_" + name for name in tables} - modules, set())
        for name in tables:
            self.assertEqual(rows(db, f"SELECT * FROM system.{name} LIMIT 0"), [])

    def test_encoding_of_an_empty_database(self):
        """Setting the encoding after the schema was named has no effect, and breaks nothing."""
        in_new_process("""
db = connect()
db.execute("PRAGMA encoding = 'UTF-16le'")
db.execute("CREATE TABLE t(a)")
assert value(db, "SELECT count(*) FROM system.settings") >= 10
assert value(db, "SELECT count(*) FROM t") == 0
""")

    def test_later_connections(self):
        """Later connections may choose an encoding, attach as many databases as before, and open a locked database or a
        file that is not a database."""
        path = make(self.path("a.db"))
        in_new_process("""
connect()
db = sqlite3.connect(":memory:", isolation_level=None)
db.execute("PRAGMA encoding = 'UTF-16be'")
db.execute("CREATE TABLE t(a)")
assert value(db, "PRAGMA encoding") == "UTF-16be", value(db, "PRAGMA encoding")
assert value(db, "SELECT count(*) FROM system.settings") >= 10
assert value(db, "PRAGMA log_queries") == 1
db = sqlite3.connect(":memory:", isolation_level=None)
for i in range(10):
    db.execute(f"ATTACH ':memory:' AS a{i}")
assert [row[1] for row in rows(db, "PRAGMA database_list")] == ["main"] + [f"a{i}" for i in range(10)]
db = connect()  # this one requests it
assert value(db, "SELECT count(*) FROM settings") >= 10
db = sqlite3.connect(":memory:", isolation_level=None)
assert value(db, "SELECT count(*) >= 0 FROM query_log") == 1
try:
    value(sqlite3.connect(":memory:"), "SELECT count(*) FROM settings")
    raise SystemExit("settings was found")
except sqlite3.OperationalError as error:
    assert "no such table: settings" in str(error), error
locker = sqlite3.connect(sys.argv[1], isolation_level=None)
locker.execute("BEGIN EXCLUSIVE")
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
locker.execute("ROLLBACK")
assert value(db, "SELECT count(*) FROM t") == 1000
assert value(db, "SELECT count(*) FROM system.settings") >= 10
assert value(db, "SELECT count(*) >= 0 FROM trace_log") == 1
db.execute("UPDATE system.settings SET value = 0 WHERE name = 'log_queries'")
""", path)

    def test_words_of_the_host(self):
        """The schema is attached before the library prepares a text that contains one of its words, but not for a
        longer word."""
        in_new_process("""
def is_there(text):
    db = load(sqlite3.connect(":memory:", isolation_level=None))
    assert [row[1] for row in rows(db, "PRAGMA database_list")] == ["main"]
    value(db, text)
    return [row[1] for row in rows(db, "PRAGMA database_list")] == ["main", "system"]
for text in ["SELECT 1 AS my_trace_log", "SELECT 1 AS trace_log2", "SELECT 1 AS é_query_log", "SELECT 1 AS trace_",
             "SELECT 'mysystem.x', '.system', 1.5, '_'", "SELECT 1 AS a_b_c_d_e -- ecosystem.", "SELECT '_' || '.'"]:
    assert not is_there(text), text
for text in ["SELECT count(*) FROM Trace_Log", "SELECT 1 AS a_b, 1.5 AS \\"c.d\\", count(*) FROM query_log",
             "SELECT count(*) FROM[query_log]", "SELECT count(*)>-1 FROM SYSTEM.settings"]:
    assert is_there(text), text
""")

    def test_in_a_transaction(self):
        path = make(self.path("a.db"))
        in_new_process("""
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
db.execute("INSERT INTO t VALUES (1)")
load(db)
assert db.in_transaction
db.execute("UPDATE system.settings SET value = 0 WHERE name = 'log_queries'")
db.execute("ROLLBACK")
assert value(db, "SELECT count(*) FROM t") == 1000
assert value(db, "SELECT count(*) FROM system.settings") >= 10
assert value(db, "PRAGMA system.log_queries") == 0  # settings are no data
db.execute("BEGIN")
db.execute("INSERT INTO t VALUES (1)")
db.execute("UPDATE system.settings SET value = 1 WHERE name = 'log_queries'")
db.execute("COMMIT")
assert value(db, "SELECT count(*) FROM t") == 1001
""", path)
        self.assertEqual(os.listdir(self.directory), ["a.db"])

    def test_in_a_scan(self):
        in_new_process("""
db = sqlite3.connect(sys.argv[1], isolation_level=None)
cursor = db.execute("SELECT a FROM t")
cursor.fetchone()
load(db)
assert value(db, "SELECT count(*) FROM system.settings") >= 10
assert len(cursor.fetchall()) == 999
""", make(self.path("a.db")))

    def without_schema(self, prepare):
        """The tables can be read by their bare names, and PRAGMA sets settings."""
        in_new_process(f"""
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
{prepare}
load(db)
for table in {TABLES}:
    assert value(db, f"SELECT count(*) > -1 FROM {{table}}") == 1
try:
    db.execute("UPDATE settings SET value = 0 WHERE name = 'log_queries'")
    raise SystemExit("UPDATE settings worked")
except sqlite3.OperationalError as error:
    assert "settings may not be modified" in str(error), error
assert value(db, "PRAGMA log_queries = 0") == 0
assert value(db, "PRAGMA log_queries") == 0
assert value(db, "SELECT value FROM settings WHERE name = 'log_queries'") == 0
assert value(db, "SELECT count(*) FROM t") == 1000
""", make(self.path("a.db")))

    def test_name_taken(self):
        self.without_schema("db.execute(\"ATTACH ':memory:' AS SYSTEM\")")

    def test_a_schema_of_the_host_with_that_name(self):
        """A table that the host's schema lacks is missing, before and after queryprof's tables have been named."""
        in_new_process("""
db = sqlite3.connect(":memory:", isolation_level=None)
db.execute("ATTACH ':memory:' AS system")
load(db)
for attempt in range(2):
    try:
        db.execute("SELECT * FROM system.unknown")
        raise SystemExit("system.unknown was found")
    except sqlite3.OperationalError as error:
        assert str(error) == "no such table: system.unknown", error
    assert value(db, "SELECT count(*) >= 0 FROM trace_log") == 1
db.execute("CREATE TABLE system.settings(a)")
assert rows(db, "SELECT * FROM system.settings") == []
""")

    def test_all_databases_attached(self):
        self.without_schema("for i in range(10): db.execute(f\"ATTACH ':memory:' AS a{i}\")")

    def test_main_locked(self):
        in_new_process("""
locker = sqlite3.connect(sys.argv[1], isolation_level=None)
locker.execute("BEGIN EXCLUSIVE")
db = load(sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0))
assert value(db, "SELECT get_setting('log_queries')") == 1
assert value(db, "PRAGMA log_queries") == 1
locker.execute("ROLLBACK")
assert value(db, "SELECT count(*) FROM t") == 1000
assert value(db, "SELECT count(*) > 9 FROM system.settings") == 1
""", make(self.path("a.db")))

    def test_what_hosts_do_to_databases(self):
        path = make(self.path("a.db"))
        db = connect(path)
        self.use(db)
        db.execute("VACUUM")
        self.use(db)
        db.execute("PRAGMA journal_mode = wal")
        self.use(db)
        db.execute("PRAGMA locking_mode = exclusive")
        db.execute("PRAGMA journal_mode = delete")
        db.execute("PRAGMA journal_mode = wal")
        self.use(db)
        db.execute("PRAGMA locking_mode = normal")
        db.execute("VACUUM system")
        self.use(db)
        copy = sqlite3.connect(self.path("copy.db"))
        db.backup(copy)
        self.assertEqual(rows(copy, "SELECT name FROM sqlite_schema"), [("t",)])
        self.assertNotIn("queryprof", "".join(db.iterdump()))
        db.execute("PRAGMA journal_mode = delete")  # an image in WAL mode cannot be used in memory
        image = db.serialize()
        other = connect()
        other.deserialize(image)
        self.assertEqual(value(other, "SELECT count(*) FROM t"), 1000)
        self.use(other)
        other.deserialize(db.serialize(name="system"), name="system")
        self.assertEqual(value(other, "SELECT count(*) > 9 FROM system.settings"), 1)
        db.execute("DETACH system")
        self.assertEqual(rows(db, "PRAGMA database_list"), [(0, "main", path)])
        db.close()

    def test_tables_of_the_host_come_first(self):
        db = connect()
        db.execute("CREATE TABLE settings(x)")
        db.execute("CREATE TABLE IF NOT EXISTS metrics(x)")
        db.execute("INSERT INTO settings VALUES (1)")
        self.assertEqual(rows(db, "SELECT * FROM settings"), [(1,)])
        self.assertEqual(rows(db, "SELECT * FROM metrics"), [])
        self.assertEqual(value(db, "SELECT count(*) > 9 FROM system.settings"), 1)

    def test_a_database_cannot_reach_us(self):
        """Neither a virtual table of its own nor views and triggers reach the library."""
        db = connect()
        self.assertRefused("are in the schema system", db, "CREATE VIRTUAL TABLE x USING queryprof_settings")
        db.execute("CREATE TABLE t(a)")
        for name, sql in {"v": "SELECT set_setting('log_queries', 0)", "w": "SELECT addressToSymbol(1)",
                          "x": "SELECT traceToText('[1]')"}.items():
            db.execute(f"CREATE VIEW {name} AS {sql}")
            self.assertRefused("unsafe use of", db, f"SELECT * FROM {name}")
        db.execute("CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT set_setting('log_queries', 0); END")
        self.assertRefused("unsafe use of", db, "INSERT INTO t VALUES (1)")
        self.assertEqual(value(db, "PRAGMA log_queries"), 1)
        db.execute("CREATE TEMP VIEW mine AS SELECT count(*) AS n FROM system.settings")
        self.assertGreater(value(db, "SELECT n FROM mine"), 9)

    def test_a_database_that_names_our_modules(self):
        path = make(self.path("a.db"))
        subprocess.run(["sqlite3", "-batch", path], check=True, text=True, timeout=300, input="""
            PRAGMA writable_schema = on;
            INSERT INTO sqlite_schema VALUES
                ('table', 'x', 'x', 0, 'CREATE VIRTUAL TABLE x USING queryprof_query_log');
            """)
        db = connect(path)
        self.assertRefused("are in the schema system", db, "SELECT * FROM main.x")
        self.assertEqual(value(db, "SELECT count(*) FROM t"), 1000)
        self.use(db)

    def test_pragma_that_sqlite_sees(self):
        """A PRAGMA prepared as UTF-16 bypasses the library, so the schema's file answers."""
        done = in_new_process(r"""
import ctypes
sqlite = ctypes.CDLL("libsqlite3.so.0")
sqlite.sqlite3_column_text.restype = sqlite.sqlite3_errmsg.restype = ctypes.c_char_p
db, statement, none = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert sqlite.sqlite3_open(b":memory:", ctypes.byref(db)) == 0
assert sqlite.sqlite3_enable_load_extension(db, 1) == 0
assert sqlite.sqlite3_load_extension(db, LIBRARY.encode(), None, None) == 0
assert sqlite.sqlite3_exec(db, b"SELECT 1 FROM system.settings", None, None, None) == 0
for sql in ("PRAGMA system.log_queries", "PRAGMA system.log_queries = off", "PRAGMA system.log_queries",
            "PRAGMA system.log_queries = maybe", "PRAGMA system.LOG_QUERIES", "PRAGMA system.unknown = 5"):
    if sqlite.sqlite3_prepare16_v2(db, sql.encode("utf-16le") + b"\0\0", -1, ctypes.byref(statement), None):
        print(sqlite.sqlite3_errmsg(db).decode())
        continue
    print(sqlite.sqlite3_column_text(statement, 0) if sqlite.sqlite3_step(statement) == 100 else None)
    sqlite.sqlite3_finalize(statement)
assert sqlite.sqlite3_close(db) == 0
""")
        self.assertEqual(done.split("\n"), ["b'1'", "b'0'", "b'0'",
                                            "log_queries = maybe: expected 0 (off) or 1 (on)", "b'0'",
                                            "PRAGMA system.unknown: neither a setting nor a PRAGMA of SQLite; "
                                            "SELECT name FROM system.settings lists the settings"])

    def test_many_connections(self):
        path = make(self.path("a.db"))
        failures = []

        def work():
            try:
                for _ in range(25):
                    db = connect(path)
                    wanted = threading.get_ident() % 1000 * 10 + 20000
                    db.execute(f"PRAGMA query_profiler_cpu_time_period_ns = {wanted}")
                    got = value(db, "SELECT value FROM system.settings WHERE name GLOB '*cpu*'")
                    if got != wanted or value(db, "SELECT count(*) FROM t") != 1000:
                        failures.append((got, wanted))
                    db.close()
            except Exception as error:  # a thread's exception would be lost
                failures.append(repr(error))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
