#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of the program's own code while its thread has an open query or transaction, compared with the program's and
exact clocks.

usage: test_outside.py QUERYPROF PROGRAM [unittest arguments]"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

PROGRAM = os.path.abspath(sys.argv.pop(1))
OPTIONS = ("--cpu", "1ms", "--setting", "query_profiler_max_overhead_percent=0")
REQUESTS = """
import os, sqlite3, time
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE t (i)")
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
for request in range(3):
    for i in range(40):
        db.execute("SELECT i FROM t WHERE i = ? /*request_id='r%d'*/" % request, (i,)).fetchall()
        work(0.002)
time.sleep(0.1)
for i in range(5):
    db.execute("SELECT 1").fetchall()
time.sleep(0.1)
db.execute("SELECT 2").fetchall()
os._exit(0)  # the end of a connection that takes long is a query, too
"""
WAITS = "lock_wait_ns + io_read_ns + io_write_ns + io_sync_ns + mutex_wait_ns + sleep_ns + other_wait_ns"


class Outside(Recording):
    def program(self, *what, options=OPTIONS):
        """The program's output, by name."""
        ticks = stolen_ticks()
        done = self.record(PROGRAM, self.folder, *what, options=options)
        self.stolen_ns = stolen_ns(stolen_ticks() - ticks)
        self.assertEqual(done.returncode, 0, self.seen)
        return {name: int(ns) for name, ns in (line.split() for line in done.stdout.splitlines())}

    def sum(self, what, where="1", of="trace_log"):
        return self.rows("SELECT coalesce(sum(%s), 0) FROM %s WHERE %s" % (what, of, where))[0][0]

    def assert_close(self, sampled, exact, stretches):
        """Each stretch of time may get one tick more or less. In addition, 1 % is allowed."""
        error = 4 * (TICK_NS + 1e6) * (stretches / 4 + 1) ** 0.5 + exact / 100
        self.assertLess(abs(sampled - exact), error, (sampled, exact, self.seen))

    def said(self, command, *arguments):
        return subprocess.run([QUERYPROF, command, self.trace, *arguments], capture_output=True, text=True, timeout=300, check=True,
                              env=dict(os.environ, COLUMNS="200")).stdout

    def share_on_stack(self, function, where):
        """The share of samples whose stacks contain the function."""
        found, = self.rows("SELECT total(value) FILTER (WHERE stack_id IN (SELECT stack_id FROM stack_frames WHERE function = ?)) / total(value)"
                           " FROM trace_log WHERE " + where, function)
        return found[0]


class Rows(Outside):
    names = ()

    def test_formatter(self):
        """The time between rows belongs to the rows' query, but not to its CPU time."""
        told = self.program("rows")
        (text, cpu_ns, execution_ns, duration_ns), = self.rows(
            "SELECT query, cpu_time_ns, execution_time_ns, query_duration_ns FROM query_log WHERE query_id IN"
            " (SELECT query_id FROM trace_log WHERE outside = 'rows')")
        self.assertEqual(text, "SELECT i FROM t")
        self.assertLessEqual(cpu_ns, execution_ns)
        self.assertLess(execution_ns, duration_ns / 2)
        sampled = self.sum("value", "trace_type = 'ProgramCPU' AND outside = 'rows'")
        self.assert_close(sampled, told["cpu"] - cpu_ns, 1)
        self.assertGreater(self.share_on_stack("format_row", "outside = 'rows'"), 0.9)
        self.assertRegex(self.said("report"), r"\nbetween rows .* on CPU +format_row +program\.c:\d+ *\n")
        # The query's own samples are still only the samples inside.
        self.assertLess(self.sum("value", "trace_type = 'CPU'"), told["cpu"] / 2)
        self.assertEqual(self.rows("SELECT DISTINCT outside FROM trace_log WHERE trace_type NOT LIKE 'Program%'"),
                         [("",)] if self.sum("1", "trace_type NOT LIKE 'Program%'") else [])

    def test_property(self):
        """The time between the outer query's rows belongs to that query, whichever statements run there."""
        told = self.program("property")
        cpu_ns = self.sum("cpu_time_ns", of="statement_stats", where="query LIKE 'SELECT %'")
        sampled = self.sum("value", "trace_type = 'ProgramCPU'")
        self.assert_close(sampled, told["cpu"] - cpu_ns, 1000)
        # The inner query itself is open from its step to its reset.
        outer = self.sum("value", "outside = 'rows' AND query_id = (SELECT query_id FROM query_log WHERE query LIKE 'SELECT author%')")
        self.assertGreater(outer, 0.95 * sampled)
        self.assertGreater(self.share_on_stack("author_name", "trace_type = 'ProgramCPU'"), 0.8)
        self.assertRegex(self.said("report"), r"\nbetween rows .* on CPU +author_name +program\.c:\d+ *\n")


