#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The file, line and function from which a Python program called SQLite equal the ones that the program reports.

usage: test_callers.py QUERYPROF"""

import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# Debian's own, and pyenv's, each from the first supported version on.
PYTHONS = [PYTHON] + [path for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
                      if int(path.split("/versions/3.")[1].split(".")[0]) in range(8, 15)]

# Each query has an id, and the program prints for each the frames that its own interpreter reports, newest first.
HEAD = '''
import sqlite3, sys, json
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60000) SELECT sum(x), '%s' FROM c"
told = {}
def slow(name, db):
    frame, frames = sys._getframe(1), []
    while frame:
        frames.append([frame.f_code.co_filename, frame.f_lineno, getattr(frame.f_code, "co_qualname", frame.f_code.co_name)])
        frame = frame.f_back
    told[name] = frames
    return SLOW % name
db = sqlite3.connect(":memory:", check_same_thread=False)
db.execute(SLOW % "first").fetchall()  # the interpreter is found: threads that come while one looks wait for a moment only
'''
TAIL = '''
print(json.dumps(told))
'''


class Callers(Recording):
    def run_python(self, python, script):
        return self.told_and_seen("app.py", HEAD + script + TAIL, python, "-B")

    def expect_all(self, python, script):
        told, seen = self.run_python(python, script)
        self.assertTrue(told)
        for name, frames in told.items():
            with self.subTest(python=python, query=name):
                self.assertEqual(seen.get(name), frames[:32])
        return told

    def test_every_version(self):
        """One recording of each version: functions, methods, comprehensions, generators, rows in a loop, many lines a
        statement, other alphabets; threads and exceptions; the newest frames of a deep stack, which is truncated; with the
        collector and a trace function, which remain to the end, at work."""
        script = '''
class Cart:
    def total(self):
        return db.execute(slow("method", db)).fetchone()
    @staticmethod
    def rows():
        for row in db.execute(slow("rows", db)): pass
def größe_数_𐌰():
    return db.execute(slow("unicode", db)).fetchall()
def generator():
    yield db.execute(slow("generator", db)).fetchall()
    yield db.execute(slow("generator again", db)).fetchall()
Cart().total()
Cart.rows()
größe_数_𐌰()
list(generator())
[db.execute(slow("list %d" % i, db)).fetchall() for i in range(2)]
(lambda: db.execute(slow("lambda", db)).fetchall())()
if len(told) > 3:
    x = 1


    db.execute(slow("module", db)).fetchall()

import threading
def work(i):
    db = sqlite3.connect(":memory:")
    db.execute(slow("thread %d" % i, db)).fetchall()
def fails():
    try:
        raise ValueError
    except ValueError:
        db.execute(slow("while handling", db)).fetchall()
    finally:
        db.execute(slow("finally", db)).fetchall()
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
fails()

sys.setrecursionlimit(20000)
threading.stack_size(256 << 20)
def deep(n):
    if n:
        return deep(n - 1)
    return db.execute(slow("deep", db)).fetchall()
t = threading.Thread(target=deep, args=(10000,)); t.start(); t.join()
told["deep"] = told["deep"][:32]

import gc
gc.set_threshold(1)
sys.settrace(lambda *a: None)
def f():
    garbage = [[] for _ in range(100)]
    for g in garbage: g.append(g)
    return db.execute(slow("collected", db)).fetchall()
f()
'''
        for python in PYTHONS:
            told = self.expect_all(python, script)
            self.assertEqual(len(told["deep"]), 32)

    def test_callback_and_fork(self):
        """A query inside a function of another query, and a query of a forked child."""
        script = '''
import os
other = sqlite3.connect(":memory:")
def nested(x):
    return other.execute(slow("nested", other)).fetchone()[0]
db.create_function("nested", 1, nested)
db.execute("SELECT nested(1)").fetchall()
pid = os.fork()
if not pid:
    def child(): sqlite3.connect(":memory:").execute(SLOW % "child").fetchall()
    child()
    os._exit(0)
os.waitpid(pid, 0)
'''
        told, seen = self.run_python(PYTHON, script)
        self.assertEqual(seen["nested"], told["nested"])
        self.assertEqual([frame[2] for frame in seen["child"]], ["child", "<module>"])

    def test_caller(self):
        """The caller is the application's frame, not its library's, and the command names it."""
        packages = os.path.join(self.folder, "site-packages")
        os.mkdir(packages)
        self.file("site-packages/orm.py", "def query(db, text):\n    return run(db, text)\n"
                                          "def run(db, text):\n    return db.execute(text).fetchall()\n")
        script = '''
sys.path.insert(0, %r)
import orm
def orders():
    return orm.query(db, slow("orm", db))
for i in range(5):
    orders()
''' % packages
        told, seen = self.run_python(PYTHON, script)
        file, line, function = told["orm"][0]
        self.assertEqual(seen["orm"][:3], [[packages + "/orm.py", 4, "run"], [packages + "/orm.py", 2, "query"], [file, line, function]])
        self.assertEqual(set(self.rows("SELECT caller, caller_function FROM query_log WHERE query LIKE '%orm%'")),
                         {("%s:%d" % (file, line), "orders")})
        done = subprocess.run([QUERYPROF, "queries", self.trace], capture_output=True, text=True, timeout=300, check=True)
        self.assertIn("from app.py:%d (orders)" % line, done.stdout.splitlines()[1])

    def test_deep_library(self):
        """A library has more frames than a stack can hold. Its oldest frames are left out, not the application's."""
        packages = os.path.join(self.folder, "site-packages")
        os.mkdir(packages)
        self.file("site-packages/orm.py", "def query(n, db, text):\n    return query(n - 1, db, text) if n else db.execute(text).fetchall()\n")
        told, seen = self.run_python(PYTHON, '''
sys.path.insert(0, %r)
import orm
def orders():
    return orm.query(50, db, slow("deep orm", db))
def other():
    orm.query(31, db, slow("just too deep", db))
orders()
other()
''' % packages)
        for name in "deep orm", "just too deep":
            query = [packages + "/orm.py", 2, "query"]
            self.assertEqual(seen[name], [query] * 30 + [["", 0, "..."], told[name][0]], name)
        stacks = subprocess.run([QUERYPROF, "export", self.trace, "-o", "-", "--format", "collapsed"], capture_output=True, text=True,
                                timeout=300, check=True).stdout
        self.assertRegex(stacks, r"(?m)^orders \(app\.py:\d+\);\.\.\.;query \(orm\.py:2\);")

    def test_runs_of_callers(self):
        """Two places run one statement, one of them three times as often and with a third of the rows. Sampled runs are
        the basis to estimate each place's number of runs."""
        self.run_python(PYTHON, '''
SHORT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ?) SELECT max(x), 'short' FROM c"
def often():
    db.execute(SHORT, (300,)).fetchall()
def seldom():
    db.execute(SHORT, (900,)).fetchall()
for i in range(2000):
    often(); often(); often(); seldom()
''')
        done = subprocess.run([QUERYPROF, "queries", self.trace, "x < ?", "--by", "caller", "--format", "json"],
                              capture_output=True, text=True, timeout=300, check=True)
        lines = {line["function"]: line for line in json.loads(done.stdout)}
        self.assertAlmostEqual(sum(line["runs"] for line in lines.values()), 8000, delta=2)
        for function, runs in ("often", 6000), ("seldom", 2000):
            line = lines[function]
            self.assertRegex(line["caller"], r"/app\.py:\d+$")
            self.assertLess(line["runs_error"], 2500)
            self.assertLess(abs(line["runs"] - runs), 4 * line["runs_error"], line)
            self.assertIn((line["runs"], line["runs_error"]), self.rows(
                "SELECT runs, runs_error FROM statement_callers WHERE query LIKE '%max(x)%' AND caller_function = ?", function))
        place = lines["seldom"]["caller"].rpartition("/")[2]
        done = subprocess.run([QUERYPROF, "queries", self.trace, "--caller", place, "--runs", "--format", "json", "--limit", "100000"],
                              capture_output=True, text=True, timeout=300, check=True)
        self.assertEqual(len(json.loads(done.stdout)), lines["seldom"]["logged"])

    def test_failure_and_unknown(self):
        """A statement that does not compile has a caller. A program without an interpreter has none."""
        self.run_python(PYTHON, '''
try: db.execute("SELECT nothing FROM nowhere")
except sqlite3.OperationalError: pass
''')
        (caller, function), = self.rows("SELECT caller, caller_function FROM query_log WHERE query LIKE '%nowhere%'")
        self.assertRegex(caller, r"/app\.py:\d+$")
        self.assertEqual(function, "<module>")
        os.unlink(self.trace)
        self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW)
        self.assertEqual(set(self.rows("SELECT caller, caller_function, call_stack_id FROM query_log")), {("", "", 0)})


if __name__ == "__main__":
    unittest.main()
