#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The opcode that the handler finds against the truth, with libraries of several compilers that
tell which opcode they execute (truth.c). Bounds are what was measured, with three standard
errors of some thousand samples.

usage: test_builds.py TRUTH SOURCE_DIR
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(2))
TRUTH = os.path.abspath(sys.argv.pop(1))

# compiler, options, right at least, wrong at most, in per cent
BUILDS = [("gcc", "-O0", 99, 0.5), ("gcc", "-O1", 97, 1), ("gcc", "-O2", 70, 6), ("gcc", "-O3", 97, 0.5), ("gcc", "-Os", 98, 0.5),
          ("clang", "-O2", 95, 2), ("clang", "-O3", 98, 0.5), ("clang", "-Os", 95, 3)]


def amalgamation(folder):
    """SQLite's sources in one file, with a variable for the running opcode."""
    tree = subprocess.run([os.path.join(SOURCE, "third_party/debian/fetch"), os.path.join(SOURCE, "third_party/sqlite")],
                          check=True, capture_output=True, text=True).stdout.strip()
    for command in ([os.path.join(tree, "configure"), "--disable-tcl"], ["make", "sqlite3.c"]):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = os.path.join(folder, "sqlite3.c")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    start = text.index("SQLITE_PRIVATE int sqlite3VdbeExec(\n")
    end = text.index("\nstatic int blobSeekToRow", start)
    code, count = re.subn(r"(assert\( pOp>=aOp && pOp<&aOp\[p->nOp\]\);)", r"\1 queryprof_truth = pOp;", text[start:end])
    assert count == 1
    code, count = re.subn(r"(?<!Op \*)\b(pOp *= *&aOp|pOp\+\+)", r"queryprof_truth = 0, \1", code)
    assert count > 10
    text = text[:start] + code + text[end:]
    with open(path, "w", encoding="utf-8") as file:
        file.write("void *volatile queryprof_truth;\n" + text)
    return path


class Builds(unittest.TestCase):
    @unittest.skipUnless(shutil.which("tclsh") and shutil.which("make"), "SQLite's sources need tclsh and make")
    def test_builds(self):
        with tempfile.TemporaryDirectory() as folder:
            path = amalgamation(folder)
            for compiler, options, right, wrong in BUILDS:
                if not shutil.which(compiler):
                    continue
                with self.subTest(compiler + " " + options):
                    library = os.path.join(folder, "lib%s%s.so" % (compiler, options))
                    subprocess.run([compiler, *options.split(), "-shared", "-fPIC", "-w", "-o", library, path, "-lm",
                                    "-ldl", "-lpthread"], check=True)
                    out = subprocess.run([TRUTH, library], check=True, capture_output=True, text=True).stdout
                    print("%s %s: %s" % (compiler, options, out), end="")
                    numbers = re.match(r"(\d+) samples, (\d+) outside, (\d+) between, equal ([\d.]+), unknown ([\d.]+), wrong ([\d.]+)", out)
                    self.assertGreater(int(numbers[1]), 500)
                    self.assertGreaterEqual(float(numbers[4]), right)
                    self.assertLessEqual(float(numbers[6]), wrong)


if __name__ == "__main__":
    unittest.main()