class Transactions(Outside):
    names = ()

    def test_lock(self):
        """A holder's time between its statements: on the CPU, asleep, and waiting for a child."""
        told = self.program("lock")
        (number, duration_ns, idle_ns, cpu_ns, idle_cpu_ns, delay_ns), = self.rows(
            "SELECT transaction_number, duration_ns, idle_ns, cpu_time_ns, idle_cpu_time_ns, run_delay_ns FROM transaction_log"
            " WHERE first_query = 'BEGIN IMMEDIATE'")
        mine = "transaction_number = %d AND outside = 'transaction'" % number
        # Within 1 ms: the lock is not held yet when BEGIN begins, and both read their clocks at different places.
        self.assertTrue(told["idle"] - 1e6 < idle_ns < duration_ns, (idle_ns, duration_ns, told))
        self.assertTrue(told["held"] - 1e6 < duration_ns < told["longest"] + 1e6, (duration_ns, told))
        self.assertLess(abs(idle_cpu_ns - told["report"]), 0.02 * told["report"] + TICK_NS)
        self.assert_close(self.sum("value", mine + " AND trace_type = 'ProgramCPU'"), idle_cpu_ns, 1)
        self.assertEqual(self.sum("1", mine + " AND query_id <> ''"), 0)
        self.assertGreater(self.share_on_stack("make_report", mine + " AND trace_type = 'ProgramCPU'"), 0.9)
        waited = dict(self.rows("SELECT wait_cause, sum(value) FROM trace_log WHERE %s AND trace_type = 'ProgramOffCPU' GROUP BY 1" % mine))
        self.assertEqual(sorted(waited), ["process", "sleep"])
        # A thread that is preempted when it begins to sleep waits in the processor's queue instead.
        self.assertGreaterEqual(waited["sleep"] + delay_ns, 199e6)
        self.assertGreaterEqual(waited["process"], 99e6)
        for function, cause in ("sleep_a_while", "sleep"), ("run_child", "process"):
            self.assertEqual(self.share_on_stack(function, "%s AND wait_cause = '%s'" % (mine, cause)), 1)
        report = self.said("report")
        for what, function in ("on CPU", "make_report"), ("sleep", "sleep_a_while"), ("process", "run_child"):
            self.assertRegex(report, r"\nin a transaction .* %s +%s +program\.c:\d+ *\n" % (what, function))
        holder, = json.loads(self.said("locks", "--format", "json"))
        self.assertGreater(holder["outside_ms"], 1e-6 * told["idle"] - 1)
        for what, function, ns in (("on CPU", "make_report", idle_cpu_ns), ("asleep", "sleep_a_while", waited["sleep"]),
                                   ("waiting for a process", "run_child", waited["process"])):
            if ns > 0.02 * idle_ns:  # less than 1 % is not mentioned
                self.assertRegex(holder["doing"], r"\d (ms|s) %s in %s \(program\.c:\d+\)" % (what, function))
        # A wait that ends late belongs to both.
        known = cpu_ns + sum(waited.values())
        self.assertLess(known, 1.01 * duration_ns + 2e6)
        self.assertGreater(known + delay_ns + self.stolen_ns, 0.99 * duration_ns - 2e6)

    def test_off(self):
        self.program("lock", options=(*OPTIONS, "--setting", "query_profiler_outside=0"))
        self.assertEqual(self.sum("1", "outside <> '' OR trace_type LIKE 'Program%'"), 0)
        self.assertGreater(self.rows("SELECT max(idle_ns) FROM transaction_log")[0][0], 0)


