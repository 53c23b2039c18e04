#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts with manipulated clocks end in time and as they do alone. The recording has the kernel's
times.

usage: test_clocks.py QUERYPROF LIBRARY OTHER_CLOCK"""

import time

from hosts import *

OTHER_CLOCK = os.path.abspath(sys.argv.pop(1))
CLOCKS = ("jumps", "stands still", "runs backwards", "ten times as fast")
LIMIT_S = 300  # on a busy machine
QUERIES = r"""
import os, sqlite3, sys, threading
def work():
    db = sqlite3.connect(":memory:")
    if len(sys.argv) > 1:
        db.enable_load_extension(True)
        db.load_extension(sys.argv[1])
    db.execute("CREATE TABLE t (a)")
    db.executemany("INSERT INTO t VALUES (?)", ((i,) for i in range(100)))
    os.write(1, b"%d\n" % db.execute("SELECT count(*) FROM t a, t b, t c").fetchone()[0])
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
work()
if child: print(os.waitpid(child, 0)[1])
"""


class Clocks(Hosts):
    def run_host_with(self, clock, before, *command):
        """Runs the command recorded, with the clock's library before queryprof's or after it. If
        `before` is None, runs it without recording."""
        environment = self.environment(None)
        environment["OTHER_CLOCK"] = clock
        preload = {None: OTHER_CLOCK, True: OTHER_CLOCK + ":$LD_PRELOAD", False: "$LD_PRELOAD:" + OTHER_CLOCK}[before]
        run = ["/bin/sh", "-c", 'export LD_PRELOAD="%s"; exec "$@"' % preload, "sh", *command]
        trace = os.path.join(self.folder, "%d.trace" % self.runs)
        self.runs += 1
        if before is not None:
            run = [QUERYPROF, "record", "-o", trace, "--", *run]
        return Done(subprocess.run(run, env=environment, capture_output=True, text=True, timeout=LIMIT_S), trace)

    def test_recorded(self):
        for clock in CLOCKS:
            alone = self.run_host_with(clock, None, sys.executable, "-c", QUERIES)
            self.assertEqual(alone.status, 0, alone)
            for before in (True, False):
                with self.subTest(clock, before=before):
                    start = time.time()
                    done = self.run_host_with(clock, before, sys.executable, "-c", QUERIES)
                    end = time.time()
                    self.assertEqual((done.status, done.out), (0, alone.out), done)
                    # Not the host's clock, which may show another day.
                    times = done.rows("SELECT CAST(strftime('%s', query_start_time_microseconds) AS INTEGER) FROM query_log")
                    self.assertGreaterEqual(len(times), 1, done)
                    self.assertTrue(all(int(start) <= at <= end for at, in times), (start, times, end))

    def test_loaded(self):
        for clock in CLOCKS:
            with self.subTest(clock):
                alone = self.run_host_with(clock, None, sys.executable, "-c", QUERIES)
                done = self.run_host_with(clock, None, sys.executable, "-c", QUERIES, LIBRARY)
                self.assertEqual((done.status, done.out, done.err), (0, alone.out, alone.err))

    def test_time_namespace(self):
        """The namespace's clocks are the kernel's, with another zero."""
        inside = ["unshare", "--time", "--monotonic", "1000000", "--boottime", "1000000"]
        if subprocess.run([*inside, "true"], capture_output=True).returncode:
            self.skipTest("no time namespaces here")
        alone = subprocess.run([*inside, sys.executable, "-c", QUERIES], capture_output=True, text=True)
        trace = os.path.join(self.folder, "namespace.trace")
        done = subprocess.run([QUERYPROF, "record", "-o", trace, "--", *inside, sys.executable, "-c", QUERIES],
                              env=self.environment(None), capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stdout), (0, alone.stdout), done)
        self.assertGreaterEqual(Done(done, trace).rows("SELECT count(*) FROM query_log")[0][0], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
