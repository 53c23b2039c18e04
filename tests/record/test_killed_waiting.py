#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""If a process is killed while it waits, the file contains the duration and the cause of the wait, and the owner of the lock.

    test_killed_waiting.py QUERYPROF"""

import os
import signal
import sqlite3
import subprocess
import time
import unittest

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import recording

WAITS = """
import os, sqlite3, sys
print(os.getpid(), flush=True)
sqlite3.connect(sys.argv[1], timeout=600).execute("INSERT INTO t VALUES (1)")
"""
# Waits that never end, by their names in trace_log.
ENDLESS = """
import os, select, socket, sqlite3, sys, threading, time
pipe, network, lock = os.pipe(), socket.socketpair(), threading.Lock()
lock.acquire()
waits = {"read": lambda: os.read(pipe[0], 1), "network": lambda: network[0].recv(1), "sleep": lambda: time.sleep(600),
         "poll": lambda: select.poll().poll(600000), "condition": lock.acquire}
def wait(word):
    print(os.getpid(), flush=True)
    waits[word]()
db = sqlite3.connect(":memory:")
db.create_function("wait", 1, wait)
if sys.argv[2:]:  # other waits have ended before
    db.create_function("rest", 0, lambda: time.sleep(0.002))
    db.execute("SELECT rest(), rest()").fetchall()
db.execute("SELECT wait(?)", (sys.argv[1],)).fetchone()
"""
# Returns when the thread waits, and keeps waiting.
IS_WAITING = """
def waits():  # how often it has given its processor up, if it has none
    with open("/proc/self/task/%d/status" % thread.native_id) as status:
        text = status.read()
    return "State:\\tS" in text and text.partition("\\nvoluntary_ctxt_switches:")[2].split()[0]
before = None
while not before or before != waits():
    before = waits()
    time.sleep(0.3)
"""
# One thread waits forever while another thread executes a program that takes its time.
BECOMES = """
import os, sqlite3, sys, threading, time
begun = threading.Event()
def wait(word):
    print(time.monotonic_ns(), flush=True)
    begun.set()
    os.read(os.pipe()[0], 1)
def run():
    db = sqlite3.connect(":memory:")
    db.create_function("wait", 1, wait)
    db.execute("SELECT wait(?)", ("read",)).fetchone()
thread = threading.Thread(target=run)
thread.start()
begun.wait()
%s
os.execv(sys.executable, [sys.executable, "-c", "import time; print(time.monotonic_ns()); time.sleep(0.3)"])
""" % IS_WAITING
# More threads than share a page or two, each of which waits forever.
MANY = """
import os, sqlite3, sys, threading
pipe, begun = os.pipe()[0], threading.Semaphore(0)
def wait():
    begun.release()
    os.read(pipe, 1)
def run():
    db = sqlite3.connect(":memory:")
    db.create_function("wait", 0, wait)
    db.execute("SELECT wait()").fetchone()
threading.stack_size(256 * 1024)
count = int(sys.argv[1])
for _ in range(count):
    threading.Thread(target=run).start()
for _ in range(count):
    begun.acquire()
print(os.getpid(), flush=True)
"""
# A thread waits forever for the connection, which another thread has: with a statement that has not been stepped, a
# statement that has, or an operation.
CONNECTION = """
import ctypes, os, sys, threading, time
lib = ctypes.CDLL("libsqlite3.so.0")
lib.sqlite3_db_mutex.restype = ctypes.c_void_p
db, statement, blob = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
what = {"first": lambda: lib.sqlite3_step(statement), "again": lambda: lib.sqlite3_step(statement),
        "blob": lambda: lib.sqlite3_blob_open(db, b"main", b"t", b"x", ctypes.c_int64(1), 0, ctypes.byref(blob))}
assert lib.sqlite3_open(b":memory:", ctypes.byref(db)) == 0
assert lib.sqlite3_prepare_v2(db, b"SELECT 'waits'", -1, ctypes.byref(statement), None) == 0
if sys.argv[1] == "again":
    assert (lib.sqlite3_step(statement), lib.sqlite3_step(statement)) == (100, 101)
