#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""system.modules shows where the names and lines of each module come from, or why they are missing.

usage: test_modules.py LIBRARY
"""

import _ctypes
import ctypes
import os
import subprocess
import tempfile
import unittest

from library import LIBRARY, Case, connect, rows, value


class Modules(Case):
    def test_what_is_mapped(self):
        db = connect()
        mapped = {path: rest for path, *rest in rows(db, "SELECT * FROM system.modules")}
        with open("/proc/self/maps", encoding="utf-8") as maps:
            files = {line.split()[5] for line in maps if " r-xp " in line and "/" in line}
        self.assertTrue(files <= set(mapped), files - set(mapped))
        for path, (build_id, begin, end, names_from, lines_from, why_not) in mapped.items():
            self.assertLess(begin, end, path)
            self.assertRegex(build_id, "^([0-9a-f]{2})*$")
            if not names_from or not lines_from:
                self.assertNotEqual(why_not, "", path)

    def test_our_own(self):
        """The library under test is not stripped."""
        db = connect()
        ours = os.path.realpath(LIBRARY + ".so")
        self.assertEqual(rows(db, "SELECT names_from, lines_from, why_not FROM system.modules WHERE path = ?", ours),
                         [("symbol table", "the object", "")])
        self.assertEqual(value(db, "SELECT build_id = buildId(address_begin) FROM system.modules WHERE path = ?", ours), 1)

    def test_stripped(self):
        """A stripped library has only its exported names, and its row gives the reason."""
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "stripped.so")
            subprocess.run(["strip", "--remove-section=.gnu_debugdata", "-o", stripped, _ctypes.__file__], check=True)
            ctypes.CDLL(stripped)
            db = connect()
            before = value(db, "PRAGMA debug_path")
            db.execute("PRAGMA debug_path = ''")
            [(names_from, lines_from, why_not)] = rows(
                db, "SELECT names_from, lines_from, why_not FROM system.modules WHERE path = ?", os.path.realpath(stripped))
            db.execute(f"PRAGMA debug_path = '{before}'")
        self.assertEqual((names_from, lines_from), ("dynamic symbols", None))
        self.assertRegex(why_not, "^names: stripped; no debug file in no folder.*; "
                                  "lines: no debug information; no debug file in no folder")

    def test_refused(self):
        db = connect()
        db.execute("PRAGMA allow_introspection_functions = 0")
        self.assertRefused("not allowed while allow_introspection_functions is 0", db, "SELECT * FROM system.modules")


if __name__ == "__main__":
    unittest.main()
