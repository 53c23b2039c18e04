#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Why a statement was refused a lock, and how to avoid that.

    test_refusals.py QUERYPROF"""

import json
import os
import pwd
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

QUERYPROF = os.path.abspath(sys.argv.pop(1))

COMMON = textwrap.dedent("""
    import os, sqlite3, subprocess, sys, threading, time
    def connect(name="app.db", timeout=0.05):
        return sqlite3.connect(name, isolation_level=None, timeout=timeout, uri=True, check_same_thread=False)
    def refused(function, *arguments):
        try:
            function(*arguments)
        except sqlite3.OperationalError as error:
            return print(getattr(error, "sqlite_errorname", ""), error)
        raise SystemExit("was not refused")
    a = connect(); a.execute("PRAGMA journal_mode=" + sys.argv[1]); a.execute("CREATE TABLE t(x)"); a.execute("INSERT INTO t VALUES (1), (2)")
    b = connect()
""")

OLD_SNAPSHOT = COMMON + textwrap.dedent("""
    a.execute("BEGIN"); a.execute("SELECT count(*) FROM t").fetchall()
    time.sleep(0.2)
    if sys.argv[2] == "here":
        b.execute("BEGIN IMMEDIATE"); b.execute("INSERT INTO t VALUES ('undone')"); b.execute("ROLLBACK")
        b.execute("INSERT INTO t VALUES ('overtakes')"); b.execute("INSERT INTO t VALUES ('later')")
    else:
        subprocess.run([sys.executable, "-c", "import sqlite3; c = sqlite3.connect('app.db'); c.execute('INSERT INTO t VALUES (7)'); c.commit()"],
                       env={**os.environ, "LD_PRELOAD": ""}, check=True)
    refused(a.execute, "INSERT INTO t VALUES ('victim')")
    a.execute("ROLLBACK")
""")

READ_BEFORE_WRITE = COMMON + textwrap.dedent("""
    a.execute("BEGIN"); a.execute("SELECT x FROM t WHERE x = 1").fetchall()
    b.execute("BEGIN"); b.execute("SELECT x FROM t WHERE x = 2").fetchall(); b.execute("UPDATE t SET x = 3 WHERE x = 2")
    refused(a.execute, "UPDATE t SET x = 4 WHERE x = 1")
    a.execute("ROLLBACK"); b.execute("ROLLBACK")
""")

NO_WAIT = COMMON + textwrap.dedent("""
    a.execute("PRAGMA busy_timeout = 0"); b.execute("BEGIN IMMEDIATE")
    refused(a.execute, "INSERT INTO t VALUES ('victim')")
    b.execute("ROLLBACK")
""")

TIME_LIMIT = COMMON + textwrap.dedent("""
    b.execute("BEGIN IMMEDIATE"); b.execute("INSERT INTO t VALUES ('holder')")
    def work():
        refused(a.execute, "INSERT INTO t VALUES ('victim')")
    thread = threading.Thread(target=work); thread.start(); thread.join()
    time.sleep(0.1)
    b.execute("COMMIT")
""")

PREPARING = COMMON + textwrap.dedent("""
    b.execute("BEGIN EXCLUSIVE")
    c = connect(timeout=0)
    refused(c.execute, "SELECT x FROM t /* victim */")
    b.execute("ROLLBACK")
""")

SHARED_CACHE = COMMON + textwrap.dedent("""
    c, d = (connect("file:shared.db?cache=shared") for each in range(2))
    c.execute("CREATE TABLE s(x)"); c.execute("BEGIN"); c.execute("INSERT INTO s VALUES (1)")
    refused(d.execute, "SELECT x FROM s /* victim */")
    c.execute("COMMIT")
""")

OWN_STATEMENTS = COMMON + textwrap.dedent("""
    cursor = a.execute("SELECT x FROM t"); next(cursor)
    refused(a.execute, "DROP TABLE t")
    cursor.close()