lib.sqlite3_mutex_enter(ctypes.c_void_p(lib.sqlite3_db_mutex(db)))
thread = threading.Thread(target=what[sys.argv[1]])
thread.start()
%s
print(os.getpid(), flush=True)
thread.join()
""" % IS_WAITING
# The longest wait, because on a busy machine threads of Python wait for its lock, too.
WAITS_OF = "SELECT wait_cause, wait_object, wait_ns, value, weight * period_ns FROM trace_log JOIN query_log USING (query_id)" \
    " WHERE trace_type = 'OffCPU' AND query = 'SELECT wait(?)' AND type = 'QueryStart' ORDER BY wait_ns DESC LIMIT 1"
TOLD = "SELECT wait_ns FROM lock_waits WHERE outcome = 'waiting' AND wait_ns >= 300000000"


class Killed(recording.Recording):
    def kill(self, number):
        path = os.path.join(self.folder, "app.db")
        holder = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(holder.close)
        holder.execute("CREATE TABLE IF NOT EXISTS t(x)")
        holder.execute("BEGIN IMMEDIATE")
        with subprocess.Popen(self.arguments(recording.PYTHON, "-c", WAITS, path, options=("--quiet",)),
                              stdout=subprocess.PIPE, text=True) as command:
            waiting = int(recording.read_line(command.stdout, "the program's number"))
            (told,), = recording.wait_until(lambda: self.has_views() and self.rows(TOLD), "a row of the wait")
            # The time from here to the next time that the wait is published.
            time.sleep(0.2)
            # The time that the thread was in the processor's queue.
            with open("/proc/%d/schedstat" % waiting, encoding="ascii") as stat:
                queued = int(stat.read().split()[1])
            os.kill(waiting, number)
        holder.execute("COMMIT")
        return waiting, told, queued

    def test_killed(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            waiting, told, queued = self.kill(number)
            self.assertEqual(self.rows("SELECT process_id, lock, holder_process_id, query FROM lock_waits"),
                             [(waiting, "RESERVED", os.getpid(), "INSERT INTO t VALUES (1)")])
            waited, = self.rows("SELECT sum(value) FROM trace_log WHERE wait_cause = 'lock'")[0]
            published, = self.rows("SELECT wait_ns FROM lock_waits")[0]
            self.assertGreaterEqual(published, told)
            # The busy handler's sleeps. A part of the time may be in a run queue.
            self.assertGreaterEqual(waited, (published - queued) / 2)
            done = subprocess.run([recording.QUERYPROF, "locks", self.trace], capture_output=True, text=True, check=True)
            self.assertIn("%d" % os.getpid(), done.stdout)
            os.unlink(self.trace)

    def test_exec(self):
        done = self.record(recording.PYTHON, "-c", BECOMES, options=("--quiet",))
        begun, later = map(int, done.stdout.split())
        (cause, on, waited, _, _), = self.rows(WAITS_OF)
        self.assertEqual((cause, on), ("user function", "read"))
        self.assertLess(waited, later - begun)

    def switches(self, process):
        """The number of times that the thread has given up its processor."""
        with open("/proc/%d/status" % process, encoding="ascii") as status:
            return status.read().partition("\nvoluntary_ctxt_switches:")[2].split()[0]

    def end_waiting(self, number, *words):
        """Returns the least and the greatest possible duration of the wait."""
        with subprocess.Popen(self.arguments(recording.PYTHON, "-c", ENDLESS, *words, options=("--quiet",)),
                              stdout=subprocess.PIPE, text=True) as command:
            before = time.monotonic_ns()
            waiting = int(recording.read_line(command.stdout, "the program's number"))
            begun, switches = time.monotonic_ns(), ""
            while time.monotonic_ns() - begun < 300000000:
                time.sleep(0.01)
                if switches != self.switches(waiting) or recording.state(waiting) != "S":
                    begun, switches = time.monotonic_ns(), self.switches(waiting)
            least = time.monotonic_ns() - begun
            os.kill(waiting, number)
        return least, time.monotonic_ns() - before

    def test_endless(self):
        for number, *words in ((signal.SIGKILL, "read"), (signal.SIGTERM, "network"), (signal.SIGKILL, "sleep"),
                               (signal.SIGTERM, "poll", "before"), (signal.SIGKILL, "condition", "before")):
            least, most = self.end_waiting(number, *words)
            with self.subTest(words):
                (cause, on, waited, value, of_periods), = self.rows(WAITS_OF)
                self.assertEqual((cause, on), ("user function", words[0]))
                self.assertTrue(least <= waited <= most, (least, waited, most))
                self.assertEqual(value, of_periods)
                self.assertLessEqual(abs(value - waited), 1000000)  # the period
                # The waiting function: the newest frame.
                self.assertEqual(self.rows("SELECT DISTINCT json_array_length(trace), truncated FROM trace_log"
                                           " WHERE wait_object = ? AND wait_ns = ?", on, waited), [(1, 1)])
            os.unlink(self.trace)

    def test_connection(self):
        for what, text in (("first", "SELECT 'waits'"), ("again", "SELECT 'waits'"), ("blob", "sqlite3_blob_open(main.t.x)")):
            with subprocess.Popen(self.arguments(recording.PYTHON, "-c", CONNECTION, what, options=("--quiet",)),
                                  stdout=subprocess.PIPE, text=True) as command:
                os.kill(int(recording.read_line(command.stdout, "the program's number")), signal.SIGKILL)
            with self.subTest(what):
                # On a busy machine an earlier run may have waited for a processor.
                self.assertEqual(self.rows("SELECT DISTINCT query, type, wait_cause FROM trace_log LEFT JOIN query_log"
                                           " USING (query_id) WHERE wait_ns > 50000000 AND type IS NOT 'QueryFinish'"),
                                 [(text, "QueryStart", "mutex")])
            os.unlink(self.trace)

    @staticmethod
    def sleeping(process):
        """How often each of the threads has given up its processor, if all of them sleep."""
        switches = []
        for thread in os.listdir("/proc/%d/task" % process):
            with open("/proc/%d/task/%s/status" % (process, thread), encoding="utf-8") as status:
                text = status.read()
            if "State:\tS" not in text:
                return None
            switches.append(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        return switches

    def test_many_threads(self):
        with subprocess.Popen(self.arguments(recording.PYTHON, "-c", MANY, "600", options=("--quiet",)),
                              stdout=subprocess.PIPE, text=True) as command:
            waiting = int(recording.read_line(command.stdout, "the program's number"))
            before = None
            while not before or before != self.sleeping(waiting):
                before = self.sleeping(waiting)
                time.sleep(0.3)
            os.kill(waiting, signal.SIGKILL)
        (threads,), = self.rows("SELECT count(DISTINCT thread_id) FROM trace_log WHERE wait_object = 'read'"
                                " AND wait_cause = 'user function'")
        self.assertEqual(threads, 600)


if __name__ == "__main__":
    unittest.main()
