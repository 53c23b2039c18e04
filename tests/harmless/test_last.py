#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Statements that run after main() are stored like all others.

usage: test_last.py QUERYPROF LIBRARY LAST_HOST LINKED_HOST LAST_LIBRARY"""

from hosts import *

HOST, LINKED, LAST_LIBRARY = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
MARKS = ("main", "exit handler", "destructor", "before_1.so", "before_2.so", "after.so")


class Last(Hosts):
    def setUp(self):
        super().setUp()
        for name in MARKS:
            if name.endswith(".so"):
                shutil.copy(LAST_LIBRARY, os.path.join(self.folder, name))

    def environment(self, trace, period="1ms"):
        """The flush interval is so long that only the end of the process stores anything."""
        return dict(super().environment(trace, period), QUERYPROF_TRACE_LOG_FLUSH_INTERVAL_MS="600000")

    def run_last(self, way, scenario, *variables):
        """`way` may also be linked."""
        before = [os.path.join(self.folder, "before_%d.so" % i) for i in (1, 2)]
        later = os.path.join(self.folder, "after.so")
        # The command itself runs without these libraries.
        command = ["/usr/bin/env", "QUERYPROF_TEST_LATER=" + later, *variables]
        preloads = ":".join(before)
        if way == "recorded":
            script = 'LD_PRELOAD="$1:$LD_PRELOAD:$2"; shift 2; export LD_PRELOAD; exec "$@"'
            command += ["/bin/sh", "-c", script, "sh", *before, HOST, scenario]
        else:
            command += ["LD_PRELOAD=" + preloads, LINKED if way == "linked" else HOST, scenario]
        if way != "linked":
            return self.run_host(way, *command)
        self.runs += 1
        trace = os.path.join(self.folder, "%d.trace" % self.runs)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False,
                              env=self.environment(trace))
        return Done(done, trace)

    @staticmethod
    def stored(done):
        return {row[0] for row in done.rows("SELECT query FROM query_log JOIN trace_log USING (query_id)")}

    def run_stored(self, *how, marks=MARKS):
        return self.until(lambda: self.run_last(*how), lambda done: self.samples(done) and all(
            any(repr(mark) in query for query in self.stored(done)) for mark in marks))

    def expect_all(self, done, marks=MARKS):
        found = self.stored(done)
        for mark in marks:
            self.assertEqual(sum(repr(mark) in query for query in found), 1,
                             "%s: %s\n%s" % (mark, sorted(found), done))

    def test_last(self):
        for scenario, status in (("last_return", 0), ("last_exit", 3), ("last_thread", 0)):
            alone = self.run_last("alone", scenario)
            self.assertEqual(alone.status, status, alone)
            self.assertEqual(len(alone.out.splitlines()), len(MARKS), alone)
            for way in ("loaded", "linked", "recorded"):
                with self.subTest(scenario, way=way):
                    done = self.run_stored(way, scenario)
                    self.assertEqual(done.status, status, done)
                    self.assertEqual(sorted(line.split(": ")[1] for line in done.out.splitlines()),
                                     sorted(line.split(": ")[1] for line in alone.out.splitlines()), done)
                    self.expect_readable(done)
                    self.expect_all(done)

    def test_ended_by_a_destructor(self):
        """Everything recorded before the destructor is stored."""
        for way in ("loaded", "linked", "recorded"):
            with self.subTest(way=way):
                marks = MARKS if way == "recorded" else MARKS[:-1]
                done = self.run_stored(way, "last_return", "QUERYPROF_TEST_END_AFTER=4", marks=marks)
                self.assertEqual(done.status, 4, done)
                self.expect_readable(done)
                self.expect_all(done, marks)


unittest.main()