""")


# The holder waits for a line, which arrives after the victim has failed.
UNRECORDED_HOLDER = COMMON + textwrap.dedent("""
    a.close(); b.close()
    holder = subprocess.Popen([sys.executable, "-c", "import sqlite3; c = sqlite3.connect('app.db', isolation_level=None);"
                               " c.execute('BEGIN EXCLUSIVE'); print(flush=True); input()"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "LD_PRELOAD": ""})
    holder.stdout.readline()
    refused(connect(timeout=0.3).execute, "SELECT count(*) FROM t")
    time.sleep(0.5)
    holder.communicate("\\n")
""")

LEAVES_WAL = COMMON + textwrap.dedent("""
    cursor = b.execute("SELECT x FROM t"); cursor.fetchone()
    refused(a.execute, "PRAGMA journal_mode = DELETE")
""")

CLOSES_TOO_EARLY = COMMON + textwrap.dedent("""
    import ctypes
    library, db, statement = ctypes.CDLL("libsqlite3.so.0"), ctypes.c_void_p(), ctypes.c_void_p()
    library.sqlite3_open(b"app.db", ctypes.byref(db))
    library.sqlite3_prepare_v2(db, b"SELECT x FROM t", -1, ctypes.byref(statement), None)
    library.sqlite3_step(statement)
    assert library.sqlite3_close(db) == 5
