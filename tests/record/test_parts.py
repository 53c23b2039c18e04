#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts and means cover all runs: by plan, by the label in a comment, by cause. Samples hit long and interrupted runs, and
the output marks numbers that samples cannot cover.

usage: test_parts.py QUERYPROF"""

import json
import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

SHORT, LONG = 40000, 300

CHANGES = """
import sqlite3, sys, time
c = sqlite3.connect(':memory:', isolation_level=None)
c.execute('CREATE TABLE t(a INTEGER PRIMARY KEY, b, c)')
c.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100000) INSERT INTO t SELECT i, i %% 100, i FROM n')
c.execute('CREATE INDEX tb ON t(b, c)')
def go(n):
    began, cpu = time.monotonic(), time.thread_time()
    for i in range(n):
        c.execute('SELECT sum(c) FROM t WHERE b = 7 AND c < 4000').fetchall()
    print((time.monotonic() - began) * 1e3 / n, (time.thread_time() - cpu) * 1e3 / n)
go(%d)
c.execute('DROP INDEX tb')
c.execute('CREATE INDEX tb2 ON t(b)')
go(%d)
"""

THERE_AND_BACK = """
import sqlite3
c = sqlite3.connect(':memory:', isolation_level=None)
c.execute('CREATE TABLE t(a, b)')
c.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<200000) INSERT INTO t SELECT i % 1000, i FROM n')
c.execute('CREATE INDEX ta ON t(a)')
def go(n):
    for i in range(n):
        c.execute('SELECT count(*) FROM t WHERE a < ? AND b > 5', (500,)).fetchall()
go(5)
c.execute('DROP INDEX ta')
go(6)
c.execute('CREATE INDEX ta ON t(a)')
go(30)
"""

LABELS = """
import sqlite3
c = sqlite3.connect(':memory:', isolation_level=None)
c.execute('CREATE TABLE t(a INTEGER PRIMARY KEY)')
for i in range(5000):
    c.execute("/*route='hot',traceparent='00-%032x-00f067aa0ba902b7-01'*/ INSERT INTO t DEFAULT VALUES" % (i + 1))
for i in range(700):
    c.execute("INSERT INTO t DEFAULT VALUES /*route='cold'*/")
c.execute("/*route='big'*/ WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<300000) SELECT sum(i) FROM n").fetchall()
"""

# Statements of some us, like an ORM's. The third trace is not sampled.
TRACES = """
import sqlite3
c = sqlite3.connect(':memory:', isolation_level=None)
c.execute('CREATE TABLE t(a INTEGER PRIMARY KEY)')
for trace, flags in (0xabc0000, 1), (0xabc0001, 1), (0xabc0002, 0):
    for i in range(41):
        c.execute("/*traceparent='00-%032x-00f067aa0ba902b7-%02x'*/ SELECT count(*) FROM t WHERE a = ?" % (trace, flags),
                  (i,)).fetchall()
"""

# The sleep makes sure that the report has causes: it shows none if less than 1 % of the time was off the CPU.
INSERTS = """
import sqlite3, time
c = sqlite3.connect('e.db', isolation_level=None)
c.create_function('sleep', 1, time.sleep)
c.execute('SELECT sleep(0.05)').fetchall()
c.execute('CREATE TABLE t(a,b)')
c.execute('CREATE INDEX i ON t(a)')
c.execute('BEGIN')
c.executemany('INSERT INTO t VALUES (?,?)', ((str(i * 7919 % 100003), i) for i in range(60000)))
c.execute('COMMIT')
"""

THREADS = """
import sqlite3, threading, time
def work():
    c = sqlite3.connect(':memory:')
    end = time.thread_time() + 0.025
    while time.thread_time() < end:
        c.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<500) SELECT sum(i) FROM n').fetchall()
for i in range(60):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""


def ms_of(text):
    number, unit = re.match(r"([\d.]+) (us|ms|s|min)$", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3, "min": 60e3}[unit]


