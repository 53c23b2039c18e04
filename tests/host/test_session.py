#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The session of the README, in the stock sqlite3 shell and in Python: load the library, set a
period, run a slow query, and see in SQL where the time went.

usage: test_session.py LIBRARY
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.path.splitext(os.path.abspath(sys.argv.pop(1)))[0]  # without the suffix, as .load accepts it
# Also for the shell. On a busy machine the budget would leave few samples, and important functions without one.
os.environ["QUERYPROF_QUERY_PROFILER_MAX_OVERHEAD_PERCENT"] = "0"

# Takes about a second, so that hundreds of samples hit every important function.
SLOW = """SELECT sum(words.rowid * 7 % 13 + length(word)) FROM words, (VALUES (1), (2), (3), (4), (5)), (VALUES (1), (2), (3), (4))
    WHERE word NOT LIKE '%a%e%i%o%u%9%z%'"""
TOP_SYMBOLS = """SELECT sum(weight) AS n, demangle(addressToSymbol(trace->>0)) AS symbol
    FROM system.trace_log WHERE trace_type = 'CPU' GROUP BY symbol ORDER BY n DESC LIMIT 10"""
TOP_STACKS = """SELECT sum(weight) AS n, traceToText(trace) FROM trace_log
    WHERE query_id = (SELECT query_id FROM query_log ORDER BY cpu_time_ns DESC LIMIT 1)
    GROUP BY trace ORDER BY n DESC LIMIT 5"""


def make_database(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE words(word)")
        db.execute("""WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200000)
            INSERT INTO words SELECT 'a' || hex(x * 7919) || ' eio ' || hex(x) || ' u ' || x FROM c""")
    db.close()


class Session(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.database = os.path.join(cls.directory.name, "app.db")
        make_database(cls.database)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def shell(self, script):
        done = subprocess.run(["sqlite3", "-batch", "-json", self.database], input=script, text=True,
                              capture_output=True, timeout=300)
        return done.stdout, done.stderr

    def check_profile(self, symbols, stacks, bottom):
        """symbols: rows (n, symbol); stacks: rows (n, text)."""
        names = [symbol for _, symbol in symbols]
        self.assertIn("sqlite3VdbeExec", names, names)
        self.assertIn("patternCompare", names, names)
        self.assertGreater(sum(n for n, _ in symbols), 50)
        frames = stacks[0][1].split("\n")
        self.assertIn("sqlite3VdbeExec", frames, frames)
        self.assertIn(bottom, frames, frames)
        self.assertLess(frames.index("sqlite3VdbeExec"), frames.index(bottom), "leaf first")

    def test_shell(self):
        import json

        out, err = self.shell(f""".load {LIBRARY}
PRAGMA query_profiler_cpu_time_period_ns = 1000000;
PRAGMA query_profiler_real_time_period_ns = 1000000;
{SLOW};
.print ---
{TOP_SYMBOLS};
.print ---
{TOP_STACKS};
""")
        self.assertEqual(err, "")
        _, symbols, stacks = out.split("---\n")
        self.check_profile([tuple(row.values()) for row in json.loads(symbols)],
                           [tuple(row.values()) for row in json.loads(stacks)], "main")

    def test_python(self):
        db = sqlite3.connect(self.database)
        db.enable_load_extension(True)
        db.load_extension(LIBRARY)
        db.execute("PRAGMA query_profiler_cpu_time_period_ns = 1000000")
        db.execute("PRAGMA query_profiler_real_time_period_ns = 1000000")
        db.execute(SLOW).fetchall()
        symbols = db.execute(TOP_SYMBOLS).fetchall()
        stacks = db.execute(TOP_STACKS).fetchall()
        # The interpreter's main() calls this function by a tail call, so its own frame is gone.
        self.check_profile(symbols, stacks, "Py_BytesMain")
        db.close()

    def test_refused_value_changes_nothing(self):
        out, err = self.shell(f""".load {LIBRARY}
PRAGMA query_profiler_cpu_time_period_ns = 5;
SELECT value FROM system.settings WHERE name = 'query_profiler_cpu_time_period_ns';
""")
        self.assertIn("query_profiler_cpu_time_period_ns", err)
        self.assertIn("= 5", err)
        self.assertIn("10us", err, "says what is allowed")
        self.assertIn("10000000", out, "the default is still in force")


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
