#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""perf records only stacks. `queryprof export --format label-history` lists which label was active
when. Together they give each of perf's samples the right label. Skipped if perf is not permitted
to record.

usage: test_perf.py QUERYPROF PROGRAM [unittest arguments]"""

import collections
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

QUERYPROF, PROGRAM = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


class Perf(unittest.TestCase):
    def setUp(self):
        if not shutil.which("perf"):
            self.skipTest("perf is not installed: tools/setup --all")
        self.folder = tempfile.mkdtemp(prefix="queryprof-label-perf-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.data = os.path.join(self.folder, "perf.data")

    def perf_record(self, *command):
        # CLOCK_REALTIME is the clock of label_history.
        return run("perf", "record", "-o", self.data, "-k", "CLOCK_REALTIME", "-F", "2000", "-e", "cpu-clock:u",
                   "--call-graph", "dwarf,4096", "--", *command)

    def samples(self):
        """Yields the time and the functions of each sample, leaf first."""
        done = run("perf", "script", "-i", self.data, "-F", "time,ip,sym", "--ns")
        self.assertEqual(done.returncode, 0, done.stderr)
        for block in done.stdout.strip().split("\n\n"):
            first, *lines = block.splitlines()
            seconds, ns = first.strip(" :").split(".")
            yield int(seconds) * 10**9 + int(ns), [line.split(None, 1)[1] for line in lines if len(line.split()) > 1]

    def test_join(self):
        tried = self.perf_record("true")
        if tried.returncode:
            self.skipTest("perf record: " + tried.stderr.strip())
        trace = os.path.join(self.folder, "trace")
        done = self.perf_record(PROGRAM, trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        history = collections.defaultdict(list)
        exported = run(QUERYPROF, "export", trace, "--format", "label-history", "-o", "-")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        for row in csv.DictReader(exported.stdout.splitlines()):
            history[row["trampoline"]].append((int(row["from_ns"]), int(row["until_ns"]), row["key"]))
        self.assertEqual(len(history), 4096)
        self.assertEqual({key for _, _, key in history["qp_label_trampoline_1"]}, {"left", "right"})
        found = collections.Counter()
        for time, functions in self.samples():
            names = [name for name in functions if re.fullmatch(r"qp_label_trampoline_\d+", name)]
            works = [name for name in functions if name.startswith("work_for_")]
            if not works or not names:  # perf's copy of the stack may end earlier
                continue
            labels = [key for name in names for start, end, key in history[name] if start <= time <= end]
            self.assertEqual(labels, [works[0][len("work_for_"):]], functions)
            found[labels[0]] += 1
        print(dict(found))
        self.assertGreater(min(found["left"], found["right"]), 10)
        # queryprof itself shows all trampolines as one.
        collapsed = run(QUERYPROF, "export", trace, "--format", "collapsed", "-o", "-").stdout
        self.assertEqual(set(re.findall(r"qp_label_trampoline_\d+", collapsed)), {"qp_label_trampoline_0"})


if __name__ == "__main__":
    unittest.main()
