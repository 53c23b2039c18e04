# SPDX-License-Identifier: Apache-2.0
"""Runs hosts alone, with the library loaded, and recorded, and compares the results.

The first arguments of every test program here are the queryprof command and the library."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

QUERYPROF = os.path.abspath(sys.argv.pop(1))
LIBRARY = os.path.abspath(sys.argv.pop(1))
SKIPPED = 77


class Done:
    """The files and output of one run."""

    def __init__(self, process, trace):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.trace = trace
        self.metrics = {}
        for line in self.err.splitlines():
            if line.startswith("metric "):
                name, value = line.split(" ", 2)[1:] if line.count(" ") > 1 else (line.split(" ")[1], "")
                self.metrics[name] = int(value) if value.lstrip("-").isdigit() else value

    def __str__(self):
        return "status %d\n%s%s" % (self.status, self.out, self.err)

    def rows(self, sql):
        db = sqlite3.connect(self.trace, timeout=60)  # on a slow disk the last checkpoint takes long
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()


class Hosts(unittest.TestCase):
    longMessage = True

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="queryprof-harmless-test-")
        os.chmod(self.folder, 0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.runs = 0

    # Without the budget, because the tests expect a number of samples. The budget reduces it if storing is costly, as
    # on a busy machine.
    def environment(self, trace, period="1ms"):
        environment = dict(os.environ, TMPDIR=self.folder, QUERYPROF_TRACE_LOG_FLUSH_INTERVAL_MS="50",
                           QUERYPROF_QUERY_PROFILER_MAX_OVERHEAD_PERCENT="0",
                           QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS=period,
                           QUERYPROF_QUERY_PROFILER_REAL_TIME_PERIOD_NS=period)
        if trace:
            environment["QUERYPROF_TRACE_LOG_PATH"] = trace
        return environment

    def run_host(self, way, *command, period="1ms", timeout=300, **named):
        """`way` is alone, loaded or recorded."""
        self.runs += 1
        trace = os.path.join(self.folder, "%d.trace" % self.runs)
        environment = os.environ
        if way == "loaded":
            command = (*command, LIBRARY)
            environment = self.environment(trace, period)
        elif way == "recorded":
            command = (QUERYPROF, "record", "-o", trace, "--quiet", "--no-symbols", "--cpu", period, "--real", period,
                       "--off-cpu", period, "--setting", "trace_log_flush_interval_ms=50",
                       "--setting", "query_profiler_max_overhead_percent=0", "--", *command)
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                              env=environment, **named)
        return Done(done, trace)

    @staticmethod
    def until(run, is_enough, tries=10):
        """Repeats the run. A process waits a second or two for its flusher when it ends, and a busy
        machine sometimes needs longer."""
        for _ in range(tries):
            done = run()
            if is_enough(done):
                break
        return done

    @staticmethod
    def samples(done):
        try:
            return done.rows("SELECT count(*) FROM trace_log")[0][0]
        except sqlite3.OperationalError:
            return 0

    def expect_readable(self, done, samples=1):
        self.assertEqual(done.rows("PRAGMA integrity_check"), [("ok",)], done)
        found = done.rows("SELECT count(*) FROM trace_log")[0][0]
        self.assertGreaterEqual(found, samples, done)
        return found

    def expect_ledger(self, done):
        """Every signal and every sample is accounted for."""
        metrics = done.metrics
        self.assertTrue(metrics, done)
        self.assertEqual(metrics["query_profiler_runs"],
                         sum(metrics[name] for name in ("samples", "samples_dropped", "signals_idle", "signals_late",
                                                        "signals_foreign", "signals_reentered")), done)
        self.assertLessEqual(metrics["samples"], metrics["store_samples"] + metrics["store_lost"], done)

    def expect_unharmed(self, *command, samples=1, period="1ms", ledger=True, ways=("loaded", "recorded"), alone=None,
                        **named):
        """The host's output and exit status are the same as without queryprof. Returns the loaded
        run."""
        alone = alone or self.run_host("alone", *command, **named)
        left = []
        for way in ways:
            done = self.until(lambda: self.run_host(way, *command, period=period, **named), lambda done: (
                done.status, done.out) != (alone.status, alone.out) or not samples or self.samples(done) >= samples)
            with self.subTest(way):
                self.assertEqual((done.status, done.out), (alone.status, alone.out), done)
                if samples:
                    self.expect_readable(done, samples)
                if way == "loaded" and ledger:
                    self.expect_ledger(done)
            left.append(done)
        return left[0]