""")


class Refusals(unittest.TestCase):
    maxDiff = None

    def record(self, program, *arguments):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = os.path.join(folder.name, "app.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(program)
        self.trace = os.path.join(folder.name, "app.trace")
        done = subprocess.run([QUERYPROF, "record", "-o", self.trace, "--", "/usr/bin/python3", script, *arguments],
                              cwd=folder.name, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.db = sqlite3.connect(self.trace)
        self.addCleanup(self.db.close)

    def said(self, *command):
        return subprocess.run([QUERYPROF, *command], capture_output=True, text=True, timeout=600, check=True).stdout

    def refusal(self):
        """Returns the only refusal. The command must report the same."""
        (wait,) = self.db.execute("SELECT outcome, reason, holder_query, own_query, own_age_ns, wait_ns, tries, lock, process_id, holder_process_id"
                                  " FROM lock_waits WHERE outcome LIKE 'SQLITE_BUSY%' OR outcome LIKE 'SQLITE_LOCKED%'").fetchall()
        wait = dict(zip(("outcome", "reason", "holder", "own", "age", "wait", "tries", "lock", "process", "holder_process"), wait))
        (told,) = json.loads(self.said("queries", self.trace, "--failed", "--format", "json"))
        self.assertEqual(told["error"], wait["outcome"])
        self.assertNotEqual(told["cause"], "")
        wait.update(cause=told["cause"], cure=told["cure"])
        return wait

    def test_snapshot_that_a_connection_overtook(self):
        self.record(OLD_SNAPSHOT, "wal", "here")
        wait = self.refusal()
        self.assertEqual((wait["outcome"], wait["reason"], wait["wait"], wait["tries"]), ("SQLITE_BUSY_SNAPSHOT", "old snapshot", 0, 0))
        self.assertEqual((wait["holder"], wait["own"]), ("INSERT INTO t VALUES ('overtakes')", "SELECT count(*) FROM t"))
        self.assertEqual(wait["holder_process"], wait["process"])
        self.assertGreaterEqual(wait["age"], 200000000)
        self.assertIn("BEGIN IMMEDIATE", wait["cure"])
        self.assertIn("since SELECT count(*) FROM t", wait["cause"])
        self.assertIn("'overtakes') (thread python3) has written", wait["cause"])

    def test_snapshot_that_another_process_overtook(self):
        self.record(OLD_SNAPSHOT, "wal", "elsewhere")
        wait = self.refusal()
        self.assertEqual((wait["reason"], wait["holder"], wait["holder_process"]), ("old snapshot", "", 0))
        self.assertIn("another process, or a connection that is closed", wait["cause"])

    def test_read_before_write(self):
        for mode, lock in (("wal", "WAL write"), ("delete", "RESERVED")):
            with self.subTest(mode):
                self.record(READ_BEFORE_WRITE, mode)
                wait = self.refusal()
                self.assertEqual((wait["outcome"], wait["reason"], wait["lock"], wait["tries"]), ("SQLITE_BUSY", "read before write", lock, 1))
                self.assertEqual((wait["holder"], wait["own"]), ("UPDATE t SET x = 3 WHERE x = 2", "SELECT x FROM t WHERE x = 1"))
                self.assertIn("BEGIN IMMEDIATE", wait["cure"])

    def test_without_a_time_limit(self):
        self.record(NO_WAIT, "wal")
        wait = self.refusal()
        self.assertEqual((wait["reason"], wait["holder"], wait["own"], wait["tries"]), ("no wait", "BEGIN IMMEDIATE", "", 1))
        self.assertIn("busy_timeout", wait["cure"])

    def test_time_limit(self):
        self.record(TIME_LIMIT, "delete")
        wait = self.refusal()
        self.assertEqual((wait["reason"], wait["holder"], wait["lock"]), ("time limit", "BEGIN IMMEDIATE", "RESERVED"))
        self.assertGreater(wait["tries"], 1)
        self.assertGreater(wait["wait"], 40000000)
        self.assertIn("after COMMIT", wait["cure"])
        self.assertIn("outside SQLite", wait["cause"])
        locks = self.said("locks", self.trace)
        self.assertIn("waited", locks)
        self.assertIn(wait["cause"], " ".join(locks.split()))
        # The caller was found at the wait, and is also known at the transaction's end.
        self.assertEqual(self.db.execute("SELECT caller LIKE '%app.py:%' FROM query_log WHERE query = 'COMMIT'").fetchall(), [(1,)])

    def test_preparing(self):
        self.record(PREPARING, "delete")
        wait = self.refusal()
        self.assertEqual((wait["reason"], wait["holder"], wait["lock"]), ("no wait", "BEGIN EXCLUSIVE", "SHARED"))
        self.assertIn("/* victim */", wait["cause"])

    def test_shared_cache(self):
        self.record(SHARED_CACHE, "delete")
        wait = self.refusal()
        self.assertEqual((wait["outcome"], wait["reason"], wait["lock"]), ("SQLITE_LOCKED_SHAREDCACHE", "shared cache", None))
        self.assertIn("database table is locked: s", wait["cause"])

    def test_own_statements(self):
        self.record(OWN_STATEMENTS, "delete")
        wait = self.refusal()
        self.assertEqual((wait["outcome"], wait["reason"]), ("SQLITE_LOCKED", "own statements"))

    def test_holder_that_is_not_recorded(self):
        self.record(UNRECORDED_HOLDER, "delete")
        wait = self.refusal()
        ((program, user),) = self.db.execute("SELECT DISTINCT holder_program, holder_user FROM lock_waits WHERE holder_process_id = ?",
                                             (wait["holder_process"],)).fetchall()
        self.assertTrue(program.startswith("python3"), program)
        self.assertEqual(user, pwd.getpwuid(os.getuid()).pw_name)
        self.assertIn("Process %d (%s, user %s), which is not recorded, held it." % (wait["holder_process"], program, user), wait["cause"])

    def test_leaving_wal_mode(self):
        self.record(LEAVES_WAL, "wal")
        wait = self.refusal()
        self.assertEqual((wait["reason"], wait["lock"]), ("no wait", "EXCLUSIVE"))
        self.assertIn("while no other connection has the file open", wait["cure"])

    def test_close_of_unfinished_statements(self):
        self.record(CLOSES_TOO_EARLY, "delete")
        (told,) = json.loads(self.said("queries", self.trace, "--failed", "--format", "json"))
        self.assertEqual((told["error"], told["query"]), ("SQLITE_BUSY", "sqlite3_close()"))
        self.assertIn("not finished", told["cause"])
        self.assertIn("sqlite3_close_v2()", told["cure"])


if __name__ == "__main__":
    unittest.main()
