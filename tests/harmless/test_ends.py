#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts that end in any way, execute other programs, fork, or close all descriptors.

usage: test_ends.py QUERYPROF LIBRARY ENDS_HOST"""

import random
import time

from hosts import *

HOST = os.path.abspath(sys.argv.pop(1))


class Ends(Hosts):
    def test_exit(self):
        """Stores at least this many samples, however the process ends."""
        for how, status, samples in (("exit_now", 7, 20), ("exit_by_c", 8, 20), ("exit_quickly", 9, 37),
                                     ("exit_by_abort", -signal.SIGABRT, 20), ("first_thread_ends", 0, 50),
                                     ("exit_beside", 10, 25)):
            with self.subTest(how):
                done = self.expect_unharmed(HOST, how, samples=samples, ledger=False)
                self.assertEqual(done.status, status)

    def test_exit_recorded(self):
        """Under `queryprof record`, _exit() loses nothing."""
        for how in ("exit_now", "exit_by_c", "exit_quickly"):
            with self.subTest(how):
                done = self.run_host("recorded", HOST, how)
                end, last = done.rows("SELECT (SELECT max(query_start_time_microseconds) FROM query_log),"
                                      " (SELECT max(event_time_microseconds) FROM trace_log)")[0]
                self.assertGreaterEqual(self.expect_readable(done), 37, (how, end, last))

    def wait_for_sample(self, done, after_s):
        """Waits for a sample after that time. Returns the time of the newest sample."""
        end = time.monotonic() + 300
        while True:
            try:
                newest = done.rows("SELECT max(timestamp_ns) / 1e9 FROM trace_log")[0][0]
                if newest and newest > after_s:
                    return newest
            except sqlite3.OperationalError:
                pass  # queryprof is creating the file
            self.assertLess(time.monotonic(), end, "no sample after that time was ever stored")
            time.sleep(0.01)

    def test_killed(self):
        """The process is killed at any moment. The file is intact, and has everything that was
        stored."""
        chance = random.Random(1)
        for i in range(int(os.environ.get("QUERYPROF_TEST_ROUNDS", "6"))):
            trace = os.path.join(self.folder, "killed-%d.trace" % i)
            environment = self.environment(trace, "50us")
            environment["QUERYPROF_TRACE_LOG_FLUSH_INTERVAL_MS"] = "10"  # it stores most of the time
            with subprocess.Popen([HOST, "burn_on", LIBRARY], stdout=subprocess.PIPE, env=environment) as host:
                self.assertEqual(host.stdout.readline(), b"burning\n")
                done = Done(subprocess.CompletedProcess([], -signal.SIGKILL, "", ""), trace)
                self.wait_for_sample(done, 0)
                # Storing continues.
                stored = self.wait_for_sample(done, time.time())
                time.sleep(chance.uniform(0, 0.2))
                host.kill()
            with self.subTest(round=i):
                self.expect_readable(done)
                newest = done.rows("SELECT max(timestamp_ns) / 1e9 FROM trace_log")[0][0]
                self.assertGreaterEqual(newest, stored)

    def test_exec(self):
        """Executes often, with both timers at 10 us."""
        done = self.expect_unharmed(HOST, "exec_often", period="10us", samples=20)
        self.assertEqual(done.out, "40 good\n", done)

    def test_processes(self):
        done = self.expect_unharmed(HOST, "make_processes", samples=20)
        self.assertEqual(done.out, "by_vfork: 40, 0 refused\nby_fork: 20, 0 refused\nby_spawn: 20, 0 refused\n"
                                   "by_system: 20, 0 refused\nby_popen: 20, 0 refused\n")

    def expect_later(self, done):
        found = done.rows("SELECT count(*), sum(query LIKE '%/* later */%') FROM trace_log JOIN query_log USING (query_id)")
        self.assertGreaterEqual(found[0][1] or 0, 20, "after the descriptors were closed: %r" % (found,))

    def test_close_others(self):
        """With a new kernel the host cannot close the library's descriptors. With an old kernel it
        closes them. In both cases the host's files get no data of queryprof, and storing
        continues."""
        for way in ("loaded", "recorded"):
            with self.subTest(way):
                done = self.run_host(way, HOST, "close_others", cwd=self.folder)
                self.assertEqual((done.status, done.out), (0, "300 of 300 files as they were\n"), done)
                self.expect_readable(done, 100)
                self.expect_later(done)
                if way == "loaded":
                    self.expect_ledger(done)
                    self.assertEqual(done.metrics["store_error"], "", done)

    def run_daemon(self, way):
        folder = os.path.join(self.folder, "daemon-%d" % self.runs)
        os.mkdir(folder)
        done = self.run_host(way, HOST, "daemonize", cwd=folder)
        self.assertEqual((done.status, done.out), (0, ""), done)
        path, end = os.path.join(folder, "done"), time.monotonic() + 300
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), end, "the daemon never came to its end")
            time.sleep(0.02)
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read(), "300 of 300 files as they were\n")
        return done

    def is_later_stored(self, done):
        """Waits for the daemon's last samples. They never come if the daemon has no file, because its parent's flusher
        needed more than a second to close its own at the fork."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                self.expect_later(done)
                return True
            except (AssertionError, sqlite3.OperationalError):  # the file may not have its content yet
                time.sleep(0.05)
        return False

    def test_daemon(self):
        for way in ("alone", "loaded", "recorded"):
            with self.subTest(way):
                done = self.until(lambda: self.run_daemon(way), lambda done: way == "alone" or self.is_later_stored(done),
                                  tries=5)
                if way != "alone":
                    self.expect_later(done)
                    self.expect_readable(done, 20)


unittest.main()
