#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A test of a recorded program, as a template: all runs of a statement are counted.

usage: test_recorded.py QUERYPROF [unittest arguments]"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

PROGRAM = """
import sqlite3
db = sqlite3.connect(":memory:")
for i in range(1000):
    db.execute("SELECT ?", (i,)).fetchall()
"""


class Counted(Recording):
    def test_runs(self):
        done = self.record(PYTHON, "-c", PROGRAM)
        self.assertEqual(done.returncode, 0, self.seen)
        self.assertEqual(self.rows("SELECT calls FROM statement_stats WHERE query = 'SELECT ?'"), [(1000,)], self.seen)


if __name__ == "__main__":
    unittest.main(verbosity=2)
