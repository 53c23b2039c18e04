# SPDX-License-Identifier: Apache-2.0
"""Running the queryprof command in tests: a unittest.TestCase with a trace file.

usage of each test: TEST QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import csv
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import hangs
import trace_file

QUERYPROF, SOURCE, FIXTURE = sys.argv[1:4]
SCHEMA = os.path.join(SOURCE, "sql", "schema", "store_schema.sql")
BUILD_ID = "a1b2c3d4e5f60718"
# The command has sanitizers; other programs do not.
SANITIZED = bool(os.environ.get("ASAN_OPTIONS") or os.environ.get("TSAN_OPTIONS"))


def environment(columns=None, **variables):
    kept = {name: value for name, value in os.environ.items()
            if name not in ("COLUMNS", "LC_ALL", "LANG", "LC_CTYPE")}
    kept["LC_ALL"] = "C.UTF-8"
    if columns:
        kept["COLUMNS"] = str(columns)
    return dict(kept, **variables)


def run(*arguments, columns=None, stdin=""):
    done = subprocess.run([QUERYPROF, *arguments], input=stdin, capture_output=True, text=True, encoding="utf-8",
                          errors="replace", env=environment(columns), timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


class Tool(unittest.TestCase):
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


def main():
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[4:]])
