#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every export and every view of one fixed file (golden/trace.sql) with the files in golden/.
QUERYPROF_TEST_GOLDEN=write in the environment writes them; review the difference before you keep it.

usage: test_golden.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import support
from pprof_profile import Profile

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def pretty(value):
    """JSON with one line for each item of the outer two levels."""
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f'"{key}": {pretty_list(item)}' for key, item in value.items()) + "\n}\n"
    return pretty_list(value) + "\n"


def pretty_list(value):
    if not isinstance(value, list) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join("  " + json.dumps(item, ensure_ascii=False) for item in value) + "\n]"


class Golden(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-golden-")
        cls.db = sqlite3.connect(os.path.join(cls.folder, "app.trace"))
        for path in os.path.join(support.SOURCE, "sql", "schema", "store_schema.sql"), os.path.join(GOLDEN, "trace.sql"):
            with open(path, encoding="utf-8") as file:
                cls.db.executescript(file.read())
        cls.db.executescript(f"PRAGMA application_id = 1364218438; PRAGMA user_version = {support.VERSION}")
        cls.db.commit()

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        shutil.rmtree(cls.folder)

    def check(self, name, text):
        path = os.path.join(GOLDEN, name)
        # Removes the program's own version.
        text = re.sub(r"queryprof(@| )\d+\.\d+\.\d+", r"queryprof\1VERSION", text)
        if os.environ.get("QUERYPROF_TEST_GOLDEN") == "write":
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read(), name)

    def export(self, form, *arguments):
        return subprocess.run([support.QUERYPROF, "export", "app.trace", "--format", form, "-o", "-", *arguments],
                              cwd=self.folder, capture_output=True, timeout=300, check=True).stdout

    def test_collapsed(self):
        self.check("collapsed.txt", self.export("collapsed").decode())
        self.check("collapsed_no_inlines.txt", self.export("collapsed", "--no-inlines").decode())
        self.check("collapsed_real.txt", self.export("collapsed", "--type", "Real").decode())

    def test_json(self):
        self.check("export.json", self.export("json").decode())

    def test_speedscope(self):
        self.check("speedscope.json", pretty(json.loads(self.export("speedscope"))))

    def test_pprof(self):
        profile = Profile(self.export("pprof"))
        self.check("pprof.txt", pretty({name: list(value.values()) if isinstance(value, dict) else value
                                        for name, value in vars(profile).items()}))

    @unittest.skipIf("not in this build" in support.HELP, "this build has no page")
    def test_flamegraph(self):
        page = self.export("flamegraph").decode()
        self.check("flamegraph.json", pretty(json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])))

    def test_views(self):
        views = [name for (name,) in self.db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'"
                                                     " AND name NOT IN ('trace_log', 'query_log') ORDER BY 1")]
        self.assertIn("top_functions", views)
        lines = []
        # Other tests read trace_log. This one reads only the views that depend on names.
        for view in views + ["trace_log"]:
            columns = "timestamp_ns, stack_id, trace, symbols, lines" if view == "trace_log" else "*"
            rows = self.db.execute(f"SELECT {columns} FROM {view}")
            lines += [f"{view}: {', '.join(column[0] for column in rows.description)}",
                      *("  " + json.dumps(row, ensure_ascii=False) for row in rows), ""]
        self.check("views.txt", "\n".join(lines))


support.main()
