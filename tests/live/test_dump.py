#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`queryprof dump` shows what runs now: the statement, how long it has run, why it waits, and for whom.

usage: test_dump.py QUERYPROF [NODE]..."""

import os
import sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import *

NODES = sys.argv[1:]
del sys.argv[1:]


class Dump(Live):
    def expect_stuck(self, name, *command):
        text = ENDLESS % name
        self.start(*command)
        # Until then, the statement is being prepared.
        run = self.find(text, lambda run: run["is_running"] and run["state"] in ("on CPU", "stopped", "waiting for the disk"))
        self.assertEqual((run["wait_cause"], run["is_cut"]), ("", 0), run)
        # dump's times agree with the clock: between two dumps passes at least the time between them, and at most that with
        # both.
        times = [time.monotonic_ns()]
        earlier = self.find(text)
        times.append(time.monotonic_ns())
        time.sleep(0.05)
        times.append(time.monotonic_ns())
        later = self.find(text)
        times.append(time.monotonic_ns())
        passed = later["elapsed_ns"] - earlier["elapsed_ns"]
        self.assertEqual(earlier["query_id"], later["query_id"])
        self.assertGreaterEqual(passed, times[2] - times[1])
        self.assertLessEqual(passed, times[3] - times[0])
        run = self.find(text, lambda run: run["stack"])
        self.assertIn("sqlite3_step", run["stack"].split("\n"))
        self.assertGreaterEqual(run["sample_age_ns"], 0)
        self.assertLessEqual(run["sample_age_ns"], run["elapsed_ns"] + 10**9)
        self.assertIn(name, self.ask("dump", str(run["process_id"])).stdout)
        return run

    def test_sqlite3(self):
        run = self.expect_stuck("sqlite3", "sqlite3", "-init", "/dev/null", ":memory:", ENDLESS % "sqlite3")
        self.assertEqual(run["program"], "sqlite3")
        self.find(ENDLESS % "sqlite3", lambda run: run["plan_node"])
        # The newest sample may belong to no node.
        text = self.text_with(r"(?ms)^thread %d sqlite3 of process %d \(sqlite3\): [\d.,]+ m?s, on CPU$"
                              r".*^  plan node  (SCAN|CO-ROUTINE|SETUP|RECURSIVE|MATERIALIZE)" %
                              (run["thread_id"], run["process_id"]))
        self.assertRegex(text, r"\A%s: 1 process, 1 query inside SQLite, 0 between two rows, 0 transactions open\n" %
                         re.escape(self.trace))
        self.assertRegex(text, r"(?m)^  statement  WITH RECURSIVE")
        self.assertRegex(text, r"(?m)^  stack      sample of [\d.,]+ (s|ms|us|ns) ago:\n             \w+")

    def test_python(self):
        self.expect_stuck("python", PYTHON, "-c", "import sqlite3; sqlite3.connect(':memory:').execute(%r)" %
                          (ENDLESS % "python") + ".fetchall()")

    def test_php(self):
        if not shutil.which("php"):
            self.skipTest("no php")
        self.expect_stuck("php", "php", "-r", "(new SQLite3(':memory:'))->querySingle(\"%s\");" % (ENDLESS % "php"))

    def test_node(self):
        program = 'new (require("node:sqlite").DatabaseSync)(":memory:").prepare("%s").all()' % (ENDLESS % "node")
        for node in NODES:
            found = shutil.which(node)
            if found and not subprocess.run([found, "-e", 'require("node:sqlite")'], capture_output=True, check=False).returncode:
                self.expect_stuck("node", found, "-e", program)
                return
        self.skipTest("no node with node:sqlite (tools/static-hosts gets one)")

    def test_rows(self):
        """The cursor is open, and nobody steps it."""
        text = "SELECT 1 UNION ALL SELECT 2 /* open */"
        self.start(PYTHON, "-c", "import sqlite3, time\ncursor = sqlite3.connect(':memory:').execute(%r)\n"
                   "cursor.fetchone()\nwhile True: time.sleep(1)" % text)
        run = self.find(text, lambda run: not run["is_running"])  # it was running while it fetched the first row
        self.assertIsNone(run["wait_ns"])
        self.assertLessEqual(run["outside_ns"], run["elapsed_ns"])
        self.assertRegex(self.ask("dump", self.trace).stdout, r"0 queries inside SQLite, 1 between two rows")

    def expect_holder(self, waits, seen):
        self.assertEqual((waits["wait_cause"], waits["wait_object"]), ("lock", "WAL write"), seen)
        self.assertGreaterEqual(waits["elapsed_ns"], waits["wait_ns"])
        holders = [found for found in seen["transactions"] if found["first_query"] == "BEGIN IMMEDIATE /* holds */"]
        self.assertEqual(len(holders), 1, seen)
        holder = holders[0]
        self.assertEqual((waits["holder_process_id"], waits["holder_thread_id"], waits["holder_session_id"]),
                         (holder["process_id"], holder["thread_id"], holder["session_id"]), seen)
        self.assertEqual((waits["holder_first_query"], waits["holder_query"]), ("BEGIN IMMEDIATE /* holds */", None))
        self.assertEqual(waits["holder_state"], "sleeping")
        self.assertEqual(holder["database"], waits["database"])
        self.assertGreaterEqual(holder["age_ns"], holder["write_lock_ns"])
        # The transaction began before the other one waited. dump reads each process at a slightly different time.
        self.assertGreaterEqual(holder["write_lock_ns"] + seen["took_ns"], waits["wait_ns"])
        self.assertNotEqual(holder["thread_id"], waits["thread_id"])
        text = self.text_with(r"waits [\d.,]+ m?s: lock \(WAL write\)\n")
        self.assertRegex(" ".join(text.split()), r"holder thread %d \S+ of process %d \([^)]*\), transaction of [\d.,]+ m?s, "
                         r"write lock for [\d.,]+ m?s, began with BEGIN IMMEDIATE /\* holds \*/; none of its statements "
                         r"runs \(sleeping\)" % (holder["thread_id"], holder["process_id"]))

    def waiting(self, *states):
        """Returns the waiting run and its whole dump, because in another dump the run may be between two sleeps of the busy
        handler. The holder sleeps after it has let the other one begin."""
        def found():
            begun = time.monotonic_ns()
            seen = self.dump()
            if seen:
                seen["took_ns"] = time.monotonic_ns() - begun
            runs = [run for run in seen["runs"] if run["query"] == "INSERT INTO t VALUES (2) /* waits */" and
                    run["wait_cause"] == "lock" and run["holder_state"] in ("sleeping", *states)] if seen else []
            return runs and (runs[0], seen)
        return wait_until(found, "a dump while it waits")

    def text_with(self, pattern):
        """Waits until dump's text matches; returns it. A busy thread sometimes loses its processor, and a waiting one computes
        between two sleeps."""
        def found():
            self.seen = self.ask("dump", self.trace).stdout
            return re.search(pattern, self.seen) and self.seen
        return wait_until(found, pattern)

    def test_lock_of_a_thread(self):
        self.start(PYTHON, self.file("holder.py", HOLDER), os.path.join(self.folder, "app.db"))
        self.expect_holder(*self.waiting())

    def test_lock_of_a_process(self):
        self.start(PYTHON, self.file("holder.py", HOLDER), os.path.join(self.folder, "app.db"), WAITER)
        waits, seen = self.waiting()
        self.assertEqual(seen["processes"], 2)
        self.assertNotEqual(waits["process_id"], waits["holder_process_id"])
        self.expect_holder(waits, seen)

    def test_lock_of_a_process_that_is_not_recorded(self):
        path = os.path.join(self.folder, "app.db")
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (x)")
        db.execute("BEGIN IMMEDIATE")
        self.start(PYTHON, "-c", WAITER, path)
        waits, _ = self.waiting(None, "", "on CPU")
        self.assertEqual((waits["holder_process_id"], waits["holder_program"], waits["holder_query"]), (os.getpid(), None, None))
        self.text_with(r"process %d,\s+which\s+is\s+not\s+recorded:\s+what\s+it\s+does\s+is\s+not\s+known" % os.getpid())
        db.close()

    def test_reader(self):
        """dump shows the oldest reader of a WAL."""
        path = os.path.join(self.folder, "app.db")
        self.start(PYTHON, "-c", """
