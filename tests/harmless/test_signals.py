#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts see the same signals with queryprof as without.

usage: test_signals.py QUERYPROF LIBRARY SIGNALS_HOST"""

import re

from hosts import *

HOST = os.path.abspath(sys.argv.pop(1))


class Signals(Hosts):
    def test_all_handled_before(self):
        """No signal is free, so queryprof shares one with the host's handler."""
        done = self.expect_unharmed(HOST, "handled_before", samples=25)
        self.assertEqual(done.out, "31 of 31 came, 31 of them once\n0 signals of timers\n")
        self.assertEqual(done.metrics["signals_foreign"], 1, done)

    def test_taken_by_sigaction(self):
        done = self.expect_unharmed(HOST, "taken_by_sigaction", samples=25)
        self.assertEqual(done.out, "31 were at their default\n31 of 31 came, 31 of them once\n0 signals of timers\n")
        self.assertGreaterEqual(done.metrics["signal_moves"], 1, done)

    def test_taken_by_signal(self):
        done = self.expect_unharmed(HOST, "taken_by_signal", samples=25)
        self.assertEqual(done.out, "31 were at their default\n31 of 31 came, 31 of them once\n0 signals of timers\n")
        self.assertGreaterEqual(done.metrics["signal_moves"], 1, done)

    def test_taken_unseen(self):
        self.expect_unharmed(HOST, "taken_unseen", samples=25)

    def test_default_again(self):
        done = self.expect_unharmed(HOST, "default_again", samples=25)
        self.assertEqual(done.out, "93 as they were set\n")
        self.assertEqual(done.metrics["signal_moves"], 0, done)

    def test_sent_by_default(self):
        done = self.expect_unharmed(HOST, "sent_by_default", samples=10)
        self.assertEqual(done.out, "31 killed\n")

    def test_ignored_behind_exec(self):
        done = self.expect_unharmed(HOST, "ignored_behind_exec", samples=25)
        self.assertEqual(done.out, 2 * "fffffffe\n")

    def test_blocked_before(self):
        done = self.expect_unharmed(HOST, "blocked_before", samples=10)
        self.assertEqual(done.out, "0 0 came\n")
        self.assertIn("samples while blocked: 0\n", done.err)
        self.assertGreaterEqual(done.metrics["threads_blocked"], 1, done)

    def test_blocked_within(self):
        done = self.expect_unharmed(HOST, "blocked_within", samples=10)
        self.assertEqual(done.out, "0 came to a wait\n0 came to a descriptor\n")

    def test_waited_for(self):
        self.expect_unharmed(HOST, "waited_for", samples=20)

    def test_own_faults(self):
        self.expect_unharmed(HOST, "own_faults", samples=20, period="100us")

    def test_other_profiler(self):
        done = self.expect_unharmed(HOST, "other_profiler", samples=100)
        self.assertEqual(done.out, "ticks are all there\n")

    def test_own_alarm(self):
        done = self.expect_unharmed(HOST, "own_alarm", samples=20)
        self.assertEqual(done.out, "20 of 20 reads interrupted, by alarms\n")

    def test_rest_of_a_sleep(self):
        done = self.expect_unharmed(HOST, "rest_of_a_sleep", samples=10)
        self.assertEqual(done.out, "1\n")

    def test_short_period(self):
        """A thread makes progress even if the next signal is pending when its handler returns. The
        samples' weights add up to the time that has passed."""
        def cpu(done):
            return int(re.search("^cpu ([0-9]+)$", done.err, re.M)[1])

        alone = self.run_host("alone", HOST, "short_period")
        # A busy machine may be slower with queryprof than a moment before.
        done = self.until(lambda: self.run_host("loaded", HOST, "short_period", period="10us"),
                          lambda done: done.status or cpu(done) < 15 * cpu(alone))
        self.assertEqual(done.status, 0, done)
        self.assertLess(cpu(done), 15 * cpu(alone), done)
        stored, passed = done.rows("SELECT sum(weight * period_ns), sum(query_duration_ns) FROM (SELECT query_duration_ns,"
                                   " (SELECT sum(weight) FROM trace_log AS t WHERE t.query_id = q.query_id"
                                   " AND trace_type = 'Real') AS weight, 10000 AS period_ns"
                                   " FROM query_log AS q WHERE query LIKE '%often%')")[0]
        dropped = done.metrics["samples_dropped"]
        print("%.1f x the CPU time, %.2f of the time sampled, %d dropped" % (cpu(done) / cpu(alone), stored / passed, dropped))
        if not dropped:
            self.assertAlmostEqual(stored / passed, 1, delta=0.2, msg=done)

    def test_bare_clone(self):
        self.expect_unharmed(HOST, "bare_clone", samples=20)


unittest.main()
