#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof advise finds the index that is known to help, or reports that none does. It leaves the database and its folder
unchanged. Hostile content cannot make it run without limit or leave files.

usage: test_advise.py QUERYPROF [PROGRAM...]"""

import contextlib
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import output_schema
from recording import *
import programs

# Not finished, so advise runs it until a limit of time.
ENDLESS = ("c = db.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, "
           "(SELECT count(*) FROM orders WHERE customer_id = i) FROM n')\nc.fetchone()\nc.close()\n")
WANTED = [name for name in sys.argv[1:] if name in programs.PROGRAMS]
sys.argv = [argument for argument in sys.argv if argument not in WANTED]


class Advise(Recording):
    def setUp(self):
        super().setUp()
        self.databases = os.path.join(self.folder, "databases")
        self.temporary = os.path.join(self.folder, "temporary")
        os.mkdir(self.databases)
        os.mkdir(self.temporary)
        self.database = os.path.join(self.databases, "app.db")
        self.environment = {**os.environ, "TMPDIR": self.temporary}

    def make(self, sql):
        db = sqlite3.connect(self.database)
        db.executescript(sql)
        db.close()

    def record_python(self, code, *options):
        path = self.file("program.py", "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n" + code)
        done = self.record(PYTHON, path, self.database, options=(*OPTIONS, *options))
        self.assertEqual(done.returncode, 0, self.seen)

    def advise(self, *options, seconds="6s", **named):
        return subprocess.run([QUERYPROF, "advise", self.trace, "--database", self.database, "--for", seconds, *options],
                              capture_output=True, text=True, timeout=600, check=False, env=self.environment, **named)

    def rows_of(self, *options, **named):
        done = self.advise("--format", "json", *options, **named)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(os.listdir(self.temporary), [])
        rows = json.loads(done.stdout)
        self.assertEqual(output_schema.errors("advise", rows), [])
        return rows

    def of_kind(self, rows, kind):
        return [row["sql"] for row in rows if row["kind"] == kind]

    def rows_with(self, *wanted, kind="index"):
        """Returns the rows, which must contain all of these lines. If one is missing, or no time was left for a statement, it
        measures again for a longer time, because other processes may use most of the CPU time."""
        for seconds in "12s", "60s", "300s":
            rows = self.rows_of(seconds=seconds)
            lacks = [begin for begin in wanted if not any(begin in index for index in self.of_kind(rows, kind))]
            if not lacks and not any("no time was left" in (row["reason"] or "") for row in rows):
                break
        self.assertEqual(lacks, [], "\n".join(map(str, rows)))
        return rows


class Programs(Advise):
    def check(self, name):
        program = programs.PROGRAMS[name]
        self.make(program.setup)
        # No column contains values for MATCH, so the recording has to contain them. All runs of this statement together take
        # a few milliseconds, so perhaps none has a sample, and only logged runs have values.
        logged = ("--setting", "log_query_parameters=1", "--setting", "log_queries_min_query_duration_ns=0") if name == "chat" else ()
        self.record(PYTHON, "-B", programs.__file__, name, self.database, options=(*OPTIONS, *logged))
        before = content(self.databases)
        rows = self.rows_with(*('ON "%s"("%s"' % (table, '", "'.join(columns)) for table, *columns in program.best), *program.condition)
        self.assertEqual(content(self.databases), before)
        indexes = self.of_kind(rows, "index")
        found = "\n".join(str(row) for row in rows)
        if not program.best:
            self.assertEqual(indexes, [], (name, found))
        self.assertEqual(self.of_kind(rows, "not replayed"), [], (name, found))
        saved = [row for row in rows if row["kind"] in ("read", "write") and row["saved_ns"] is not None]
        self.assertGreaterEqual(sum(row["saved_ns"] for row in saved), 0, found)


for one in programs.PROGRAMS:
    if not WANTED or one in WANTED:
        setattr(Programs, "test_" + one, lambda self, one=one: self.check(one))


class Untouched(Advise):
    SETUP = programs.SHOP
    CODE = "for i in range(20):\n    db.execute('SELECT id, note FROM orders WHERE customer_id = ?', (i,)).fetchall()\n"

    def setUp(self):
        super().setUp()
        self.make(self.SETUP)
        self.record_python(self.CODE)

    def expect_advice(self):
        before = content(self.databases)
        self.rows_with('"orders"("customer_id"')
        self.assertEqual(content(self.databases), before)

    def leave(self, pragmas, change):
        """Changes the database in a process that is killed before it closes the database."""
        code = ("import os, signal, sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n%s\n%s\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n" % (pragmas, change))
        done = subprocess.run([PYTHON, "-c", code, self.database], timeout=300, check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL)

    def test_hot_journal(self):
        self.leave("db.execute('PRAGMA cache_size = 5')", "db.execute('BEGIN'); db.execute('UPDATE orders SET customer_id = 1')")
        self.assertGreater(os.path.getsize(self.database + "-journal"), 0)
        self.expect_advice()

    def test_log(self):
        self.leave("db.execute('PRAGMA journal_mode = WAL')", "db.execute(\"INSERT INTO orders(customer_id, note) VALUES (1, 'x')\")")
        self.assertGreater(os.path.getsize(self.database + "-wal"), 0)
        self.expect_advice()

    def test_read_only(self):
        os.chmod(self.database, 0o444)
        os.chmod(self.databases, 0o555)
        self.addCleanup(os.chmod, self.databases, 0o755)
        self.expect_advice()

    def test_link(self):
        """SQLite keeps the WAL next to the file that the link points to."""
        self.leave("db.execute('PRAGMA journal_mode = WAL')", "db.execute(\"INSERT INTO orders(customer_id, note) VALUES (1, 'x')\")")
        link = os.path.join(self.folder, "link.db")
        os.symlink(self.database, link)
        self.database = link
        self.expect_advice()

    def expect_refused(self, part):
        before = content(self.databases)
        done = self.advise()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(content(self.databases), before)
        self.assertEqual(os.listdir(self.temporary), [])

    def test_in_use(self):
        db = sqlite3.connect(self.database, isolation_level=None)
        db.execute("SELECT 1 FROM orders LIMIT 1").fetchall()
        self.expect_refused("process %d (" % os.getpid())
        # advise has not released the locks of the process that has the database open.
        db.execute("BEGIN EXCLUSIVE")
        self.expect_refused("has it open")
        other = sqlite3.connect(self.database, timeout=0)
        with self.assertRaises(sqlite3.OperationalError):
            other.execute("SELECT count(*) FROM orders")

    def test_super_journal(self):
        victim = self.file("victim", "precious")
        name = victim.encode()
        with open(self.database + "-journal", "wb") as file:
            file.write(bytes.fromhex("d9d505f920a163d7") + bytes(504) + name + len(name).to_bytes(4, "big")
                       + (sum(name) & 0xffffffff).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7"))
        self.expect_refused("several databases")
        self.assertTrue(os.path.exists(victim))

    def test_no_database(self):
        with open(self.database, "wb") as file:
            file.write(b"something else, of more than sixteen bytes")
        self.expect_refused("is not an SQLite database")
        with open(self.database, "wb"):
            pass
        self.expect_refused("is empty")
        os.unlink(self.database)
        self.expect_refused("No such file")

    def test_killed(self):
        """advise leaves nothing, whatever signal ends it. It still runs when the signal is sent, however late that is."""
        os.remove(self.trace)
        self.record_python(ENDLESS)
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGKILL:
            with self.subTest(number):
                process = subprocess.Popen([QUERYPROF, "advise", self.trace, "--database", self.database, "--for", "1h"], env=self.environment,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                wait_until(lambda: any(os.path.exists(os.path.join(self.temporary, name, "1.db")) for name in os.listdir(self.temporary)), "a copy")
                folder = os.path.join(self.temporary, os.listdir(self.temporary)[0])
                self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
                process.send_signal(number)
                process.communicate(timeout=300)
                self.assertEqual(process.returncode, -number)
                wait_until(lambda: not os.listdir(self.temporary), "an empty folder")


class Values(Advise):
    def test_recorded(self):
        """advise uses recorded values. Values from the column would mislead, because most rows have the same one."""
        self.make("CREATE TABLE jobs(id INTEGER PRIMARY KEY, state TEXT, data TEXT); INSERT INTO jobs " + programs.ROWS % 30000
                  + "SELECT i, iif(i % 3000 = 0, 'ready', 'done'), 'some data of a job ' || i FROM n;")
        self.record_python("for i in range(30):\n    db.execute('SELECT max(data) FROM jobs WHERE state = ?', ('ready',)).fetchall()\n",
                           "--setting", "log_query_parameters=1")
        rows = self.rows_with('"jobs"("state"')
        # The statement has a parameter there, so SQLite could not use a partial index.
        self.assertEqual([index for index in self.of_kind(rows, "index") if "WHERE" in index], [])

    def test_not_replayed(self):
        self.make(programs.SHOP)
        self.record_python("db.create_function('f', 1, lambda x: x)\n"
                           "db.execute('SELECT max(f(customer_id)) FROM orders WHERE id < 500').fetchall()\n"
                           "for i in range(10):\n    db.execute(\"SELECT max(id) FROM orders WHERE note LIKE '%' || ? || '%'\", ('x',)).fetchall()\n")
        reasons = {row["sql"][:14]: row["reason"] for row in self.rows_of() if row["kind"] == "not replayed"}
        self.assertEqual(reasons["SELECT max(f(c"], "no such function: f")
        self.assertIn("the value of parameter 1 is not known; record with", reasons["SELECT max(id)"])

    def test_foreign_key(self):
        self.make("CREATE TABLE parents(id INTEGER PRIMARY KEY); CREATE TABLE children(id INTEGER PRIMARY KEY, parent INT REFERENCES "
                  "parents(id) ON DELETE CASCADE, t TEXT); INSERT INTO parents " + programs.ROWS % 2000 + "SELECT i FROM n;"
                  "INSERT INTO children " + programs.ROWS % 20000 + "SELECT i, 1000 + i % 1000, 'text' FROM n;")
        self.record_python("db.execute('PRAGMA foreign_keys = 1')\ndb.execute('BEGIN')\nfor i in range(100):\n"
                           "    db.execute('DELETE FROM parents WHERE id = ?', (i + 1,))\ndb.execute('COMMIT')\n")
        self.rows_with('"children"("parent")')

    def test_unused_index(self):
        self.make(programs.EVENTS + "".join("CREATE INDEX unused%d ON events(payload, kind, %s);" % (i, column)
                                            for i, column in enumerate(("at", "device"))))
        self.record_python("db.execute('BEGIN')\nfor i in range(5000):\n    db.execute('INSERT INTO events(device, at, kind, payload) "
                           "VALUES (?, ?, ?, ?)', (i, i, 'k', 'p%d' % i))\ndb.execute('COMMIT')\n")
        wanted = ['DROP INDEX "unused0"', 'DROP INDEX "unused1"']
        self.assertEqual(sorted(self.of_kind(self.rows_with(*wanted, kind="drop"), "drop")), wanted)

    def test_written(self):
        """An insert changes a page of the table, and with the index also one of that: with a rollback journal and a WAL."""
        for mode in "DELETE", "WAL":
            with self.subTest(mode=mode):
                self.make("PRAGMA journal_mode = %s; DROP TABLE IF EXISTS orders; DROP TABLE IF EXISTS customers;" % mode + programs.SHOP)
                self.record_python(Untouched.CODE + "db.execute('INSERT INTO orders(customer_id, note) VALUES (7, ?)', ('new',))\n",
                                   "--setting", "log_query_parameters=1")
                rows = self.rows_with('"orders"("customer_id"')
                write, = (row for row in rows if row["kind"] == "write")
                with contextlib.closing(sqlite3.connect(self.database)) as db:
                    page = db.execute("PRAGMA page_size").fetchone()[0]
                self.assertGreaterEqual(write["written_before"], page)
                self.assertGreater(write["written_after"], write["written_before"])
                self.assertLess(write["written_after"], 10 * page)
                self.assertEqual([row["written_after"] for row in rows if row["kind"] == "read"], [None])
                os.remove(self.trace)

    def test_text(self):
        self.make(programs.SHOP)
        self.record_python(Untouched.CODE)
        done = self.advise()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r'(?m)^CREATE INDEX "orders_customer_id" ON "orders"\("customer_id"\); -- ')
        self.assertIn("±", done.stdout)


class Hostile(Advise):
    def expect_bounded(self, seconds="3s"):
        before, start = content(self.databases), time.monotonic()
        done = self.advise("--format", "json", seconds=seconds)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertLess(time.monotonic() - start, 300)
        self.assertEqual(content(self.databases), before)
        self.assertEqual(os.listdir(self.temporary), [])
        return done

    def test_endless(self):
        self.make(programs.SHOP)
        self.record_python(ENDLESS)
        self.expect_bounded()

    def test_outside(self):
        """advise does not replay statements that could reach another file."""
        outside = os.path.join(self.folder, "outside.db")
        self.make("CREATE TABLE t(a);")
        self.record_python("db.execute(\"ATTACH '%s' AS other\")\ndb.execute('CREATE TABLE other.x(a)')\ndb.execute('DETACH other')\n"
                           "db.execute(\"VACUUM INTO '%s2'\")\ndb.execute('PRAGMA user_version = 7')\n"
                           "db.execute('INSERT INTO t SELECT name FROM pragma_database_list')\n" % (outside, outside))
        os.unlink(outside)
        os.unlink(outside + "2")
        done = self.expect_bounded()
        self.assertFalse(os.path.exists(outside) or os.path.exists(outside + "2"))
        self.assertEqual([row["reason"] for row in json.loads(done.stdout) if row["kind"] == "not replayed"], ["not authorized"])

    def test_schema(self):
        """The schema has a trigger that calls a missing function, generated columns and a slow expression."""
        self.make("CREATE TABLE t(a, b AS (hex(zeroblob(a % 1000))) STORED, c AS (a + 1)); CREATE TABLE log(x);"
                  "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.b); END;"
                  "INSERT INTO t(a) " + programs.ROWS % 2000 + "SELECT i FROM n;")
        self.record_python("for i in range(20):\n    db.execute('SELECT count(*) FROM t WHERE c = ?', (i,)).fetchall()\n"
                           "    db.execute('INSERT INTO t(a) VALUES (?)', (i,))\n")
        db = sqlite3.connect(self.database)
        db.executescript("DROP TRIGGER g; CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log VALUES (missing(new.b)); END;")
        db.close()
        self.assertIn("no such function: missing", self.expect_bounded().stdout)

    def test_large_value(self):
        self.make("CREATE TABLE t(a INT, b); INSERT INTO t VALUES (1, zeroblob(300000000));")
        self.record_python("db.execute('SELECT a FROM t WHERE a = 2').fetchall()\ndb.execute('SELECT a, b FROM t WHERE a = 2').fetchall()\n")
        self.expect_bounded()

    def test_damaged(self):
        self.make(programs.SHOP)
        self.record_python(Untouched.CODE)
        with open(self.database, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 100000)
        self.expect_bounded()

    def test_no_room(self):
        self.make(programs.SHOP)
        self.record_python(Untouched.CODE)
        for folder, part in (("/proc", "/proc"), ("/nowhere", "No such file")):
            self.environment["TMPDIR"] = folder
            done = self.advise()
            self.assertEqual(done.returncode, 1)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
