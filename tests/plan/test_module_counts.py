#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Loops and rows of virtual tables of the program: those that its module counted itself.

usage: test_module_counts.py QUERYPROF HOST"""

import collections
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

COMMAND, HOST = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]

# A row is missing if the statement had no sample.
CHECKED_LEAST = 0.8
TRIES = 10
# Only runs in which the module used its 40 ms. Other runs of the same statement may have a sample by chance.
CPU_LEAST_NS = 20_000_000


def number_of(text):
    """A statement has its number in an alias or a literal. All other numbers are less than 1000."""
    return max(map(int, re.findall(r"\d+", text)))


class Counts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = os.path.join(self.folder.name, "trace")

    def record(self):
        """Returns the truth: the kind of each statement, and the loops and rows for each number of xBestIndex."""
        alone = subprocess.run([HOST], check=True, stdout=subprocess.PIPE, text=True).stdout
        recorded = subprocess.run([COMMAND, "record", "-o", self.trace, "--cpu", "1ms", "--setting",
                                   "query_profiler_max_overhead_percent=0", "--", HOST], check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout
        self.assertEqual(recorded, alone)
        kinds, truth = {}, collections.defaultdict(dict)
        for line in alone.splitlines():
            kind, *fields = line.split("\t")
            if len(fields) == 4:
                statement, index, loops, rows = map(int, fields)
                kinds[statement] = kind
                truth[statement][index] = (loops, rows)
        return kinds, truth

    def counted(self):
        """The newest long run of each statement: loops and rows for each number of xBestIndex."""
        db = sqlite3.connect(self.trace)
        counted = collections.defaultdict(dict)
        for query, text in db.execute("SELECT q.id, s.query FROM queries AS q JOIN statements AS s ON s.id = q.statement "
                                      "WHERE q.id IN (SELECT query FROM plan_loops WHERE node > 0) AND q.cpu_time_ns > ? ORDER BY q.id",
                                      (CPU_LEAST_NS,)):
            pairs = collections.defaultdict(lambda: (0, 0))
            for detail, loops, rows in db.execute("SELECT detail, loops, rows FROM plan_loops AS l JOIN queries AS q ON q.id = l.query "
                                                  "JOIN plan_nodes AS n ON n.program = q.program AND n.node = l.node WHERE q.id = ?", (query,)):
                index = int(re.search(r"VIRTUAL TABLE INDEX (\d+):", detail)[1])
                pairs[index] = (pairs[index][0] + loops, pairs[index][1] + rows)
            counted[number_of(text)] = pairs
        db.close()
        return counted

    def check(self, kind, truth, counted):
        """Loops that never began are not in the truth."""
        began = {index: pair for index, pair in counted.items() if pair != (0, 0)}
        self.assertEqual(began, {} if kind == "unclear" else {index: truth[index] for index in began} if kind == "nesting" else truth)

    def reasons(self):
        """Why plans are missing. Any other statement may have a sample by chance, and no plan."""
        db = sqlite3.connect(self.trace)
        reasons = db.execute("SELECT DISTINCT reason FROM missing_plans WHERE reason LIKE '%virtual table%'").fetchall()
        db.close()
        return reasons

    def test_equal_those_of_the_module(self):
        share, reasons = 0, []
        for _ in range(TRIES):
            kinds, truth = self.record()
            counted = self.counted()
            for statement, kind in kinds.items():
                if statement in counted:
                    with self.subTest(statement):
                        self.check(kind, truth[statement], counted[statement])
            share = len([statement for statement in kinds if statement in counted]) / len(kinds)
            reasons = self.reasons()
            if share >= CHECKED_LEAST and reasons:
                break
        self.assertGreaterEqual(share, CHECKED_LEAST)
        self.assertEqual(reasons, [("the statement has a virtual table, and SQLite would report it to the error log once more",)])


if __name__ == "__main__":
    unittest.main()
