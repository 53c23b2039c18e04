#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Labels on the command line: filters, sums and exports. Other readers of a trace file with labels
(go tool pprof, if installed).

usage: test_commands.py QUERYPROF LIBRARY [unittest arguments]"""

import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

QUERYPROF, LIBRARY = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
PYTHON = "/usr/bin/python3"

# Tenant a has two runs, b has one. Comments contain the route, and one run has no label.
PROGRAM = """
import sqlite3, sys
db = sqlite3.connect(":memory:", isolation_level=None)
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
db.execute("PRAGMA query_profiler_cpu_time_period_ns = 0")
db.execute("SELECT set_setting('query_profiler_max_overhead_percent', '0')").fetchall()
spin = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT count(*) FROM n"
for tenant, comment in ("a", " /*route='users'*/"), ("a", " /*route='posts'*/"), ("b", " /*route='users'*/"), (None, ""):
    db.execute("SELECT set_label('tenant', ?)", (tenant,))
    db.execute("SELECT set_label('bytes', ?)", (4096 if tenant == "b" else None,))
    db.execute("SELECT set_setting('query_id', ?)", (str(tenant) + comment[3:-2],))
    # From here on: to parse what sets labels may be sampled, too, on a slow machine.
    db.execute("PRAGMA query_profiler_cpu_time_period_ns = 1000000")
    db.execute(spin + comment).fetchall()
    db.execute("PRAGMA query_profiler_cpu_time_period_ns = 0")
"""


class Commands(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-label-commands-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        subprocess.run([PYTHON, "-c", PROGRAM, LIBRARY], check=True,
                       env={**os.environ, "QUERYPROF_TRACE_LOG_PATH": cls.trace})

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_command(self, command, *arguments, fails=False):
        done = subprocess.run([QUERYPROF, command, self.trace, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode != 0, fails, done.stdout + done.stderr)
        return done.stderr if fails else done.stdout

    def table(self, command, *arguments):
        return list(csv.DictReader(io.StringIO(self.run_command(command, *arguments, "--format", "csv"))))

    def ids(self, *arguments):
        return sorted(row["query_id"] for row in self.table("queries", "--runs", *arguments))

    def test_filter(self):
        everything = ["None", "aroute='posts'", "aroute='users'", "broute='users'"]
        self.assertEqual(sorted(set(self.ids()) & set(everything)), everything)
        self.assertEqual(self.ids("--label", "tenant=a"), everything[1:3])
        self.assertEqual(self.ids("--label", "route=users"), everything[2:])
        self.assertEqual(self.ids("--label", "bytes=4096"), everything[3:])
        self.assertEqual(self.ids("--label", "route=users", "--query", "broute='users'"), everything[3:])
        self.assertIn("no run matches --label tenant=c", self.run_command("queries", "--label", "tenant=c", fails=True))
        self.assertIn("--label tenant; expected KEY=VALUE", self.run_command("queries", "--label", "tenant", fails=True))
        self.assertIn("--label =x", self.run_command("queries", "--label", "=x", fails=True))
        # There is one statement, and its two runs with the label count.
        statements = [row for row in self.table("queries", "--label", "tenant=a") if "RECURSIVE" in row["query"]]
        self.assertEqual([row["logged"] for row in statements], ["2"])
        self.assertIn("n(i)", self.run_command("report", "--label", "tenant=b"))
        # Both sides are the same file. Tenant a has two runs in each.
        changed = self.run_command("diff", self.trace, "--label", "tenant=a")
        self.assertRegex(changed, r"(?m)^runs +2 +2 ")

    def test_sums(self):
        # The program sets the labels, so a run's labels are known only from its samples.
        rows = {row["label"]: row for row in self.table("queries", "--by", "label:tenant")}
        # On a busy machine the PRAGMA that ends sampling may have a sample, too.
        runs = self.table("queries", "--by", "label:tenant", "--like", "RECURSIVE")
        self.assertEqual({row["label"]: row["sampled_runs"] for row in runs if row["label"]}, {"a": "2", "b": "1"})
        self.assertAlmostEqual(sum(float(row["percent"]) for row in rows.values()), 100, delta=0.5)
        with sqlite3.connect(self.trace) as db:
            total, = db.execute("SELECT sum(value) / 1e6 FROM trace_log WHERE labels->>'tenant' = 'a'").fetchone()
        self.assertAlmostEqual(float(rows["a"]["sampled_cpu_ms"]), total, delta=0.1)
        routes = {row["label"]: row["sampled_runs"]
                  for row in self.table("queries", "--by", "label:route", "--label", "tenant=a", "--like", "RECURSIVE")}
        self.assertEqual(routes, {"users": "1", "posts": "1"})
        self.assertIn("label:KEY", self.run_command("queries", "--by", "label:", fails=True))

    def export(self, form, *arguments):
        path = os.path.join(self.folder, "out")
        self.run_command("export", "--format", form, "-o", path, *arguments)
        return path

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_root(self):
        lines = self.read(self.export("collapsed", "--root", "label:route")).splitlines()
        self.assertEqual({line.split(";")[0] for line in lines}, {"users", "posts", "(no route)"})
        whole = sum(int(line.rpartition(" ")[2]) for line in self.read(self.export("collapsed")).splitlines())
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), whole)
        page = json.loads(self.read(self.export("speedscope", "--root", "label:tenant")))
        names = [frame["name"] for frame in page["shared"]["frames"]]
        roots = {names[stack[0]] for profile in page["profiles"] for stack in profile["samples"]}
        self.assertEqual(roots, {"a", "b", "(no tenant)"})
        self.assertIn("--root does not apply to json, only to collapsed, speedscope\n", self.run_command("export", "--format", "json", "-o", "-", "--root", "label:a", fails=True))

    def test_json(self):
        page = json.loads(self.read(self.export("json", "--label", "tenant=b", "--like", "RECURSIVE")))
        self.assertEqual([labels["labels"] for labels in page["labels"]], [{"bytes": 4096, "route": "users", "tenant": "b"}])

    def test_pprof(self):
        go = shutil.which("go")
        if not go:
            self.skipTest("go is not installed: tools/setup --all")

        def top(*options):
            # pprof leaves small nodes out of its sums, unless an option makes it show all nodes.
            done = subprocess.run([go, "tool", "pprof", "-top", "-unit=ms", "-nodefraction=0", "-nodecount=100000",
                                   *options, self.export("pprof")], capture_output=True, text=True, check=True,
                                  env={**os.environ, "HOME": self.folder})
            return done.stdout

        def shown(text):
            return float(re.search(r"accounting for ([0-9.]+)ms", text)[1])

        whole, tenant = shown(top()), shown(top("-tagfocus=tenant=a"))
        self.assertLess(tenant, whole)
        with sqlite3.connect(self.trace) as db:
            expected, = db.execute("SELECT sum(value) / 1e6 FROM trace_log WHERE labels->>'tenant' = 'a'").fetchone()
        self.assertAlmostEqual(tenant, expected, delta=1)
        self.assertEqual(shown(top("-tagfocus=bytes=4kb:4kb")), shown(top("-tagfocus=tenant=b")))
        self.assertRegex(top("-tagroot=route", "-cum"), r"\busers\b")

    def test_history(self):
        """A connection's labels have no trampolines, so the file has only the header."""
        text = self.read(self.export("label-history"))
        self.assertEqual(text, "hostname,process_id,trampoline,address,key,value,from_ns,until_ns\n")


if __name__ == "__main__":
    unittest.main()
