#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of statements with virtual tables of the program. Each plan is the plan that SQLite made from the modules' answers,
and the modules are queried and used exactly as without queryprof.

usage: test_modules.py QUERYPROF HOST MODULE_LIBRARY"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

COMMAND, HOST, MODULE = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]

SPATIALITE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, cached_statements=0)
db.enable_load_extension(True)
db.load_extension("mod_spatialite")
"""
MAKE = """
db.execute("SELECT InitSpatialMetadata(1)")
db.execute("CREATE TABLE p(id INTEGER PRIMARY KEY)")
db.execute("SELECT AddGeometryColumn('p', 'g', 4326, 'POINT', 'XY')")
db.execute("SELECT CreateSpatialIndex('p', 'g')")
for i in range(50):
    db.execute("INSERT INTO p VALUES (?, MakePoint(?, ?, 4326))", (i, i % 7, i % 5))
"""
ASK = """
for sql in ("SELECT count(*) FROM p WHERE id IN (SELECT ROWID FROM SpatialIndex WHERE f_table_name = 'p' AND search_frame = BuildMbr(1, 1, 2, 2))",
            "SELECT count(*) FROM ElementaryGeometries WHERE f_table_name = 'p' AND origin_rowid = 3"):
    for _ in range(20):
        db.execute(sql).fetchall()
    print(sql, "|".join(sorted(row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql))), sep="\\t")
"""

PLANS_LEAST = 10
# Reading plans may take 5 ms and one per cent of the time. A busy machine may use that up immediately, so the host runs
# again.
TRIES = 10


class Modules(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = os.path.join(self.folder.name, "trace")

    def run_both(self, *arguments):
        """The host prints the same alone and recorded. Returns its output."""
        alone = subprocess.run([HOST, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout
        recorded = subprocess.run([COMMAND, "record", "-o", self.trace, "--cpu", "1ms", "--", HOST, *arguments], check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout
        self.assertEqual(recorded, alone)
        return alone

    def read(self, sql):
        db = sqlite3.connect(self.trace)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def check_plans(self):
        """Checks the host's plans. Returns the number of plans with tables of modules, and the modules' names."""
        expected = {}
        for line in self.run_both("plans").splitlines():
            if line.startswith("plan\t"):
                _, text, *details = line.split("\t")
                expected[text.split(" FROM ")[0]] = sorted(details)
        found = 0
        for text, plan in self.read("SELECT query, plan FROM programs JOIN plans USING (plan_hash) JOIN statements AS s ON s.id = statement "
                                    "WHERE query LIKE 'SELECT%r0.a AS n%'"):
            self.assertEqual(sorted(line.strip() for line in plan.splitlines()), expected[text.split(" FROM ")[0]], text)
            found += "VIRTUAL TABLE" in plan
        self.assertEqual(self.read("SELECT reason FROM missing_plans WHERE reason LIKE '%again%'"), [])
        return found, {name for name, in self.read("SELECT compared FROM plan_nodes WHERE detail LIKE '% VIRTUAL TABLE INDEX %'")}

    def test_plans_are_those_of_the_host(self):
        found, names = 0, set()
        for _ in range(TRIES):
            count, modules = self.check_plans()
            found += count
            names |= modules
            if found >= PLANS_LEAST and len(names) == 2:
                break
        self.assertGreaterEqual(found, PLANS_LEAST)
        self.assertEqual(names, {"module finding", "module random"})

    def test_spatialite(self):
        """An extension with a dozen modules, whose functions query their own tables meanwhile."""
        database = os.path.join(self.folder.name, "db")
        subprocess.run(["/usr/bin/python3", "-c", SPATIALITE + MAKE, database], check=True, stdout=subprocess.DEVNULL)
        plans = {}
        for _ in range(TRIES):
            printed = subprocess.run([COMMAND, "record", "-o", self.trace, "--", "/usr/bin/python3", "-c", SPATIALITE + ASK, database],
                                     check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            expected = dict(line.split("\t") for line in printed.splitlines())
            for text, plan in self.read("SELECT query, plan FROM programs JOIN plans USING (plan_hash) JOIN statements AS s ON s.id = statement"):
                plans[text] = "|".join(sorted(line.strip() for line in plan.splitlines()))
            if len([text for text in expected if text in plans]) == 2:
                break
        self.assertEqual({text: plans.get(text) for text in expected}, expected)

    def test_threads_share_a_cache(self):
        self.run_both("threads")

    def test_modules_in_allocated_memory(self):
        self.run_both("memory")

    def test_unloaded_library(self):
        """Unloads the library more often than there is room for modules."""
        self.run_both("unload", MODULE)

    def test_unloaded_library_of_an_open_connection(self):
        self.run_both("stale", MODULE)

    def test_statements_prepared_while_a_plan_is_read(self):
        for _ in range(TRIES):
            self.run_both("nested")
            if self.read("SELECT 1 FROM programs JOIN statements AS s ON s.id = statement WHERE query LIKE 'SELECT DISTINCT%'"):
                break
        else:
            self.fail("no plan was read")

    def test_text_of_an_index_that_is_none(self):
        self.run_both("bytes")


if __name__ == "__main__":
    unittest.main()
