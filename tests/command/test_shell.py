#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof sql without SQL: the sqlite3 shell on a terminal, and scripts; and the extension's entry point for trace files,
which the shell loads.

usage: test_shell.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import os
import pty
import re
import select
import shutil
import sqlite3

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file
from tool import FIXTURE, QUERYPROF, SOURCE, Tool, environment, main, run

PROMPT = "sqlite> "
LIBRARY = os.path.join(os.path.dirname(QUERYPROF), "libqueryprof")
WALK = trace_file.BASE + trace_file.symbols(FIXTURE)["_ZN7fixture5Thing4walkEPKci"]


class Terminal:
    """The command on a terminal: types input and reads the output."""

    def __init__(self, test, *arguments, command=QUERYPROF, **variables):
        self.test = test
        self.seen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            try:
                os.execve(command, [command, "sql", *arguments],
                          environment(80, **dict({"TERM": "dumb", "HOME": test.folder}, **variables)))
            finally:
                os._exit(127)

    def read(self):
        """Returns False at the end."""
        self.test.assertTrue(select.select([self.terminal], [], [], 300)[0], self.seen)
        try:
            part = os.read(self.terminal, 4096)
        except OSError:  # Linux reports in this way that no program has the terminal open
            part = b""
        # Removes the line editor's sequences that move the cursor.
        self.seen = re.sub(b"\x1b\\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r", b"", self.seen + part)
        return bool(part)

    def wait_for(self, text):
        """Returns the output before the text, and keeps the output after it for the next call."""
        while text.encode() not in self.seen:
            self.test.assertTrue(self.read(), (text, self.seen))
        before, self.seen = self.seen.split(text.encode(), 1)
        return before.decode()

    def ask(self, line, answer):
        """The expected answer must not occur in the line itself, because the terminal echoes it."""
        os.write(self.terminal, (line + "\n").encode())
        self.wait_for(answer)
        self.wait_for(PROMPT)

    def end(self, text, status=0):
        """Returns the remaining output."""
        os.write(self.terminal, text.encode())
        while self.read():
            pass
        os.close(self.terminal)
        self.test.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), status, self.seen)
        return self.seen.decode()


