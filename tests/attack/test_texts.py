#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Texts in a trace file that could control a terminal or reverse a line are never printed unchanged.

usage: test_texts.py QUERYPROF SOURCE_DIR FIXTURE"""

import contextlib
import json
import pty
import sqlite3
import termios
import threading

import test_golden
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tool import *

# Escape, bell, return, C1 (as UTF-8 and as one byte), overrides and isolates of direction, line ends.
HOSTILE = ["\x1b[31m", "\x07", "\r", "\x7f", "\x9b", "\u202e", "\u2066", "\u200f", "\u2028", "\ufeff"]
EVIL = "a" + "b".join(HOSTILE) + "c"
ALLOWED = {"\n"}
# Columns whose texts commands parse, so they cannot contain arbitrary text.
STRUCTURE = {"series.trace_type", "series.unit", "stacks.trace", "span_batches.spans", "label_sets.units",
             "label_sets.otel_trace_id", "label_sets.otel_span_id", "trace_contexts.otel_trace_id",
             "trace_contexts.otel_span_id"}
UNIQUE = {"names.name", "queries.query_id"}
BEGIN = {"statements.query": "SELECT ", "plan_nodes.detail": "SCAN ", "modules.path": "/"}
# Columns with JSON, in which C1 and Unicode's characters need no escapes.
IN_JSON = {"label_sets.labels": "json_object(?1, ?1)",
           "span_notes.note": """iif(is_event, '{"name":' || json_quote(?1) || ',"time_ns":1}', json_quote(?1) || ':1')"""}
# For each report, the columns of the file whose texts it shows.
REPORTS = [(["queries", "--runs"], ["queries.query_id", "statements.query"]),
           (["report"], ["statements.query", "names.name"]),
           (["report", "--like", "SELECT"], ["statements.query", "plan_nodes.detail", "plan_nodes.compared"]),
           (["findings"], ["statements.query"]),
           (["plan"], ["statements.query", "plan_nodes.detail", "plan_nodes.compared"]),
           (["plan", "--opcodes"], ["plan_nodes.detail", "program_opcodes.opcode"]),
           (["queries"], ["statements.query"]),
           (["traces"], ["span_sites.name"]),
           (["trace", "4bf9", "--samples", "--all"], ["span_sites.name", "threads.thread_name", "names.name", "span_notes.note"]),
           (["locks"], ["waits_for_locks.holder_query", "waits_for_locks.database", "waits_for_locks.own_query"]),
           (["sql", "SELECT holder_program, holder_user FROM lock_waits"], ["waits_for_locks.holder_program", "waits_for_locks.holder_user"]),
           (["diff", "TRACE"], ["statements.query", "names.name", "plans.plan"]),
           (["sql", "SELECT query, exception, labels FROM query_log"],
            ["statements.query", "queries.exception", "label_sets.labels"]),
           (["sql", "SELECT * FROM statement_stats"], ["statement_counters.database", "statement_counters.program"]),
           (["sql", "SELECT * FROM label_history"], ["label_values.key", "label_values.value"]),
           (["sql", "SELECT * FROM transaction_log"], ["transactions.first_query"]),
           (["sql", "SELECT reason FROM losses"], ["losses.reason"]),
           (["sql", "SELECT path AS 'a\x1b]0;\u202eb' FROM modules"], ["modules.path"])]
FORMATS = ["table", "line", "json", "csv"]
EXPORTS = [("collapsed", ["names.name"]), ("json", ["names.name", "statements.query", "label_sets.labels"]),
           ("speedscope", ["names.name"]), ("flamegraph", ["names.name", "statements.query", "label_sets.labels", "processes.script"]),
           ("perfetto", ["span_sites.name", "threads.thread_name", "names.name", "span_notes.note"]),
           ("otlp-traces", ["span_sites.name", "processes.hostname", "span_notes.note"])]
# Adds rows to tables that fixed.sql and fixed_traces.sql leave empty. The statement on orders has two plans.
ROWS = """
UPDATE queries SET exception_code = 517 WHERE id = (SELECT min(id) FROM queries WHERE statement = 1);
INSERT INTO libraries VALUES (1, '', '');
INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns) VALUES (1, 1, 1, 11, 0), (2, 4, 1, 12, 0);
INSERT INTO plans VALUES (11, ''), (12, '');
INSERT INTO plan_nodes VALUES (1, 1, 0, '', ''), (1, 2, 1, '', ''), (2, 1, 0, '', '');
INSERT INTO program_opcodes VALUES (1, 1, 1, '', 0, 0, 0, 0), (1, 2, 2, '', 0, 0, 0, 0), (2, 1, 1, '', 0, 0, 0, 0);
UPDATE queries SET program = iif(statement = 1, 1, 2) WHERE statement IN (1, 4);
UPDATE samples SET opcode = 1;
INSERT INTO label_sets VALUES (1, 1, 1, '', '', '', '');
INSERT INTO label_values VALUES (1, '', '', '', '');
INSERT INTO label_uses VALUES (1, 1, 1, 2, 1, 3);
UPDATE samples SET labels = 1;
UPDATE queries SET labels = 1;
INSERT INTO losses VALUES (1, '', 1, 2, 3, 0);
INSERT INTO transactions (id, process, number, session, thread_id, start_ns, duration_ns, write_ns, exclusive_ns, idle_ns,
	statements, outcome, waited_for, first, last, database, first_query, last_query)
