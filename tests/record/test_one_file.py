#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs at other addresses, and several processes of one tree, in one trace file. Equal stacks and modules are one row.

usage: test_one_file.py QUERYPROF"""

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

PROGRAM = """
import os, sqlite3
db = sqlite3.connect(':memory:')
def work():
    for _ in range(4):  # so long that each process has samples everywhere
        sqlite3.connect(':memory:').execute(%r).fetchone()
print(next(line.split('-')[0] for line in open('/proc/self/maps') if 'libsqlite3' in line), flush=True)
for worker in range(2):
    if not os.fork():
        work()
        os._exit(0)
work()
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
""" % SLOW


class OneFile(Recording):
    def test_family_and_two_runs(self):
        script = self.file("family.py", PROGRAM)
        bases = set()
        for _ in range(2):
            done = self.record(PYTHON, script, options=("--cpu", "500us", "--real", "0", "--setting",
                                                             "query_profiler_max_overhead_percent=0"))
            self.assertEqual(done.returncode, 0, self.seen)
            bases.add(done.stdout.strip())
        self.assertEqual(len(bases), 2, "loaded at the same address twice: %r" % bases)
        self.assertEqual(self.rows("SELECT count(*) FROM processes"), [(6,)])
        # The build id identifies a module at any address.
        self.assertEqual(self.rows("SELECT build_id, count(*) FROM modules WHERE build_id != ''"
                                   " GROUP BY 1 HAVING count(*) > 1"), [])
        self.assertEqual(self.rows("SELECT count(*) FROM modules WHERE path LIKE '%/libsqlite3.so%'"), [(1,)])
        self.assertEqual(self.rows("SELECT trace, count(*) FROM stacks GROUP BY 1 HAVING count(*) > 1"), [])
        # The statement's callers are the same in all six processes; a sample's place within the statement is the same
        # in some.
        same = [self.rows("""SELECT count(DISTINCT process_id) AS processes FROM trace_log
            WHERE NOT truncated GROUP BY %s ORDER BY processes DESC LIMIT 1""" % what)[0][0]
            for what in ("substr(trace, instr(trace, ','))", "stack_id")]
        self.assertEqual(same[0], 6, self.seen)
        self.assertGreaterEqual(same[1], 2, self.seen)


if __name__ == "__main__":
    unittest.main()
