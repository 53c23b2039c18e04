#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names in SQL for libraries with known functions: debug files in folders that are set while the program runs, build
ids, inlined functions. Also the command's folders.

usage: test_session.py LIBRARY COMMAND FIXTURES INLINED
"""

import ctypes
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

LIBRARY, COMMAND, FIXTURES, INLINED = sys.argv[1:5]


class Function(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("start", ctypes.c_void_p), ("line", ctypes.c_int)]


class Frame(ctypes.Structure):
    _fields_ = [("function", ctypes.c_char_p), ("file", ctypes.c_char_p), ("line", ctypes.c_int)]


class Session(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.enable_load_extension(True)
        self.db.execute("SELECT load_extension(?)", (os.path.splitext(LIBRARY)[0],))
        self.addCleanup(self.db.execute, "PRAGMA debug_path = default")

    def sql(self, expression, *values):
        return self.db.execute(f"SELECT {expression}", values).fetchone()[0]

    def test_debug_path(self):
        fixture = ctypes.CDLL(f"{FIXTURES}/stripped.so")
        fixture.fixture_functions.restype = ctypes.POINTER(Function)
        one = fixture.fixture_functions()[1]
        self.assertEqual(one.name, b"fixture_static")
        offset = f"stripped.so+{one.start - self.base('stripped.so'):#x}"

        self.assertEqual(self.sql("get_setting('debug_path')"), "/usr/lib/debug")
        for _ in range(2):
            self.assertEqual(self.sql("addressToSymbol(?)", one.start), offset)
            self.assertEqual(self.sql("addressToLine(?)", one.start), f"{FIXTURES}/stripped.so")
            self.db.execute(f"PRAGMA debug_path = '/nowhere:{FIXTURES}/debug'")
            self.assertEqual(self.sql("addressToSymbol(?)", one.start), "fixture_static")
            self.assertRegex(self.sql("addressToLine(?)", one.start), rf"/fixture\.c:{one.line}$")
            self.db.execute("PRAGMA debug_path = default")
        self.assertEqual(self.sql("buildId(?)", one.start), "a1b2c3d4e5f60718")

    def base(self, name):
        with open("/proc/self/maps") as maps:
            return min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith("/" + name))

    def test_no_build_id(self):
        fixture = ctypes.CDLL(f"{FIXTURES}/anonymous.so")
        address = ctypes.cast(fixture.fixture_global, ctypes.c_void_p).value
        self.assertEqual(self.sql("addressToSymbol(?)", address), "fixture_global")
        self.assertEqual(self.sql("buildId(?)", address), "")

    def test_inlined(self):
        library = ctypes.CDLL(f"{INLINED}/gcc5.so")
        library.inlined_expect.restype = ctypes.POINTER(Frame)
        frames = library.inlined_expect(0, 0)
        leaf, middle, large = ((frames[i].file.decode(), frames[i].line, frames[i].function.decode())
                               for i in range(3))
        start = ctypes.cast(library.inlined_large, ctypes.c_void_p).value
        seen = set()
        for address in range(start, start + 100):
            text = self.sql("addressToLineWithInlines(?)", address)
            self.assertEqual(json.loads(text)[0].count(":"), 1)
            seen.add(tuple(entry.rsplit("/", 1)[1] for entry in json.loads(text)))
        self.assertIn((f"{large[0]}:{large[1]}", "%s:%d:%s" % leaf, "%s:%d:%s" % middle), seen)

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            self.db.execute(f"PRAGMA trace_log_path = '{folder}/app.trace'")
            self.db.execute("SELECT count(*) FROM trace_log").fetchall()
            done = subprocess.run([COMMAND, "sql", f"{folder}/app.trace", "SELECT get_setting('debug_path') AS path"],
                                  env={**os.environ, "QUERYPROF_DEBUG_PATH": "/one:two"}, cwd=folder,
                                  capture_output=True, text=True, timeout=300)
            self.assertIn(f"/one:{folder}/two", done.stdout, done)
            self.db.execute("PRAGMA trace_log_path = default")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
