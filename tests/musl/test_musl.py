#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that use musl under `queryprof record`, alone and in trees with programs that use glibc.

usage: test_musl.py QUERYPROF SOURCE, the project's source tree"""

import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

SOURCE = os.path.abspath(sys.argv.pop(1))
HERE = os.path.join(SOURCE, "tests/musl")
CCACHE = [shutil.which("ccache")] if shutil.which("ccache") else []
LOADER = b"/lib/ld-musl-"
# musl-gcc's link specification lacks the unwinder's table, which the compilers of distributions add.
FLAGS = ["-O1", "-g", "-fPIC", "-Wl,--eh-frame-hdr"]
LONG = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) SELECT count(*) FROM c"


def compile_all(folder):
    """Compiles the programs. The tests use the files' names."""
    done = subprocess.run([os.path.join(SOURCE, "third_party/npm/fetch"), os.path.join(SOURCE, "tests/plan/sources")],
                          stdout=subprocess.PIPE, text=True, check=True)
    sqlite = os.path.join(done.stdout.strip(), "node_modules/better-sqlite3/deps/sqlite3")

    def musl(output, *arguments):
        subprocess.run([*CCACHE, "musl-gcc", *FLAGS, "-I", sqlite, "-o", os.path.join(folder, output), *arguments],
                       check=True, cwd=folder)

    # The folder's name would change ccache's key.
    musl("sqlite3.o", "-g0", "-DHAVE_USLEEP=1", "-c", os.path.join(sqlite, "sqlite3.c"))
    musl("libsqlite3.so", "-shared", "-Wl,-soname,libsqlite3.so", "sqlite3.o")
    host, shared = os.path.join(HERE, "host.c"), ("-L.", "-lsqlite3", "-Wl,-rpath," + folder)
    musl("host", host, *shared)
    musl("inside", host, "sqlite3.o")
    musl("static", host, "sqlite3.o", "-static")
    musl("host.so", "-shared", "-DAS_LIBRARY", host, *shared)
    musl("late", '-DLIBRARY="%s"' % os.path.join(folder, "host.so"), os.path.join(HERE, "late.c"))
    musl("constructed.so", "-shared", "-DAS_LIBRARY", "-DIN_CONSTRUCTOR", host, *shared)
    musl("constructs", '-DLIBRARY="%s"' % os.path.join(folder, "constructed.so"), os.path.join(HERE, "late.c"), "-Wl,--no-as-needed", *shared)
    musl("runner", os.path.join(HERE, "runner.c"))
    subprocess.run(["gcc", "-o", os.path.join(folder, "runner_of_glibc"), os.path.join(HERE, "runner.c")], check=True)


