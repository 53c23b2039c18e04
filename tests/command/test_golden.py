#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every report of the command, to the letter. golden/ contains its output for fixed.sql (with fixed_large.sql, too, and
compared with fixed_later.sql). QUERYPROF_TEST_GOLDEN=write in the environment writes the files again; review the changes.

usage: test_golden.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import http.server
import os
import re
import sqlite3
import threading

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file
from tool import SCHEMA, SOURCE, Tool, main, run

HERE = os.path.join(SOURCE, "tests", "command")
SLOW, FAST = "0193a5b2-77c1", "0193a5b2-77c2"

# File of golden/, columns of the terminal (None: no terminal), arguments.
REPORTS = (
    ("queries", None, ("queries", "now.trace")),
    ("queries_80", 80, ("queries", "now.trace")),
    ("queries_120", 120, ("queries", "now.trace")),
    ("queries_200", 200, ("queries", "now.trace", "--by", "cpu")),
    ("queries_60", 60, ("queries", "now.trace")),
    ("queries_large", 110, ("queries", "large.trace", "--by", "start", "--limit", "3")),
    ("queries_large_60", 60, ("queries", "large.trace")),
    ("queries_logged", 120, ("queries", "now.trace", "--since", "start+500ms", "--until", "end", "--last", "3")),
    ("queries.json", None, ("queries", "now.trace", "--format", "json", "--limit", "2")),
    ("queries.csv", None, ("queries", "now.trace", "--format", "csv", "--like", "report")),
    *(("queries_callers" + name, columns, ("queries", "callers.trace", "--by", "caller"))
      for name, columns in (("", None), ("_80", 80), ("_120", 120), ("_200", 200))),
    ("queries_callers.json", None, ("queries", "callers.trace", "--by", "caller", "--caller", "orders.py", "--format", "json")),
    ("runs", None, ("queries", "now.trace", "--runs")),
    ("runs_80", 80, ("queries", "now.trace", "--runs", "--by", "cpu")),
    ("runs_120", 120, ("queries", "now.trace", "--runs", "--since", "start+500ms", "--until", "end", "--last", "3")),
    ("runs_line", None, ("queries", "now.trace", "--runs", "--query", SLOW, "--format", "line")),
    ("runs.json", None, ("queries", "now.trace", "--runs", "--format", "json", "--limit", "2")),
    ("runs_large_60", 60, ("queries", "large.trace", "--runs", "--limit", "3")),
    ("report", None, ("report", "now.trace")),
    ("report_80", 80, ("report", "now.trace", "--limit", "7")),
    ("report_120", 120, ("report", "now.trace", "--limit", "1")),
    ("report_200", 200, ("report", "now.trace", "--limit", "1")),
    ("report_all_large", 110, ("report", "large.trace", "--limit", "1")),
    ("report_60", 60, ("report", "now.trace", "--limit", "2")),
    ("report_query", 100, ("report", "now.trace", "--query", SLOW)),
    ("report_hardly_waits", 100, ("report", "now.trace", "--query", FAST, "--limit", "1")),
    ("report_wall", 100, ("report", "now.trace", "--like", "größe", "--type", "Real")),
    ("report_helpers", 100, ("report", "now.trace", "--query", "the big")),
    ("report_failed", 100, ("report", "now.trace", "--like", "report")),
    ("report_unfinished", 100, ("report", "now.trace", "--query", "0193a5b2-77c6")),
    ("report_large", 100, ("report", "large.trace", "--statement", "7c01d4f9")),
    ("report_full", 100, ("report", "large.trace", "--statement", "7c01d4f9", "--full")),
    ("diff", None, ("diff", "now.trace", "later.trace")),
    ("diff_80", 80, ("diff", "now.trace", "later.trace", "--like", "orders", "--type", "Real")),
    ("diff_queries", 100, ("diff", "now.trace", "--query", SLOW, "--with", FAST)),
    ("diff_times", 100, ("diff", "now.trace", "--at", "start+1500ms", "--limit", "3")),
    ("plan", None, ("plan", "plans.trace")),
    *(("plan_%d" % columns, columns, ("plan", "plans.trace", "WHERE note")) for columns in (80, 120, 200)),
    ("plan_opcodes", 120, ("plan", "plans.trace", "--limit", "1", "--opcodes")),
    ("locks", None, ("locks", "plans.trace")),
    *(("locks_%d" % columns, columns, ("locks", "plans.trace")) for columns in (80, 120, 200)),
    *(("wal" + name, columns, ("wal", "plans.trace")) for name, columns in (("", None), ("_80", 80), ("_120", 120), ("_200", 200))),
    ("wal.json", None, ("wal", "plans.trace", "--format", "json")),
    *(("pages" + name, columns, ("pages", "pages.trace")) for name, columns in (("", None), ("_80", 80), ("_120", 120), ("_200", 200))),
    *(("pages_" + by + ".json", None, ("pages", "pages.trace", "--by", by, "--database", "orders.db", "--format", "json")) for by in ("btree", "statement", "index")),
    ("pages_time.csv", None, ("pages", "pages.trace", "--by", "time", "--table", "orders_paid", "--format", "csv")),
    ("queries_plans", None, ("queries", "plans.trace")),
    *(("queries_plans_%d" % columns, columns, ("queries", "plans.trace")) for columns in (80, 120, 200)),
    ("runs_plans_200", 200, ("queries", "plans.trace", "--runs")),
    ("report_plans", None, ("report", "plans.trace", "--limit", "2")),
    *(("report_plans_%d" % columns, columns, ("report", "plans.trace", "--limit", "2")) for columns in (80, 120, 200)),
    *(("findings" + name, columns, ("findings", "plans.trace"))
      for name, columns in (("", None), ("_80", 80), ("_120", 120), ("_200", 200))),
    ("findings.json", None, ("findings", "plans.trace", "--format", "json", "--limit", "1")),
    ("failed", None, ("queries", "now.trace", "--failed")),
    *(("failed_%d" % columns, columns, ("queries", "now.trace", "--failed")) for columns in (80, 120, 200)),
    *(("diff_%d" % columns, columns, ("diff", "now.trace", "later.trace", "--limit", "3")) for columns in (120, 200)),
    *(("traces_%d" % columns, columns, ("traces", "traces.trace")) for columns in (120, 200)),
    ("trace_200", 200, ("trace", "traces.trace", "4bf9")),
    ("sql_120", 120, ("sql", "now.trace", "SELECT query_id, query, cpu_time_ns, database FROM query_log LIMIT 2")),
    ("sql_200", 200, ("sql", "now.trace", "SELECT query_id, query, cpu_time_ns, database FROM query_log LIMIT 2")),
    *(("export" + name, columns, ("export", "now.trace", "--format", "collapsed", "-o", "-"))
      for name, columns in (("", None), ("_80", 80), ("_120", 120), ("_200", 200))),
    *(("embed" + name, columns, ("embed", "named.trace"))
      for name, columns in (("", None), ("_80", 80), ("_120", 120), ("_200", 200))),
    ("traces", None, ("traces", "traces.trace")),
    ("traces_80", 80, ("traces", "traces.trace", "--by", "spans", "--min-duration", "1ms", "--limit", "1")),
    ("traces.json", None, ("traces", "traces.trace", "--like", "POST", "--since", "end", "--format", "json")),
    ("trace", None, ("trace", "traces.trace", "4bf9")),
    ("trace_80", 80, ("trace", "traces.trace", "4bf9", "--all", "--limit", "6")),
    ("trace_samples", 120, ("trace", "traces.trace", "4bf92f3577b34da623ce929d0e0e4736", "--samples")),
    ("trace_failed", None, ("trace", "traces.trace", "00000000000000aa00000000000000bb")),
    ("sql", 80, ("sql", "now.trace", "SELECT query_id, query, cpu_time_ns FROM query_log LIMIT 2;"
                 "SELECT traceToText(trace) AS stack FROM trace_log ORDER BY timestamp_ns LIMIT 1")),
    ("sql_line", None, ("sql", "now.trace", "SELECT query_id, cpu_time_ns, NULL AS none, query FROM query_log WHERE cpu_time_ns > 100000000", "--format", "line")),
)

