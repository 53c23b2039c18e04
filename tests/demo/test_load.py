#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The demo's loader: the tables contain the index's content. The loader refuses input other than Debian's index, and then
leaves
no file.

    test_load.py SOURCE_DIR
"""
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

from package_index import package_index

SOURCE = sys.argv.pop(1)


class Load(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.database = os.path.join(self.directory.name, "packages.db")

    def load(self, index):
        return subprocess.run(
            ["/usr/bin/python3", f"{SOURCE}/tools/demo.d/load_packages.py",
             f"{SOURCE}/sql/demo/schema.sql", self.database],
            input=index.encode(), stderr=subprocess.PIPE, check=False)

    def test_tables_hold_the_index(self):
        result = self.load(package_index(10_000))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"10,001 packages", result.stderr)
        db = sqlite3.connect(self.database)
        self.assertEqual(
            db.execute("SELECT * FROM packages WHERE name = 'alpha'").fetchall(),
            [("alpha", "1.0-1", "amd64", "greek", "games", "optional",
              "Jörg Example <joerg@example.org>", "https://example.org/", 120, 4096,
              "a::b, c::d", "first letter; has a colon: here")])
        self.assertEqual(
            db.execute("SELECT kind, position, alternative, target, version FROM dependencies"
                       " WHERE package = 'alpha' ORDER BY 1, 2, 3").fetchall(),
            [("Depends", 0, 0, "libc6", ">= 2.34"), ("Depends", 1, 0, "beta", None),
             ("Depends", 1, 1, "gamma", "<< 3~"), ("Depends", 2, 0, "delta", None),
             ("Pre-Depends", 0, 0, "dpkg", None), ("Suggests", 0, 0, "editor-1", None)])
        self.assertEqual(db.execute("SELECT count(*) FROM packages").fetchone(), (10_001,))
        db.close()
        self.assertEqual(os.listdir(self.directory.name), ["packages.db"])

    def test_refuses_what_is_not_debians_index(self):
        for index in ("", package_index(50)):
            result = self.load(index)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(b"not Debian's index", result.stderr)
            self.assertEqual(os.listdir(self.directory.name), [])


if __name__ == "__main__":
    unittest.main()
