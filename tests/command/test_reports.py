#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof queries and report, to the letter, on a trace file whose content is known
(trace_file.py).

usage: test_reports.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import json
import os
import shutil
import sqlite3
import time

import trace_file
from tool import FIXTURE, Tool, main
from trace_file import FAILED, FAST, OWN, RUNNING, SLOW


class Reports(Tool):
    # --- queries ------------------------------------------------------------

    def test_queries(self):
        self.assertEqual(self.output("queries", self.trace), """\
started         wall_ms  cpu_ms  n_cpu  n_wall  rows  query_id            query
11-18 11:06:40    200.0   100.0     90       0     7  0193a5b2-77c1-7aaa  SELECT *  FROM orders WHERE id = 1
11-18 11:06:40     20.0    10.0      0       0     1  0193a5b2-77c1-7bbb  SELECT *  FROM orders WHERE id = 2
11-18 11:06:40      5.0     5.0      0       0     0  my own id           SELECT 'own'
11-18 11:06:40      1.0     1.0      0       0     0  0193a5b2-9999-7ccc  SELECT nothing FROM nowhere  [31m
""")

    def test_queries_selected(self):
        def ids(*arguments):
            return self.column(self.output("queries", self.trace, "--format", "csv", *arguments), "query_id")

        self.assertEqual(ids("--like", "orders"), [SLOW, FAST])
        self.assertEqual(ids("--limit", "1"), [SLOW])
        self.assertEqual(ids("--by", "start", "--limit", "1"), [OWN])
        self.assertEqual(ids("--by", "start", "--like", "orders"), [FAST, SLOW])
        self.assertEqual(ids("--by", "off", "--limit", "2"), [SLOW, FAST])
        self.assertEqual(ids("--query", FAST[:17]), [FAST])
        self.assertEqual(ids("--query", OWN), [OWN])
        self.assertEqual(ids("--query", OWN, "--like", "orders"), [])
        self.assertEqual(ids("--last", "1"), [OWN])
        self.assertEqual(ids("--last", "2", "--by", "cpu"), [OWN, FAILED])
        self.assertEqual(ids("--last", "1", "--like", "orders"), [FAST])
        self.assertEqual(ids("--like", "no such text"), [])
        self.assertEqual(self.output("queries", self.trace, "--like", "no such text"), "no queries\n")

    def test_times(self):
        """The runs began at 11:06:40 and 0, 300, 400 and 500 ms; the one that goes on at 600 ms."""
        def count(*arguments):
            return len(self.column(self.output("queries", self.trace, "--format", "csv", *arguments), "query_id"))

        for since, left in (("2026-11-18", 4), ("2026-11-19", 0), ("2026-11-18 11:06:40", 4),
                            ("2026-11-18 11:06", 4), ("2026-11-18T11:06:40.3Z", 3), ("2026-11-18 11:06:40.300001", 2),
                            ("2026-11-18 12:06:40.3+01:00", 3), ("2026-11-18T10:06:40.45-0100", 1), ("start", 4),
                            ("start+300ms", 3), ("start+0.31s", 2), ("end", 0), ("end-200ms", 2), ("end-1min", 4),
                            ("now", 0), ("36500d", 4), ("now-36500d", 4), ("2026-11-18 11:06:40+350ms", 2),
                            ("2026-11-17+1d", 4), ("1970-01-01", 4)):
            self.assertEqual(count("--since", since), left, since)
            self.assertEqual(count("--until", since), 4 - left, since)
        self.assertEqual(count("--since=2026-11-18 11:06:40.3", "--until", "start+400ms"), 1)
        for wrong in ("", "soon", "2026", "2026-13-01", "2026-02-30", "2026-11-18 25:00", "2026-11-18 11", "10",
                      "10 min", "-10min", "10minutes", "now-", "now-x", "start10s", "end-10min-10min", "tomorrow",
                      "2026-11-18T", "999999999999w", "9999-01-01"):
            self.assertIn("expected a time", self.refused(2, "queries", self.trace, "--since", wrong), wrong)

    def test_times_from_now(self):
        path = os.path.join(self.folder, "now.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE queries SET query_start_ns = ? WHERE id = 1", (time.time_ns() - 1800 * 10**9,))
            db.commit()
        for since, left in (("10min", 0), ("1h", 1), ("yesterday", 1), ("now-1h", 1)):
            rows = self.column(self.output("queries", path, "--since", since, "--format", "csv"), "query_id")
            self.assertEqual(len(rows), left, since)
        os.unlink(path)

    def test_statements(self):
        rows = json.loads(self.output("queries", self.trace, "--statements", "--format", "json"))
        # This file has counted none.
        self.assertEqual([(row["runs"], row["logged"]) for row in rows], [(None, 2), (None, 1), (None, 1)])
        self.assertEqual(rows[0]["wall_ms"], 220.0)
        self.assertEqual(rows[2]["failed"], 1)

    # --- report -------------------------------------------------------------

    def test_report_of_one_query(self):
        self.assertEqual(self.output("report", self.trace, "--query", SLOW[:16]), """\
query  0193a5b2-77c1-7aaa-8000-000000000001
from   2026-11-18 11:06:40.000000 UTC
rows   7
text   SELECT *
        FROM orders WHERE id = 1

Time, as measured and as sampled
clock    exact_ms    share  sampled_ms  error_ms  differs  samples
wall        200.0  100.0 %       150.0       0.5  -25.0 %      150
on CPU      100.0   50.0 %       100.0       0.6   +0.0 %       90
off CPU     100.0   50.0 %        50.0       0.8  -50.0 %

Top functions, by CPU time
  self  error    total  self_ms  total_ms  function
60.0 %  5.4 %   60.0 %     60.0      60.0  fixture_static
20.0 %  4.4 %   20.0 %     20.0      20.0  (full.so)
20.0 %  4.4 %   20.0 %     20.0      20.0  fixture::Thing::walk(char const*, int)
 0.0 %  0.0 %  100.0 %      0.0     100.0  fixture_calls_out
 0.0 %  0.0 %   60.0 %      0.0      60.0  fixture_visit

Top stacks, leaf first, by CPU time
 share    ms  stack
60.0 %  60.0  fixture_static
              fixture_visit
              fixture_calls_out
20.0 %  20.0  fixture::Thing::walk(char const*, int)
              fixture::Thing::walk(char const*, int)
              fixture::Thing::walk(char const*, int)
              fixture_calls_out
20.0 %  20.0  full.so+0x%x
              fixture_calls_out
""".replace("0x%x", hex(trace_file.symbols(FIXTURE)["fixture_hole"])))

    def test_report_of_some_and_of_all(self):
        some = self.output("report", self.trace, "--like", "orders")
        self.assertIn("logged runs  2 of 4\n", some)
        self.assertRegex(some, r"on CPU +110.0 +50.0 % +100.0 ")
        everything = self.output("report", self.trace)
        self.assertIn("logged runs  4 of 4\n", everything)
        self.assertIn("(no module)", everything)
        self.assertRegex(everything, r"on CPU +116.0 +51.3 % +103.0 ")
        real = self.output("report", self.trace, "--type", "Real")
        self.assertIn("100.0 %", real)
        self.assertNotIn("walk", real)

    def test_report_of_a_query_that_has_not_finished(self):
        out = self.output("report", self.trace, "--query", RUNNING)
        self.assertIn("not finished", out)
        self.assertIn("0x1234", out)

    def test_report_without_samples(self):
        out = self.output("report", self.trace, "--query", OWN)
        self.assertEqual(out.count("no samples on the CPU clock"), 2)

    def test_ids(self):
        self.assertIn("more than one query's id begins with 0193",
                      self.refused(1, "report", self.trace, "--query", "0193"))
        self.assertIn("no query has the id nothing", self.refused(1, "report", self.trace, "--query", "nothing"))
        self.refused(1, "report", self.trace, "--query", "")


if __name__ == "__main__":
    main()
