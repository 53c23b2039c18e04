# SPDX-License-Identifier: Apache-2.0
"""Runs programs under `queryprof record` and reads the recording.

The command is the first argument of every test program here."""

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

from hangs import bounded

QUERYPROF = os.path.abspath(sys.argv.pop(1))
LIBRARY = os.path.join(os.path.dirname(QUERYPROF), "libqueryprof.so")
PYTHON = "/usr/bin/python3"  # Debian's own, because others may contain their own SQLite
SKIPPED = 77
IN_COVERAGE = "GCOV_ERROR_FILE" in os.environ  # tools/coverage sets it

# A shell's background job ignores this signal, and recorded programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# About 50 ms of CPU time.
SLOW = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 250000)"
        " SELECT sum(x) FROM c")
ANSWER = str(250000 * 250001 // 2)

# Programs that time their own statements with a clock around each run. They print the number of runs and their total
# time in ns. The table has 120,000 rows, so that nearly all of the long statement's time belongs to SQLite. %d: the
# run's number.
TIMED_TABLE = ("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 120000)"
               " SELECT i, i AS k FROM n")
TIMED_SHORT, TIMED_LONG = "SELECT max(i) FROM t WHERE rowid = %d", "SELECT count(*) FROM t WHERE k %% 7 = %d"

TICK_NS = time.clock_getres(6) * 1e9  # CLOCK_MONOTONIC_COARSE


def state(pid):
    """The state that ps shows, or "" if there is no such process."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stolen_ticks():
    """The time that a hypervisor took from all processors. No thread's CPU time and no run queue contains it, but wall
    time does."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8])


def stolen_ns(ticks):
    """The most time that these ticks may be. Each processor rounds to its own tick of 10 ms."""
    return (ticks + os.cpu_count()) * 10**9 // os.sysconf("SC_CLK_TCK") if ticks else 0


def content(folder):
    """Every file of a folder, with its mode, times and hash."""
    result = {}
    for name in sorted(os.listdir(folder)):
        state = os.stat(os.path.join(folder, name))
        with open(os.path.join(folder, name), "rb") as file:
            result[name] = state.st_mode, state.st_mtime_ns, state.st_ctime_ns, hashlib.sha256(file.read()).hexdigest()
    return result


def wait_until(condition, what, seconds=300):
    """Waits for a condition, not for a fixed time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("never came: " + what)


def read_line(file, what):
    """The next line that a program prints."""
    with bounded(what):
        return file.readline()


# Without the budget, because tests expect a number of samples. The budget takes fewer samples of a short query when the
# process has just begun to store (once, 4 times fewer in a daemon's first query).
OPTIONS = ("--cpu", "1ms", "--real", "1ms", "--setting", "query_profiler_max_overhead_percent=0")


class Recording(unittest.TestCase):
    # Finding names takes longer than most of the programs, so a test that needs names requests them.
    names = ("--no-symbols",)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="queryprof-record-test-")
        os.chmod(self.folder, 0o755)  # one test runs as another user
        self.trace = os.path.join(self.folder, "app.trace")
        self.seen = ""
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def arguments(self, *command, options=OPTIONS):
        return [QUERYPROF, "record", "-o", self.trace, *self.names, *options, "--", *command]

    def record(self, *command, options=OPTIONS, around=(), **named):
        """`around`: a command that runs `record`."""
        done = subprocess.run([*around, *self.arguments(*command, options=options)], capture_output=True, text=True,
                              timeout=300, check=False, **named)
        self.seen = "\nexit status %d\n%s%s" % (done.returncode, done.stdout, done.stderr)
        return done

    def rows(self, sql, *values):
        db = sqlite3.connect(self.trace, timeout=60)  # on a slow disk the last checkpoint takes long
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()

    def has_views(self):
        """False at the beginning of a recording, because the file exists before its content."""
        return os.path.exists(self.trace) and self.rows("SELECT 1 FROM sqlite_master WHERE name = 'query_log'") != []

    def queries(self):
        """Text, samples of CPU and wall time, and process of each query. On a busy machine the end of a connection is a
        query, too; it is left out here."""
        return self.rows("""SELECT query,
            (SELECT count(*) FROM trace_log AS t WHERE t.query_id = q.query_id AND trace_type = 'CPU'),
            (SELECT count(*) FROM trace_log AS t WHERE t.query_id = q.query_id AND trace_type = 'Real'),
            (SELECT max(process_id) FROM trace_log AS t WHERE t.query_id = q.query_id)
            FROM query_log AS q WHERE query <> 'sqlite3_close()' ORDER BY query_start_time_microseconds""")

    def told_and_seen(self, name, program, *command):
        """Records the command with the program, in a file of that name, as its last argument. Returns the frames of
        each query's call that the program prints as JSON, and the stored ones: [file, line, function] of each frame,
        newest first. The quoted text in a query identifies it."""
        if os.path.exists(self.trace):
            os.unlink(self.trace)
        done = self.record(*command, self.file(name, program))
        self.assertEqual(done.returncode, 0, self.seen)
        self.assertTrue(done.stdout, self.seen)
        seen = {query.split("'")[1]: json.loads(frames) for query, frames in self.rows(
            "SELECT query, frames FROM query_log JOIN call_stacks AS b ON b.id = call_stack_id"
            " WHERE query LIKE 'WITH RECURSIVE%'")}
        return json.loads(done.stdout), seen

    def describe(self, text):
        """Everything known about the text's runs, for a message."""
        db = sqlite3.connect(self.trace)
        try:
            db.row_factory = sqlite3.Row
            runs = db.execute("SELECT * FROM query_log WHERE query = ?", (text,)).fetchall()
            return "\n".join(str({name: run[name] for name in run.keys() if run[name]}) for run in runs) + self.seen
        finally:
            db.close()

    def were_at_ticks(self, text):
        """For each run, whether a tick must have hit one of its thread's turns.

        The kernel expires CPU timers at its ticks; SLOW lasts for a dozen. If all of a thread's turns end before the next tick,
        each is shorter than a tick, and no tick hits the thread. This happens if a thread of another program wakes on the same
        processor just before each tick, for example by a timer of 1 ms."""
        used = self.rows("SELECT cpu_time_ns, voluntary_switches + involuntary_switches FROM query_log WHERE query = ?"
                         " ORDER BY query_start_time_microseconds", text)
        return [cpu_ns >= (switches + 2) * TICK_NS for cpu_ns, switches in used]

    def expect_sampled(self, count, text=SLOW):
        found = [query for query in self.queries() if query[0] == text]
        self.assertEqual(len(found), count, self.seen)
        for query, was_at_tick in zip(found, self.were_at_ticks(text)):
            if was_at_tick:
                self.assertGreaterEqual(query[1], 1, "on the CPU's clock: %s" % self.describe(text))
            self.assertGreaterEqual(query[2], 10, "on the real clock: %s" % self.describe(text))
        return found

    def expect_own_times(self, output):
        """All runs of TIMED_SHORT and TIMED_LONG are counted, no time is longer than by the program's own clock, and
        most of the long statement's time belongs to SQLite."""
        own = [tuple(map(int, line.split())) for line in output.splitlines()]
        shown = json.loads(subprocess.run([QUERYPROF, "queries", self.trace, "--format", "json"],
                                          capture_output=True, text=True, timeout=300, check=True).stdout)
        rows = [next(row for row in shown if row["query"].startswith(text[:13])) for text in (TIMED_SHORT, TIMED_LONG)]
        self.assertEqual([row["runs"] for row in rows], [runs for runs, _ in own], self.seen)
        for row, (runs, ns) in zip(rows, own):
            # Tcl's clock has a resolution of microseconds.
            self.assertLessEqual(row["wall_ms"], ns / 1e6 * 1.005 + runs * 0.001, self.seen)
            self.assertLessEqual(row["cpu_ms"], row["wall_ms"] + 0.001, self.seen)
        self.assertGreater(rows[1]["wall_ms"], own[1][1] / 1e6 / 3, self.seen)
        report = subprocess.run([QUERYPROF, "report", self.trace, "--like", "FROM t WHERE"], capture_output=True,
                                text=True, timeout=300, check=True).stdout
        wall = re.search(r"(?m)^wall +([0-9.]+) ms", report)
        self.assertAlmostEqual(float(wall[1]), sum(row["wall_ms"] for row in rows), delta=0.2)
