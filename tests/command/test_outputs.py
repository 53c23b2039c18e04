#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The outputs of the queryprof command: files that are complete or missing, pipes that no program reads, full disks, and
terminals that show the progress.

usage: test_outputs.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import fcntl
import os
import pty
import resource
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import termios
import time
import unittest

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file
from tool import BUILD_ID, FIXTURE, QUERYPROF, SANITIZED, SCHEMA, Tool, environment, main

# Longer than any test waits.
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

# A shell's background job ignores this signal, and the command would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def preloaded(name):
    return environment(LD_PRELOAD=os.environ[name], ASAN_OPTIONS="verify_asan_link_order=0")


class Files(Tool):
    def setUp(self):
        self.place = os.path.join(self.folder, "place")
        os.mkdir(self.place)
        self.out = os.path.join(self.place, "out.json")
        self.export = ["export", self.trace, "--format", "json", "-o"]

    def tearDown(self):
        shutil.rmtree(self.place)

    def text(self, path=None):
        with open(path or self.out, encoding="utf-8") as file:
            return file.read()

    def test_new_file(self):
        """The export contains texts of queries, like the trace file, so only its user may read it, whatever the umask
        is."""
        umask = os.umask(0)
        try:
            self.output(*self.export, self.out)
        finally:
            os.umask(umask)
        self.assertEqual(os.stat(self.out).st_mode & 0o777, 0o600)
        self.assertEqual(self.text(), self.output(*self.export, "-"))
        self.assertEqual(os.listdir(self.place), ["out.json"])

    def test_file_that_was_there(self):
        with open(self.out, "w", encoding="ascii") as file:
            file.write("old")
        os.chmod(self.out, 0o604)
        link = os.path.join(self.place, "link")
        os.symlink("out.json", link)
        self.output(*self.export, link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(self.out).st_mode & 0o777, 0o604)
        self.assertEqual(self.text(), self.output(*self.export, "-"))

    def test_failure_leaves_what_was_there(self):
        """The process may write 10 bytes per file. The resulting signal does not end it."""
        with open(self.out, "w", encoding="ascii") as file:
            file.write("old")

        def limit(action):
            def prepare():
                signal.signal(signal.SIGXFSZ, action)
                resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
            return prepare

        for action in signal.SIG_IGN, signal.SIG_DFL:
            for name in ("out.json", "new.json"):
                done = subprocess.run([QUERYPROF, *self.export, os.path.join(self.place, name)], stderr=subprocess.PIPE,
                                      preexec_fn=limit(action), restore_signals=False, timeout=300, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(os.listdir(self.place), ["out.json"])
                self.assertEqual(self.text(), "old")
                self.assertIn(b"File too large", done.stderr)

    def test_ended_while_it_writes(self):
        whole = self.output("export", self.large(), "--format", "json", "-o", "-")
        for end in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with open(self.out, "w", encoding="ascii") as file:
                file.write("old")
            with subprocess.Popen([QUERYPROF, "export", self.large(), "--format", "json", "-o", self.out],
                                  stderr=subprocess.PIPE) as process:
                while process.poll() is None and len(os.listdir(self.place)) == 1:
                    select.select([], [], [], 0.001)
                process.send_signal(end)
                process.communicate(timeout=300)
            # The command may have finished by then, or have replaced the file, but the file is never half written.
            self.assertIn(process.returncode, (0, -end))
            self.assertEqual(os.listdir(self.place), ["out.json"])
            self.assertTrue(self.text() == whole or process.returncode and self.text() == "old")

    def test_ended_when_the_file_is_there(self):
        """The signal comes before the command writes anything."""
        done = subprocess.run([QUERYPROF, *self.export, self.out], stderr=subprocess.PIPE, timeout=300, check=False,
                              env=preloaded("END_AT_NEW_FILE"))
        self.assertEqual((done.returncode, os.listdir(self.place)), (-signal.SIGTERM, []), done.stderr)

    def large(self):
        path = os.path.join(self.folder, "large.trace")
        if not os.path.exists(path):
            trace_file.make(path, SCHEMA, FIXTURE, BUILD_ID)
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.execute("WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
                           " INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated,"
                           " size) SELECT ? + i, 1, 0, 1, 0, 1, 0, 0 FROM n",
                           (trace_file.START + 10**12,))
                db.commit()
        return path

    def test_places_that_cannot_be_written(self):
        for path, says in ((os.path.join(self.place, "none", "x"), "No such file"), (self.place, "Is a directory"),
                           ("/dev/full", "No space left"), (os.path.join(self.trace, "x"), "Not a directory"),
                           (self.trace, "is the file being exported")):
            for kind in ("json", "pprof", "speedscope", "collapsed"):
                err = self.refused(1, "export", self.trace, "--format", kind, "-o", path)
                self.assertIn(says, err)
                self.assertEqual(err.count("\n"), 1)
        self.assertEqual(os.listdir(self.place), [])

    def test_full_disk(self):
        for arguments in (["queries", self.trace], ["report", self.trace], ["diff", self.trace, self.trace],
                          self.export + ["-"], ["sql", self.trace, "SELECT * FROM trace_log"], ["--help"], ["--man"],
                          ["report", "--help"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([QUERYPROF, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=300, check=False)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "queryprof: standard output: No space left on device\n"), arguments)

    def test_pipe_that_nobody_reads(self):
        many = ["sql", self.trace, "SELECT trace FROM trace_log, (VALUES (1), (2), (3), (4)) AS x, query_log"]
        for ignore in (False, True):
            with subprocess.Popen([QUERYPROF, *many], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=(lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN)) if ignore else None,
                                  restore_signals=not ignore) as process:
                process.stdout.readline()
                process.stdout.close()
                err = process.stderr.read()
            self.assertEqual((process.returncode, err), (-signal.SIGPIPE, b""))


class Terminals(Tool):
    def start(self, *arguments, env=None, **named):
        """The command with a terminal as its stderr."""
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        process = subprocess.Popen([QUERYPROF, *arguments], stderr=terminal, env=env or environment(), **named)
        os.close(terminal)
        return process, controller

    def read_until(self, controller, text):
        seen = b""
        while text not in seen:
            self.assertTrue(select.select([controller], [], [], 300)[0], seen)
            try:
                seen += os.read(controller, 4096)
            except OSError:  # Linux's way to say that no program has the terminal open
                self.fail(seen)
        return seen

    def test_progress_shows_after_a_second(self):
        process, controller = self.start("sql", self.trace, ENDLESS, stdout=subprocess.DEVNULL)
        self.assertRegex(self.read_until(controller, b" s\r"), rb"queryprof: working, \d+ s\r")
        process.terminate()
        self.assertEqual(process.wait(300), -signal.SIGTERM)

    def test_progress_leaves_an_empty_line(self):
        """A fast machine may not show progress. Otherwise the following text begins on a line of its own."""
        process, controller = self.start("sql", self.trace, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
                                         " FROM n WHERE i < 4000000) SELECT abs(-9223372036854775807 - (i > 3999999))"
                                         " FROM n WHERE i > 3999998", stdout=subprocess.DEVNULL)
        seen = self.read_until(controller, b"integer overflow")
        self.assertEqual(process.wait(300), 1)
        self.assertRegex(seen, rb"^((queryprof: working, \d+ s *\r)+ +\r)?queryprof: integer overflow")

    def test_progress_of_an_export(self):
        path = os.path.join(self.folder, "many.trace")
        trace_file.make(path, SCHEMA, FIXTURE, BUILD_ID)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 600)"
                       " INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated,"
                           " size) SELECT ? + i, 1, 0, 1, 0, 1, 0, 0 FROM n", (trace_file.START + 10**12,))
            db.commit()
        process, controller = self.start("export", path, "--format", "json", "-o", "-", stdout=subprocess.DEVNULL,
                                         env=preloaded("FAST_CLOCK"))
        seen = b""
        with contextlib.suppress(OSError):  # no program has the terminal open any more
            while select.select([controller], [], [], 300)[0]:
                seen += os.read(controller, 4096)
        self.assertEqual(process.wait(300), 0)
        self.assertRegex(seen, rb"queryprof: reading, 256 samples *\r(queryprof: reading, \d+ samples *\r)*"
                               rb"queryprof: writing, \d+ s *\r +\r$")

    def test_no_progress_without_a_terminal(self):
        with subprocess.Popen([QUERYPROF, "sql", self.trace, ENDLESS], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            self.assertEqual(select.select([process.stderr], [], [], 1.5)[0], [])
            process.kill()

    def test_bold_on_a_terminal_only(self):
        for variables, bold in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                                ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
            controller, terminal = pty.openpty()
            done = subprocess.run([QUERYPROF, "queries", self.trace], stdout=terminal, env=environment(80, **variables),
                                  timeout=300, check=False)
            os.close(terminal)
            seen = os.read(controller, 65536)
            os.close(controller)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(b"\x1b[1m" in seen, bold, variables)
            self.assertEqual(b"\x1b" in seen, bold, variables)
        self.assertNotIn("\x1b", self.output("queries", self.trace))

    def shown(self, rows, *arguments, **variables):
        """The final output on a terminal with `rows` rows, and the exit status."""
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
        with subprocess.Popen([QUERYPROF, *arguments], stdout=terminal, stderr=terminal,
                              env=environment(100, TERM="dumb", **variables)) as process:
            os.close(terminal)
            seen = b""
            with contextlib.suppress(OSError):  # no program has the terminal open any more
                while select.select([controller], [], [], 300)[0]:
                    seen += os.read(controller, 4096)
        return seen.decode().replace("\r\n", "\n"), process.returncode

    def test_long_output_goes_through_the_pager(self):
        for arguments in (["queries", self.trace], ["report", self.trace], ["diff", self.trace, self.trace],
                          ["sql", self.trace, "SELECT query FROM query_log"], ["report", "--help"], ["--help"]):
            out = self.output(*arguments, columns=100)
            size = out.count("\n")
            self.assertEqual(self.shown(size + 1, *arguments, PAGER="sed 's/^/| /'"), (out, 0))
            paged = "".join("| " + line for line in out.splitlines(True))
            self.assertEqual(self.shown(size, *arguments, PAGER="sed 's/^/| /'"), (paged, 0))
            self.assertEqual(self.shown(2, *arguments, PAGER="sed 's/^/| /'"), (paged, 0))

    def test_an_error_comes_behind_the_output(self):
        for rows, start in ((100, ""), (3, "| ")):
            out, code = self.shown(rows, "sql", self.trace, "SELECT 1 AS a; SELECT 2 AS a; SELECT x", PAGER="sed 's/^/| /'")
            self.assertEqual(out, "".join(start + line for line in ("a\n", "1\n", "a\n", "2\n")) +
                             "queryprof: no such column: x; PRAGMA table_info(TABLE) lists the columns of a table\n")
            self.assertEqual(code, 1)

    def test_a_pager_that_is_left_ends_the_command(self):
        out, code = self.shown(10, "sql", self.trace, "SELECT 1 FROM trace_log, trace_log", PAGER="head -n 3")
        self.assertEqual((out, code), ("1\n1\n1\n", -signal.SIGPIPE))

    @unittest.skipIf(SANITIZED, "sanitizers have no limit")
    def test_memory(self):
        """The command limits itself to half of the machine's memory. Programs that it starts get the original limit."""
        half = os.sysconf("SC_PHYS_PAGES") // 2 * os.sysconf("SC_PAGE_SIZE")
        show = "grep 'Max data' /proc/self/limits"
        with open("/proc/self/limits", encoding="ascii") as file:
            before = next(line for line in file if line.startswith("Max data"))
        with subprocess.Popen([QUERYPROF, "sql", self.trace, ENDLESS], stdin=subprocess.DEVNULL) as process:
            try:
                end = time.monotonic() + 60
                while time.monotonic() < end:
                    with open(f"/proc/{process.pid}/limits", encoding="ascii") as file:
                        limit = next(line for line in file if line.startswith("Max data")).split()[3]
                    if limit != before.split()[3]:
                        break
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
            finally:
                process.kill()
        self.assertEqual(int(limit), half)
        self.assertEqual(self.shown(2, "sql", self.trace, "SELECT query FROM query_log", PAGER=show), (before, 0))
        new = os.path.join(self.folder, "memory.trace")
        done = subprocess.run([QUERYPROF, "record", "--quiet", "-o", new, "sh", "-c", show], capture_output=True,
                              text=True, env=environment(), timeout=300, check=False)
        self.assertEqual(done.stdout, before, done.stderr)

    @unittest.skipIf(SANITIZED, "sanitizers have no limit")
    def test_out_of_memory(self):
        done = subprocess.run([QUERYPROF, "sql", self.trace, "SELECT length(hex(zeroblob(100000000)))"], env=environment(),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, resource.RLIM_INFINITY)),
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "queryprof: out of memory\n"))

    @unittest.skipIf(SANITIZED, "whose run-time `true` has not")
    def test_a_summary_that_takes_long(self):
        """record's last line does not wait for a large file."""
        path = os.path.join(self.folder, "late.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript("""
                INSERT INTO threads VALUES (9, 2, 9, '');
                INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (9, 9, 'CPU', 1, 1);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
                INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)
                SELECT i, 9, 0, 1, 0, 1, 0, 0 FROM n;""")
        for env, said in ((environment(), "20000 samples"), (preloaded("FAST_CLOCK"), "because that takes more than 10 s")):
            done = subprocess.run([QUERYPROF, "record", "--append", "-o", path, "true"], capture_output=True, text=True,
                                  env=env, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertIn("queryprof report " + path, done.stderr)


if __name__ == "__main__":
    main()
