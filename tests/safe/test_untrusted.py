# SPDX-License-Identifier: Apache-2.0
"""A program with the extension opens a stranger's database file. The file's views, triggers, columns, constraints and
indexes cannot use queryprof's functions and tables, whatever trusted_schema is. The program's own SQL can."""

from library import *

# Calls that work if the program makes them, and that change or return something.
CALLS = {
    "set_setting": "set_setting('trace_log_path', '/nonexistent/evil')",
    "get_setting": "get_setting('trace_log_path')",
    "set_label": "set_label('evil', 'yes')",
}
UNSAFE = "unsafe use of "


def functions(db):
    """Returns the functions, each with its number of arguments."""
    return set(rows(db, "SELECT name, narg FROM pragma_function_list"))


SQLITES = functions(sqlite3.connect(":memory:"))  # before connect(), after which each connection also has queryprof's


def our_calls():
    """Returns a call of each function with each number of arguments: that of CALLS, or one with NULLs, which also works."""
    return [CALLS.get(name) or f"{name}({', '.join(['NULL'] * count)})"
            for name, count in sorted(functions(connect()) - SQLITES)]


def our_tables(db):
    return [name for name, in rows(db, "SELECT name FROM system.sqlite_schema")]


class Untrusted(Case):
    def evil(self, *objects):
        """Makes a file with these CREATE statements in its schema, even if SQLite would refuse them. Returns its path."""
        path = self.path(f"{len(os.listdir(self.directory))}.db")
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("CREATE TABLE victim (x)")
        db.execute("PRAGMA writable_schema = ON")
        for kind, name, table, sql in objects:
            page = 0
            if kind in ("table", "index") and not sql.startswith("CREATE VIRTUAL"):
                db.execute(f"CREATE TABLE spare_{name} (x)" if kind == "table" else f"CREATE INDEX spare_{name} ON victim (x)")
                page = value(db, "SELECT rootpage FROM sqlite_schema WHERE name = ?", f"spare_{name}")
                db.execute("DELETE FROM sqlite_schema WHERE name = ?", (f"spare_{name}",))
            db.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", (kind, name, table, page, sql))
        db.close()
        return path

    def assertUnreached(self, path, sql, also=()):
        """Tries with the schema `system`, and without it because its name is taken; with a trusted schema and without. The
        error must be one of the expected ones, not that of a mistake in the test."""
        for taken in (False, True):
            for trusted in (0, 1):
                db = sqlite3.connect(path, isolation_level=None)
                with self.subTest(sql=sql, taken=taken, trusted=trusted):
                    with self.assertRaises(sqlite3.Error) as caught:
                        db.execute(f"PRAGMA trusted_schema = {trusted}")
                        if taken:
                            db.execute("ATTACH ':memory:' AS system")
                        load(db)
                        self.fail(f"reached: {db.execute(sql).fetchall()}")
                    self.assertTrue(any(part in str(caught.exception) for part in (UNSAFE, *also)),
                                    str(caught.exception))
                db.close()

    def test_the_program_itself_reaches_all(self):
        db = connect()
        self.assertLess(len(CALLS), len(our_calls()))
        for call in our_calls():
            if not call.startswith("set_setting"):
                db.execute(f"SELECT {call}").fetchall()
        for table in our_tables(db):
            db.execute(f"SELECT * FROM system.{table} LIMIT 1").fetchall()
            db.execute(f"SELECT * FROM {table} LIMIT 1").fetchall()

    def test_functions(self):
        for call in our_calls():
            self.assertUnreached(self.evil(("view", "v", "v", f"CREATE VIEW v AS SELECT {call} AS x")),
                                 "SELECT * FROM v")
            self.assertUnreached(self.evil(("trigger", "t", "victim",
                f"CREATE TRIGGER t AFTER INSERT ON victim BEGIN INSERT INTO victim SELECT {call}; END")),
                "INSERT INTO victim VALUES (1)")
            self.assertUnreached(self.evil(("trigger", "t", "victim",
                f"CREATE TRIGGER t AFTER INSERT ON victim WHEN {call} BEGIN SELECT 1; END")),
                "INSERT INTO victim VALUES (1)", ("misuse of aggregate",))

    def test_functions_in_tables(self):
        # If SQLite allows no such call in these places, it reports that.
        refused = ("malformed database schema", "non-deterministic", "misuse of aggregate", "prohibited",
                   "unknown function: flamegraph")
        for call in our_calls():
            for columns in (f"x, y AS ({call})", f"x, y AS ({call}) STORED", f"x CHECK ({call} IS NOT 3)",
                            f"x, y DEFAULT ({call})"):
                path = self.evil(("table", "e", "e", f"CREATE TABLE e ({columns})"))
                self.assertUnreached(path, "INSERT INTO e (x) VALUES (1) RETURNING *", refused)
            for index in (f"CREATE INDEX i ON victim ({call})", f"CREATE INDEX i ON victim (x) WHERE {call}"):
                self.assertUnreached(self.evil(("index", "i", "victim", index)),
                                     "INSERT INTO victim VALUES (1)", refused)

    def test_functions_in_a_schema_that_was_read_before(self):
        """SQLite read the schema before it knew the functions. Uses a new process, because after the extension is loaded,
        new connections have the functions from the start."""
        call = CALLS["get_setting"]
        for columns in (f"x, y AS ({call})", f"x CHECK ({call} IS NOT 3)", f"x, y DEFAULT ({call})"):
            path = self.evil(("table", "e", "e", f"CREATE TABLE e ({columns})"))
            for name, attached in ("main", ":memory:"), ("other", path):
                self.assertIn(UNSAFE, in_new_process("""
name, path, attached = sys.argv[1:]
db = sqlite3.connect(path if name == "main" else ":memory:", isolation_level=None)
db.execute(f"ATTACH ? AS other", (attached,))
db.execute(f"SELECT * FROM {name}.victim").fetchall()
load(db)
try:
    print("reached", db.execute(f"INSERT INTO {name}.e (x) VALUES (1) RETURNING *").fetchall())
except sqlite3.Error as error:
    print(error)""", name, path, attached))

    def test_tables(self):
        # A view or trigger of main cannot name another schema, and main has no such tables.
        refused = ("no such table", "cannot reference objects in database system",
                   "no such module", "malformed database schema")
        for table in our_tables(connect()):
            for named in (table, f"system.{table}", f"queryprof_{table}"):
                self.assertUnreached(self.evil(("view", "v", "v", f"CREATE VIEW v AS SELECT * FROM {named}")),
                                     "SELECT * FROM v", refused)
                self.assertUnreached(self.evil(("view", "v", "v",
                    f"CREATE VIEW v AS WITH a AS (SELECT 1 WHERE EXISTS (SELECT 1 FROM {named})) SELECT * FROM a")),
                    "SELECT * FROM v", refused)
                self.assertUnreached(self.evil(("trigger", "t", "victim",
                    f"CREATE TRIGGER t AFTER INSERT ON victim BEGIN INSERT INTO victim SELECT 1 FROM {named}; END")),
                    "INSERT INTO victim VALUES (1)", refused)

    def test_tables_made_by_name(self):
        for table in our_tables(connect()):
            for module in (table, f"queryprof_{table}"):
                for name in ("e", table, table.upper()):
                    self.assertUnreached(
                        self.evil(("table", name, name, f"CREATE VIRTUAL TABLE {name} USING {module}")),
                        f"SELECT * FROM main.{name}", ("no such module", "the schema system"))
        # The module's name contains an address, which a file would have to guess.
        (session,), = rows(connect(), "SELECT name FROM pragma_module_list WHERE name LIKE 'queryprof_session_%'")
        self.assertUnreached(self.evil(("table", "e", "e", f"CREATE VIRTUAL TABLE e USING {session}")),
                             "SELECT * FROM e", ("makes no tables",))

    def test_settings(self):
        refused = ("no such table", "qualified table names are not allowed", "may not be modified",
                   "malformed database schema", "syntax error", "cannot be changed")
        for statement in ("UPDATE settings SET value = 0", "UPDATE system.settings SET value = 0",
                          "DELETE FROM settings", "INSERT INTO settings (name) VALUES (1)"):
            self.assertUnreached(self.evil(("trigger", "t", "victim",
                f"CREATE TRIGGER t AFTER INSERT ON victim BEGIN {statement}; END")),
                "INSERT INTO victim VALUES (1)", refused)
        for setting, in rows(connect(), "SELECT name FROM system.settings"):
            self.assertUnreached(self.evil(("view", "v", "v", f"CREATE VIEW v AS SELECT * FROM pragma_{setting}")),
                                 "SELECT * FROM v", refused)

    def test_named_system_by_the_program(self):
        """The program attaches the file under the name of the schema. The name then means the tables of the file."""
        for table in our_tables(connect()):
            path = self.evil(("table", "e", "e", f"CREATE VIRTUAL TABLE e USING queryprof_{table}"),
                             ("view", "v", "v", "CREATE VIEW v AS SELECT * FROM e"))
            db = sqlite3.connect(":memory:", isolation_level=None)
            db.execute("ATTACH ? AS system", (path,))
            load(db)
            self.assertRefused(UNSAFE, db, "SELECT * FROM system.v")

    def test_temporary_objects_are_the_programs(self):
        """A file cannot contain a temp schema, so temporary objects are the program's own SQL. A view of the file is still not
        trusted if a temporary view reads it."""
        db = load(sqlite3.connect(self.evil(("view", "v", "v", "CREATE VIEW v AS SELECT get_setting('query_id') AS x")),
                                  isolation_level=None))
        db.execute("CREATE TEMP VIEW own AS SELECT name FROM system.settings WHERE get_setting(name) IS NOT NULL")
        self.assertGreater(len(rows(db, "SELECT * FROM own")), 3)
        db.execute("CREATE TEMP VIEW through AS SELECT * FROM main.v")
        self.assertRefused(UNSAFE, db, "SELECT * FROM through")

    def test_in_the_shell(self):
        path = self.evil(("view", "v", "v", "CREATE VIEW v AS SELECT get_setting('trace_log_path') AS path"))
        for trusted in ("0", "1"):
            done = subprocess.run(["sqlite3", path, f".load {LIBRARY}", f"PRAGMA trusted_schema = {trusted}",
                                   "SELECT count(*) FROM system.settings", "SELECT * FROM v"],
                                  capture_output=True, text=True, timeout=300)
            self.assertRegex(done.stdout, r"^\d+\n$")
            self.assertIn(UNSAFE + "get_setting()", done.stderr)


if __name__ == "__main__":
    unittest.main()
