#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A host whose SQLite is followed, and a module in a namespace of its own (dlmopen()), with thread-specific data of that
namespace's C library.

usage: test_space.py QUERYPROF SPACE MODULE"""

import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

SPACE, MODULE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))


class Space(Recording):
    def test_values_are_kept(self):
        """Both C libraries number their keys from 0, and store the values in the same place."""
        plain = subprocess.run([SPACE, MODULE], capture_output=True, text=True, timeout=300, check=True)
        self.assertEqual(plain.stdout.count("kept 16 of 16\n"), 9, plain.stdout)
        done = self.record(SPACE, MODULE, options=("--setting", "log_queries_min_query_duration_ns=0", "--setting",
                                                   "trace_statements=all"))
        self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), self.seen)
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'WITH%'"), [(13,)], self.seen)

    def test_why_it_is_not_followed(self):
        """Functions that queryprof replaces set errno where a module of another namespace does not read it. The loader
        does not list such modules."""
        plain = subprocess.run([SPACE, MODULE], capture_output=True, text=True, timeout=300, check=True)
        self.assertTrue(plain.stdout.startswith("errno is not shared\nthe module is not listed\n"), plain.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
