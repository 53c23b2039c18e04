#!/usr/bin/python3
"""The queryprof command on a trace file whose content is known (trace_file.py).

usage: test_command.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import csv
import hashlib
import io
import json
import os
import pty
import select
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import trace_file
from trace_file import FAILED, FAST, OWN, RUNNING, SLOW

QUERYPROF, SOURCE, FIXTURE = sys.argv[1:4]
SCHEMA = os.path.join(SOURCE, "sql", "store_schema.sql")
BUILD_ID = "a1b2c3d4e5f60718"


def environment(columns):
    kept = {name: value for name, value in os.environ.items()
            if name not in ("COLUMNS", "LC_ALL", "LANG", "LC_CTYPE")}
    kept["LC_ALL"] = "C.UTF-8"
    if columns:
        kept["COLUMNS"] = str(columns)
    return kept


def run(*arguments, columns=None, stdin=""):
    done = subprocess.run([QUERYPROF, *arguments], input=stdin, capture_output=True, text=True,
                          encoding="utf-8", errors="replace", env=environment(columns), timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


class Command(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-command-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        trace_file.make(cls.trace, SCHEMA, FIXTURE, BUILD_ID)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def output(self, *arguments, **named):
        code, out, err = run(*arguments, **named)
        self.assertEqual((code, err), (0, ""), out)
        return out

    def refused(self, code, *arguments, stdin=""):
        seen, out, err = run(*arguments, stdin=stdin)
        self.assertEqual(seen, code, (out, err))
        self.assertTrue(err.startswith("queryprof: ") or code == 2, err)
        return err

    def column(self, out, name):
        return [line[name] for line in csv.DictReader(io.StringIO(out))]

    # --- help ---------------------------------------------------------------

    def test_help(self):
        out = self.output("--help")
        for name in ("queries", "report", "sql"):
            self.assertIn("\n  %s " % name, out)
            about = self.output(name, "--help")
            self.assertIn("usage: queryprof %s FILE" % name, about)
            self.assertIn("examples:\n  queryprof %s " % name, about)
            self.assertEqual(self.output("help", name), about)
        self.assertRegex(self.output("--version"), r"^queryprof \d+\.\d+\.\d+\n$")
        self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_command_lines_that_make_no_sense(self):
        for arguments in ([], ["unheard-of"], ["queries"], ["queries", self.trace, "more"],
                          ["queries", self.trace, "--unheard-of"], ["queries", self.trace, "--limit"],
                          ["queries", self.trace, "--limit", "x"], ["queries", self.trace, "--by", "x"],
                          ["queries", self.trace, "--statements=1"],
                          ["report", self.trace, "--type", "sundial"],
                          ["report", self.trace, "--since", "soon"], ["report", self.trace, "--last", "-1"],
                          ["sql", self.trace, "SELECT 1", "--format", "x"]):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertTrue(err)

    # --- queries ------------------------------------------------------------

    def test_queries(self):
        self.assertEqual(self.output("queries", self.trace), """\