class Musl(Recording):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("musl-gcc"):
            raise unittest.SkipTest("needs musl-gcc")
        cls.root = tempfile.mkdtemp(prefix="queryprof-musl-test-")
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        compile_all(cls.root)

    def at(self, name):
        return os.path.join(self.root, name)

    def recorded(self, *command, output=ANSWER + "\n", status=0, **named):
        done = self.record(*command, **named)
        self.assertEqual(done.returncode, status, self.seen)
        self.assertEqual(done.stdout, output, self.seen)
        self.assertNotRegex(done.stderr, "(?i)error|relocating|ld\\.so|cannot be preloaded", self.seen)
        return done

    def test_programs_use_musl(self):
        for name in "host", "inside", "late", "runner":
            with open(self.at(name), "rb") as file:
                self.assertIn(LOADER, file.read(), name)

    def expect_stacks(self):
        """At least a third of the stacks contain SQLite's code and its callers up to main(). musl's own functions have
        no unwind information."""
        stacks = [json.loads(symbols) for symbols, in self.rows(
            "SELECT symbols FROM trace_log WHERE trace_type = 'CPU' AND query_id <> ''")]
        whole = [stack for stack in stacks if {"main", "run", "sqlite3_step"} <= set(stack)]
        self.assertGreater(len(stacks), 0, self.seen)
        self.assertGreater(len(whole), len(stacks) / 3, stacks)

    def test_shared_library(self):
        self.names = ()
        slow = LONG % 3000000  # long enough for samples of CPU time under any load
        self.recorded(self.at("host"), ":memory:", slow, output="3000000\n")
        self.expect_sampled(1, slow)
        self.expect_stacks()

    def test_inside(self):
        self.recorded(self.at("inside"), ":memory:", SLOW)
        self.expect_sampled(1)

    def test_library_that_comes_later(self):
        self.recorded(self.at("late"), ":memory:", SLOW)
        self.expect_sampled(1)

    def test_first_query_in_a_constructor(self):
        """musl's dlopen() waits for constructors, so the thread that this one waits for may not call it."""
        self.recorded(self.at("constructs"), ":memory:", SLOW, output="0\n" + ANSWER + "\n")
        self.expect_sampled(1, SLOW)

    def test_threads(self):
        self.recorded(self.at("host"), ":memory:", SLOW, "4", output=4 * (ANSWER + "\n"))
        self.expect_sampled(4)
        threads = self.rows("SELECT count(DISTINCT thread_id) FROM trace_log WHERE query_id <> ''")
        self.assertEqual(threads, [(4,)], self.seen)

    def test_plan(self):
        self.recorded(self.at("host"), ":memory:", LONG % 3000000, output="3000000\n")
        opcodes = self.rows("SELECT opcode FROM trace_log WHERE trace_type = 'CPU' AND query_id <> ''")
        known = [opcode for opcode, in opcodes if opcode]
        self.assertGreater(len(known), len(opcodes) / 3, self.seen)

    def test_sleep_is_a_wait(self):
        """queryprof's signals neither shorten nor end the sleep."""
        self.recorded(self.at("host"), ":memory:", "SELECT nap(300), nap(200)", output="0|0\n")
        (duration, waited), = self.rows("SELECT query_duration_ns, (SELECT sum(value) FROM trace_log AS t"
                                        " WHERE t.query_id = q.query_id AND trace_type = 'OffCPU')"
                                        " FROM query_log AS q WHERE query LIKE 'SELECT nap%'")
        self.assertGreaterEqual(duration, 500 * 10**6, self.seen)
        self.assertGreaterEqual(waited or 0, 450 * 10**6, self.seen)

    def test_locks(self):
        """Threads that wait for each other's transactions, which are so long that a late thread meets one."""
        self.recorded(self.at("host"), os.path.join(self.folder, "db"), "BEGIN IMMEDIATE; SELECT nap(1000); COMMIT", "3",
                      output="0\n0\n0\n")
        causes = {cause for cause, in self.rows("SELECT DISTINCT wait_cause FROM trace_log")}
        (waits,), = self.rows("SELECT count(*) FROM trace_log WHERE wait_cause = 'lock' AND wait_object IN ('RESERVED', 'SHARED', 'EXCLUSIVE')")
        self.assertGreater(waits, 0, self.seen)

    def test_stack_that_grows(self):
        """musl reports the first thread's stack as it is at the first query."""
        self.recorded(self.at("host"), ":memory:", "SELECT deeper(100)", output="1\n")
        (samples,), = self.rows("SELECT samples_real FROM query_log WHERE query = 'SELECT deeper(100)'")
        self.assertGreaterEqual(samples, 10, self.seen)

    def test_exit(self):
        self.recorded(self.at("host"), ":memory:", SLOW + "; SELECT finish('_exit')", status=7)
        self.expect_sampled(1, SLOW + ";")

    def test_kill(self):
        self.recorded(self.at("runner"), self.at("host"), ":memory:", SLOW + "; SELECT nap(300), finish('kill')", status=128 + 9)
        self.expect_sampled(1, SLOW + ";")
        self.assertIn("SELECT nap(300), finish('kill')", [query[0] for query in self.queries()], self.seen)

    def test_mixed_trees(self):
        """All of these programs are recorded, whichever starts the other."""
        host, shell = [self.at("host"), ":memory:", SLOW], ["sqlite3", "-init", "/dev/null", ":memory:", SLOW]
        musl, glibc = self.at("runner"), self.at("runner_of_glibc")
        for way in [musl], [glibc], [musl, glibc], [glibc, musl], [musl, musl, glibc], [glibc, musl, glibc, musl]:
            for program, name in (host, "host"), (shell, "sqlite3"):
                with self.subTest(way=[os.path.basename(path) for path in way], program=name):
                    if os.path.exists(self.trace):
                        os.unlink(self.trace)
                    self.recorded(*way, *program)
                    self.expect_sampled(1)
                    programs = [os.path.basename(path) for path, in self.rows("SELECT executable FROM processes")]
                    self.assertEqual(programs, [name], self.seen)

    def test_programs_without_sqlite(self):
        done = self.recorded("sh", "-c", "$0 $1 true; exit 4", self.at("runner"), self.at("runner_of_glibc"), output="", status=4)
        self.assertIn("queryprof was loaded into sh, runner, runner_of_glibc, true, which did not load SQLite", done.stderr)

    def test_static_program(self):
        done = self.record(self.at("static"), ":memory:", SLOW)
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), self.seen)
        self.assertIn("%s is statically linked, so nothing can be preloaded" % self.at("static"), done.stderr)

    def test_no_library_for_musl(self):
        """In a build without musl-gcc, the program runs as it does alone, and the command names it."""
        command = self.at("queryprof")
        folder = os.path.dirname(QUERYPROF)
        for path in [QUERYPROF, *glob.glob(os.path.join(folder, "libqueryprof*.so"))]:
            if os.path.basename(path) != "libqueryprof-musl.so":
                shutil.copy(path, self.root)
        done = subprocess.run([command, *self.arguments(self.at("host"), ":memory:", SLOW)[1:]], capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), done.stderr)
        self.assertIn("nothing was recorded: %s: its C library is musl, for which this build of queryprof has no library"
                      % self.at("host"), done.stderr)


if __name__ == "__main__":
    unittest.main()
