#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof findings on small programs (programs.py), half of them without a fault: the share of faults that it finds, and
the share of its findings that are faults.

usage: test_findings.py QUERYPROF [PROGRAM...]"""

import concurrent.futures
import json
import os
import re
import sqlite3
import sys
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from recording import *
import programs
import programs_apart

NAMES = {**programs.PROGRAMS, **programs_apart.PROGRAMS}
WANTED = [name for name in sys.argv[1:] if name in NAMES]
sys.argv = [argument for argument in sys.argv if argument not in NAMES]
PRECISION, RECALL = 0.95, 0.9
# Allows for Python's time in the program's own clock, for the error of samples, and for time in a run queue.
MOST = 1.3


class Findings(Recording):
    def setUp(self):
        super().setUp()
        self.databases = tempfile.mkdtemp(dir=".")  # on a disk, so that transactions wait for it
        self.addCleanup(shutil.rmtree, self.databases, True)
        self.made, self.making = {}, threading.Lock()

    def make(self, database, setup):
        """Makes the database. Many programs begin with the same content, which is made once and copied."""
        with self.making:
            if setup not in self.made:
                self.made[setup] = os.path.join(self.databases, "%d.made" % len(self.made))
                db = sqlite3.connect(self.made[setup])
                db.executescript(setup)
                db.close()
        shutil.copy(self.made[setup], database)

    def find(self, program, source, *options):
        """Records the program. Returns the findings, and the time in ms by the program's own clock."""
        database = os.path.join(self.databases, program.name + ".db")
        trace = os.path.join(self.folder, program.name + ".trace")
        self.make(database, program.setup)
        done = subprocess.run([QUERYPROF, "record", "--quiet", "-o", trace, *([] if program.finding in ("checkpoint", "repeated_reads", "cache_spill", "read_locks") or program.name.startswith(("fine_load", "fine_reads")) else ["--no-symbols"]), "--cpu", "1ms", "--setting",
                               "query_profiler_max_overhead_percent=0", *options, "--", PYTHON,
                               source.__file__, program.name, database], capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, program.name + done.stdout + done.stderr)
        found = subprocess.run([QUERYPROF, "findings", trace, "--format", "json"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((found.returncode, found.stderr), (0, ""), program.name)
        return json.loads(found.stdout), int(done.stdout.split()[0]) / 1e6

    def test_without_waits(self):
        """Without samples of waits, as on a quiet machine, the file has no samples of that type."""
        found, took = self.find(programs.PROGRAMS["scan_one_column"], programs, "--off-cpu", "0")
        self.assertEqual([one["finding"] for one in found], ["unindexed_scan"])
        self.assertGreater(found[0]["saved_ms"], 0.5 * took)

    def uses(self, program, query, cure):
        """Returns whether SQLite searches an index of the cure for this statement. True if the cure is not only indexes, or if
        the program creates the table."""
        made = re.findall(r'CREATE INDEX "[^;]*;', cure) if cure.startswith(("CREATE INDEX", "if OR")) else []
        database = os.path.join(self.databases, program.name + ".cured")
        if not made:
            return True
        self.make(database, program.setup)
        db = sqlite3.connect(database)
        self.addCleanup(db.close)
        values = []
        for attempt in range(2):
            try:
                if not attempt:
                    db.execute("PRAGMA foreign_keys = ON")
                    for text in made:
                        db.execute(text)
                plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + query, values) if row[3].startswith("SEARCH ")]
                return any("INDEX " + text.split('"')[1] in line for text in made for line in plan)
            except sqlite3.ProgrammingError as error:  # the statement has parameters
                values = [None] * int(re.search(r"uses (\d+)", str(error))[1])
            except sqlite3.OperationalError as error:
                self.assertRegex(str(error), "no such (table|function)|unknown database|syntax error", program.name)
                return True
        return False

    def check(self, name, source):
        chosen = [program for program in source.PROGRAMS.values() if not WANTED or program.name in WANTED]
        right, false, missed, wrong, useless = 0, [], [], [], []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda program: self.find(program, source), chosen))
        for program, (found, took) in zip(chosen, results):
            if WANTED:
                print(program.name, took, json.dumps(found, indent=1))
            is_found = False
            for one in found:
                if one["finding"] == program.finding and program.text in one["query"]:
                    is_found = True
                    if not self.uses(program, one["query"], one["cure"]) or (program.cure or "") not in one["cure"] + one["evidence"]:
                        useless.append((program.name, one["cure"]))
                    if (one["saved_ms"] or 0) > MOST * took:
                        wrong.append((program.name, one["saved_ms"], took))
                elif one["finding"] not in (program.also or "").split():
                    false.append((program.name, one["finding"], one["share_%"], one["query"][:60]))
            right += is_found
            if program.finding and not is_found:
                missed.append((program.name, program.finding))
        faults = right + len(missed)
        said = right + len(false)
        text = name + ": %d programs, %d faults; found %d (recall %.3f), said %d (precision %.3f)" % (
            len(chosen), faults, right, right / max(faults, 1), said, right / max(said, 1))
        print(text, *("missed: %s" % (one,) for one in missed), *("false: %s" % (one,) for one in false), sep="\n", flush=True)
        self.assertEqual(wrong, [], "saved more than the statement took")
        self.assertEqual(useless, [], "other cures, or indexes that SQLite does not search for the statement")
        self.assertGreaterEqual(right, RECALL * faults, text)
        self.assertGreaterEqual(right, PRECISION * said, text)

    def test_programs(self):
        self.check("programs", programs)

    def test_programs_apart(self):
        self.check("apart", programs_apart)


if __name__ == "__main__":
    unittest.main(verbosity=2)
