#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with a sanitizer's shared run-time library under `record`: they end as they do alone, are recorded, and the
sanitizer has the same findings.

usage: test_sanitizers.py QUERYPROF OWN_OPTIONS PROGRAM..."""

import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

OWN_OPTIONS, PROGRAMS = sys.argv[1], sys.argv[2:]
del sys.argv[1:]


def found(error):
    """The sanitizer's findings, without addresses and numbers of processes."""
    return sorted(set(re.findall(r"SUMMARY: (\w+: [\w-]+)", error)))


# record's own lines about the recording, and nothing after them.
FINDINGS = r"(queryprof: (\d+ %: |evidence and cures: |the findings take longer )[^\n]*\n)*\Z"


class Sanitized(Recording):
    def alone(self, program, how):
        return subprocess.run([program, how], capture_output=True, text=True, check=False)

    def runs(self):
        return self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'WITH%'")[0][0]

    def test_fine(self):
        for program in PROGRAMS:
            with self.subTest(program):
                alone, done = self.alone(program, "fine"), self.record(program, "fine")
                self.assertEqual((done.returncode, done.stdout), (alone.returncode, alone.stdout), done.stderr)
                self.assertEqual(alone.stderr, "")
                self.assertRegex(done.stderr, r"\Aqueryprof: [^\n]* samples, [^\n]* 1 process[^\n]*\n" + FINDINGS)
                self.assertEqual(self.runs(), 2)
                os.remove(self.trace)

    def test_started_by_another(self):
        for program in PROGRAMS:
            with self.subTest(program):
                done = self.record("sh", "-c", '"$0" fine; "$0" fine; exit 5', program)
                self.assertEqual(done.returncode, 5, done.stderr)
                self.assertEqual(done.stdout, 2 * self.alone(program, "fine").stdout)
                self.assertRegex(done.stderr, r"\Aqueryprof: [^\n]* samples, [^\n]* 2 processes[^\n]*\n" + FINDINGS)
                self.assertEqual(self.runs(), 4)
                os.remove(self.trace)

    def test_wrong(self):
        for program in PROGRAMS:
            with self.subTest(program):
                alone, done = self.alone(program, "wrong"), self.record(program, "wrong")
                self.assertTrue(found(alone.stderr), alone.stderr)
                self.assertEqual(found(done.stderr), found(alone.stderr), done.stderr)
                self.assertEqual(done.returncode, alone.returncode)

    def test_own_options(self):
        """The program's own options take precedence over the preload's."""
        done = self.record(OWN_OPTIONS, "fine")
        self.assertNotEqual(done.returncode, 3)
        self.assertIn("ASAN_OPTIONS=verify_asan_link_order=0", done.stderr)
        done = self.record(OWN_OPTIONS, "fine", env={**os.environ, "ASAN_OPTIONS": "verify_asan_link_order=0"})
        self.assertEqual(done.returncode, 3, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