VALUES (1, 1, 7, 1, 101, 1795000000000000000, 1000000, 1000000, 0, 0, 1, 1, 1, 1, 1, '', '', '');
INSERT INTO waits_for_locks VALUES (1, 2, 1795000001000000000, 5000000, 17, 1, 101, 1, '', 0, '', 1, 100, 101, 7, 1, 5, 6, 1, '', 'sqlite3', 'www-data');
"""


def make_hostile(path):
    """Makes a file in which each text contains the name of its column, so that a test finds it in reports."""
    test_golden.make(path, "fixed.sql", "fixed_traces.sql")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(ROWS)
        tables = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        columns = [(f"{table}.{name}", table, name) for table in tables for _, name, kind, *_ in
                   db.execute("SELECT * FROM pragma_table_info(?)", (table,)) if kind in ("TEXT", "")]
        for column, table, name in columns:
            if column in STRUCTURE:
                continue
            evil = BEGIN.get(column, "") + column + " " + EVIL
            value = IN_JSON.get(column, "CAST(?1 AS TEXT)" + (" || id" if column in UNIQUE else ""))
            db.execute(f"UPDATE {table} SET {name} = {value}",
                       (evil if column in IN_JSON else evil.encode() + b" \x9b\xff",))
        db.commit()


def hostile_characters(output):
    """Returns the hostile characters of an output, which is UTF-8."""
    return {character for character in output.decode("utf-8", "surrogateescape") if character not in ALLOWED and
            (ord(character) < 32 or 0x7f <= ord(character) < 0xa0 or "\udc80" <= character <= "\udcff" or
             any(character in evil for evil in HOSTILE if not evil.isascii()))}


class Texts(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-texts-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        make_hostile(cls.trace)

    def run_bytes(self, *arguments):
        done = subprocess.run([QUERYPROF, *arguments], capture_output=True, env=environment(), timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def run_on_terminal(self, *arguments):
        """Returns what a command prints on a terminal. The pager is cat, not the user's."""
        terminal, end = pty.openpty()
        termios.tcsetwinsize(end, (3, 1000))  # the command pages only if the terminal has a size
        output = []

        def read():
            while True:
                try:
                    part = os.read(terminal, 65536)
                except OSError:
                    return
                output.append(part)

        process = subprocess.Popen([QUERYPROF, *arguments], stdout=end, stderr=end, stdin=subprocess.DEVNULL,
                                   env=environment(PAGER="cat", TERM="dumb"))
        os.close(end)
        reader = threading.Thread(target=read)
        reader.start()
        process.wait(timeout=60)
        reader.join()
        os.close(terminal)
        return b"".join(output).replace(b"\r\n", b"\n")

    def check(self, out, columns):
        """Checks that nothing controls the terminal, and that the texts are printed."""
        self.assertEqual(hostile_characters(out), set(), out)
        for column in columns:
            self.assertIn(column, out.decode())

    def commands(self, forms):
        for report, columns in REPORTS:
            arguments = [self.trace if word == "TRACE" else word for word in report[1:]]
            for form in forms if report[0] in ("sql", "queries") else [None]:
                yield [report[0], self.trace, *arguments, *(["--format", form] if form else [])], columns
        for form, columns in EXPORTS:
            yield ["export", self.trace, "--format", form, "-o", "-"], columns

    def test_in_a_pipe(self):
        for command, columns in self.commands(FORMATS[:3]):
            with self.subTest(command=command):
                code, out, err = self.run_bytes(*command)
                self.assertEqual(code, 0, err)
                self.check(out, columns)

    def test_on_a_terminal(self):
        for command, columns in self.commands(FORMATS):
            with self.subTest(command=command):
                self.check(self.run_on_terminal(*command), columns)

    def test_csv_on_a_terminal(self):
        """On a terminal, CSV is escaped; in a pipe it is exact."""
        command = "export", self.trace, "--format", "label-history", "-o"
        self.check(self.run_on_terminal(*command, "-"), ["label_values.key", "label_values.value", "processes.hostname"])
        _, out, _ = self.run_bytes(*command, "-")
        self.assertIn(("label_values.key " + EVIL).encode(), out)

    def test_csv_in_a_file_is_exact(self):
        _, out, _ = self.run_bytes("sql", self.trace, "SELECT hostname FROM processes", "--format", "csv")
        self.assertIn(("processes.hostname " + EVIL).encode(), out)

    def test_json_is_what_it_was(self):
        _, out, _ = self.run_bytes("sql", self.trace, "SELECT hostname FROM processes", "--format", "json")
        self.assertTrue(json.loads(out)[0]["hostname"].startswith("processes.hostname " + EVIL))

    def test_completion(self):
        """Completion offers no text that could control the terminal."""
        path = os.path.join(self.folder, "completion.trace")
        test_golden.make(path, "fixed.sql")
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executemany("INSERT INTO threads VALUES (?, 1, 1, ?)", enumerate(("shop" + evil for evil in HOSTILE), 10))
            db.commit()
        code, out, _ = self.run_bytes("--complete", "4", "queries", path, "--thread", "shop")
        self.assertEqual((code, out), (0, b"shopd\n"))

    def test_errors(self):
        name = "b".join(HOSTILE)
        for arguments in (["report", "/nowhere" + name], ["report", self.trace, "--" + name],
                          ["sql", self.trace, "SELECT no_" + name], [name]):
            with self.subTest(arguments=arguments):
                code, _, err = self.run_bytes(*arguments)
                self.assertNotEqual(code, 0)
                self.assertEqual(hostile_characters(err), set(), err)


if __name__ == "__main__":
    main()