class Shell(Tool):
    def start(self, *arguments, **named):
        terminal = Terminal(self, *arguments, **named)
        terminal.wait_for(PROMPT)
        return terminal

    def test_names_are_those_of_the_file(self):
        shell = self.start(self.trace)
        shell.ask(".tables", "trace_log")
        shell.ask("SELECT demangle(addressToSymbol(%d)) AS name;" % WALK,
                  "│ fixture::Thing::walk(char const*, int) │")
        shell.ask("SELECT count(*) + 1000 AS n FROM trace_log;", "│ 1243 │")
        shell.ask("SELECT coalesce(addressToSymbol(1), 'no' || 'where') AS name;", "│ nowhere │")
        shell.end(".quit\n")

    def test_the_file_is_only_read(self):
        before = sorted(os.listdir(self.folder))
        shell = self.start(self.trace)
        shell.ask("DELETE FROM samples;", "readonly database")
        shell.ask("PRAGMA trusted_schema;", "│ 0 ")
        shell.ask("SELECT group_concat(name) || '.' AS schemas FROM pragma_database_list;", "│ main,temp.")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        shell.end(".quit\n", 1)  # the shell's own way to say that there was an error

    def test_memory(self):
        """The shell gets the original limit, not the command's own (test_outputs.py)."""
        with open("/proc/self/limits", encoding="ascii") as file:
            before = next(line for line in file if line.startswith("Max data"))
        shell = self.start(self.trace)
        shell.ask(".shell grep 'Max data' /proc/self/limits", before.strip())
        shell.end(".quit\n")

    def test_formats(self):
        for name, answer in (("csv", "n,m\n41,42\n"), ("json", '[{"n":41,"m":42}]'), ("line", "n = 41\n")):
            shell = self.start(self.trace, "--format", name)
            shell.ask("SELECT 40 + 1 AS n, 42 AS m;", answer)
            shell.end(".quit\n")

    def test_file_of_an_older_version(self):
        path = os.path.join(self.folder, "it's \"old\" ä?.trace")
        with contextlib.closing(sqlite3.connect(path)) as db:
            with open(os.path.join(SOURCE, "tests", "store", "schema_1.sql"), encoding="utf-8") as file:
                db.executescript(file.read())
            db.execute("PRAGMA application_id = %d" % 0x51505246)
            db.execute("PRAGMA user_version = 1")
            self.assertFalse(db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'top_queries'").fetchall())
        shell = self.start(path)
        shell.ask("SELECT count(*) + 40 AS n FROM top_queries;", "│ 40 │")
        shell.ask("SELECT count(session_id) + 40 AS n FROM query_log;", "│ 40 │")
        shell.end(".quit\n")
        os.unlink(path)

    def test_what_is_missing(self):
        text = Terminal(self, self.trace, PATH="/nowhere").end("", 1)
        self.assertIn("package sqlite3", text)
        for path, message in ((FIXTURE, "not a database"), ("/nowhere", "No such file")):
            self.assertIn(message, Terminal(self, path).end("", 1))
        alone = os.path.join(self.folder, "alone", "queryprof")
        os.mkdir(os.path.dirname(alone))
        shutil.copy(QUERYPROF, alone)
        shell = Terminal(self, self.trace, command=alone)
        self.assertIn("libqueryprof.so is neither", shell.wait_for(PROMPT))
        shell.ask("SELECT count(*) + 1000 AS n FROM trace_log;", "│ 1243 │")
        shell.end(".quit\n")
        shutil.rmtree(os.path.dirname(alone))

    # --- the entry point ----------------------------------------------------------

    def load(self, db):
        db.enable_load_extension(True)
        db.execute("SELECT load_extension(?, 'sqlite3_queryprof_trace_init')", (LIBRARY,))
        return db

    def test_entry_point(self):
        def threads():
            return len(os.listdir("/proc/self/task"))

        before = threads()
        with contextlib.closing(self.load(sqlite3.connect(self.trace))) as db:
            self.assertEqual(db.execute("SELECT addressToSymbol(?)", (WALK,)).fetchone()[0],
                             "_ZN7fixture5Thing4walkEPKci")
            self.assertEqual([row[1] for row in db.execute("PRAGMA database_list")], ["main"])
            self.load(db)  # again
            self.assertIsNone(db.execute("SELECT addressToSymbol(1)").fetchone()[0])
        self.assertEqual(threads(), before)
        with contextlib.closing(sqlite3.connect(":memory:")) as db:
            with self.assertRaisesRegex(sqlite3.OperationalError, "not a trace file"):
                self.load(db)

    def test_two_files(self):
        """Each connection reads the names of its own file."""
        other = os.path.join(self.folder, "other.trace")
        shutil.copy(self.trace, other)
        with contextlib.closing(sqlite3.connect(other)) as db:
            db.execute("DELETE FROM frames")
            name = db.execute("INSERT INTO names (name) VALUES ('said_by_the_file')").lastrowid
            db.execute("INSERT INTO frames (address, level, inlined, function, symbol, file, line)"
                       " VALUES (?, 0, 0, ?, ?, 0, 0)", (WALK + (1 << 40), name, name))
            db.execute("UPDATE modules SET base = base + (1 << 40)")
            db.commit()
        ask = "SELECT addressToSymbol(?), flameGraph(json_array(?))"
        with contextlib.closing(self.load(sqlite3.connect(self.trace))) as one:
            with contextlib.closing(self.load(sqlite3.connect(other))) as two:
                for _ in range(2):
                    self.assertEqual(one.execute(ask, (WALK, WALK)).fetchone(),
                                     ("_ZN7fixture5Thing4walkEPKci", "fixture::Thing::walk(char const*, int) 1"))
                    moved = WALK + (1 << 40)
                    self.assertEqual(two.execute(ask, (moved, moved)).fetchone(),
                                     ("said_by_the_file", "said_by_the_file 1"))
                    self.assertIsNone(one.execute(ask, (moved, moved)).fetchone()[0])
                    self.assertIsNone(two.execute(ask, (WALK, WALK)).fetchone()[0])
            self.assertEqual(one.execute(ask, (WALK, WALK)).fetchone()[0], "_ZN7fixture5Thing4walkEPKci")
        os.remove(other)

    def test_names_in_the_file_come_first(self):
        path = os.path.join(self.folder, "named.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO names VALUES (1, 'in the file'), (2, 'in.c'), (3, 'inlined'), (4, 'high')")
            db.executemany("INSERT INTO frames VALUES (?, ?, ?, ?, ?, ?, ?)", [
                (WALK, 0, 1, 3, 3, 2, 7), (WALK, 1, 0, 1, 1, 2, 9), (-2**62, 0, 0, 4, 4, 0, 0)])
            db.commit()
        with contextlib.closing(self.load(sqlite3.connect(path))) as db:
            self.assertEqual(
                db.execute("SELECT addressToSymbol(?1), addressToLine(?1), addressToSymbol(?2)",
                           (WALK, -2**62)).fetchone(), ("in the file", "in.c:7", "high"))
            # Each connection has the names of its own file.
            with contextlib.closing(self.load(sqlite3.connect(self.trace))) as other:
                name = "SELECT addressToSymbol(%d)" % WALK
                self.assertEqual([one.execute(name).fetchone()[0] for one in (db, other, db)],
                                 ["in the file", "_ZN7fixture5Thing4walkEPKci", "in the file"])
        os.unlink(path)

    # --- scripts ------------------------------------------------------------------

    def test_scripts(self):
        self.assertEqual(self.output("sql", self.trace, stdin="SELECT 1 AS a;\n\nSELECT 2\nAS b"), "a\n1\nb\n2\n")
        self.assertEqual(self.output("sql", self.trace, "-", stdin="SELECT 3 AS c"), "c\n3\n")
        self.assertEqual(self.output("sql", self.trace, "--format", "csv", stdin="SELECT 1 AS a, 2 AS b;"),
                         "a,b\n1,2\n")
        self.assertEqual(self.output("sql", self.trace, stdin=""), "")
        self.assertEqual(self.output("sql", self.trace, stdin="-- nothing\n"), "")
        for script in ("SELECT 1 AS a;\nSELECT x;\nSELECT 2;\n", "SELECT 1 AS a;\n.nothing x\nSELECT 2;\n",
                       "SELECT 1 AS a; SELECT x; SELECT 2"):
            code, out, err = run("sql", self.trace, stdin=script)
            self.assertEqual((code, out), (1, "a\n1\n"), script)
            self.assertRegex(err, r"^queryprof: .*(x|\.)")


if __name__ == "__main__":
    main()
