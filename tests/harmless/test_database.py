#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares everything that database_observer notices of its databases and connections, line by
line, with and without the library.

test_database.py QUERYPROF LIBRARY OBSERVER"""

import collections
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

QUERYPROF, LIBRARY, OBSERVER = map(os.path.abspath, sys.argv[1:4])

# With `.load`, these kinds of lines differ, for these reasons. Each must differ. If a kind no
# longer differs, remove it here and from docs/host-contract.md. The schema is attached when it is
# named.
SCHEMA = {
    "PRAGMA database_list": "one database more, `system`",
    "SELECT schema, name FROM pragma_table_list ORDER BY 1, 2": "its tables",
    "read-only": "sqlite3_db_readonly() knows the name `system`",
    "schema memory": "its tables, in sqlite3_db_status()",
    "cache memory": "its one page",
    "cache hits": "reads of that page",
    "cache misses": "the same",
    "ATTACH ':memory:' AS a10": "of SQLite's ten it takes one",
    "ATTACH ':memory:' AS system": "the name is taken",
    "PRAGMA database_list; DETACH a1": "one database more",
    "CREATE TABLE system.own(x); SELECT name FROM system.sqlite_schema": "it is not the host's",
}
FUNCTIONS = {
    "SELECT count(*) FROM pragma_function_list": "its functions",
    "SELECT count(*) FROM pragma_module_list": "its tables' modules",
}

# The system calls that open or close a descriptor of a file.
OPENING = "open", "openat", "openat2", "creat", "close", "close_range", "dup", "dup2", "dup3", "fcntl"


class Database(unittest.TestCase):
    maxDiff = None

    def observe(self, *arguments, prefix=()):
        with tempfile.TemporaryDirectory(prefix="queryprof-database-") as folder:
            own = os.path.join(folder, "own")
            os.mkdir(own)
            environment = dict(os.environ)
            if arguments:
                for clock in ("CPU", "REAL"):
                    environment["QUERYPROF_QUERY_PROFILER_%s_TIME_PERIOD_NS" % clock] = "1000000"
            command = [part.replace("%FOLDER%", folder) for part in prefix] + [OBSERVER, own, *arguments]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            if prefix:  # recorded
                trace = sqlite3.connect(os.path.join(folder, "trace"))
                self.assertGreater(trace.execute("SELECT count(*) FROM trace_log").fetchone()[0], 20)
                trace.close()
            return done.stdout.splitlines()

    @classmethod
    def setUpClass(cls):
        cls.plain = cls("observe").observe()

    def different(self, lines):
        """Returns the lines of each kind that differ, in the order of the scenes."""
        seen = [collections.defaultdict(list), collections.defaultdict(list)]
        for side, text in zip(seen, (self.plain, lines)):
            for line in text:
                scene, key, value = line.split(" | ", 2) if line.count(" | ") > 1 else (line, "", "")
                side[scene, key].append(value)
        return {place: (seen[0][place], seen[1][place]) for place in {**seen[0], **seen[1]}
                if seen[0][place] != seen[1][place]}

    def expect(self, lines, *allowed):
        allowed = {key for kinds in allowed for key in kinds}
        found = self.different(lines)
        unexpected = {place: both for place, both in found.items() if place[1] not in allowed}
        self.assertEqual(unexpected, {})
        self.assertEqual(allowed - {key for _, key in found}, set(), "no longer to be noticed")

    def test_twice_the_same(self):
        self.assertGreater(len(self.plain), 2000)
        self.assertEqual(self.observe(), self.plain)

    def test_recorded(self):
        self.assertEqual(self.observe(prefix=(QUERYPROF, "record", "--quiet", "--no-symbols", "-o", "%FOLDER%/trace", "--cpu", "1ms",
                                              "--real", "1ms", "--setting", "query_profiler_max_overhead_percent=0",
                                              "--")), self.plain)

    def test_loaded_into_every_connection(self):
        self.expect(self.observe(LIBRARY, "all"), FUNCTIONS)

    def test_used_in_every_connection(self):
        self.expect(self.observe(LIBRARY, "named"), SCHEMA, FUNCTIONS)

    def test_loaded_into_another_connection(self):
        self.expect(self.observe(LIBRARY, "first"), FUNCTIONS)

    def calls(self, *arguments, prefix=()):
        """Counts with strace how often the observer opens, duplicates and closes each of its files.
        The folder has the same name each time, because the numbers are compared."""
        own, log = os.path.join(self.folder, "own"), os.path.join(self.folder, "strace")
        shutil.rmtree(own, ignore_errors=True)
        os.mkdir(own)
        traced = ["strace", "-f", "-y", "-qq", "-s", "500", "-o", log, "-e", "trace=" + ",".join(OPENING), OBSERVER, own, *arguments]
        done = subprocess.run([*prefix, *traced], capture_output=True, text=True, timeout=300, check=False)
        if "ptrace" in done.stderr:
            self.skipTest("strace may not look: " + done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = collections.Counter()
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                call = re.match(r"\d+ +(\w+)\(", line)
                path = re.search(re.escape(own) + r"(/[\w./-]*)?", line)
                # fcntl() also requests locks, which test_recorded compares.
                if call and path and (call[1] != "fcntl" or "F_DUPFD" in line):
                    found[call[1], path[0]] += 1
        return found

    def test_no_file_is_opened_or_closed(self):
        """Closing a file would drop the host's own locks (fcntl(2))."""
        if not shutil.which("strace"):
            self.skipTest("no strace")
        with tempfile.TemporaryDirectory(prefix="queryprof-database-") as self.folder:
            alone = self.calls()
            self.assertGreater(min(sum(count for (call, _), count in alone.items() if call == name)
                                   for name in ("openat", "close")), 500)
            trace = os.path.join(self.folder, "trace")
            recorded = self.calls(prefix=(QUERYPROF, "record", "--quiet", "--no-symbols", "-o", trace, "--cpu", "1ms", "--"))
            self.assertTrue(os.path.exists(trace))
            self.assertEqual(recorded, alone)
            self.assertEqual(self.calls(LIBRARY, "named"), alone)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
