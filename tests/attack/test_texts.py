#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Texts of a trace file that would drive a terminal, or turn a line round, reach none.

usage: test_texts.py QUERYPROF SOURCE_DIR FIXTURE"""

import json
import pty
import sqlite3
import threading

from tool import *

# Escape, bell, return, C1 (as UTF-8 and as one byte), overrides and isolates of direction, ends of lines.
HOSTILE = ["\x1b[31m", "\x07", "\r", "\x7f", "\x9b", "\u202e", "\u2066", "\u200f", "\u2028", "\ufeff"]
EVIL = "SELECT 'a" + "b".join(HOSTILE) + "c'"
ALLOWED = {"\n"}
REPORTS = [["queries"], ["report"], ["report", "--like", "SELECT"], ["queries", "--statements"], ["traces"], ["locks"],
           ["sql", "SELECT query, exception FROM query_log"],
           ["sql", "SELECT path AS 'a\x1b]0;\u202eb' FROM modules"]]
FORMATS = ["table", "line", "json", "csv"]


def hostile_characters(output):
    """What is in the bytes of an output, which are UTF-8."""
    return {character for character in output.decode("utf-8") if character not in ALLOWED and
            (ord(character) < 32 or 0x7f <= ord(character) < 0xa0 or any(character in evil for evil in HOSTILE
                                                                         if not evil.isascii()))}


class Texts(Tool):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        evil = EVIL.encode() + b" \x9b\xff"
        with sqlite3.connect(cls.trace) as db:
            db.execute("UPDATE statements SET query = CAST(? AS TEXT)", (evil,))
            db.execute("UPDATE queries SET exception = CAST(? AS TEXT) WHERE exception <> ''", (evil,))
            db.execute("UPDATE processes SET hostname = ?, executable = ?", (EVIL, EVIL))
            db.execute("UPDATE threads SET thread_name = ?", (EVIL,))
            db.execute("UPDATE modules SET path = CAST(? AS TEXT)", (b"/" + evil,))
        db.close()

    def run_bytes(self, *arguments):
        done = subprocess.run([QUERYPROF, *arguments], capture_output=True, env=environment(), timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def run_on_terminal(self, *arguments):
        """What a terminal gets; nobody's pager."""
        terminal, end = pty.openpty()
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

    def arguments(self, report):
        return [report[0], self.trace, *report[1:]]

    def test_reports(self):
        for report in REPORTS:
            for form in FORMATS[:3] if report[0] in ("sql", "queries") else [None]:
                with self.subTest(report=report, form=form):
                    code, out, _ = self.run_bytes(*self.arguments(report), *(["--format", form] if form else []))
                    self.assertEqual((code, hostile_characters(out)), (0, set()), out)

    def test_on_a_terminal(self):
        for report in REPORTS:
            for form in FORMATS if report[0] in ("sql", "queries") else [None]:
                with self.subTest(report=report, form=form):
                    out = self.run_on_terminal(*self.arguments(report), *(["--format", form] if form else []))
                    self.assertEqual(hostile_characters(out), set(), out)

    def test_csv_in_a_file_is_exact(self):
        _, out, _ = self.run_bytes("sql", self.trace, "SELECT hostname FROM processes", "--format", "csv")
        self.assertIn(EVIL.encode(), out)

    def test_json_is_what_it_was(self):
        _, out, _ = self.run_bytes("sql", self.trace, "SELECT hostname FROM processes", "--format", "json")
        self.assertEqual(json.loads(out)[0]["hostname"], EVIL)

    def test_exports(self):
        for form in "collapsed", "json", "speedscope":
            with self.subTest(form=form):
                code, out, err = self.run_bytes("export", self.trace, "--format", form, "-o", "-")
                self.assertEqual((code, hostile_characters(out)), (0, set()), (out, err))

    def test_errors(self):
        name = "b".join(HOSTILE)
        for arguments in (["report", "/nowhere" + name], ["report", self.trace, "--" + name],
                          ["sql", self.trace, "SELECT no_" + name], [name]):
            with self.subTest(arguments=arguments):
                code, _, err = self.run_bytes(*arguments)
                self.assertNotEqual(code, 0)
                self.assertEqual(hostile_characters(err), set(), err)


main()
