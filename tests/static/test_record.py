#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stripped programs and modules with SQLite inside, under `queryprof record`. Every statement is seen once, with its thread and
process, and the program behaves as without queryprof.

usage: test_record.py QUERYPROF HOST HOST_AT_A_FIXED_ADDRESS MODULE [HOST_OF_SQLITE_3_15]"""

import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

HOST, FIXED, MODULE = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
OLD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else None
ALL = ("--cpu", "1ms", "--real", "1ms", "--setting", "log_queries_min_query_duration_ns=0",
       "--setting", "trace_log_ring_bytes=67108864", "--setting", "query_profiler_max_overhead_percent=0")
INSERT, JOIN = "INSERT INTO t(b) VALUES (?)", "SELECT count(*) FROM t, t AS u WHERE t.a + u.a > 7"


class Static(Recording):
    def run_host(self, host, *arguments, count, works, fts="fts5", **named):
        """The number of queries by text and process."""
        plain = subprocess.run([host, str(count), *arguments], capture_output=True, text=True, timeout=300, check=False)
        done = self.record(host, str(count), *arguments, options=ALL, **named)
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout), self.seen)
        self.assertNotIn("lost", done.stderr)
        counts = dict(self.rows("SELECT query, count(*) FROM query_log GROUP BY 1"))
        self.assertEqual(counts[INSERT], works * count, self.seen)
        self.assertEqual(counts[JOIN], works, self.seen)
        self.assertEqual(counts["INSERT INTO f SELECT 'word ' || b FROM t"], works)
        # Neither FTS's internal work nor SQLite's reads of the schema are queries of the host.
        self.assertEqual(set(counts) - {INSERT, JOIN, "sqlite3_close()"},
                         {"CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)", "CREATE VIRTUAL TABLE f USING %s(body)" % fts,
                          "INSERT INTO f SELECT 'word ' || b FROM t"})

    def expect_whole(self):
        whole, samples = self.rows("SELECT sum(NOT truncated), count(*) FROM trace_log")[0]
        self.assertGreaterEqual(whole, 0.99 * samples, "%d of %d stacks" % (whole, samples))
        self.assertGreater(samples, 20, self.seen)

    def test_program(self):
        for host in (HOST, FIXED):
            with self.subTest(host):
                self.trace = os.path.join(self.folder, os.path.basename(host) + ".trace")
                self.run_host(host, count=2000, works=1)
                self.expect_whole()

    @unittest.skipUnless(OLD, "no libsqlcipher.a")
    def test_old_program(self):
        self.run_host(OLD, count=1000, works=1, fts="fts4")
        self.expect_whole()

    def test_threads(self):
        self.run_host(HOST, "4", count=1000, works=4)
        self.assertEqual(self.rows("SELECT count(DISTINCT thread_id) FROM query_log"), [(4,)])
        self.expect_whole()

    def test_fork(self):
        self.run_host(HOST, "1", "fork", count=500, works=2)
        self.assertEqual(self.rows("SELECT count(*) FROM processes"), [(2,)])

    def test_extension(self):
        """A program with an automatic extension has opcodes, and the library's own openings do not call its
        extension."""
        self.run_host(HOST, "2", "extension", count=2000, works=2)
        known, samples = self.rows("SELECT count(opcode), count(*) FROM trace_log JOIN query_log USING (query_id)"
                                   " WHERE query_log.query = '%s'" % JOIN)[0]
        self.assertGreater(known, 0.9 * samples, self.seen)
        self.assertGreater(samples, 20, self.seen)

    def test_times(self):
        """CPU times of samples agree with the queries' own times, within five standard errors of ticks."""
        self.run_host(HOST, count=4000, works=1)
        sampled, exact, count = self.rows(
            """SELECT (SELECT sum(weight * period_ns) FROM trace_log WHERE trace_type = 'CPU'),
                      (SELECT sum(cpu_time_ns) FROM query_log),
                      (SELECT count(*) FROM trace_log WHERE trace_type = 'CPU')""")[0]
        print("%.1f ms sampled, %.1f ms exact, %d samples" % (sampled / 1e6, exact / 1e6, count))
        self.assertLess(abs(sampled - exact), exact * (0.05 + 5 / count ** 0.5))

    def test_no_database(self):
        """Nothing is loaded if the program opens no database."""
        maps = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(open('/proc/self/maps').read())"
        done = self.record(PYTHON, "-c", maps, MODULE)
        self.assertIn("static_module", done.stdout)
        self.assertNotIn("libqueryprof.so", done.stdout)
        done = self.record(HOST, "1", "0")
        self.assertEqual(done.stdout, "none\n")
        self.assertIn("opened no database", done.stderr)

    def test_module(self):
        """A module is loaded, used, unloaded, and loaded again, with and without a shared SQLite."""
        script = ("import ctypes, _ctypes, sys\n"
                  "for i in range(20):\n"
                  "    module = ctypes.CDLL(sys.argv[1])\n"
                  "    assert not module.module_run(50) if i % 2 else True\n"
                  "    _ctypes.dlclose(module._handle)\n"
                  "    del module\n"
                  "print('done')")
        for also in ("", "import sqlite3\n"):
            self.trace = os.path.join(self.folder, "module%d.trace" % len(also))
            done = self.record(PYTHON, "-c", also + script, MODULE, options=ALL)
            self.assertEqual((done.returncode, done.stdout), (0, "done\n"), self.seen)
            self.assertEqual(self.rows("SELECT query, count(*) FROM query_log WHERE query <> 'sqlite3_close()' GROUP BY 1"),
                             [("SELECT ? + 1", 500)])

    def test_many_loads(self):
        """Modules that open no database are forgotten when they are unloaded."""
        script = ("import ctypes, _ctypes, sys\n"
                  "for i in range(100):\n"
                  "    module = ctypes.CDLL(sys.argv[1])\n"
                  "    _ctypes.dlclose(module._handle)\n"
                  "assert not ctypes.CDLL(sys.argv[1]).module_run(50)\n")
        done = self.record(PYTHON, "-c", script, MODULE, options=ALL)
        self.assertEqual(done.returncode, 0, self.seen)
        self.assertEqual(self.rows("SELECT query, count(*) FROM query_log WHERE query <> 'sqlite3_close()' GROUP BY 1"),
                             [("SELECT ? + 1", 50)])

    def test_protections(self):
        """The program's mappings keep their protections, and there is no additional mapping."""
        for host in (HOST, FIXED):
            with self.subTest(host):
                self.trace = os.path.join(self.folder, os.path.basename(host) + ".trace")
                self.run_host(host, "1", "maps", count=100, works=1)

    def test_filter(self):
        """A seccomp filter that is older than the search for the SQLite inside may kill the program for any system
        call."""
        plain = subprocess.run([HOST, "1000", "2", "filter"], capture_output=True, text=True, timeout=300, check=False)
        done = self.record(HOST, "1000", "2", "filter", options=ALL)
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout), self.seen)
        self.assertIn("it has a seccomp filter that queryprof did not see, so it is not recorded", done.stderr)

    def test_no_executable_memory(self):
        """A process that may not make memory executable is recorded, too."""
        script = ("import ctypes, os, sys\n"
                  "if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): sys.exit(77)  # PR_SET_MDWE\n"
                  "os.execv(sys.argv[1], sys.argv[1:])")
        done = self.record(PYTHON, "-c", script, HOST, "100", "1", options=ALL)
        if done.returncode == 77:
            self.skipTest("the kernel has no PR_SET_MDWE")
        self.assertEqual((done.returncode, done.stdout), (3, "100\n"), self.seen)
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query = ?", INSERT), [(100,)], self.seen)

    def test_without_proc(self):
        """A program that cannot be patched runs as usual, and the command names it."""
        wrapper = "mount -t tmpfs none /proc 2>/dev/null || exit 77; exec \"$@\""
        done = self.record("unshare", "-m", "sh", "-c", wrapper, "sh", HOST, "100", "1", options=ALL)
        if done.returncode in (1, 77):
            self.skipTest("no mount namespaces here")
        self.assertEqual((done.returncode, done.stdout), (3, "100\n"), self.seen)
        self.assertIn("/proc/self/mem cannot be opened", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
