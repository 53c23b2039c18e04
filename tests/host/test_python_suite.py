#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python's own tests of its sqlite3 module under `queryprof record`, both periods 1 ms: each
ends as it does without. Needs a Python that has its tests and SQLite as a shared library
(Debian's packages leave these tests out): the first on the path that has, or the one that
QUERYPROF_TEST_PYTHON names.

    test_python_suite.py QUERYPROF"""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

QUERYPROF = os.path.abspath(sys.argv[1])
SKIPPED = 77
USABLE = """
import _sqlite3, sqlite3, test.test_sqlite3
sqlite3.connect(":memory:")
if not any("libsqlite3.so" in line for line in open("/proc/self/maps")): raise SystemExit(1)
"""


def find_python():
    named = os.environ.get("QUERYPROF_TEST_PYTHON")
    for name in [named] if named else ["python3"] + ["python3.%d" % minor for minor in range(15, 10, -1)]:
        path = shutil.which(name)
        if path and not subprocess.run([path, "-c", USABLE], capture_output=True, check=False).returncode:
            # not a script that starts it
            return subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True,
                                  check=True).stdout.strip()
    print("skipped: no Python with its own tests and a shared SQLite; QUERYPROF_TEST_PYTHON names one")
    sys.exit(SKIPPED)


def outcomes(folder, *command):
    """How each test ended."""
    done = subprocess.run([*command, "-m", "unittest", "-v", "test.test_sqlite3"], cwd=folder, capture_output=True,
                          text=True, timeout=600, check=False)
    found = dict(re.findall(r"^(test\w* \(\S+\)).*?\.\.\. (ok|FAIL|ERROR|skipped|expected failure)", done.stderr,
                            re.MULTILINE | re.DOTALL))
    return done.returncode, found, done.stderr[-4000:]


def main():
    python = find_python()
    with tempfile.TemporaryDirectory(prefix="queryprof-suite-") as folder:
        trace = os.path.join(folder, "suite.trace")
        plain = outcomes(folder, python)
        recorded = outcomes(folder, QUERYPROF, "record", "--quiet", "-o", trace, "--cpu", "1ms", "--real", "1ms",
                            "--", python)
        queries, samples = sqlite3.connect(trace).execute(
            "SELECT (SELECT count(*) FROM query_log), (SELECT count(*) FROM trace_log)").fetchone()
    print("%s: %d tests, exit status %d; recorded: %d tests, exit status %d, %d queries and %d samples" % (
        python, len(plain[1]), plain[0], len(recorded[1]), recorded[0], queries, samples))
    different = {test: (plain[1].get(test), recorded[1].get(test)) for test in {**plain[1], **recorded[1]}
                 if plain[1].get(test) != recorded[1].get(test)}
    if different or plain[0] != recorded[0] or len(plain[1]) < 200 or not samples:
        print(different, recorded[2])
        sys.exit(1)


main()
