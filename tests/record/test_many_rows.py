#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof does not measure every row of a run with many rows. The run's time equals the program's own clocks within the
stated error, and long times are found in any row and between any two.

usage: test_many_rows.py QUERYPROF MANY_ROWS"""

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

MANY_ROWS = os.path.abspath(sys.argv.pop(1))
ROWS = 60000
SEEDS = int(os.environ.get("QUERYPROF_TEST_ROUNDS", 3))
TRIES = 30  # until a run is estimated
FLAG = "QUERYPROF_RECORD_SWITCH_FLAG"


class ManyRows(Recording):
    def run_many(self, seed, **environment):
        done = self.record("sh", "-c", 'echo "$%s"; exec "$0" "$@"' % FLAG, MANY_ROWS, str(ROWS), str(seed),
                           options=("--append",), env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, self.seen)
        flag, inside, lasted, longer, own_cpu, between, disturbed = map(int, done.stdout.split())
        # The program does not measure the preparation, which is part of a run if it is long.
        rows, prepare, duration, execution, error, cpu, sleep = self.rows("""SELECT result_rows, prepare_time_ns,
            query_duration_ns - prepare_time_ns, execution_time_ns - prepare_time_ns, execution_time_error_ns, cpu_time_ns,
            sleep_ns FROM query_log ORDER BY query_duration_ns DESC LIMIT 1""")[0]
        os.remove(self.trace)
        self.seen += "\nseed %d: inside %d of %d, program's clocks %d of %d, error %d, CPU %d of %d, disturbed %d, of which %d inside" % (
            seed, execution, duration, inside, lasted, error, cpu, own_cpu, disturbed, between)
        self.assertEqual(rows, ROWS, self.seen)
        # The program's clocks include the wrapper's work for a row, and everything that disturbs the thread there.
        self.assertTrue(-1000000 < lasted - duration < 0.03 * lasted + 5000000 + between, self.seen)
        near = 5 * error + 0.03 * inside + 150 * ROWS
        self.assertTrue(-near < inside - execution < near + between, self.seen)
        # There are two sleeps and a long row. One sleep belongs to the program.
        self.assertGreater(longer, 170000000)
        self.assertGreater(duration - execution, 59000000, self.seen)
        self.assertGreater(sleep, 59000000, self.seen)
        self.assertLess(sleep + cpu, prepare + execution + 1000000, self.seen)
        # With an error of 0, each row was measured, because the kernel or libc requires it, or because rows vary, as on
        # a busy machine.
        self.assertTrue(error == 0 or flag, self.seen)
        return flag != 0, error, duration, disturbed

    @unittest.skipIf(IN_COVERAGE, "wrappers of a debug build take as long as a row")
    def test_clocks_agree(self):
        is_proven = is_estimated = False
        for seed in range(1, SEEDS + TRIES):
            # Each command tests the kernel, and may not get a processor for that.
            flag, error, duration, disturbed = self.run_many(seed)
            is_proven |= flag
            is_estimated |= error > 0
            # The error is less than the sleep between two rows, so that sleep was found. If something disturbs a thread
            # without the kernel's knowledge, for example a hypervisor, that is part of the error.
            self.assertLess(error, 20000000 + 0.005 * duration + disturbed, self.seen)
            if seed >= SEEDS and is_estimated == is_proven:
                break
        self.assertEqual(is_estimated, is_proven, self.seen)

    def test_rows_with_other_statements_between_are_exact(self):
        done = self.record("/usr/bin/python3", "-c", """
import sqlite3
c = sqlite3.connect(':memory:')
for row in c.execute('WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 3000) SELECT i FROM r'):
    c.execute('SELECT ?', row).fetchall()""", options=("--setting", "log_queries_min_query_duration_ns=0"))
        self.assertEqual(self.rows("""SELECT result_rows, execution_time_error_ns FROM query_log
            WHERE query LIKE 'WITH%'"""), [(3000, 0)], self.seen)

    @unittest.skipIf(IN_COVERAGE, "wrappers of a debug build take as long as a row")
    def test_each_row_is_measured(self):
        self.assertEqual(self.run_many(1, **{FLAG: "0"})[1], 0, self.seen)


unittest.main()
