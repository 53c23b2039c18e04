#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Queries that never end: the program is killed in the middle of them.

usage: test_unfinished.py QUERYPROF"""

import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

ENDLESS = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x), 'größe' FROM c")
BOUND = 1920  # bytes of a text that come with a query's first sample
OFTEN = (*OPTIONS, "--setting", "trace_log_flush_interval_ms=100")  # the file soon contains the running queries


def realtime_offset_ns():
    """CLOCK_REALTIME - CLOCK_MONOTONIC. Takes the closest of many readings, because nothing came between them."""
    best = []
    for _ in range(1000):
        before, now, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        best.append((after - before, now - after))
    return min(best)[1]


class Unfinished(Recording):
    def unfinished(self):
        if not self.has_views():
            return []
        return self.rows("SELECT query_id, query, query_duration_ns, samples_cpu, samples_real FROM query_log"
                         " WHERE type = 'QueryStart' ORDER BY query_start_time_microseconds")

    def expect_unfinished(self, *texts):
        """Unfinished queries with these texts. Each has as many samples as its row contains."""
        found = self.unfinished()
        self.assertEqual([row[1] for row in found], list(texts), self.seen)
        for query_id, _, duration, cpu, real in found:
            self.assertEqual(self.rows("SELECT sum(trace_type = 'CPU'), sum(trace_type = 'Real') FROM trace_log"
                                       " WHERE query_id = ?", query_id), [(cpu, real)])
            self.assertGreater(cpu + real, 0)
            self.assertGreater(duration, 0)
        return found

    def command(self, *arguments):
        done = subprocess.run([QUERYPROF, *arguments], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def kill(self, number, text, *command):
        """Kills the program once the file contains a running query that begins with the text, and a sample of it."""
        process = subprocess.Popen(self.arguments(*command, options=OFTEN), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        try:
            wait_until(lambda: any(row[1].startswith(text) and row[3] + row[4] for row in self.unfinished()), "a sample of a query")
            os.kill(self.rows("SELECT process_id FROM processes")[0][0], number)
            self.seen = process.communicate(timeout=300)[1].decode()
        finally:
            process.kill()
            process.wait()
        self.assertEqual(process.returncode, -number)

    @staticmethod
    def busy_child(pid, name):
        """The process with that name, once it has used 0.3 s of CPU time."""
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            for child in map(int, file.read().split()):
                with open("/proc/%d/stat" % child, encoding="ascii") as stat:
                    fields = stat.read()
                if "(%s)" % name in fields and int(fields.rpartition(")")[2].split()[11]) > 30:
                    return child
        return 0

    def test_ends(self):
        self.kill(signal.SIGTERM, "WITH", "sqlite3", "-init", "/dev/null", ":memory:", "SELECT 42; " + ENDLESS)
        self.expect_unfinished(ENDLESS)
        os.unlink(self.trace)
        self.kill(signal.SIGKILL, "WITH", "sqlite3", "-init", "/dev/null", ":memory:", "SELECT 42; " + ENDLESS)
        (query_id, *_), = self.expect_unfinished(ENDLESS)
        self.assertRegex(self.command("queries", self.trace), r"unfinished\b.* " + re.escape(ENDLESS))
        table = self.command("queries", self.trace, "--runs")
        self.assertRegex(table, r"unfinished\b.* " + re.escape(ENDLESS))
        self.assertIn(query_id[:18], table)
        for selection in ("--query", query_id), ("--like", "größe"):
            report = self.command("report", self.trace, *selection)
            self.assertRegex(report, r"unfinished +1: no end was recorded")
            self.assertNotRegex(report, r"(?m)^(runs|logged runs|rows) ")
            self.assertIn(ENDLESS, report)
            self.assertIn("sqlite3_step", report)

    def test_what_is_seen_while_it_runs(self):
        """The query's database, its library, and the id that the user gave it."""
        script = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.enable_load_extension(True)