class Parts(Recording):
    def command(self, *arguments):
        done = subprocess.run([QUERYPROF, *arguments], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.seen += "\n" + done.stdout
        return done.stdout

    def program(self, text, options=OPTIONS):
        done = self.record(PYTHON, self.file("program.py", text), options=options, cwd=self.folder)
        self.assertEqual(done.returncode, 0, self.seen)
        return done.stdout

    def counted(self, like):
        return self.rows("SELECT calls, execution_time_ns / 1e6 FROM statement_parts AS p WHERE normalized_query_hash IN ("
                         "SELECT normalized_query_hash FROM statements WHERE query LIKE ?) AND calls"
                         " ORDER BY first_seen_ns", like)

    def test_change_of_a_plan(self):
        out = self.program(CHANGES % (SHORT, LONG)).split()
        own = [float(text) for text in out]
        before, after = self.counted("SELECT sum(c)%")
        self.assertEqual((before[0], after[0]), (SHORT, LONG), self.seen)
        row, = json.loads(self.command("queries", self.trace, "--regressed", "--format", "json"))
        self.assertEqual((row["runs_before"], row["runs_after"]), (SHORT, LONG), self.seen)
        # The program's clocks include the time between two calls, so none of their times may be shorter.
        self.assertTrue(0 < row["before_ms"] <= own[0] * 1.01, self.seen)
        self.assertTrue(own[3] * 0.8 <= row["after_ms"] <= own[2] * 1.01, self.seen)
        self.assertLess(abs(float(row["slower_times"]) / (after[1] / LONG / (before[1] / SHORT)) - 1), 0.05, self.seen)
        plan = self.command("plan", self.trace, "sum(c)")
        for runs, ms in before, after:
            self.assertIn("%d runs, %s each" % (runs, "%.1f us" % (1e3 * ms / runs) if ms / runs < 0.1 else "%.1f ms" % (ms / runs)), plan)

    def test_change_and_back(self):
        for _ in range(10):
            if os.path.exists(self.trace):
                os.unlink(self.trace)
            self.program(THERE_AND_BACK)
            self.assertEqual([calls for calls, _ in self.counted("SELECT count%")], [5, 6, 30], self.seen)
            rows = json.loads(self.command("queries", self.trace, "--regressed", "--format", "json"))
            if rows:  # on a busy machine the runs with the slower plan may have been faster, because they had a processor
                break
        self.assertTrue(rows, self.seen)
        for row in rows:
            self.assertIn((row["runs_before"], row["runs_after"]), ((5, 6), (6, 30)), self.seen)
            self.assertIsNone(row["changes"])

    def test_runs_by_label(self):
        self.program(LABELS)
        rows = {row["label"]: row["runs"] for row in
                json.loads(self.command("queries", self.trace, "--by", "label:route", "--format", "json"))}
        self.assertEqual((rows["hot"], rows["cold"], rows["big"]), (5000, 700, 1), self.seen)
        self.assertEqual(self.rows("SELECT sum(calls) FROM statement_counters"), [(sum(rows.values()),)], self.seen)
        self.assertEqual(self.rows("SELECT calls FROM statement_stats WHERE query LIKE '%INSERT INTO t DEFAULT%'"), [(5700,)])

    def test_traces_of_others(self):
        """All statements of a sampled trace are counted, however short, and `trace` accepts each id."""
        self.program(TRACES, options=())
        ids = ["%032x" % trace for trace in (0xabc0000, 0xabc0001)]
        self.assertEqual({row["trace_id"]: (row["spans"], row["statements"]) for row in
                          json.loads(self.command("traces", self.trace, "--format", "json"))}, dict.fromkeys(ids, (41, 41)))
        shown = re.findall(r" ([0-9a-f]{8,}) +/", self.command("traces", self.trace))
        self.assertEqual(sorted(shown), ids, self.seen)
        for trace in shown:
            self.assertIn("41 spans", self.command("trace", self.trace, trace))
        done = subprocess.run([QUERYPROF, "trace", self.trace, ids[0][:16]], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "queryprof: %s: the id of more than one trace begins with %s: "
                                                          "give more of it; queryprof traces %s lists them\n"
                                                          % (self.trace, ids[0][:16], self.trace)))
        # Each statement has a row, except in the trace that is not sampled.
        self.assertEqual(self.rows("SELECT otel_trace_id, count(*) FROM query_log WHERE query LIKE '%traceparent%'"
                                   " GROUP BY 1 ORDER BY 1"), [(trace, 41) for trace in ids])

    def report(self, title):
        """The cells by clock or part, as text."""
        part = self.command("report", self.trace).split("\n%s\n" % title)[1].split("\n\n")[0].splitlines()[1:]
        return {re.split(r"  +", line)[0]: re.split(r"  +", line)[1:] for line in part}

    def check_times(self):
        """The measured times are exact. The samples deviate by no more than the reported error."""
        (wall, cpu), = self.rows("SELECT sum(execution_time_ns - nested_time_ns) / 1e6, sum(cpu_time_ns - nested_cpu_time_ns)"
                                 " / 1e6 FROM statement_stats")
        times = self.report("Time, as measured and as sampled")
        for clock, exact in (("wall", wall), ("on CPU", cpu), ("off CPU", wall - cpu)):
            cells = times[clock]
            self.assertAlmostEqual(ms_of(cells[0]), exact, delta=0.001 * exact + 0.06, msg=self.seen)
            sampled, error = ms_of(cells[2]), ms_of(cells[3])
            # In one of 20 cases the error is less than half the difference, by chance alone.
            self.assertLess(abs(sampled - exact), 3 * error + 0.1, self.seen)
        return times, wall

    def test_time_of_short_runs(self):
        self.program(INSERTS)
        _, wall = self.check_times()
        parts = self.report("Time by cause")
        self.assertAlmostEqual(sum(ms_of(cells[0]) for cells in parts.values()), wall, delta=0.001 * wall + 0.6, msg=self.seen)
        self.assertNotRegex(self.command("report", self.trace), "(?m)^logged runs")

    def test_time_of_short_threads(self):
        self.program(THREADS, options=("--cpu", "1ms"))
        times, _ = self.check_times()
        if "on CPU, not sampled" in times:
            lacks = ms_of(times["on CPU"][0]) - ms_of(times["on CPU"][2])
            self.assertAlmostEqual(ms_of(times["on CPU, not sampled"][0]), lacks, delta=0.2, msg=self.seen)


if __name__ == "__main__":
    unittest.main()
