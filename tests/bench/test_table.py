#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tools/bench with a benchmark that only prints: how often it runs, and what is refused.

usage: test_table.py TOOLS_BENCH"""

import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.abspath(sys.argv.pop(1))
WHOLE = ("hot   1 2 3 4", "behind the signal   1 2 3 4")


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qp-test-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def build(self, name, lines):
        """A build whose opcode_bench prints the lines, and notes each run."""
        path = os.path.join(self.folder, name, "tests", "bench")
        os.makedirs(path)
        program = os.path.join(path, "opcode_bench")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho >>%s/%s.runs\ncat <<'END'\n%s\nEND\n" % (self.folder, name, "\n".join(lines)))
        os.chmod(program, 0o755)
        return os.path.join(self.folder, name)

    def runs(self, name):
        with open(os.path.join(self.folder, name + ".runs"), encoding="utf-8") as file:
            return len(file.readlines())

    def bench(self, *arguments):
        return subprocess.run([BENCH, *arguments], capture_output=True, text=True, check=False)

    def test_rounds(self):
        one, other = self.build("one", WHOLE), self.build("other", WHOLE)
        done = self.bench("--build", one, "opcode")
        self.assertEqual((done.returncode, self.runs("one")), (0, 1), done.stderr)
        done = self.bench("--build", one, "--against", other, "opcode")
        self.assertEqual((done.returncode, self.runs("one"), self.runs("other")), (0, 4, 3), done.stderr)

    def test_missing_figure(self):
        done = self.bench("--build", self.build("one", WHOLE[:1]), "opcode")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no figure for opcode: a sample with its opcode, behind a signal\n", done.stderr)

    def test_part_for_readme(self):
        """It would replace the table of all benches."""
        done = self.bench("--build", self.build("one", WHOLE), "--readme", "opcode")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--readme takes no BENCH", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "one.runs")))


unittest.main()