started              wall_ms  cpu_ms  n_cpu  n_real  rows  query_id            query
2026-11-18 11:06:40    200.0   100.0     90       0     7  0193a5b2-77c1-7aaa  SELECT *  FROM orders WHERE id = 1
2026-11-18 11:06:40     20.0    10.0      0       0     1  0193a5b2-77c1-7bbb  SELECT *  FROM orders WHERE id = 2
2026-11-18 11:06:40      5.0     5.0      0       0     0  my own id           SELECT 'own'
2026-11-18 11:06:40      1.0     1.0      0       0     0  0193a5b2-9999-7ccc  SELECT nothing FROM nowhere  [31m
""")

    def test_queries_selected(self):
        def ids(*arguments):
            return self.column(self.output("queries", self.trace, "--format", "csv", *arguments), "query_id")

        self.assertEqual(ids("--like", "orders"), [SLOW[:18], FAST[:18]])
        self.assertEqual(ids("--limit", "1"), [SLOW[:18]])
        self.assertEqual(ids("--by", "start", "--limit", "1"), [OWN])
        self.assertEqual(ids("--by", "start", "--like", "orders"), [FAST[:18], SLOW[:18]])
        self.assertEqual(ids("--by", "off", "--limit", "2"), [SLOW[:18], FAST[:18]])
        self.assertEqual(ids("--query", FAST[:17]), [FAST[:18]])
        self.assertEqual(ids("--query", OWN), [OWN])
        self.assertEqual(ids("--query", OWN, "--like", "orders"), [])
        self.assertEqual(ids("--last", "1"), [OWN])
        self.assertEqual(ids("--last", "2", "--by", "cpu"), [OWN, FAILED[:18]])
        self.assertEqual(ids("--last", "1", "--like", "orders"), [FAST[:18]])
        self.assertEqual(ids("--like", "no such text"), [])
        self.assertEqual(self.output("queries", self.trace, "--like", "no such text"), "no queries\n")

    def test_times(self):
        """The runs began at 11:06:40 and 0, 300, 400 and 500 ms; the one that goes on at 600 ms."""
        def count(*arguments):
            return len(self.column(self.output("queries", self.trace, "--format", "csv", *arguments), "query_id"))

        for since, left in (("2026-11-18", 4), ("2026-11-19", 0), ("2026-11-18 11:06:40", 4),
                            ("2026-11-18 11:06", 4), ("2026-11-18T11:06:40.3Z", 3), ("2026-11-18 11:06:40.300001", 2),
                            ("2026-11-18 12:06:40.3+01:00", 3), ("2026-11-18T10:06:40.45-0100", 1), ("start", 4),
                            ("start+300ms", 3), ("start+0.31s", 2), ("end", 0), ("end-200ms", 2), ("end-1min", 4),
                            ("now", 0), ("36500d", 4), ("now-36500d", 4), ("2026-11-18 11:06:40+350ms", 2),
                            ("2026-11-17+1d", 4), ("1970-01-01", 4)):
            self.assertEqual(count("--since", since), left, since)
            self.assertEqual(count("--until", since), 4 - left, since)
        self.assertEqual(count("--since=2026-11-18 11:06:40.3", "--until", "start+400ms"), 1)
        for wrong in ("", "soon", "2026", "2026-13-01", "2026-02-30", "2026-11-18 25:00", "2026-11-18 11", "10",
                      "10 min", "-10min", "10minutes", "now-", "now-x", "start10s", "end-10min-10min", "tomorrow",
                      "2026-11-18T", "999999999999w", "9999-01-01"):
            self.assertIn("expected a time", self.refused(2, "queries", self.trace, "--since", wrong), wrong)

    def test_times_from_now(self):
        path = os.path.join(self.folder, "now.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE queries SET query_start_ns = ? WHERE id = 1", (time.time_ns() - 1800 * 10**9,))
            db.commit()
        for since, left in (("10min", 0), ("1h", 1), ("yesterday", 1), ("now-1h", 1)):
            rows = self.column(self.output("queries", path, "--since", since, "--format", "csv"), "query_id")
            self.assertEqual(len(rows), left, since)
        os.unlink(path)

    def test_statements(self):
        rows = json.loads(self.output("queries", self.trace, "--statements", "--format", "json"))
        self.assertEqual([row["runs"] for row in rows], [2, 1, 1])
        self.assertEqual(rows[0]["wall_ms"], "220.0")
        self.assertEqual(rows[2]["failed"], 1)

    # --- report -------------------------------------------------------------

    def test_report_of_one_query(self):
        self.assertEqual(self.output("report", self.trace, "--query", SLOW[:16]), """\
query  0193a5b2-77c1-7aaa-8000-000000000001
from   2026-11-18 11:06:40.000000 UTC
rows   7
text   SELECT *
        FROM orders WHERE id = 1

Time, as measured and as sampled
clock    exact_ms    share  sampled_ms  error_ms  differs  samples
wall        200.0  100.0 %       150.0       0.5  -25.0 %      150
on CPU      100.0   50.0 %       100.0       0.6   +0.0 %       90
off CPU     100.0   50.0 %        50.0       0.8  -50.0 %

Top functions, by CPU time
  self  error    total  self_ms  total_ms  function
60.0 %  5.4 %   60.0 %     60.0      60.0  fixture_static
20.0 %  4.4 %   20.0 %     20.0      20.0  (full.so)
20.0 %  4.4 %   20.0 %     20.0      20.0  fixture::Thing::walk(char const*, int)
 0.0 %  0.0 %  100.0 %      0.0     100.0  fixture_calls_out
 0.0 %  0.0 %   60.0 %      0.0      60.0  fixture_visit

Top stacks, leaf first, by CPU time
 share    ms  stack
60.0 %  60.0  fixture_static
              fixture_visit
              fixture_calls_out
20.0 %  20.0  fixture::Thing::walk(char const*, int)
              fixture::Thing::walk(char const*, int)
              fixture::Thing::walk(char const*, int)
              fixture_calls_out
20.0 %  20.0  full.so+0x%x
              fixture_calls_out
""".replace("0x%x", hex(trace_file.symbols(FIXTURE)["fixture_hole"])))

    def test_report_of_some_and_of_all(self):
        some = self.output("report", self.trace, "--like", "orders")
        self.assertIn("runs  2 of 4\n", some)
        self.assertRegex(some, r"on CPU +110.0 +50.0 % +100.0 ")
        everything = self.output("report", self.trace)
        self.assertIn("runs    4 of 4\n", everything)
        self.assertIn("(no module)", everything)
        self.assertRegex(everything, r"on CPU +116.0 +51.3 % +103.0 ")
        real = self.output("report", self.trace, "--type", "Real")
        self.assertIn("100.0 %", real)
        self.assertNotIn("walk", real)

    def test_report_of_a_query_that_has_not_finished(self):
        out = self.output("report", self.trace, "--query", RUNNING)
        self.assertIn("not finished", out)
        self.assertIn("0x1234", out)

    def test_report_without_samples(self):
        out = self.output("report", self.trace, "--query", OWN)
        self.assertEqual(out.count("no samples on the CPU clock"), 2)

    def test_ids(self):
        self.assertIn("more than one query's id begins with 0193",
                      self.refused(1, "report", self.trace, "--query", "0193"))
        self.assertIn("no query has the id nothing", self.refused(1, "report", self.trace, "--query", "nothing"))
        self.refused(1, "report", self.trace, "--query", "")

    # --- sql ----------------------------------------------------------------

    def test_sql(self):
        self.assertEqual(self.output("sql", self.trace, "SELECT count(*) AS n FROM trace_log"), "  n\n243\n")
        self.assertEqual(self.output("sql", self.trace, stdin="SELECT 1 AS a;\nSELECT 2 AS b;"), "a\n1\nb\n2\n")
        self.assertEqual(self.output("sql", self.trace, "-", stdin="SELECT 3 AS c"), "c\n3\n")
        self.assertIn("nonsense", self.refused(1, "sql", self.trace, "nonsense"))
        code, out, err = run("sql", self.trace, "SELECT 1 AS a; SELECT x; SELECT 2 AS b")
        self.assertEqual((code, out), (1, "a\n1\n"))
        self.assertIn("no such column: x", err)

    def test_functions(self):
        address = trace_file.BASE + trace_file.symbols(FIXTURE)["_ZN7fixture5Thing4walkEPKci"]
        row = json.loads(self.output("sql", self.trace, "--format=json", """
            SELECT addressToSymbol(%d) AS symbol, demangle(addressToSymbol(%d)) AS name,
                   addressToLine(%d) AS line, addressToSymbol(1) AS nowhere""" % ((address,) * 3)))[0]
        self.assertEqual(row["symbol"], "_ZN7fixture5Thing4walkEPKci")
        self.assertEqual(row["name"], "fixture::Thing::walk(char const*, int)")
        self.assertRegex(row["line"], r"/tests/symbol/fixture_cxx.cpp:\d+$")
        self.assertIsNone(row["nowhere"])

    def test_formats_keep_every_value(self):
        sql = "SELECT query, query_id, cpu_time_ns, NULL AS none, '' AS empty, x'41' AS blob FROM query_log"
        expected = sqlite3.connect(self.trace).execute(sql).fetchall()
        rows = json.loads(self.output("sql", self.trace, sql, "--format", "json"))
        self.assertEqual([(row["query"], row["cpu_time_ns"], row["none"], row["empty"]) for row in rows],
                         [(row[0], row[2], None, "") for row in expected])
        rows = list(csv.reader(io.StringIO(self.output("sql", self.trace, sql, "--format", "csv"), newline="")))
        self.assertEqual([row[0] for row in rows[1:]], [row[0] for row in expected])
        self.assertEqual(self.output("sql", self.trace, "SELECT 1 WHERE 0", "--format", "json"), "[\n]\n")

    def test_shell(self):
        pid, terminal = pty.fork()
        if pid == 0:
            try:
                os.environ.update(environment(80), TERM="dumb")
                os.execv(QUERYPROF, [QUERYPROF, "sql", self.trace])
            finally:
                os._exit(127)
        seen = b""

        def wait_for(text):
            nonlocal seen
            while text not in seen:
                ready = select.select([terminal], [], [], 60)[0]
                self.assertTrue(ready, seen)
                seen += os.read(terminal, 4096)
            seen = seen[seen.index(text) + len(text):]

        wait_for(b"queryprof> ")
        os.write(terminal, b".tables\n")
        wait_for(b"trace_log")
        wait_for(b"queryprof> ")
        os.write(terminal, b"SELECT nonsense;\n")
        wait_for(b"no such column")
        wait_for(b"queryprof> ")
        os.write(terminal, b"SELECT 40\n")
        wait_for(b"...> ")
        os.write(terminal, b"+ 2;\n")
        wait_for(b"42")
        wait_for(b"queryprof> ")
        os.write(terminal, b".quit\n")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(terminal)

    # --- terminals ----------------------------------------------------------

    def test_tables_fit_the_terminal(self):
        for columns in (70, 90, 120):
            for arguments in (["queries", self.trace], ["report", self.trace],
                              ["sql", self.trace, "SELECT trace, trace AS again FROM trace_log"]):
                out = self.output(*arguments, columns=columns)
                widest = max(map(len, out.splitlines()))
                self.assertLessEqual(widest, columns, out)
        self.assertIn("…", self.output("sql", self.trace, "SELECT trace FROM trace_log", columns=20))

    def test_text_cannot_drive_the_terminal(self):
        sql = "SELECT query, char(27) || ']0;x' || char(7) || char(0x9b) || 'y' AS evil FROM query_log"
        out = self.output("sql", self.trace, sql) + self.output("queries", self.trace)
        out += self.refused(1, "sql", self.trace, 'SELECT * FROM "\x1b[31mevil"')
        self.assertEqual([c for c in out if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)], [])

    def test_wide_characters_are_measured(self):
        out = self.output("sql", self.trace, "SELECT 'ä' AS a, 'b' AS b UNION ALL SELECT '日本', 'c'")
        self.assertEqual(out, "a     b\nä     b\n日本  c\n")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([QUERYPROF, "queries", self.trace], stdout=full, stderr=subprocess.PIPE,
                                  timeout=120, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)

    # --- files --------------------------------------------------------------

    def test_file_is_left_as_it_is(self):
        def state():
            with open(self.trace, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest(), sorted(os.listdir(self.folder))

        before = state()
        self.output("report", self.trace)
        self.assertIn("readonly", self.refused(1, "sql", self.trace, "DELETE FROM samples"))
        self.assertIn("readonly", self.refused(1, "sql", self.trace, "CREATE TABLE t (x)"))
        self.assertEqual(state(), before)

    def test_files_that_are_none_of_ours(self):
        def path(name):
            return os.path.join(self.folder, "wrong", name)

        os.mkdir(path(""))
        with open(path("text"), "w", encoding="ascii") as file:
            file.write("not a database, but long enough to be one\n" * 100)
        open(path("empty"), "wb").close()
        sqlite3.connect(path("foreign")).execute("CREATE TABLE t (x)").connection.close()
        shutil.copy(self.trace, path("newer"))
        newer = sqlite3.connect(path("newer"))
        newer.execute("PRAGMA user_version = 999")
        newer.close()
        with open(self.trace, "rb") as file:
            whole = file.read()
        with open(path("cut"), "wb") as file:
            file.write(whole[:len(whole) // 2])
        for name, message in (("missing", "No such file"), ("", "not a file"), ("text", "not a database"),
                              ("empty", "not a trace file"), ("foreign", "not a trace file"),
                              ("newer", "newer queryprof")):
            for command in (["queries"], ["report"], ["sql"]):
                self.assertIn(message, self.refused(1, command[0], path(name), *command[1:]), name)
        self.refused(1, "report", path("cut"))
        shutil.rmtree(path(""))

    def test_damaged_files(self):
        with open(self.trace, "rb") as file:
            whole = bytearray(file.read())
        path = os.path.join(self.folder, "damaged")
        random = 20261120
        for _ in range(40):
            damaged = bytearray(whole)
            for _ in range(8):
                random = (random * 1664525 + 1013904223) % 2**32
                damaged[100 + random % (len(whole) - 100)] = random >> 24
            with open(path, "wb") as file:
                file.write(damaged)
            code, out, err = run("report", path)
            self.assertIn(code, (0, 1), (out, err))
        os.unlink(path)

    def test_names_with_a_meaning_in_uris(self):
        path = os.path.join(self.folder, "a?mode=rwc&b#c%41 ä.trace")
        shutil.copy(self.trace, path)
        self.assertIn("orders", self.output("queries", path))
        os.unlink(path)

    def test_file_that_is_being_written(self):
        folder = tempfile.mkdtemp(prefix="queryprof-live-")
        path = os.path.join(folder, "live.trace")
        shutil.copy(self.trace, path)
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("DELETE FROM samples WHERE series = 2")
        self.assertEqual(self.output("sql", path, "SELECT count(*) AS n FROM trace_log"), " n\n93\n")
        writer.close()
        self.assertEqual(self.output("sql", path, "SELECT count(*) AS n FROM trace_log"), " n\n93\n")
        self.assertEqual(os.listdir(folder), ["live.trace"])
        shutil.rmtree(folder)

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_file_and_folder_that_cannot_be_written(self):
        folder = tempfile.mkdtemp(prefix="queryprof-ro-")
        path = os.path.join(folder, "app.trace")
        command = os.path.join(folder, "queryprof")
        shutil.copy(self.trace, path)
        shutil.copy(QUERYPROF, command)
        wal = sqlite3.connect(path)
        wal.execute("PRAGMA journal_mode = WAL")
        wal.close()
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", command,
                               "queries", path], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("orders", done.stdout)
        shutil.rmtree(folder)

    def test_sql_files_can_be_pasted(self):
        """What does not need our functions runs in any sqlite3."""
        db = sqlite3.connect(self.trace)
        unset = dict.fromkeys(("by", "like", "since", "until", "last", "limit", "query_id", "trace_type"))
        for name in ("selected", "queries", "statements", "report_query", "report_samples", "report_times",
                     "export_samples"):
            with open(os.path.join(SOURCE, "sql", name + ".sql"), encoding="utf-8") as file:
                for sql in file.read().rstrip().rstrip(";").split(";\n"):
                    rows = db.execute(sql, unset).fetchall()
            self.assertTrue(rows or name in ("selected", "report_samples"), name)
        db.close()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