class Sums(Outside):
    def sums(self, threads):
        """For all transactions, CPU time and waits, inside and outside SQLite, plus run queues equal their duration."""
        told = self.program("threads", str(threads), options=(*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0"))
        number, duration_ns, cpu_ns, idle_cpu_ns, delay_ns = self.rows(
            "SELECT count(*), sum(duration_ns), sum(cpu_time_ns), sum(idle_cpu_time_ns), sum(run_delay_ns)"
            " FROM transaction_log WHERE first_query = 'BEGIN IMMEDIATE'")[0]
        self.assertEqual(number, 4 * threads)
        self.assertGreaterEqual(duration_ns, told["held"])
        own = "transaction_number IN (SELECT transaction_number FROM transaction_log WHERE first_query = 'BEGIN IMMEDIATE')"
        self.assert_close(self.sum("value", "trace_type = 'ProgramCPU' AND " + own), idle_cpu_ns, 4 * threads)
        inside = self.sum("cpu_time_ns", "query LIKE 'INSERT%' OR query = 'COMMIT'", "query_log")
        self.assertLess(abs(cpu_ns - idle_cpu_ns - inside), cpu_ns / 100 + 4 * threads * 1e6)
        waited = self.sum("value", "trace_type = 'ProgramOffCPU' AND " + own)
        # These statements run inside the transactions.
        waited += self.sum(WAITS, "query LIKE 'INSERT%' OR query = 'COMMIT'", "query_log")
        error = 4 * 1e6 * (4 * threads) ** 0.5
        self.assertLess(cpu_ns + waited, 1.01 * duration_ns + error, self.seen)
        self.assertGreater(cpu_ns + waited + delay_ns + self.stolen_ns, 0.99 * duration_ns - error, self.seen)

    def test_one_thread(self):
        self.sums(1)

    def test_eight_threads(self):
        self.sums(8)

    def test_sixty_four_threads(self):
        self.sums(64)


class Bursts(Outside):
    def test_requests_and_pauses(self):
        done = self.record(PYTHON, "-c", REQUESTS, options=("--setting", "log_queries_min_query_duration_ns=0"))
        self.assertEqual(done.returncode, 0, self.seen)
        requests = self.rows("SELECT request, statements, distinct_statements, call_sites, most_runs, execution_time_ns, program_time_ns,"
                             " last_ns - first_ns FROM bursts WHERE request <> '' ORDER BY 1")
        self.assertEqual([row[:5] for row in requests], [("r%d" % i, 40, 1, 1, 40) for i in range(3)])
        for *_, execution_ns, program_ns, duration_ns in requests:
            self.assertGreaterEqual(program_ns, 39 * 2e6)
            self.assertEqual(execution_ns + program_ns, duration_ns)
        self.assertEqual(self.rows("SELECT statements, most_runs FROM bursts WHERE most = 'SELECT 2'"), [(1, 1)])
        # Other processes may cause a pause.
        self.assertEqual(self.sum("statements", "most = 'SELECT 1'", "bursts"), 5)
        self.assertEqual(self.sum("statements", of="bursts"), self.sum("1", "parent_query_id = ''", "query_log"))


class Waits(Outside):
    def test_none_is_cut_short(self):
        """With timers of both clocks at 1 ms, no wait is cut short, in a transaction or after it."""
        self.assertEqual(self.program("waits", options=(*OPTIONS, "--real", "1ms")), {"in_transaction": 0, "after_it": 0})
        self.assertGreater(self.sum("1", "trace_type = 'ProgramOffCPU' AND outside = 'transaction'"), 0)
        self.assertEqual(self.sum("1", "trace_type = 'Real' AND query_id = ''"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
