#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts that fork while another thread runs the first query of the process: no child hangs, and the queries of each
child are counted. QUERYPROF_TEST_ROUNDS is the number of processes of each host.

usage: test_fork.py QUERYPROF LIBRARY FORK_HOST"""

import re

from hosts import *

HOST = os.path.abspath(sys.argv.pop(1))
ROUNDS = int(os.environ.get("QUERYPROF_TEST_ROUNDS", "20"))

# The same in Python, whose threads release its lock within SQLite. SQLite's mutex for statistics is switched off. The
# other thread may hold it at the fork, and then the child would hang even without queryprof.
PYTHON = r"""
import ctypes, os, random, sys, threading, time
assert ctypes.CDLL("libsqlite3.so.0").sqlite3_config(9, 0) == 0
import sqlite3

library = sys.argv[2] if len(sys.argv) > 2 else None
loaded = library and ctypes.CDLL(library)  # a fork would cut off a dlopen() under way, too

def run(db, sql, times):
    if library:
        db.enable_load_extension(True)
        db.load_extension(library)
    for i in range(times):
        db.execute(sql).fetchall()

def first_query(db, n):
    before = time.monotonic()
    run(db, "SELECT 7 AS first_%d" % n, 2)
    took.append(time.monotonic() - before)

def wait_for(child):
    end = time.monotonic() + 300
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return
        time.sleep(0.005)
    print("a child hung", flush=True)
    os.kill(child, 9)
    os.waitpid(child, 0)

def be_process(n):
    dbs = [sqlite3.connect(":memory:", check_same_thread=False) for i in range(2)]
    thread = threading.Thread(target=first_query, args=(dbs[0], n))
    thread.start()
    time.sleep(random.uniform(0, 0.006))
    child = os.fork()
    if not child:
        run(dbs[1], "SELECT 7 AS child_%d" % n, 5)
        if library:
            try:
                dbs[1].execute("SELECT count(*) FROM query_log").fetchall()
            except sqlite3.Error as error:
                if "while its parent's trace file was in use" not in str(error):
                    raise
                print("process %d: the child had no file" % n, flush=True)
        os._exit(0)
    wait_for(child)
    thread.join()
    if library:
        dbs[0].execute("SELECT count(*) FROM query_log").fetchall()

took = []
for n in range(int(sys.argv[1])):
    random.seed(n)
    child = os.fork()
    if not child:
        be_process(n)
        os._exit(0)
    os.waitpid(child, 0)
print("%s processes" % sys.argv[1])
"""


# A child has no file if its parent's flusher does not close its own within the second for which fork() waits, as on a
# slow disk. Its queries are lost.
WITHOUT_FILE = r"process (\d+): the child had no file\n"


class Fork(Hosts):
    def expect_all(self, done, processes):
        without = set(map(int, re.findall(WITHOUT_FILE, done.out)))
        self.assertEqual((done.status, re.sub(WITHOUT_FILE, "", done.out)), (0, "%d processes\n" % processes), done)
        self.assertLessEqual(4 * len(without), processes, done)
        for name, calls in (("first", 2), ("child", 5)):
            found = dict(done.rows("SELECT CAST(substr(query, instr(query, '%s_') + 6) AS INTEGER), sum(calls)"
                                   " FROM statement_stats WHERE query LIKE '%%%s\\_%%' ESCAPE '\\' GROUP BY 1"
                                   % (name, name)))
            self.assertEqual(found, {n: calls for n in range(processes) if name == "first" or n not in without},
                             (name, done))

    def test_inside(self):
        """The process forks inside each call of dl_iterate_phdr() that the first query makes."""
        for way in ("alone", "loaded", "recorded"):
            with self.subTest(way):
                done = self.run_host(way, HOST, "inside")
                self.assertRegex(done.out, r"^(%s)*\d+ processes\n$" % WITHOUT_FILE, done)
                processes = int(done.out.split()[-2])
                if way == "alone":
                    self.assertEqual(processes, 1, "the host itself calls it")
                else:
                    self.assertGreater(processes, 3)
                    self.expect_all(done, processes)

    def test_beside(self):
        """Another thread of the host is in dl_iterate_phdr() at the fork, so the child never gets
        its lock."""
        for way in ("loaded", "recorded"):
            with self.subTest(way):
                self.expect_all(self.until(lambda: self.run_host(way, HOST, "beside"),
                                           lambda done: not re.search(WITHOUT_FILE, done.out)), 1)

    def test_random(self):
        for way in ("loaded", "recorded"):
            with self.subTest(way):
                done = self.run_host(way, HOST, str(ROUNDS), "1", timeout=3600)
                self.expect_all(done, ROUNDS)

    def test_python(self):
        for way in ("loaded", "recorded"):
            with self.subTest(way):
                done = self.run_host(way, "/usr/bin/python3", "-c", PYTHON, str(ROUNDS), timeout=3600)
                self.expect_all(done, ROUNDS)


if __name__ == "__main__":
    unittest.main()
