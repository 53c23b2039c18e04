#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The queryprof command on a trace file with known content (trace_file.py).

usage: test_command.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import csv
import hashlib
import io
import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file
from tool import FIXTURE, QUERYPROF, SOURCE, Tool, environment, main, run


class Command(Tool):
    # --- help ---------------------------------------------------------------

    def test_help(self):
        out = self.output("--help")
        names = re.findall(r"^  ([a-z]+) {2,}[A-Z]", out, re.MULTILINE)
        self.assertEqual(names, ["record", "attach", "findings", "queries", "report", "plan", "locks", "wal", "pages", "traces",
                                 "trace", "diff", "check", "advise", "analyze", "top", "dump", "live", "export", "push", "pull", "embed", "sql", "mcp",
                                 "metrics"])
        for name in names:
            about = self.output(name, "--help")
            self.assertIn("usage: queryprof %s " % name, about)
            self.assertIn("examples:\n  queryprof %s " % name, about)
            self.assertLessEqual(max(map(len, about.splitlines())), 80, about)
            self.assertEqual(self.output("help", name), about)
            self.assertEqual(self.output(name, "--by", "cpu", "--help") if name == "queries" else about, about)
        self.assertRegex(self.output("--version"), r"^queryprof \d+\.\d+\.\d+\n$")
        self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_help_names_the_functions(self):
        """The help names all functions that SQLite itself lacks, except the ones about a host's connection and the
        command's own."""
        plain = {name for name, in sqlite3.connect(":memory:").execute("SELECT name FROM pragma_function_list")}
        known = self.output("sql", self.trace, "SELECT name FROM pragma_function_list", "--format", "csv").splitlines()[1:]
        listed = re.search(r"^Functions: (.*?)\n\n", self.output("sql", "--help"), re.MULTILINE | re.DOTALL)[1]
        self.assertEqual(set(known) - plain - {"set_setting", "get_setting", "set_label", "stackfunctions", "stackmodules", "stackphase", "stackplace", "takepages", "takerow",
                          "stackowners", "stackcaller", "stackshape", "filename", "duration", "oneline", "virtualwords", "withoutfolders"},
                         {name.lower() for name in re.split(r",\s+", listed)})

    def test_command_lines_that_make_no_sense(self):
        for arguments in ([], ["unheard-of"], ["--unheard-of"], ["queries", self.trace, "more", "most"],
                          ["queries", self.trace, "--unheard-of"], ["queries", self.trace, "--limit"],
                          ["queries", self.trace, "--limit", "x"], ["queries", self.trace, "--by", "x"],
                          ["queries", self.trace, "--statements=1"],
                          ["report", self.trace, "--type", "sundial"],
                          ["report", self.trace, "--since", "soon"], ["report", self.trace, "--last", "-1"],
                          ["report", self.trace, "--min-duration", "soon"],
                          ["sql", self.trace, "SELECT 1", "--format", "x"], ["diff"], ["diff", self.trace],
                          ["diff", self.trace, "--query", "a"], ["diff", self.trace, "--with", "a"],
                          ["diff", self.trace, "--at", "soon"], ["diff", self.trace, "--at", "now", "--since", "now"],
                          ["export", self.trace, "-o", "-"], ["export", self.trace, "--format", "json"],
                          ["record"], ["record", "--cpu", "10", "true"]):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            if arguments:
                self.assertRegex(err, r"\Aqueryprof: .+\n\Z", arguments)  # one line
        for arguments in (["unheard-of"], ["--unheard-of"], ["queries", "--unheard-of"]):
            self.assertRegex(run(*arguments)[2], r"unheard-of \(see queryprof (queries )?--help\)\n$")
        self.assertIn("record: --cpu 10 has no unit: --cpu 10ms?\n", run("record", "--cpu", "10", "true")[2])
        self.assertIn("diff: --at soon; expected a time", run("diff", self.trace, "--at", "soon")[2])
        for arguments in (["findings"], ["queries"], ["report"], ["plan"], ["diff"], ["locks"], ["wal"], ["pages"], ["traces"], ["embed"], ["sql"],
                          ["export", "--format", "json", "-o", "-"]):
            self.assertIn("`queryprof pull URL`", self.refused(1, arguments[0], "http://127.0.0.1:1/", *arguments[1:],
                                                              *(["--at", "now"] if arguments == ["diff"] else [])))
        self.assertIn("`queryprof pull URL`", self.refused(1, "push", "http://127.0.0.1:1/", "http://127.0.0.1:1/"))

    def test_options_that_exclude_each_other(self):
        """No option is ignored. The message names both."""
        for arguments, both in (
                (["queries", "--by", "label:route", "--runs"], ("--by label:", "--runs")),
                (["queries", "--by", "caller", "--runs"], ("--by caller", "--runs")),
                (["queries", "--regressed", "--by", "wall"], ("--regressed", "--by")),
                (["queries", "--regressed", "--by", "label:route"], ("--regressed", "--by")),
                (["queries", "--regressed", "--runs"], ("--regressed", "--runs")),
                (["queries", "--statements", "--runs"], ("--statements", "--runs")),
                (["plan", self.trace, "FROM orders", "--like", "id"], ("STATEMENT FROM orders", "--like id"))):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            for option in both:
                self.assertIn(option, err)

    def test_file_of_another_user(self):
        if os.geteuid():
            self.skipTest("only root becomes another user")
        os.chmod(self.folder, 0o755)
        path = os.path.join(self.folder, "private.trace")
        shutil.copy(self.trace, path)
        os.chmod(path, 0o600)
        for owner, mode, said in ((0, 0o600, "it belongs to user root, mode 0600: "), (54321, 0o600, "it belongs to user 54321, mode 0600: "),
                                  (65534, 0, "its mode is 0000")):
            os.chown(path, owner, -1)
            os.chmod(path, mode)
            done = subprocess.run([QUERYPROF, "report", path], user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
                                  timeout=300, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("private.trace: Permission denied: " + said, done.stderr)

    def test_format_of_an_export_by_its_name(self):
        for name, format_name in ("a.json", "json"), ("a.pb.gz", "pprof"):
            paths = [os.path.join(self.folder, "%d%s" % (i, name)) for i in (1, 2)]
            self.output("export", self.trace, "-o", paths[0])
            self.output("export", self.trace, "-o", paths[1], "--format", format_name)
            with open(paths[0], "rb") as one, open(paths[1], "rb") as other:
                self.assertEqual(one.read(), other.read())

    def test_statement_after_the_file(self):
        for command in (["queries"], ["queries", "--runs"], ["report"]):
            self.assertEqual(self.output(command[0], self.trace, "FROM orders", *command[1:]),
                             self.output(command[0], self.trace, "--like", "FROM orders", *command[1:]))

    def test_short_options(self):
        self.assertEqual(self.output("-h"), self.output("--help"))
        self.assertEqual(self.output("report", "-h"), self.output("report", "--help"))
        self.assertEqual(self.output("-V"), self.output("--version"))

    def test_the_file_that_record_writes_need_not_be_named(self):
        folder = os.path.join(self.folder, "here")
        os.mkdir(folder)
        before = os.getcwd()
        os.chdir(folder)
        try:
            for arguments in (["queries"], ["report"], ["diff", "--at", "now"], ["embed"], ["sql", "SELECT 1"],
                              ["export", "--format", "json", "-o", "-"]):
                self.assertRegex(self.refused(1, *arguments), r"queryprof\.trace: No such file")
            shutil.copy(self.trace, "queryprof.trace")
            for arguments in (["queries"], ["report"], ["diff", "--at", "start+1ms"], ["embed"],
                              ["export", "--format", "json", "-o", "-"]):
                named = [arguments[0], "queryprof.trace", *arguments[1:]]
                self.assertEqual(self.output(*arguments), self.output(*named), arguments)
            self.assertEqual(self.output("sql", "SELECT 1 AS a"), "a\n1\n")
            self.assertEqual(self.output("sql", stdin="SELECT 2 AS a"), "a\n2\n")
            self.assertIn("nowhere: No such file", self.refused(1, "sql", "nowhere"))
        finally:
            os.chdir(before)

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
        self.assertEqual(self.output("sql", self.trace, "SELECT x'00ff' AS a, x'' AS b, '' AS c, NULL AS d", "--format", "csv"),
                         'a,b,c,d\n00FF,,"",\n')
        self.assertEqual(self.output("sql", self.trace, "SELECT 1 WHERE 0", "--format", "json"), "[\n]\n")

    # --- terminals ----------------------------------------------------------

    def test_json_is_valid_for_any_value(self):
        def refuse(constant):
            self.fail(f"{constant} is no JSON")
        out = self.output("sql", self.trace, "--format", "json", """
            SELECT 9e999 AS above, -9e999 AS below, 1.5 AS real, 9223372036854775807 AS integer, NULL AS none,
                   x'00ff225c0a' AS blob, x'' AS empty, zeroblob(3) AS zeros, CAST(x'41ff0122' AS TEXT) AS text,
                   '"\u20ac' AS [a "name"]""")
        self.assertEqual(json.loads(out, parse_constant=refuse), [{
            "above": math.inf, "below": -math.inf, "real": 1.5, "integer": 2 ** 63 - 1, "none": None,
            "blob": "00FF225C0A", "empty": "", "zeros": "000000", "text": "A\ufffd\x01\"",
            'a "name"': '"\u20ac'}])
        # SQLite reads back what was written.
        back = self.output("sql", self.trace, "--format", "csv", "SELECT value->>'above' = 9e999 AS above,"
                           " value->>'below' = -9e999 AS below, value->>'blob' = hex(x'00ff225c0a') AS blob"
                           " FROM (SELECT '%s' ->> 0 AS value)" % out.replace("'", "''"))
        self.assertEqual(back, "above,below,blob\n1,1,1\n")

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
                                  timeout=300, check=False)
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
            for command, *more in (["queries"], ["report"], ["sql"], ["sql", "SELECT 1"], ["diff", self.trace],
                                   ["diff", "--at", "now"], ["export", "--format", "json", "-o", path("out")]):
                err = self.refused(1, command, path(name), *more)
                self.assertIn(message, err, (name, command))
                self.assertEqual(err.count("\n"), 1, err)
        for command, *more in (["report"], ["diff", self.trace], ["export", "--format", "json", "-o", path("out")]):
            self.refused(1, command, path("cut"), *more)
        self.assertFalse(os.path.exists(path("out")))
        shutil.rmtree(path(""))

    def test_names_with_a_meaning_in_uris(self):
        path = os.path.join(self.folder, "a?mode=rwc&b#c%41 ä.trace")
        shutil.copy(self.trace, path)
        self.assertIn("orders", self.output("queries", path))
        os.unlink(path)
        self.assertIn("orders", self.output("queries", "/" + os.path.abspath(self.trace)))  # //name/file: a host and a file

    def test_log_of_a_killed_process(self):
        folder = tempfile.mkdtemp(prefix="queryprof-killed-")
        written, left, link = (os.path.join(folder, name) for name in ("written", "left", "link"))
        shutil.copy(self.trace, written)
        writer = sqlite3.connect(written, isolation_level=None)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("DELETE FROM samples WHERE series = 2")
        for end in ("", "-wal"):
            shutil.copy(written + end, left + end)
        writer.close()
        os.symlink("left", link)
        for path in left, link:
            self.assertEqual(self.output("sql", path, "SELECT count(*) AS n FROM trace_log"), " n\n93\n")
        shutil.rmtree(folder)

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
    @unittest.skipIf("GCOV_ERROR_FILE" in os.environ, "gcov prints on stderr that this user may not write its counters")
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
                               "queries", path], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("orders", done.stdout)
        shutil.rmtree(folder)

    def test_sql_files_can_be_pasted(self):
        """The SQL needs only those functions of the command that these runs define in any sqlite3."""
        db = sqlite3.connect(self.trace)
        db.create_function("fileName", 1, os.path.basename)
        db.create_function("duration", 1, str)
        db.create_function("oneLine", 1, str)
        db.create_function("virtualWords", 1, str)
        db.create_function("stackPhase", 1, lambda trace: None)
        for name in ("read/run_plans", "read/select_runs", "read/selected", "read/selected_statements", "read/run_lines", "read/causes",
                     "read/runs", "read/statement_lines", "read/causes", "read/statements", "report/samples", "report/query",
                     "report/clocks", "report/times", "read/plan_runs", "read/plan_changes"):
            if name == "read/selected_statements":  # the command's own version is in C, and faster
                db.execute("CREATE TEMP VIEW summed_runs AS SELECT * FROM temp.run_values")
            with open(os.path.join(SOURCE, "sql", name + ".sql"), encoding="utf-8") as file:
                for sql in file.read().rstrip().rstrip(";").split(";\n"):
                    rows = db.execute(sql, dict.fromkeys(re.findall(r":(\w+)", sql))).fetchall()
            self.assertTrue(rows or name in ("read/run_plans", "read/select_runs", "read/selected", "read/selected_statements", "read/run_lines",
                                             "read/statement_lines",
                                             "read/causes", "report/samples", "report/clocks",
                                             "read/plan_runs", "read/plan_changes"), name)
        db.close()


if __name__ == "__main__":
    main()
