#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof diff, to the letter, on two trace files with known content. In the second, the module has another address and
another version.

usage: test_diff.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import os
import shutil
import sqlite3

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file
from tool import BUILD_ID, FIXTURE, SCHEMA, Tool, main
from trace_file import FAST, MS, SLOW, START

SOME = "INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, statement," \
    " query_start_ns, query_duration_ns, cpu_time_ns) VALUES (?, 'run ' || ?1, 1, ?2, ?2, 1, ?, ?2, ?4, ?4)"


class Diff(Tool):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.chdir(cls.folder)
        shutil.copy(FIXTURE, "fixture.so.1")
        shutil.copy(FIXTURE, "fixture.so.2")
        for name, base in (("1", trace_file.BASE), ("2", trace_file.BASE - 0x55000000)):
            trace_file.make(name, SCHEMA, os.path.join(cls.folder, "fixture.so." + name), BUILD_ID, base)
        with contextlib.closing(sqlite3.connect("2")) as db:
            # 48 of 60 samples go from fixture_static to the recursion.
            db.execute("UPDATE samples SET stack = 3 WHERE query = 1 AND stack = 1 AND series = 1"
                       " AND timestamp_ns % 5000 <> 0")
            db.commit()
        # Runs of 5, and of 5 or 6 ms, that differ by up to 0.2; runs between 1 and 9 ms.
        for name, statement, times in (("1", 4, (5, 5.1, 4.9, 5.2)), ("2", 4, (6, 5.9, 6.1, 6.2)),
                                       ("1", 3, (9, 1, 1)), ("2", 3, (9, 5))):
            with contextlib.closing(sqlite3.connect(name)) as db:
                for i, ms in enumerate(times):
                    db.execute(SOME, (statement * 100 + i, START + (700 + i) * MS, statement, int(ms * MS)))
                db.commit()

    def test_two_files(self):
        self.assertEqual(self.output("diff", "1", "2"), """\
A  1, logged runs only
B  2, logged runs only

what                   A         B  change
runs                  11        10  -9.1 %
samples               93        93  +0.0 %
wall            257.2 ms  264.2 ms  +2.7 %
cpu             147.2 ms  154.2 ms  +4.8 %
wall, A's runs  257.2 ms  269.2 ms  +4.7 %
cpu, A's runs   147.2 ms  159.2 ms  +8.2 %

Statements: CPU time of a run, exact
      A        B   change  change_%  noise  runs_A  runs_B    total  query
 5.0 ms   5.8 ms  +0.8 ms     +15.9              5       5  +4.0 ms  SELECT 'own'
 3.0 ms   5.0 ms  +2.0 ms     +66.7  ~           4       3  +3.0 ms  SELECT nothing FROM nowhere  [31m
55.0 ms  55.0 ms  +0.0 ms      +0.0  ~           2       2  +0.0 ms  SELECT *  FROM orders WHERE id = 1

Functions: CPU time of as many runs as A has, sampled
      A        B    change  change_%  noise  n_A  n_B  function
20.0 ms  68.0 ms  +48.0 ms    +240.0          20   68  fixture::Thing::walk(char const*, int)
60.0 ms  12.0 ms  -48.0 ms     -80.0          60   12  fixture_static
20.0 ms  20.0 ms   +0.0 ms      +0.0  ~       10   10  (fixture.so)
 3.0 ms   3.0 ms   +0.0 ms      +0.0  ~        3    3  (no module)

Functions, with what they called: CPU time of as many runs as A has, sampled
       A         B    change  change_%  noise  n_A  n_B  function
 20.0 ms   68.0 ms  +48.0 ms    +240.0          20   68  fixture::Thing::walk(char const*, int)
 60.0 ms   12.0 ms  -48.0 ms     -80.0          60   12  fixture_static
 60.0 ms   12.0 ms  -48.0 ms     -80.0          60   12  fixture_visit
 20.0 ms   20.0 ms   +0.0 ms      +0.0  ~       10   10  (fixture.so)
  3.0 ms    3.0 ms   +0.0 ms      +0.0  ~        3    3  (no module)
100.0 ms  100.0 ms   +0.0 ms      +0.0  ~       90   90  fixture_calls_out
""")

    def test_nothing_left(self):
        self.assertEqual(self.refused(1, "diff", "1", "2", "--like", "no such text"),
                         "queryprof: diff: no run matches on either side\n")

    def test_runs_that_have_not_ended(self):
        """Such runs have samples but no times, and are counted separately."""
        shutil.copy("2", "unfinished")
        with contextlib.closing(sqlite3.connect("unfinished")) as db:
            db.execute("UPDATE queries SET statement = 4 WHERE query_id = ?", (trace_file.RUNNING,))
            db.commit()
        self.assertRegex(self.output("diff", "1", "unfinished"), r"\nunfinished +0 +1\n")

    def test_two_queries(self):
        self.assertEqual(self.output("diff", "1", "--query", SLOW[:17], "--with", FAST), """\
A  1, query 0193a5b2-77c1-7aa
B  1, query 0193a5b2-77c1-7bbb-8000-000000000002

what            A        B    change
runs            1        1    +0.0 %
samples        90        0  -100.0 %
wall     200.0 ms  20.0 ms   -90.0 %
cpu      100.0 ms  10.0 ms   -90.0 %

Statements: CPU time of a run, exact
       A        B    change  change_%  noise  runs_A  runs_B     total  query
100.0 ms  10.0 ms  -90.0 ms     -90.0  ?           1       1  -90.0 ms  SELECT *  FROM orders WHERE id = 2

Functions: CPU time, sampled
      A       B    change  change_%  noise  n_A  n_B  function
60.0 ms  0.0 ms  -60.0 ms    -100.0          60    0  fixture_static
20.0 ms  0.0 ms  -20.0 ms    -100.0          10    0  (fixture.so)
20.0 ms  0.0 ms  -20.0 ms    -100.0          20    0  fixture::Thing::walk(char const*, int)

Functions, with what they called: CPU time, sampled
       A       B     change  change_%  noise  n_A  n_B  function
100.0 ms  0.0 ms  -100.0 ms    -100.0          90    0  fixture_calls_out
 60.0 ms  0.0 ms   -60.0 ms    -100.0          60    0  fixture_static
 60.0 ms  0.0 ms   -60.0 ms    -100.0          60    0  fixture_visit
 20.0 ms  0.0 ms   -20.0 ms    -100.0          10    0  (fixture.so)
 20.0 ms  0.0 ms   -20.0 ms    -100.0          20    0  fixture::Thing::walk(char const*, int)
""")

    def test_two_times(self):
        self.assertEqual(self.output("diff", "1", "--at", "start+350ms", "--limit", "1"), """\
A  1, until start+350ms, logged runs only
B  1, since start+350ms, logged runs only

what            A        B    change
runs            2        9  +350.0 %
samples        90        3   -96.7 %
wall     220.0 ms  37.2 ms   -83.1 %
cpu      110.0 ms  37.2 ms   -66.2 %

Statements: CPU time of a run, exact
      A  B  change  change_%  noise  runs_A  runs_B      total  query
55.0 ms                                   2       0  -110.0 ms  SELECT *  FROM orders WHERE id = 1

Functions: CPU time, sampled
      A       B    change  change_%  noise  n_A  n_B  function
60.0 ms  0.0 ms  -60.0 ms    -100.0          60    0  fixture_static

Functions, with what they called: CPU time, sampled
       A       B     change  change_%  noise  n_A  n_B  function
100.0 ms  0.0 ms  -100.0 ms    -100.0          90    0  fixture_calls_out
""")

    def test_runs_that_have_no_line(self):
        """There are 30,000 more short runs, each as long as before. Nothing is faster, and certainly not by 51 %."""
        for name, calls in (("few", 10000), ("many", 40000)):
            shutil.copy("1", name)
            with contextlib.closing(sqlite3.connect(name)) as db:
                db.execute("""INSERT INTO statement_counters (normalized_query_hash, database, program, statement, calls,
                    execution_time_ns, cpu_time_ns, execution_time_square, cpu_time_square)
                    SELECT normalized_query_hash, 'x.db', '/usr/bin/app', id, ?1, ?1 * 8000, ?1 * 8000, ?1 * 1e8, ?1 * 1e8
                    FROM statements WHERE id = 4""", (calls,))
                db.commit()
        out = self.output("diff", "few", "many")
        lines = [" ".join(line.split()) for line in out.splitlines()]
        self.assertEqual(lines[:2], ["A few", "B many"])
        self.assertIn("runs 10006 40006 +299.8 %", lines)
        self.assertIn("wall, A's runs 312.0 ms 312.0 ms +0.0 %", lines)
        self.assertIn("8.0 us 8.0 us +0.0 ms +0.0 ~ 10000 40000 +240.0 ms SELECT 'own'", lines)


if __name__ == "__main__":
    main()
