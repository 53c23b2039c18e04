#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the opcode that the handler finds with the truth. Several compilers build libraries of one version of SQLite that
report the opcode they execute (truth.c). A sample between two opcodes counts for neither. The report changes the code that
compilers generate; unchanged libraries only show how often the handler finds an opcode.

usage: test_builds.py TRUTH SOURCE_DIR VERSION [--aarch64 RUN]

--aarch64: uses cross compilers, and the program RUN to start TRUTH, which comes from a build for aarch64."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

EMULATED = []
if "--aarch64" in sys.argv:
    EMULATED = [os.path.abspath(sys.argv.pop())]
    sys.argv.pop()
VERSION = sys.argv.pop(3)
SOURCE = os.path.abspath(sys.argv.pop(2))
TRUTH = os.path.abspath(sys.argv.pop(1))

# In per cent, at least and at most. qemu delivers signals between blocks of code, where fewer opcodes are known.
RIGHT, WRONG = 95 if EMULATED else 98, 0.5
OPTIONS = ["-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -flto"]
LTO = {"clang": "-fuse-ld=lld"}
CROSS = {"gcc": ["aarch64-linux-gnu-gcc"], "clang": ["clang", "--target=aarch64-linux-gnu", "-fuse-ld=lld"]}
BUILDS = [(compiler, options) for compiler in ("gcc", "clang") for options in OPTIONS]
# These builds compute the address of their jump table before the loop.
PLAIN_BUILDS = {"3.37.0": ("clang", "-O2"), "3.53.2": ("gcc", "-O3")}
PACKAGES = {"3.31.1": "better-sqlite3-of-2020", "3.37.0": "better-sqlite3-of-2021", "3.53.2": "better-sqlite3"}


def debians(folder):
    tree = subprocess.run([os.path.join(SOURCE, "third_party/debian/fetch"), os.path.join(SOURCE, "third_party/sqlite")],
                          check=True, capture_output=True, text=True).stdout.strip()
    for command in ([os.path.join(tree, "configure"), "--disable-tcl"], ["make", "sqlite3.c"]):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return os.path.join(folder, "sqlite3.c")


def packages(folder, name):
    """Returns None if the package is not available here."""
    done = subprocess.run([os.path.join(SOURCE, "third_party/npm/fetch"), os.path.join(SOURCE, "tests/plan/sources")],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return None
    deps = os.path.join(done.stdout.strip(), "node_modules", name, "deps")
    packed = os.path.join(deps, "sqlite3.tar.gz")
    if not os.path.exists(packed):
        return os.path.join(deps, "sqlite3/sqlite3.c")
    with tarfile.open(packed) as archive:
        text = archive.extractfile(next(name for name in archive.getnames() if name.endswith("sqlite3.c"))).read()
    with open(os.path.join(folder, "sqlite3.c"), "wb") as file:
        file.write(text)
    return file.name


def tell_opcodes(path, to):
    """SQLite's sources, with a variable for the running opcode."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    start = text.index("SQLITE_PRIVATE int sqlite3VdbeExec(\n")
    end = text.index("\nstatic int blobSeekToRow", start)
    code, count = re.subn(r"(assert\( pOp>=aOp && pOp<&aOp\[p->nOp\]\);)", r"\1 queryprof_truth = pOp;", text[start:end])
    assert count == 1
    code, count = re.subn(r"(?<!Op \*)\b(pOp *= *&aOp|pOp\+\+)", r"queryprof_truth = 0, \1", code)
    assert count > 10
    text = text[:start] + code + text[end:]
    with open(to, "w", encoding="utf-8") as file:
        file.write("void *volatile queryprof_truth;\n" + text)


@unittest.skipUnless(os.path.exists(TRUTH), "%s is not built" % TRUTH)
class Builds(unittest.TestCase):
    @unittest.skipUnless(shutil.which("tclsh") and shutil.which("make"), "SQLite's sources need tclsh and make")
    def test_builds(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = packages(folder, PACKAGES[VERSION]) if VERSION in PACKAGES else debians(folder)
            if not plain:
                self.skipTest("SQLite %s cannot be had here" % VERSION)
            telling = os.path.join(folder, "telling.c")
            tell_opcodes(plain, telling)
            for build in BUILDS:
                with self.subTest(" ".join(build)):
                    self.check(folder, telling, *build)
            if VERSION in PLAIN_BUILDS:
                with self.subTest("as it is"):
                    self.check(folder, plain, *PLAIN_BUILDS[VERSION])

    def check(self, folder, source, compiler, options):
        name = " ".join((VERSION, os.path.basename(source), compiler, options))
        command = CROSS[compiler] if EMULATED else [compiler]
        if not shutil.which(command[0]):
            self.skipTest("%s is not here" % command[0])
        library = os.path.join(folder, "library.so")
        link = [LTO[compiler]] if "-flto" in options and compiler in LTO else []
        subprocess.run([*command, *options.split(), *link, "-shared", "-fPIC", "-w", "-o", library, source, "-lm", "-ldl",
                        "-lpthread"], check=True)
        out = subprocess.run([*EMULATED, TRUTH, library], check=True, capture_output=True, text=True).stdout
        print("%s: %s" % (name, out), end="", flush=True)
        numbers = re.match(r"(\d+) samples, (\d+) outside, (\d+) between, equal ([\d.]+), unknown ([\d.]+), wrong ([\d.]+)", out)
        self.assertGreater(int(numbers[1]), 500)
        self.assertGreaterEqual(float(numbers[4]), RIGHT)
        self.assertLessEqual(float(numbers[6]), WRONG)


if __name__ == "__main__":
    unittest.main()
