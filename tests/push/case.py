# SPDX-License-Identifier: Apache-2.0
"""Shared code of the tests of push: the arguments COMMAND ROOT, a folder, generated trace files, and calls of push."""
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import maker  # finds tests/lib
import hangs

COMMAND, ROOT = sys.argv[1], sys.argv[2]


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("OTEL_") and "proxy" not in name.lower()}
    return {**kept, **more}


def run(*arguments, **more):
    return subprocess.run([COMMAND, *arguments], env=environment(**more), capture_output=True, text=True)


def push(*arguments, **more):
    return run("push", *arguments, **more)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "a.trace")

    def maker(self, path=None, **how):
        made = maker.Maker(ROOT, path or self.path, **how)
        self.addCleanup(made.db.close)
        return made

    def fixed_traces(self):
        """Makes a trace file that contains spans. Returns a connection to it."""
        db = sqlite3.connect(self.path)
        self.addCleanup(db.close)
        for name in ("sql/schema/store_schema.sql", "tests/command/fixed.sql", "tests/command/fixed_traces.sql"):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                db.executescript("BEGIN;" + file.read() + "COMMIT;")
        db.executescript(f"PRAGMA application_id = 1364218438; PRAGMA user_version = {maker.version(ROOT)};")
        return db


def main():
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