db.load_extension(%r)
db.execute("PRAGMA query_id = 'my own id'")
db.execute(%r)
""" % (LIBRARY, ENDLESS)
        path = os.path.join(self.folder, "app.db")
        self.kill(signal.SIGKILL, ENDLESS, PYTHON, "-c", script, path)
        self.expect_unfinished(ENDLESS)
        library = subprocess.run([PYTHON, "-c", "import sqlite3; print(sqlite3.sqlite_version)"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        # The PRAGMA has a row, too, if it has a sample.
        self.assertEqual(self.rows("SELECT query_id, database, library_version, library_path <> '' FROM query_log"
                                   " WHERE type = 'QueryStart'"), [("my own id", os.path.realpath(path), library, 1)], self.seen)
        self.assertIn(ENDLESS, self.command("report", self.trace, "--query", "my own id"))
        self.assertRegex(self.command("report", self.trace, "--database", "app.db"), r"(?m)^unfinished +1: ")
        # query_log has one row. The command also counts all runs that have ended.
        ended, = self.rows("SELECT sum(calls) FROM statement_stats")[0]
        self.assertRegex(self.seen, " %d runs?, 1 process" % ((ended or 0) + 1))

    def test_another_ends_before(self):
        """A query's text is shown only with its own samples."""
        self.kill(signal.SIGTERM, ENDLESS, "sqlite3", "-init", "/dev/null", ":memory:", SLOW + "; " + ENDLESS)
        self.expect_unfinished(ENDLESS)
        self.assertRegex(self.seen, " 2 runs, 1 process")
        report = self.command("report", self.trace)
        self.assertNotIn("\ntext", report)
        self.assertRegex(report, r"on CPU, unfinished|wall, unfinished")
        only = self.command("report", self.trace, "--like", "250000")
        self.assertIn(SLOW, only)
        self.assertNotIn("unfinished", only)
        db = sqlite3.connect(self.trace)
        # As in a run whose start was not recorded. A run with a start and no text belongs to the profiler.
        db.execute("UPDATE queries SET statement = 0, query_start_ns = 0 WHERE NOT finished")
        db.commit()
        db.close()
        self.assertNotIn("\ntext", self.command("report", self.trace))

    def test_long_text(self):
        """A long text is complete after a kill, too. A very long one is truncated between two characters."""
        long = ENDLESS + " /* %s */" % ("ß" * BOUND)
        self.kill(signal.SIGKILL, "WITH", "sqlite3", "-init", "/dev/null", ":memory:", long)
        self.expect_unfinished(long)
        self.assertEqual(self.rows("SELECT is_cut, query FROM statements"), [(0, long)])
        os.unlink(self.trace)
        longer = long + " /* %s */" % ("ß" * 4 * BOUND)
        self.kill(signal.SIGKILL, "WITH", "sqlite3", "-init", "/dev/null", ":memory:", longer)
        self.expect_unfinished(longer.encode()[:BOUND - 1].decode(errors="ignore"))
        self.assertEqual(self.rows("SELECT is_cut FROM statements WHERE id IN (SELECT statement FROM queries)"), [(1,)])
        os.unlink(self.trace)
        self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW + " /* %s */" % ("ß" * BOUND))
        self.assertEqual(self.rows("SELECT is_cut, length(query) > 1900 FROM statements WHERE query LIKE '%ß%'"),
                         [(0, 1)])

    def test_nested_and_open(self):
        """A statement inside another one counts for the outermost. A statement that was stepped and is still open has
        not ended."""
        script = """
import sqlite3
db = sqlite3.connect(':memory:')
db.create_function('nested', 0, lambda: db.execute(%r).fetchone()[0])
rows = db.execute("SELECT x, (SELECT sum(y) FROM (WITH RECURSIVE d(y) AS (SELECT 1 UNION ALL SELECT y + 1 FROM d"
                  " WHERE y < 400000) SELECT y FROM d)) FROM (SELECT 1 AS x UNION ALL SELECT 2)")
rows.fetchone()
db.execute('SELECT nested()')
""" % ENDLESS
        self.kill(signal.SIGKILL, "SELECT nested()", PYTHON, "-c", script)
        first, second, *nested = (row[1] for row in self.unfinished())
        self.assertLessEqual(set(nested), {ENDLESS})
        self.assertTrue(first.startswith("SELECT x, "), first)
        self.assertEqual(second, "SELECT nested()")

    # A cursor with one more row. Its thread is not inside SQLite, so it cannot be sampled.
    OPEN = """
import os, signal, sqlite3, sys, time
db = sqlite3.connect(":memory:", isolation_level=None)
db.execute("CREATE TABLE t AS SELECT 1 AS x UNION ALL SELECT 2")
if sys.argv[1] == "later":
    time.sleep(0.5)  # the flusher sleeps again
cursor = db.execute("SELECT x FROM t /* open */")
next(cursor)
print("open", flush=True)
if sys.argv[1] == "exits":
    time.sleep(0.3)
    db.execute("SELECT 'short'").fetchall()
    os._exit(0)
if sys.argv[1] == "becomes":
    time.sleep(0.3)
    os.execv("/bin/true", ["true"])
time.sleep(600)
"""

    def open_cursor(self, least_ns, least_between_ns):
        (duration_ns, wall_ns, *others), = self.rows(
            "SELECT query_duration_ns, execution_time_ns, samples_cpu + samples_real, type FROM query_log"
            " WHERE query = 'SELECT x FROM t /* open */'")
        self.assertGreaterEqual(duration_ns, least_ns)
        # The time belongs to the program, because SQLite did nothing meanwhile.
        self.assertGreaterEqual(duration_ns - wall_ns, least_between_ns)
        self.assertEqual(others, [0, "QueryStart"])
        self.assertRegex(self.command("queries", self.trace), r"unfinished,.* SELECT x FROM t")

    def test_open_cursor_at_an_end(self):
        """After the cursor's process ends, the row contains all its time."""
        for how in "exits", "becomes":
            self.record(PYTHON, "-c", self.OPEN, how, options=("--cpu", "0"))
            self.open_cursor(300_000_000, 300_000_000)
            os.unlink(self.trace)

    def test_open_cursor_at_a_kill(self):
        """While the cursor is open, its row is in the file, and grows."""
        for how in "waits", "later":
            process = subprocess.Popen(self.arguments(PYTHON, "-c", self.OPEN, how, options=("--cpu", "0")), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                self.assertEqual(read_line(process.stdout, "an open cursor"), b"open\n")
                durations = set()

                def grows():
                    durations.update(row[2] for row in self.unfinished())
                    return len(durations) >= 3

                wait_until(grows, "a row that grows")
                os.kill(self.rows("SELECT process_id FROM processes")[0][0], signal.SIGKILL)
                process.communicate(timeout=300)
            finally:
                process.kill()
                process.wait()
            # Only the first duration may be from before the program reported the end of its call.
            self.open_cursor(max(durations), max(durations) - sorted(durations)[1])
            os.unlink(self.trace)

    # The statement is opened a second time, like most statements, and again in a child. The program measures the times.
    KILLED = """
import os, signal, sqlite3, sys, time
def opens(where):
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE t AS SELECT 1 AS x UNION ALL SELECT 2")
    text = "SELECT x FROM t /* %s */" % where
    db.execute(text).fetchall()
    before = time.monotonic_ns()
    cursor = db.execute(text)
    next(cursor)
    after = time.monotonic_ns()
    time.sleep(0.05)
    print(where, before, after, time.monotonic_ns(), flush=True)
    return db, cursor
held = opens("parent")
if sys.argv[1] == "becomes":
    os.execv("/bin/sleep", ["sleep", "0.5"])
if sys.argv[1] == "forks" and os.fork() == 0:
    held = opens("child")
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "forks":
    os.wait()
os.kill(os.getpid(), signal.SIGKILL)
"""

    def opened_at_a_kill(self, how):
        """Each cursor's row, and the time at which the command had ended."""
        process = subprocess.Popen(self.arguments(PYTHON, "-c", self.KILLED, how, options=(
            "--setting", "trace_log_flush_interval_ms=600000")), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        lines = [line.split() for line in process.communicate(timeout=300)[0].decode().splitlines()]
        ended = time.monotonic_ns()
        self.assertNotEqual(lines, [])
        for where, *times in lines:
            before, after, slept = map(int, times)
            (duration_ns, wall_ns, start_ns, *others), = self.rows(
                "SELECT query_duration_ns, execution_time_ns,"
                " (SELECT query_start_ns FROM queries WHERE queries.query_id = query_log.query_id), samples_cpu + samples_real, type, initial_query_id = query_id FROM query_log"
                " WHERE query = 'SELECT x FROM t /* %s */' AND type = 'QueryStart'" % where)
            self.assertGreaterEqual(duration_ns, slept - after)
            self.assertLessEqual(wall_ns, after - before)
            self.assertGreaterEqual(duration_ns - wall_ns, slept - after)
            offset_ns = realtime_offset_ns()
            self.assertGreater(start_ns - offset_ns, before - 10_000_000)  # converted between two clocks, which may be set
            self.assertLess(start_ns - offset_ns, after + 10_000_000)
            self.assertEqual(others, [0, "QueryStart", 1])
            yield where, before, duration_ns, ended
            self.assertRegex(self.command("queries", self.trace, "--like", where), r"unfinished, .*between rows [0-9.]+ m?s")
            self.assertIn("SCAN t", self.command("plan", self.trace, where))

    def test_open_cursor_killed_at_once(self):
        """There was no flush. The file has the row, with the time until the kill, and its plan."""
        for how, rows in ("is killed", ["parent"]), ("forks", ["parent", "child"]):
            self.assertEqual([row[0] for row in self.opened_at_a_kill(how)], rows)
            os.unlink(self.trace)

    def test_open_cursor_before_exec(self):
        """The cursor's time ends with its program."""
        for _, before, duration_ns, ended in self.opened_at_a_kill("becomes"):
            self.assertLess(duration_ns, ended - before - 500_000_000)

    # Short runs, one after the other, so at most moments one is open.
    SHORT = """
import sqlite3, time
db = sqlite3.connect(":memory:")
db.create_function("nap", 0, lambda: time.sleep(0.005))
db.execute("SELECT nap()").fetchall()
print("ready", flush=True)
input()
end = time.monotonic() + 3
while time.monotonic() < end:
    db.execute("SELECT nap()").fetchall()
"""

    @staticmethod
    def is_traced(pid):
        """Returns whether each of its threads is traced."""
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, thread), encoding="utf-8") as status:
                if "\nTracerPid:\t0\n" in status.read():
                    return False
        return True

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_short_run_while_the_command_is_slow(self):
        """The run ends between the command's copy and a later reading of the clock. It is too short for a row of its
        own, so no later row would finish it."""
        command = subprocess.Popen(self.arguments(PYTHON, "-c", self.SHORT, options=(
            "--cpu", "0", "--off-cpu", "0", "--real", "60s", "--setting", "log_queries_min_query_duration_ns=200ms")),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(read_line(command.stdout, "the program's first run"), "ready\n")
        # Making a copy calls lseek() for each of its parts, a dozen times after the runs.
        strace = subprocess.Popen(["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=lseek", "-e", "inject=lseek:delay_exit=50000",
                                   "-p", str(command.pid)], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: strace.poll() is not None or self.is_traced(command.pid), "strace")
        is_traced = strace.poll() is None
        _, self.seen = command.communicate("\n", timeout=300)
        said = strace.communicate(timeout=300)[1]
        self.assertEqual(command.returncode, 0, self.seen)
        if not is_traced:
            self.skipTest("strace may not look: " + said)
        self.assertEqual(self.unfinished(), [])

    def test_not_logged(self):
        done = self.record("prlimit", "--core=0", "--cpu=1:60", "sqlite3", "-init", "/dev/null", ":memory:", ENDLESS,
                           options=("--cpu", "1ms", "--setting", "log_queries=0"))
        self.assertEqual(done.returncode, -signal.SIGXCPU, self.seen)
        self.assertEqual(self.rows("SELECT count(*) FROM statements"), [(0,)])
        self.assertGreater(self.rows("SELECT count(*) FROM trace_log")[0][0], 0)


unittest.main()
