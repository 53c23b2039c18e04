#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The output of --format json has exactly the members in docs/output.schema.json. Skipped without python3-jsonschema.

usage: as tool.py"""

import contextlib
import json
import os
import re
import sqlite3

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import output_schema
import trace_file
from tool import *

FIXED = "fixed.sql", "fixed_plans.sql", "fixed_callers.sql", "fixed_traces.sql", "fixed_pages.sql"
# For each definition of the schema: command lines, in which FILE is a trace file.
OUTPUTS = {
    "findings": (("findings", "FILE"),),
    "statements": (("queries", "FILE"), ("queries", "FILE", "--by", "cpu")),
    "runs": (("queries", "FILE", "--runs"),),
    "callers": (("queries", "FILE", "--by", "caller"),),
    "labels": (("queries", "FILE", "--by", "label:route"),),
    "failed": (("queries", "FILE", "--failed"),),
    "regressed": (("queries", "FILE", "--regressed"),),
    "locks": (("locks", "FILE"),),
    "wal": (("wal", "FILE"),),
    "pages": (("pages", "FILE"), ("pages", "FILE", "--by", "btree")),
    "pages_statements": (("pages", "FILE", "--by", "statement"),),
    "pages_indexes": (("pages", "FILE", "--by", "index"),),
    "pages_times": (("pages", "FILE", "--by", "time"),),
    "traces": (("traces", "FILE"),),
    "check": (("check", "FILE", "--max-scan", "1", "--no-sort", "--max-time", "1ms"),),
    "sql": (("sql", "FILE", "SELECT 1 AS a, 'b' AS b, NULL AS c, 1.5 AS d"),),
}
EMPTY = "regressed"  # needs a plan that changed
# These need a running process or a database; tests/live and tests/advise check each output that they read.
ELSEWHERE = {"dump": {"dump", "dump_unrecorded"}, "advise": {"advise"}, "analyze": {"analyze", "compared"}}


class Schema(Tool):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.schema = output_schema.read()
        cls.trace = os.path.join(cls.folder, "fixed.trace")
        with contextlib.closing(sqlite3.connect(cls.trace)) as db:
            for script in (SCHEMA, *(os.path.join(SOURCE, "tests", "command", name) for name in FIXED)):
                with open(script, encoding="utf-8") as file:
                    db.executescript(file.read())
            db.execute("PRAGMA application_id = %d" % 0x51505246)
            db.execute("PRAGMA user_version = %d" % trace_file.version(SCHEMA))
            db.commit()

    def rows(self, words):
        status, out, err = run(*(self.trace if word == "FILE" else word for word in words), "--format", "json")
        self.assertIn(status, (0, 1), err)
        return json.loads(out)

    def test_outputs(self):
        output_schema.jsonschema.Draft202012Validator.check_schema(self.schema)
        for name, commands in OUTPUTS.items():
            for words in commands:
                rows = self.rows(words)
                self.assertEqual(output_schema.errors(name, rows), [], words)
                self.assertTrue(rows or name == EMPTY, words)

    def test_wrong_outputs(self):
        """The schema refuses an additional member, a missing member, and another type."""
        row, = self.rows(("findings", "FILE", "--limit", "1"))
        self.assertFalse(output_schema.errors("findings", [row]))
        self.assertTrue(output_schema.errors("findings", [dict(row, more=1)]))
        self.assertTrue(output_schema.errors("findings", [dict(row, saved_ms="1")]))
        self.assertTrue(output_schema.errors("findings", [{name: row[name] for name in row if name != "cure"}]))

    def test_every_command(self):
        """The lists contain each command with --format json, and each definition of the schema."""
        names = re.findall(r"^  ([a-z]+) {2,}[A-Z]", self.output("--help"), re.MULTILINE)
        with_json = {name for name in names if name != "export" and re.search(r"--format FORMAT +[^-]*\bjson\b", self.output(name, "--help"))}
        self.assertEqual(with_json - set(ELSEWHERE), {words[0] for commands in OUTPUTS.values() for words in commands})
        self.assertEqual(set(self.schema["$defs"]), set(OUTPUTS).union(*ELSEWHERE.values()))


if __name__ == "__main__":
    if not output_schema.jsonschema:
        print("skipped: no python3-jsonschema (tools/setup)")
        sys.exit(77)
    main()
