#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tools/gdb/queryprof-gdb.py on a process that is stopped in a query, and on its core file.

usage: test_gdb.py SCRIPT HOST
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT, HOST = map(os.path.abspath, sys.argv[1:3])
COMMANDS = [part for name in ("threads", "runs", "ring")
            for part in ("-ex", f"echo \\n--- {name}\\n", "-ex", f"queryprof {name}")]


def gdb(*arguments):
    # Without the budget, which would make the printed interval longer.
    environment = {**os.environ, "QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS": "1000000",
                   "QUERYPROF_QUERY_PROFILER_MAX_OVERHEAD_PERCENT": "0"}
    environment.pop("DEBUGINFOD_URLS", None)
    done = subprocess.run(["gdb", "-batch", "-nx", "-ex", f"source {SCRIPT}", *arguments], env=environment,
                          capture_output=True, text=True, timeout=300, check=False)
    parts = re.split(r"^--- (\w+)$", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2])), done.stdout + done.stderr


class Gdb(unittest.TestCase):
    def check(self, shown, said):
        self.assertEqual(set(shown), {"threads", "runs", "ring"}, said)
        self.assertRegex(shown["threads"], r"\n0 +\d+ +host +no +cpu armed 1000000 ns +1 +[0-9a-f]{32}\n", said)
        query = re.search(r"\n([0-9a-f]{32}) +(\d+) +\2 +0 +(\d+) +0 +a query of the debugger's\n", shown["runs"])
        self.assertIsNotNone(query, said)
        self.assertGreater(int(query[3]), 5)
        self.assertIn(query[1], shown["threads"])
        self.assertRegex(shown["ring"], r"\d+ of 8388608 bytes used, head \d+, tail \d+, 0 records dropped, reader RING_",
                         said)

    def test_live_and_dead(self):
        with tempfile.TemporaryDirectory() as folder:
            core = os.path.join(folder, "core")
            # queryprof's timer signals do not stop the program.
            live = gdb("-ex", "handle all nostop noprint pass", "-ex", "handle SIGABRT stop nopass", "-ex", "run",
                       *COMMANDS, "-ex", f"generate-core-file {core}", "-ex", "kill", HOST)
            self.check(*live)
            self.check(*gdb(*COMMANDS, HOST, core))

    def test_without_the_library(self):
        shown, said = gdb(*COMMANDS, "/bin/true")
        self.assertIn("is libqueryprof loaded, with debug information?", said)
        self.assertEqual(shown["runs"].strip(), "")


if __name__ == "__main__":
    if not shutil.which("gdb"):
        print("skipped: gdb is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
