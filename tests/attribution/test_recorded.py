#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts under `queryprof record` that are not linked with SQLite, but reach it in another way.

usage: test_recorded.py QUERYPROF PLUGIN: a module with a SQLite of its own"""

import sys


import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

PLUGIN = os.path.abspath(sys.argv.pop(1))
with open("/proc/self/maps", encoding="utf-8") as maps:
    LIBSQLITE = next(line.split()[-1] for line in maps if "/libsqlite3.so" in line)

MARKED = SLOW.replace("SELECT sum", "SELECT /* %s */ sum")

# Every way to prepare a statement, with a library that was opened by name.
CTYPES = """
import ctypes, sys
lib = ctypes.CDLL(%r, mode=%s)
lib.sqlite3_column_int64.restype = ctypes.c_int64
def call(name, *arguments):
    code = getattr(lib, name)(*arguments)
    assert code in (0, 100, 101), (name, code)
    return code
db, stmt = ctypes.c_void_p(), ctypes.c_void_p()
call("sqlite3_open", b":memory:", ctypes.byref(db))
for name in ("prepare", "prepare_v2", "prepare_v3", "prepare16", "prepare16_v2", "prepare16_v3"):
    sql = (%r %% (name + "%s")).encode("utf-16-le" if "16" in name else "utf-8") + b"\\0\\0"
    flags = [0] if name.endswith("v3") else []
    call("sqlite3_" + name, db, sql, -1, *flags, ctypes.byref(stmt), None)
    assert call("sqlite3_step", stmt) == 100
    assert lib.sqlite3_column_int64(stmt, 0) == %s
    assert call("sqlite3_step", stmt) == 101
    call("sqlite3_finalize", stmt)
call("sqlite3_exec", db, (%r %% "exec%s").encode(), None, None, None)
call("sqlite3_close", db)
"""
WAYS = ["prepare", "prepare_v2", "prepare_v3", "prepare16", "prepare16_v2", "prepare16_v3", "exec"]


def ctypes_program(library, mode="0", mark=""):
    return CTYPES % (library, mode, MARKED, mark, ANSWER, MARKED, mark)


LUA = """
local ffi = require("ffi")
ffi.cdef[[
int sqlite3_open(const char *, void **);
int sqlite3_prepare_v2(void *, const char *, int, void **, const char **);
int sqlite3_step(void *);
const char *sqlite3_column_text(void *, int);
int sqlite3_finalize(void *);
int sqlite3_close(void *);
]]
local lib = ffi.load("libsqlite3.so.0")
local out = ffi.new("void *[1]")
assert(lib.sqlite3_open(":memory:", out) == 0)
local db = out[0]
assert(lib.sqlite3_prepare_v2(db, [==[%s]==], -1, out, nil) == 0)
local stmt = out[0]
assert(lib.sqlite3_step(stmt) == 100)
print(ffi.string(lib.sqlite3_column_text(stmt, 0)))
assert(lib.sqlite3_step(stmt) == 101)
assert(lib.sqlite3_finalize(stmt) == 0)
assert(lib.sqlite3_close(db) == 0)
""" % SLOW


class Recorded(Recording):
    def libraries(self, text):
        return self.rows("SELECT DISTINCT library_path FROM query_log WHERE query = ? AND library_version <> ''", text)

    def expect_all(self, library, mark=""):
        for way in WAYS:
            text = MARKED % (way + mark)
            self.expect_sampled(1, text)
            self.assertEqual(self.libraries(text), [(library,)], self.seen)

    def test_ctypes(self):
        done = self.record(PYTHON, "-c", ctypes_program("libsqlite3.so.0"))
        self.assertEqual(done.returncode, 0, self.seen)
        self.expect_all(LIBSQLITE)

    def test_two_at_once(self):
        """The SQLite of Python's own module, a copy opened by name, and a plugin's SQLite."""
        copy = os.path.join(self.folder, "libcopy.so")
        shutil.copy(LIBSQLITE, copy)
        program = """
import ctypes, os, sqlite3
first = sqlite3.connect(":memory:")
print(first.execute(%r).fetchone()[0])
%s
plugin = ctypes.CDLL(%r, mode=os.RTLD_DEEPBIND)
plugin.plugin_ask.restype = ctypes.c_int64
other = ctypes.c_void_p()
assert plugin.plugin_open(b":memory:", ctypes.byref(other)) == 0
print(plugin.plugin_ask(other, (%r).encode()))
assert plugin.plugin_exec(other, b"SELECT 'a'; " + (%r).encode()) == 0
assert plugin.plugin_close(other) == 0
print(first.execute(%r).fetchone()[0])
""" % (MARKED % "module", ctypes_program(copy, "__import__('os').RTLD_DEEPBIND", " of the copy"), PLUGIN,
            MARKED % "plugin", MARKED % "script", MARKED % "again")
        done = self.record(PYTHON, "-c", program)
        self.assertEqual((done.returncode, done.stdout), (0, (ANSWER + "\n") * 3), self.seen)
        self.expect_all(copy, " of the copy")
        # The plugin's exec() does not call through a table, so all that it runs is one query.
        self.expect_sampled(1, "SELECT 'a'; " + MARKED % "script")
        for mark, library in (("module", LIBSQLITE), ("again", LIBSQLITE),
                              ("plugin", os.path.join(os.path.dirname(PLUGIN), "libother_sqlite.so"))):
            self.expect_sampled(1, MARKED % mark)
            self.assertEqual(self.libraries(MARKED % mark), [(library,)], self.seen)

    @unittest.skipUnless(shutil.which("luajit"), "no luajit")
    def test_luajit(self):
        done = self.record("luajit", self.file("a.lua", LUA))
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), self.seen)
        self.expect_sampled(1)


unittest.main()