# File of golden/, exit status, arguments. The text is the same at every width, because it is a sentence or programs
# read it. tests/record/test_messages.py and tests/push/test_pull.py test the messages of record and pull about runs.
ALIKE = (
    ("check", 1, ("check", "plans.trace", "--max-scan", "10", "--no-sort", "--max-time", "250ms")),
    ("push", 0, ("push", "--dry-run", "now.trace", "http://clickhouse:8123/")),
    ("pull", 1, ("pull", "SERVER", "-o", "made.trace")),
    ("metrics", 0, ("metrics", "plans.trace", "--limit", "2")),
    ("mcp", 1, ("mcp", "nowhere")),
    ("attach", 1, ("attach", "-o", "made.trace", "4194304")),
    ("record", 127, ("record", "-o", "made.trace", "--", "./nowhere")),
    ("top", 1, ("top", "now.trace")),
    ("live", 2, ("live", "now.trace", "--port", "0")), # tests/page tests its page
    ("dump", 1, ("dump", "now.trace")), # tests/live tests its display of programs
    ("advise", 1, ("advise", "plans.trace", "--database", "nowhere.db")),
    ("analyze", 1, ("analyze", "nowhere.db", "SELECT 1")),
)


def make(path, *scripts):
    with contextlib.closing(sqlite3.connect(path)) as db:
        for script in (SCHEMA, *scripts):
            with open(os.path.join(HERE, script), encoding="utf-8") as file:
                db.executescript(file.read())
        db.execute("PRAGMA application_id = %d" % 0x51505246)
        db.execute("PRAGMA user_version = %d" % trace_file.version(SCHEMA))
        db.commit()