import sqlite3, sys, time
dbs = [sqlite3.connect(sys.argv[1], isolation_level=None) for _ in range(2)]
dbs[0].execute("PRAGMA journal_mode = WAL")
dbs[0].execute("CREATE TABLE t (x)")
for db in dbs:
    db.execute("BEGIN")
    db.execute("SELECT * FROM t").fetchall()
while True: time.sleep(1)""", path)
        seen = wait_until(lambda: (lambda seen: seen and len(seen["transactions"]) == 2 and not seen["runs"] and seen)(self.dump()),
                          "two readers")
        first, second = seen["transactions"]
        self.assertEqual([found["is_oldest_reader"] for found in (first, second)], [1, 0])
        self.assertGreater(first["age_ns"], second["age_ns"])
        self.assertEqual((first["write_lock_ns"], first["database"]), (None, os.path.realpath(path)))
        self.assertIn("oldest reader: ", self.ask("dump", self.trace).stdout)

    def test_attached(self):
        text, path = ENDLESS % "attached", os.path.join(self.folder, "go")
        program = subprocess.Popen([PYTHON, "-c", "import os, sqlite3, sys, time\ndb = sqlite3.connect(':memory:')\n"
                                    "while not os.path.exists(sys.argv[1]):\n    db.execute('SELECT 1').fetchall()\n    time.sleep(0.01)\n"
                                    "db.execute(sys.argv[2]).fetchall()", path, text])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        attached = subprocess.Popen([QUERYPROF, "attach", "--for", "3600s", "-o", self.trace, *self.names, str(program.pid)],
                                    stderr=subprocess.PIPE, text=True)
        self.addCleanup(attached.stderr.close)
        self.addCleanup(attached.wait)
        self.addCleanup(attached.terminate)
        # dump() runs from the start of attach, so both stop threads at the same time.
        wait_until(lambda: attached.poll() is not None or (self.dump(program.pid) or {"processes": 0})["processes"], "the process")
        self.assertIsNone(attached.poll(), attached.returncode and attached.stderr.read())
        self.file("go", "")
        self.assertEqual(self.find(text)["process_id"], program.pid)

    def test_nothing_to_see(self):
        """Each message contains what to do."""
        def refused(target, command="dump"):
            done = self.ask(command, target)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            return done.stderr
        self.assertRegex(refused(str(os.getpid()), "top"), r"^queryprof: top: process \d+ \(\S+\) is not recorded now: "
                         r"`queryprof dump \d+` shows what it does now, and `queryprof attach \d+` records it from its next query on\n$")
        self.assertEqual(refused("4194305"), "queryprof: dump: there is no process 4194305\n")
        self.assertIn("expected a process id", refused("99999999999"))
        self.assertIn("No such file", refused(os.path.join(self.folder, "none.trace")))
        self.record("sqlite3", "-init", "/dev/null", ":memory:", "SELECT 1")
        self.assertRegex(refused(self.trace), r"^queryprof: dump: .*app\.trace: no queryprof records to this file now; "
                         r"to read it: queryprof report .*app\.trace\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
