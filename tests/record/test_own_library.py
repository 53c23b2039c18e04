#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded programs that load libqueryprof.so themselves: only one recorder follows them, whichever was loaded first.

usage: test_own_library.py QUERYPROF PLUGIN: a library that is linked with libqueryprof.so"""

import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

PLUGIN = os.path.abspath(sys.argv.pop(1))

MAPS = """
import ctypes, os, sys
def maps():
    with open('/proc/self/maps') as file:
        print(*sorted({os.path.basename(line.split()[-1]) for line in file if '/libqueryprof' in line}), flush=True)
def work():
    print(ctypes.CDLL(sys.argv[1]).plugin_work(sys.argv[2].encode()), flush=True)
"""
OF_PROGRAM = "SELECT 'program'"
OF_PLUGIN = SLOW.replace("c(x)", "plugin(x)").replace("FROM c", "FROM plugin")


class OwnLibrary(Recording):
    def expect_recorded(self, libraries, script):
        done = self.record(PYTHON, "-c", MAPS + script, PLUGIN, OF_PLUGIN,
                           options=(*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0", "--setting", "trace_keep=all"))
        self.assertEqual((done.returncode, done.stdout), (0, "0\n%s\n" % libraries), self.seen)
        self.assertEqual(self.rows("SELECT query, calls FROM statement_stats WHERE query IN (?, ?) ORDER BY 1",
                                   OF_PROGRAM, OF_PLUGIN), [(OF_PROGRAM, 1), (OF_PLUGIN, 1)], self.seen)
        self.assertEqual(self.rows("SELECT DISTINCT json_extract(trace_log.labels, '$.from') FROM trace_log JOIN query_log"
                                   " USING (query_id) WHERE query = ?", OF_PLUGIN), [("plugin",)], self.seen)
        self.assertEqual(self.rows("SELECT count(*) FROM span_log WHERE operation_name = 'of the plugin'"), [(1,)], self.seen)
        self.expect_sampled(1, OF_PLUGIN)

    def test_later(self):
        """Calls and the variable of spans reach the recorder that the process has."""
        self.expect_recorded("libqueryprof-preload.so libqueryprof-recorder.so libqueryprof.so.0", """
import sqlite3
sqlite3.connect(':memory:').execute(%r).fetchall()
work()
maps()
if os.fork() == 0:
    sqlite3.connect(':memory:').execute('SELECT 3 AS of_child').fetchall()
    os._exit(0)
assert os.wait()[1] == 0
""" % OF_PROGRAM)
        self.assertEqual(self.rows("SELECT calls FROM statement_stats WHERE query = 'SELECT 3 AS of_child'"), [(1,)], self.seen)
        self.assertEqual(self.rows("SELECT count(DISTINCT process_id) FROM processes"), [(2,)], self.seen)

    def test_before_sqlite(self):
        """The library's own recorder is the process's recorder."""
        self.expect_recorded("libqueryprof-preload.so libqueryprof.so.0", """
ctypes.CDLL(%r)
import sqlite3
sqlite3.connect(':memory:').execute(%r).fetchall()
work()
maps()
""" % (LIBRARY, OF_PROGRAM))

    def test_of_another_build(self):
        """A library of another build has a recorder of its own, which follows the connections attached to it."""
        other = os.path.join(self.folder, "libqueryprof.so")
        with open(LIBRARY, "rb") as file:
            content = file.read()
        table = re.search(rb"queryprof_recorder_[0-9a-f]{16}", content)[0]
        with open(other, "wb") as file:
            file.write(content.replace(table, table[:-1] + (b"0" if table[-1:] != b"0" else b"1")))
        done = self.record(PYTHON, "-c", """
import sqlite3, sys
db = sqlite3.connect(':memory:')
db.execute(%r).fetchall()
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
print(db.execute('SELECT count(*) FROM system.settings').fetchone()[0] > 0)
""" % OF_PROGRAM, other, options=(*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0"))
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), self.seen)
        self.assertEqual(self.rows("SELECT calls FROM statement_stats WHERE query = ?", OF_PROGRAM), [(1,)], self.seen)


if __name__ == "__main__":
    unittest.main()
