#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trace files of this version and of earlier ones: queryprof reads them unchanged, and the first process that writes to a file
upgrades it.

VERSION.sql is a recording of an application in that version of the format, and VERSION.json is its content. Never change them:
a new version gets two new files. QUERYPROF_TEST_GOLDEN=write writes VERSION.json if it does not exist.

usage: test_trace_files.py QUERYPROF SOURCE_DIR [unittest arguments]"""

import contextlib
import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

QUERYPROF, SOURCE = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
FUNCTIONS = "SELECT DISTINCT function FROM top_functions WHERE function LIKE 'sqlite3%' ORDER BY 1"
VERSIONS = sorted(int(os.path.basename(path)[:-4]) for path in glob.glob(os.path.join(HERE, "*.sql")))


def run(*arguments):
    return subprocess.run([QUERYPROF, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          env=dict(os.environ, COLUMNS="200", LC_ALL="C.UTF-8"), timeout=300, check=True).stdout


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [list(row) for row in db.execute(sql)]


def contents(path):
    """Returns what every version can tell: statements with their numbers, nodes of plans, waits for locks, lines of the
    program, samples, functions, and the sizes of views."""
    return {
        "queries": [[each[name] for name in ("query", "runs", "wall_ms", "cpu_ms", "rows", "failed")]
                    for each in json.loads(run("queries", path, "--format", "json"))],
        "plan": re.findall(r"^[├└│─ ]*[├└]─ (.+?)  +", run("plan", path, "note LIKE"), re.MULTILINE),
        "locks": [each["holder_query"] for each in json.loads(run("locks", path, "--format", "json"))],
        "callers": sorted({each["caller"] for each in json.loads(run("queries", path, "--by", "caller", "--format", "json"))}),
        "samples": sum(int(line.rpartition(" ")[2]) for line in run("export", path, "--format", "collapsed", "-o", "-").splitlines()),
        "functions": [each["function"] for each in json.loads(run("sql", path, "--format", "json", FUNCTIONS))],
        "views": {view: rows(path, "SELECT count(*) FROM " + view)[0][0]
                  for view in ("trace_log", "query_log", "statement_stats", "span_log", "lock_waits", "transaction_log", "top_functions")},
    }


class TraceFiles(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="queryprof-trace-files-")
        self.addCleanup(shutil.rmtree, self.folder)

    def make(self, version):
        path = os.path.join(self.folder, "%d.trace" % version)
        with contextlib.closing(sqlite3.connect(path)) as db, open(os.path.join(HERE, "%d.sql" % version), encoding="utf-8") as file:
            db.executescript(file.read())
        return path

    def expected(self, version, path):
        name = os.path.join(HERE, "%d.json" % version)
        if os.environ.get("QUERYPROF_TEST_GOLDEN") == "write" and not os.path.exists(name):
            with open(name, "w", encoding="utf-8") as file:
                json.dump(contents(path), file, indent=1, ensure_ascii=False)
                file.write("\n")
        with open(name, encoding="utf-8") as file:
            return json.load(file)

    def test_this_version_has_a_file(self):
        with open(os.path.join(SOURCE, "src/store/file/schema.h"), encoding="utf-8") as file:
            self.assertIn(int(re.search(r"#define STORE_SCHEMA_VERSION (\d+)", file.read()).group(1)), VERSIONS)

    def test_read(self):
        """Files of every version have the expected content, and reading does not upgrade them."""
        for version in VERSIONS:
            with self.subTest(version):
                path = self.make(version)
                self.assertEqual(json.loads(json.dumps(contents(path))), self.expected(version, path))
                self.assertIn("note LIKE", run("report", path))
                self.assertEqual(rows(path, "PRAGMA user_version"), [[version]])

    def test_top_views(self):
        """The command computes these views in C; sqlite3 uses the SQL of the file. Both return the same rows."""
        for version in VERSIONS:
            path = self.make(version)
            for view in "top_functions", "top_stacks":
                with self.subTest(version=version, view=view):
                    of_command = [list(row.values()) for row in json.loads(run("sql", path, "--format", "json", "SELECT * FROM " + view))]
                    self.assertGreater(len(of_command), 1)
                    self.assertCountEqual(of_command, rows(path, "SELECT * FROM " + view))

    def test_upgraded(self):
        """Another recording upgrades the file and keeps the earlier one."""
        for version in VERSIONS:
            with self.subTest(version):
                path = self.make(version)
                run("record", "--quiet", "--append", "--no-symbols", "-o", path, "--", "/usr/bin/python3", "-c",
                    # Exits without closing: on a busy machine, closing is slow enough to be logged, which could equal a row of
                    # the file.
                    "import os, sqlite3; db = sqlite3.connect(':memory:'); db.execute('SELECT 1 /* added */').fetchall(); os._exit(0)")
                self.assertEqual(rows(path, "PRAGMA user_version"), [[max(VERSIONS)]])
                found = contents(path)
                kept = self.expected(version, path)
                added = [each for each in found["queries"] if each not in kept["queries"]]
                self.assertIn("SELECT 1 /* added */", [each[0] for each in added])
                self.assertEqual([each for each in kept["queries"] if each not in found["queries"]], [])
                for what in "plan", "locks":
                    self.assertEqual(found[what], kept[what])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
