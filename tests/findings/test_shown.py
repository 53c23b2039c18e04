#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""record and report show findings in at most five lines, and record only for a new file with enough samples.

    test_shown.py QUERYPROF
"""
import os
import subprocess
import sys
import tempfile
import unittest

QUERYPROF = sys.argv.pop(1)
PROGRAM = """
import sqlite3, sys
db = sqlite3.connect(":memory:", isolation_level=None)
tables = ["one", "two", "three", "four", "five", "six"][:int(sys.argv[1])]
for name in tables:
    db.execute("CREATE TABLE %s (a INTEGER, b INTEGER)" % name)
    db.executemany("INSERT INTO %s VALUES (?, 0)" % name, ((i,) for i in range(20000)))
for i in range(int(sys.argv[2])):
    for name in tables:
        db.execute("SELECT b FROM %s WHERE a = ?" % name, (i,)).fetchall()
"""


class Shown(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def record(self, *words, options=()):
        # On a busy machine, the one second in which record looks for findings may be too short, but not every time.
        for _ in range(20):
            # Without the budget, because record looks for findings only if there are 20 samples.
            done = subprocess.run([QUERYPROF, "record", "-o", "app.trace", "--cpu", "1ms", "--setting", "query_profiler_max_overhead_percent=0",
                                   *options, "--", sys.executable, "-c", PROGRAM, *map(str, words)],
                                  cwd=self.folder, capture_output=True, text=True, timeout=300, check=True)
            if "the findings take longer" not in done.stderr:
                break
            if "--append" not in options:
                options = [*options, "--new"]
        return [line for line in done.stderr.splitlines() if "_scan)" in line or "queryprof findings" in line]

    def test_record(self):
        lines = self.record(1, 500)
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[0], r"^queryprof: \d+ %: full scan of one to find rows by a \(unindexed_scan\) \[[0-9a-f]{8}\]$")
        self.assertEqual(lines[1], "queryprof: evidence and cures: queryprof findings app.trace")
        self.assertEqual(self.record(1, 200, options=["--append"]), [])
        self.assertEqual(self.record(1, 200, options=["--new", "--quiet"]), [])
        self.assertEqual(self.record(1, 1, options=["--new", "--setting", "query_profiler_cpu_time_period_ns=0"]), [])

    def test_five_lines(self):
        self.assertEqual(len(self.record(6, 100)), 5)
        report = subprocess.run([QUERYPROF, "report", "app.trace"], cwd=self.folder, capture_output=True, text=True, timeout=300, check=True).stdout
        lines = report[:report.index("\n\n")].splitlines()
        self.assertEqual(len(lines), 5, report)
        self.assertRegex(lines[0], r"^Findings, by what a change could save: 4 of [67]; queryprof findings has the cures$")
        for line in lines[1:]:
            self.assertRegex(line, r"^\d+ %: full scan of \w+")
        no_sample = subprocess.run([QUERYPROF, "report", "app.trace", "CREATE TABLE one"], cwd=self.folder, capture_output=True, text=True,
                                   timeout=300, check=True).stdout
        self.assertNotIn("Findings", no_sample)


if __name__ == "__main__":
    unittest.main()