class Handler(http.server.BaseHTTPRequestHandler):
    """A server other than ClickHouse."""
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


class Golden(Tool):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.chdir(cls.folder)
        make("now.trace", "fixed.sql")
        make("later.trace", "fixed.sql", "fixed_later.sql")
        make("large.trace", "fixed.sql", "fixed_large.sql")
        make("plans.trace", "fixed.sql", "fixed_plans.sql")
        make("pages.trace", "fixed.sql", "fixed_plans.sql", "fixed_pages.sql")
        make("callers.trace", "fixed.sql", "fixed_callers.sql")
        make("traces.trace", "fixed.sql", "fixed_traces.sql")
        make("named.trace", "fixed.sql")

    def compare(self, name, out):
        path = os.path.join(HERE, "golden", name + ("" if "." in name else ".txt"))
        if os.environ.get("QUERYPROF_TEST_GOLDEN") == "write":
            with open(path, "w", encoding="utf-8") as file:
                file.write(out)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(out, file.read())

    def test_reports(self):
        for name, columns, arguments in REPORTS:
            with self.subTest(name):
                out = self.output(*arguments, columns=columns)
                self.compare(name, out)
                if columns and arguments[0] != "export":  # stacks are for programs
                    self.assertLessEqual(max(map(len, out.splitlines())), columns)

    def test_what_is_alike_at_every_width(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        url = "http://127.0.0.1:%d/" % server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        for name, wanted, arguments in ALIKE:
            for columns in None, 80, 120, 200:
                with self.subTest(name, columns=columns):
                    status, out, err = run(*(url if each == "SERVER" else each for each in arguments), columns=columns)
                    self.assertEqual(status, wanted, err)
                    self.compare(name, (out + err).replace(url, "http://server/"))

    def test_that_every_command_is_there(self):
        status, out, err = run("--help")
        self.assertEqual((status, err), (0, ""))
        commands = set(re.findall(r"(?m)^  ([a-z]+)   +[A-Z]", out))
        self.assertGreater(len(commands), 10)
        shown = {}
        for _, columns, arguments in REPORTS:
            shown.setdefault(arguments[0], set()).add(columns)
        self.assertEqual(set(shown) | {arguments[0] for *_, arguments in ALIKE}, commands)
        for command, columns in shown.items():
            self.assertLessEqual({None, 80, 120, 200}, columns, command)

    def test_that_nothing_else_is_there(self):
        names = {name + ("" if "." in name else ".txt") for name, *_ in REPORTS + ALIKE} | {"mistakes.txt"}
        self.assertEqual(set(os.listdir(os.path.join(HERE, "golden"))), names)


if __name__ == "__main__":
    main()
