#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`queryprof dump` names the running query of processes that are not recorded.

usage: test_unrecorded.py QUERYPROF STUCK WAITS [STATIC]
STUCK: a host whose threads are inside queries. WAITS: a host that prints interrupted system calls. STATIC: STUCK with SQLite
inside."""

import random
import sys

import os
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import *

STUCK, WAITS = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
STATIC = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else None
SEED = random.randrange(1 << 32)
LOOKS = int(os.environ.get("QUERYPROF_TEST_ROUNDS", 30))

# The statement of tests/live/stuck.c.
LONG = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x), '%s' FROM c"

# Prints at the end whether all results were right.
ALLOCATES = """
import os, sqlite3, sys, threading
stop = sys.argv[1]
wrong = []
def allocate():
    while not os.path.exists(stop):
        if len(b"".join(bytes(i) for i in range(300))) != 44850:
            wrong.append("bytes")
def query():
    db = sqlite3.connect(":memory:")
    while not os.path.exists(stop):
        for i in range(20):
            if db.execute("SELECT count(*), %d FROM (VALUES (1), (2), (3))" % i).fetchone() != (3, i):
                wrong.append("count")
        if db.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5000) SELECT sum(x) FROM c").fetchone() != (12502500,):
            wrong.append("sum")
threads = [threading.Thread(target=what) for what in (allocate, query) * 4]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
print("wrong" if wrong else "right")
"""
# The statements that the program may be executing.
QUERIES = (r"SELECT count\(\*\), \d+ FROM \(VALUES \(1\), \(2\), \(3\)\)|"
           r"WITH RECURSIVE c\(x\) AS \(SELECT 1 UNION ALL SELECT x \+ 1 FROM c WHERE x < 5000\) SELECT sum\(x\) FROM c")


class Unrecorded(Live):
    def host(self, *command):
        host = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(host.stdout.close)
        self.addCleanup(host.wait)
        self.addCleanup(host.kill)
        return host

    def ready(self, *command):
        host = self.host(*command)
        self.assertEqual(read_line(host.stdout, "the host's queries"), "ready\n")
        return host

    def look(self, host, condition):
        """Waits until dump's output meets the condition; returns it."""
        def found():
            seen = self.dump(host.pid)
            return seen if seen and condition(seen) else None
        return wait_until(found, "it is not like that")

    def queries(self, host, expected):
        """Waits until dump shows these statements; returns its output."""
        def found():
            seen = self.dump(host.pid)
            return seen if seen and sorted(str(run["query"]) for run in seen["runs"]) == sorted(expected) else None
        return wait_until(found, "only %s" % expected)

    def expect_stuck(self, host, text):
        seen = self.queries(host, [text])
        run, = seen["runs"]
        self.assertEqual((run["process_id"], run["elapsed_ns"], run["is_running"], run["is_cut"], run["depth"], seen["refusal"]),
                         (host.pid, None, 1, 0, 1, None))
        self.assertIn("sqlite3_step", run["stack"].split("\n"))
        self.assertEqual(seen["threads_inside"], 1)
        self.assertIsNone(host.poll())
        return seen

    def test_c(self):
        """dump does not show prepared statements that do not run."""
        host = self.ready(STUCK, "long")
        run, = self.expect_stuck(host, LONG % "long")["runs"]
        self.assertRegex(run["stack"], r"\nsqlite3_step\nmain\n")
        text = self.ask("dump", str(host.pid)).stdout
        self.assertRegex(text, r"\Aprocess %d \(live_stuck\) is not recorded: 1 thread inside SQLite, 0 outside; the longest stop was "
                         r"[\d.,]+ (s|ms|us)\nHow long a query runs already is not known from outside. `queryprof attach %d` "
                         % (host.pid, host.pid))
        self.assertRegex(text, r"(?m)^thread %d live_stuck of process %d \(live_stuck\): running since before this look, on CPU$" %
                         (host.pid, host.pid))
        self.assertIn("  statement  WITH RECURSIVE c(x)", text)
        self.assertNotIn("idle", text)

    def test_static(self):
        if not STATIC:
            self.skipTest("no static library of SQLite")
        self.expect_stuck(self.ready(STATIC, "long"), LONG % "long")
        self.queries(self.ready(STATIC, "nested"), [LONG % "inner", "SELECT run_inner()"])

    def test_sqlite3(self):
        self.expect_stuck(self.host("sqlite3", "-init", "/dev/null", ":memory:", LONG % "shell"), LONG % "shell")

    def test_python(self):
        host = self.host(PYTHON, "-c", "import sqlite3; sqlite3.connect(':memory:').execute(%r).fetchall()" % (LONG % "größe"))
        run, = self.expect_stuck(host, LONG % "größe")["runs"]
        self.assertIn("libsqlite3", run["library_path"])

    def test_other_languages(self):
        for name, *command in (
                ("php", "-r", "(new SQLite3(':memory:'))->querySingle(\"%s\");" % (LONG % "php")),
                ("ruby", "-e", "require 'sqlite3'; SQLite3::Database.new(':memory:').execute(\"%s\")" % (LONG % "ruby"))):
            if shutil.which(name) and not subprocess.run([name, *command[:1], command[1].replace(LONG % name, "SELECT 1")],
                                                         capture_output=True, check=False).returncode:
                self.expect_stuck(self.host(name, *command), LONG % name)

    def test_nested(self):
        host = self.ready(STUCK, "nested")
        inner, outer = self.queries(host, [LONG % "inner", "SELECT run_inner()"])["runs"]
        self.assertEqual((inner["query"], inner["depth"], outer["depth"]), (LONG % "inner", 2, 1))
        self.assertEqual(inner["stack"].split("\n").count("sqlite3_step"), 2)
        self.assertEqual(outer["stack"].split("\n")[0], "sqlite3_step")
        self.assertTrue(inner["stack"].endswith(outer["stack"]))

    def test_no_step(self):
        """A thread that prepares a statement executes none."""
        host = self.ready(STUCK, "prepares")
        seen = self.look(host, lambda seen: any(run["function"] != "sqlite3_step" for run in seen["runs"]))
        self.assertEqual([run["query"] for run in seen["runs"]], [None])
        self.assertIn(seen["runs"][0]["function"], ("sqlite3_prepare_v2", "sqlite3_finalize", "sqlite3_mprintf", "sqlite3_free"))

    def test_threads(self):
        host = self.ready(STUCK, "threads")
        seen = self.queries(host, [LONG % ("thread %d" % i) for i in range(64)])
        self.assertEqual((seen["threads"], seen["threads_inside"], len(set(run["thread_id"] for run in seen["runs"]))), (65, 64, 64))

    def expect_holder(self, host, holder, lock, path):
        seen = self.look(host, lambda seen: any((run["wait_cause"], run["state"]) == ("lock", "sleeping") for run in seen["runs"]))
        run, = seen["runs"]
        self.assertEqual((run["query"], run["state"], run["holder_process_id"], run["holder_program"]),
                         ("INSERT INTO t VALUES (2) /* waits */", "sleeping", holder, "python3"), seen)
        self.assertIn((path, lock, holder), [(row["database"], row["lock"], row["process_id"]) for row in seen["databases"]])
        self.assertEqual({row["is_wal"] for row in seen["databases"]}, {int(lock == "WAL write")})
        # The thread is on the CPU for a moment between two sleeps.
        text = wait_until(lambda: [text for text in [" ".join(self.ask("dump", str(host.pid)).stdout.split())] if "waits: lock" in text],
                          "a dump while it waits")[0]
        self.assertIn("holder process %d (python3), which has %s of %s" % (holder, lock, path), text)

    def expect_outside(self, holder, lock, path):
        """The thread that sleeps with the lock is outside SQLite."""
        seen = self.look(holder, lambda seen: [thread["wait_cause"] for thread in seen["outside"]] == ["sleep"])
        thread, = seen["outside"]
        self.assertEqual((thread["thread_id"], seen["runs"]), (holder.pid, []))
        self.assertIn("%s of %s" % (lock, path), thread["locks"])
        self.assertIn("nanosleep", thread["stack"])
        self.assertRegex(self.ask("dump", str(holder.pid)).stdout,
                         r"(?m)^thread %d python3 of process %d \(python3\): outside SQLite, waits: sleep\n  locks +.*\n  stack +\S*nanosleep < "
                         % (holder.pid, holder.pid))

    def test_own_lock(self):
        """In a WAL database a writer does not wait for another process that only has it open."""
        path = os.path.join(os.path.realpath(self.folder), "app.db")
        idle = self.ready(PYTHON, "-c", "import sqlite3, sys, time\ndb = sqlite3.connect(sys.argv[1])\n"
                          "db.execute('PRAGMA journal_mode = wal')\ndb.execute('CREATE TABLE t (x)')\n"
                          "print('ready', flush=True)\ntime.sleep(3600)", path)
        host = self.ready(PYTHON, "-c", "import sqlite3, sys\nfirst, second = (sqlite3.connect(sys.argv[1], isolation_level=None, timeout=3600) for _ in range(2))\n"
                          "first.execute('BEGIN IMMEDIATE')\nprint('ready', flush=True)\nsecond.execute('INSERT INTO t VALUES (1)')", path)
        seen = self.look(host, lambda seen: any((run["wait_cause"], run["state"]) == ("lock", "sleeping") for run in seen["runs"]))
        self.assertIn((path, "SHARED", idle.pid), [(row["database"], row["lock"], row["process_id"]) for row in seen["databases"]])
        self.assertEqual([(run["holder_process_id"], run["holders"]) for run in seen["runs"]], [(None, None)])

    def test_lock(self):
        path = os.path.join(os.path.realpath(self.folder), "app.db")
        for mode, lock in (("delete", "RESERVED"), ("wal", "WAL write")):
            holder = self.ready(PYTHON, "-c", "import sqlite3, sys, time\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                                "db.execute('PRAGMA journal_mode = ' + sys.argv[2])\ndb.execute('CREATE TABLE IF NOT EXISTS t (x)')\n"
                                "db.execute('BEGIN IMMEDIATE')\nprint('ready', flush=True)\ntime.sleep(3600)", path, mode)
            host = self.ready(STUCK, "waits", path)
            self.expect_holder(host, holder.pid, lock, path)
            self.expect_outside(holder, lock, path)
            self.assertEqual(self.dump(host.pid)["outside"], [])
            host.kill()
            holder.kill()
            host.wait()
            holder.wait()

    def test_no_sqlite(self):
        host = self.host("sleep", "3600")
        seen = self.look(host, lambda seen: True)
        self.assertEqual((seen["runs"], seen["databases"], seen["threads"], seen["threads_inside"]), ([], [], 1, 0))
        self.assertRegex(self.ask("dump", str(host.pid)).stdout, r"\Aprocess %d \(sleep\) is not recorded: 0 threads inside SQLite, "
                         r"1 outside; .*\nit has no SQLite\n\Z" % host.pid)

    def test_interrupted_calls(self):
        """No call of the host ends with EINTR, or too early."""
        host = self.host(WAITS, "4")
        while host.poll() is None:
            self.dump(host.pid)
        self.assertEqual((host.stdout.read(), host.returncode), ("right\n", 0))

    def test_random_moments(self):
        random.seed(SEED)
        stop = os.path.join(self.folder, "stop")
        host = self.ready(PYTHON, "-c", ALLOCATES, stop)
        named = looks = 0
        while looks < LOOKS or not named:
            looks += 1
            time.sleep(random.random() / 100)
            seen = self.dump(host.pid)
            self.assertTrue(seen, self.seen)
            for run in seen["runs"]:
                if run["query"] is not None:
                    self.assertRegex(run["query"], r"\A(?:%s)\Z" % QUERIES, "seed %d" % SEED)
                    named += 1
        with open(stop, "w", encoding="ascii"):
            pass
        self.assertEqual((host.communicate(timeout=300)[0], host.returncode), ("right\n", 0), "seed %d" % SEED)

    def test_killed(self):
        """If the command and its helper are killed, the process continues."""
        random.seed(SEED)
        stop = os.path.join(self.folder, "stop")
        host = self.ready(PYTHON, "-c", ALLOCATES, stop)
        for _ in range(LOOKS // 3):
            command = subprocess.Popen([QUERYPROF, "dump", str(host.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.random() / 20)
            children = "/proc/%d/task/%d/children" % (command.pid, command.pid)
            with open(children, encoding="ascii") as file:
                helpers = [int(pid) for pid in file.read().split()]
            for pid in [command.pid, *helpers]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            command.wait()
        threads = [int(thread) for thread in os.listdir("/proc/%d/task" % host.pid)]
        wait_until(lambda: not any(state(thread) in ("t", "T") for thread in threads), "no thread is stopped")
        with open(stop, "w", encoding="ascii"):
            pass
        self.assertEqual((host.communicate(timeout=300)[0], host.returncode), ("right\n", 0), "seed %d" % SEED)

    def test_refused(self):
        """dump prints why it cannot stop the threads, and what to do."""
        path = os.path.join(os.path.realpath(self.folder), "app.db")
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("CREATE TABLE t (x)")
        host = self.ready(STUCK, "long")
        os.kill(host.pid, signal.SIGSTOP)
        wait_until(lambda: state(host.pid) == "T", "the stop")
        done = self.ask("dump", str(host.pid))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "process %d (live_stuck) is not recorded\n" % host.pid)
        self.assertEqual(done.stderr, "queryprof: dump: the threads of process %d (live_stuck) cannot be looked at: it is stopped by a "
                         "signal: let it continue first (kill -CONT %d)\n" % (host.pid, host.pid))
        os.kill(host.pid, signal.SIGCONT)
        self.expect_stuck(host, LONG % "long")
        self.assertRegex(self.ask("top", str(host.pid), "--once").stderr, r"is not recorded now: `queryprof dump %d` shows what it "
                         r"does now, and `queryprof attach %d` records it" % (host.pid, host.pid))


if __name__ == "__main__":
    unittest.main(verbosity=2)
