# SPDX-License-Identifier: Apache-2.0
"""A recorded host calls sqlite3_mutex_enter() itself. Its own clock measures the waits, and the
trace file must agree.

usage: test_by_hand.py COMMAND HOST"""

import os
import sqlite3
import subprocess
import sys
import tempfile

COMMAND, HOST = sys.argv[1:]

with tempfile.TemporaryDirectory() as folder:
    trace = os.path.join(folder, "trace.db")
    output = subprocess.run([COMMAND, "record", "-o", trace, "--", HOST, "by_hand"], check=True, stdout=subprocess.PIPE).stdout
    waited, waited_later = (float(number) for number in output.split())
    with sqlite3.connect(trace) as file:
        shown, calls = file.execute("SELECT total(execution_time_ns) / 1e9, total(calls) FROM statement_stats"
                                    " WHERE query = 'sqlite3_mutex_enter()'").fetchone()
    print("waited %.4f s, %.4f s of them after each thread's first query; shown %.4f s in %d waits" %
          (waited, waited_later, shown, calls))
    # The library replaces pthread_mutex_lock() when a second thread runs a query. It does not see
    # earlier waits.
    assert 0.98 * waited_later < shown < 1.02 * waited
