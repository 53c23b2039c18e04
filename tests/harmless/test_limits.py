#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts that lack some resource or permission: they continue, and losses are reported.

usage: test_limits.py QUERYPROF LIBRARY LIMITS_HOST"""

from hosts import *

HOST = os.path.abspath(sys.argv.pop(1))
# Set by tools/coverage. gcov writes its counters when the host ends, beyond the limit, which kills the
# host.
without_gcov = unittest.skipIf("GCOV_ERROR_FILE" in os.environ, "gcov cannot write its counters")


class Limits(Hosts):
    def expect_goes_on(self, scenario, samples=20, **named):
        alone = self.run_host("alone", HOST, scenario)
        if alone.status == SKIPPED:
            self.skipTest(scenario + " cannot be had here")
        return self.expect_unharmed(HOST, scenario, samples=samples, alone=alone, **named)

    def place(self, name):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return folder

    def run_host(self, way, *command, **named):
        """Runs each host in a folder of its own."""
        named.setdefault("cwd", self.place("run-%d" % self.runs))
        return super().run_host(way, *command, **named)

    def test_no_signals_pending(self):
        done = self.expect_goes_on("no_signals_pending", samples=0)
        self.assertGreaterEqual(done.metrics["timers_failed"], 1, done)

    def test_no_descriptors(self):
        """The store has its own table of descriptors. On an old kernel it loses some samples and
        continues. Under record, a ring cannot be handed over without a descriptor."""
        done = self.expect_goes_on("no_descriptors", samples=1, ways=("loaded",))
        self.assertEqual(done.metrics["store_error"], "", done)
        self.expect_goes_on("no_descriptors", samples=0, ways=("recorded",))

    @without_gcov
    def test_no_file_size(self):
        done = self.expect_goes_on("no_file_size")
        self.assertEqual(done.out, "own write: File too large\n")
        self.assertGreaterEqual(done.metrics["store_lost"], 1, done)

    @without_gcov
    def test_no_file_size_ever(self):
        done = self.expect_goes_on("no_file_size_ever", samples=0, ways=("loaded",))
        self.assertIn("File too large", done.metrics["store_error"], done)
        self.assertIn("files of this process can have 0 bytes at most: ulimit -f", done.metrics["store_error"], done)

    def test_no_memory(self):
        done = self.expect_goes_on("no_memory", samples=0, ledger=False)
        self.assertRegex(done.err, "refused: .*[Mm]emory")

    def test_no_more_memory(self):
        """Records for which the flusher has no memory are lost and counted."""
        self.expect_goes_on("no_more_memory", samples=1)

    def test_refused_timers(self):
        done = self.expect_goes_on("refused_timers", samples=0)
        self.assertGreaterEqual(done.metrics["timers_failed"], 1, done)
        self.assertEqual(done.metrics["timer_error"], "Function not implemented", done)
        self.assertEqual(done.metrics["samples"], 0, done)

    def test_refused_timers_later(self):
        self.expect_goes_on("refused_timers_later", samples=10)

    def test_refused_calls(self):
        self.expect_goes_on("refused_calls", samples=50)

    def test_refused_files(self):
        """Open files are still written. All other data is lost, and the loss is reported."""
        done = self.expect_goes_on("refused_files", samples=0, ways=("loaded",), ledger=False)
        self.assertEqual(done.out, "went on\n")

    def test_punished_calls(self):
        """The library does not make the calls for which the filter would kill the process, and
        reports that."""
        done = self.expect_goes_on("punished_calls", samples=0, ledger=False)
        self.assertEqual(done.out, "went on\n")
        self.assertRegex(done.metrics["seccomp"], "^the program's seccomp filter forbids 5 of queryprof's system calls: .*"
                         r"\(getrusage, openat, process_vm_readv, pwrite64, timer_settime\)$", done)

    def test_refused_ppoll(self):
        self.expect_goes_on("refused_ppoll")

    def test_no_proc(self):
        self.expect_goes_on("no_proc")

    def test_changed_root(self):
        done = self.expect_goes_on("changed_root")
        self.assertGreater(done.rows("SELECT count(*) FROM query_log WHERE query LIKE '%/* later */%'")[0][0], 5, done)

    def test_changed_user(self):
        done = self.expect_goes_on("changed_user")
        self.assertGreater(done.rows("SELECT count(*) FROM query_log WHERE query LIKE '%/* later */%'")[0][0], 5, done)

    def test_unloaded(self):
        self.expect_goes_on("unloaded", samples=25)


unittest.main()
