#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tools/bench with programs that only print. Tests how often they run, how it combines their figures, and which options
it refuses.

usage: test_table.py TOOLS_BENCH"""

import json
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

    def program(self, build, path, text):
        path = os.path.join(self.folder, build, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def build(self, name, *outputs):
        """A build whose opcode_bench prints one of the outputs a run, and the first again after the last. It logs each
        run's arguments."""
        prints = "".join(f"{index})\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n;;\n" for index, lines in enumerate(outputs))
        runs = f"{self.folder}/{name}.runs"
        self.program(name, "tests/bench/opcode_bench", f'echo "run $@" >>{runs}\n'
                     f"case $((($(grep -c run {runs}) - 1) % {len(outputs)})) in\n{prints}esac\n")
        return os.path.join(self.folder, name)

    def runs(self, name):
        with open(os.path.join(self.folder, name + ".runs"), encoding="utf-8") as file:
            return file.read().splitlines()

    def bench(self, *arguments, **environment):
        return subprocess.run([BENCH, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment})

    def rows(self, *arguments, **environment):
        done = self.bench("--json", *arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {(row["section"], row["what"]): row for row in json.loads(done.stdout)["rows"]}

    def test_rounds(self):
        one, other = self.build("one", WHOLE), self.build("other", WHOLE)
        done = self.bench("--build", one, "opcode")
        self.assertEqual((done.returncode, len(self.runs("one"))), (0, 5), done.stderr)
        done = self.bench("--build", one, "--against", other, "--rounds", "3", "opcode")
        self.assertEqual((done.returncode, len(self.runs("one")), len(self.runs("other"))), (0, 8, 3), done.stderr)

    def test_minutes(self):
        """The first round is complete. No other round begins after the time is over."""
        done = self.bench("--build", self.build("one", WHOLE), "--minutes", "0", "opcode")
        self.assertEqual((done.returncode, len(self.runs("one"))), (0, 1), done.stderr)
        self.assertRegex(done.stderr, r"opcode: round 1 of 5 has ended after \d+ s\nopcode: another round would end after more than 0 minutes\n")

    def test_one_program(self):
        """Measures the libraries and the commands of both builds."""
        for name in ("one", "other"):
            for file in ("libqueryprof.so", "queryprof"):
                self.program(name, file, "")
        self.program("one", "tests/bench/statement_bench", f'echo "$@" >>{self.folder}/statement.runs\n')
        one, other = (os.path.join(self.folder, name) for name in ("one", "other"))
        self.bench("--build", one, "--against", other, "--rounds", "1", "statement")
        self.assertEqual(self.runs("statement"), [f"{build}/libqueryprof.so {build}/queryprof" for build in (one, other)])

    def test_against(self):
        """The ratio is computed from pairs, so a slowdown of both sides of a round does not change it."""
        one = self.build("one", *(("hot   1 2 %d 4" % hot, WHOLE[1]) for hot in (6, 60, 8)))
        other = self.build("other", *(("hot   1 2 %d 4" % hot, WHOLE[1]) for hot in (3, 30, 4)))
        row = self.rows("--build", one, "--against", other, "--rounds", "3", "opcode")["", "a sample's opcode, hot, ns"]
        self.assertEqual((row["figure"], row["other"], row["against"], row["against_error"]), (8, 4, 2, 0))
        self.assertEqual(row["met"], False)
        self.assertAlmostEqual(row["error"], 1.25 * 1.25 * (2 + 52) / 2 / 3**0.5)
        row = self.rows("--build", one, "--rounds", "1", "opcode")["", "a sample's opcode, hot, ns"]
        self.assertEqual((row["error"], row["against"]), (None, None))

    def test_all(self):
        build = self.build("one", WHOLE + ("a heading", "  with units in 10 ms    2.5 ns  1.50 x  (1.4 to 1.6)", "  again: 7 of (budget 8)"))
        rows = self.rows("--build", build, "--all", "opcode", "--", "few", "samples")
        self.assertEqual({key[1]: row["figure"] for key, row in rows.items() if key[0]},
                         {"with units in 10 ms, ns": 2.5, "with units in 10 ms, x": 1.5, "again: of, of": 7})
        self.assertEqual(rows["", "hot [4]"]["figure"], 4)
        self.assertEqual(self.runs("one"), ["run few samples"] * 5)

    def test_whole_program(self):
        """Without perf, because its start takes long."""
        self.program("one", "queryprof", 'while [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
        self.program("one", "tests/bench/writers", ":\n")
        self.program("one", "tests/record/record_selects", "echo 8000000 4000000 3 2\n")
        one = os.path.join(self.folder, "one")
        rows = self.rows("--build", one, "--rounds", "1", "selects", PATH=self.folder)
        self.assertEqual(rows["selects", "recorded, ms of CPU time"]["figure"], 4)
        self.assertEqual(rows["selects", "recorded, x of it"]["figure"], 1)
        rows = self.rows("--build", one, "--rounds", "1", "writers", PATH=self.folder)
        self.assertEqual(rows["writers", "alone, x"]["figure"], 1)
        self.assertEqual(rows["writers", "alone, x without the start"]["figure"], 1)
        self.assertIn(("writers", "recorded, periods 0, x without the start"), rows)

    def test_missing_figure(self):
        done = self.bench("--build", self.build("one", WHOLE[:1]), "opcode")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no figure for opcode: a sample with its opcode, behind a signal\n", done.stderr)

    def test_refused(self):
        one = self.build("one", WHOLE)
        for arguments, error in ((("--readme", "opcode"), "--readme takes no BENCH"),
                                 (("opcode", "store", "--", "1"), "-- ARGUMENT... is for the program of one BENCH"),
                                 (("--rounds", "0", "opcode"), "--rounds 0: at least 1")):
            done = self.bench("--build", one, *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(error, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "one.runs")))
        done = self.bench("--build", one, "store")
        self.assertEqual(done.returncode, 1)
        self.assertIn("one/tests/bench/bench_store is missing: build the target bench_programs first", done.stderr)


unittest.main()
