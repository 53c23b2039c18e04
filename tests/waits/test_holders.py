#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who held a lock, and for how long: holders in other processes, and locks that SQLite refuses immediately.

    test_holders.py QUERYPROF"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

QUERYPROF = os.path.abspath(sys.argv.pop(1))

# `waits(child)` returns after the child has printed its line and then slept 24 times. Most of these sleeps are for
# the lock, and few for the disk.
COMMON = textwrap.dedent("""
    import os, sqlite3, subprocess, sys, time
    def connect(name):
        return sqlite3.connect(name, isolation_level=None, timeout=600)
    def switches(pid):
        with open(f"/proc/{pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("voluntary"))
    def waits(child):
        child.stdout.readline()
        least = switches(child.pid) + 24
        while switches(child.pid) < least:
            time.sleep(0.01)
    def child(*arguments):
        return subprocess.Popen([sys.executable, sys.argv[0], *arguments], stdout=subprocess.PIPE)
""")

WRITER_WAITS = COMMON + textwrap.dedent("""
    if sys.argv[1:]:
        b = connect("app.db"); print("begins", flush=True); b.execute("INSERT INTO t VALUES ('b')"); sys.exit()
    a = connect("app.db"); a.execute("PRAGMA journal_mode=WAL"); a.execute("CREATE TABLE t(x)")
    other = connect("other.db")
    a.execute("BEGIN IMMEDIATE"); a.execute("INSERT INTO t VALUES ('a')")
    other.execute("CREATE TABLE u(x)")
    b = child("waits"); waits(b)
    other.execute("INSERT INTO u VALUES (1) /* newest */")
    a.execute("COMMIT"); b.wait()
""")

CHECKPOINT_WAITS = COMMON + textwrap.dedent("""
    if sys.argv[1:]:
        c = connect("app.db"); print("begins", flush=True); c.execute("PRAGMA wal_checkpoint(RESTART)"); sys.exit()
    w = connect("app.db"); w.execute("PRAGMA journal_mode=WAL"); w.execute("CREATE TABLE t(x)")
    w.execute("INSERT INTO t VALUES (1), (2), (3)")
    r = connect("app.db"); cursor = r.execute("SELECT x FROM t WHERE x > 0"); next(cursor)
    w.execute("INSERT INTO t VALUES (4)")
    c = child("checkpoints"); waits(c)
    w.execute("PRAGMA busy_timeout = 100")
    try:
        w.execute("INSERT INTO t VALUES (5) /* victim */")
    except sqlite3.OperationalError:
        pass
    cursor.close(); c.wait()
""")

REFUSED_AT_ONCE = COMMON + textwrap.dedent("""
    a = connect("app.db"); a.execute("PRAGMA journal_mode=WAL"); a.execute("CREATE TABLE t(x)")
    b = connect("app.db")
    a.execute("BEGIN"); a.execute("SELECT count(*) FROM t").fetchall(); b.execute("INSERT INTO t VALUES (1)")
    try:
        a.execute("INSERT INTO t VALUES (2)")
        raise SystemExit("the snapshot was not too old")
    except sqlite3.OperationalError:
        pass
    time.sleep(0.1)
    a.execute("ROLLBACK")
""")

# A cursor keeps the transaction open long after the commit has released the write lock.
READS_ON = COMMON + textwrap.dedent("""
    a = connect("app.db"); a.execute("PRAGMA journal_mode=" + sys.argv[1]); a.execute("CREATE TABLE t(x)")
    a.execute("INSERT INTO t VALUES (1), (2), (3)")
    a.execute("BEGIN"); cursor = a.execute("SELECT x FROM t WHERE x > 0"); next(cursor)
    a.execute("INSERT INTO t VALUES (4)"); a.execute("COMMIT")
    time.sleep(0.5)
    cursor.close()
""")


class Holders(unittest.TestCase):
    def record(self, program, *arguments):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = os.path.join(folder.name, "app.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(program)
        self.trace = os.path.join(folder.name, "app.trace")
        done = subprocess.run([QUERYPROF, "record", "--setting", "log_queries_min_query_duration_ns=0", "-o", self.trace,
                               "--", "/usr/bin/python3", script, *arguments],
                              cwd=folder.name, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        db = sqlite3.connect(self.trace)
        self.addCleanup(db.close)
        return db

    def test_writer_of_another_process(self):
        """The holder is the transaction that had the lock, not the newest statement of its process."""
        db = self.record(WRITER_WAITS)
        (wait,) = db.execute("SELECT process_id, holder_process_id, holder_query, holder_transaction, holder_session_id,"
                             " wait_ns FROM lock_waits WHERE query LIKE 'INSERT INTO t VALUES (''b'')'").fetchall()
        self.assertNotEqual(wait[0], wait[1])
        self.assertEqual(wait[2], "BEGIN IMMEDIATE")
        (holder,) = db.execute("SELECT process_id, waits, waited_ns FROM transaction_log WHERE transaction_number = ?"
                               " AND session_id = ?", wait[3:5]).fetchall()
        self.assertEqual(holder, (wait[1], 1, wait[5]))
        self.assertEqual(db.execute("SELECT sum(waits) FROM transaction_log").fetchone(), (1,))
        said = subprocess.run([QUERYPROF, "locks", self.trace], capture_output=True, text=True, timeout=600).stdout
        self.assertIn("BEGIN IMMEDIATE", said)
        self.assertNotIn("newest", said)

    def test_reader_that_a_checkpoint_waits_for(self):
        db = self.record(CHECKPOINT_WAITS)
        self.assertEqual(db.execute("SELECT DISTINCT holder_query FROM lock_waits WHERE query LIKE 'PRAGMA wal_checkpoint%'"
                                    " AND outcome = 'SQLITE_OK'").fetchall(), [("SELECT x FROM t WHERE x > 0",)])
        self.assertEqual(db.execute("SELECT DISTINCT holder_query FROM lock_waits WHERE query LIKE '%victim%'").fetchall(),
                         [("PRAGMA wal_checkpoint(RESTART)",)])
        self.assertEqual(db.execute("SELECT count(*) FROM lock_waits WHERE holder_query LIKE '%victim%'").fetchone(), (0,))

    def test_chain(self):
        """An INSERT waits for another process's checkpoint, which waits for a reader."""
        db = self.record(CHECKPOINT_WAITS)
        chain = db.execute("SELECT depth, query, holder_query, process_id = holder_process_id FROM lock_chains WHERE chain ="
                           " (SELECT chain FROM lock_chains WHERE query LIKE '%victim%') ORDER BY depth").fetchall()
        checkpoint, reader = "PRAGMA wal_checkpoint(RESTART)", "SELECT x FROM t WHERE x > 0"
        self.assertEqual(chain, [(0, "INSERT INTO t VALUES (5) /* victim */", checkpoint, 0), (1, checkpoint, reader, 0)])
        said = subprocess.run([QUERYPROF, "locks", self.trace, "--chains"], capture_output=True, text=True, timeout=600).stdout
        told = " ".join(said.split())
        self.assertRegex(told, "victim [*]/ of .* for the WAL write lock of PRAGMA wal_checkpoint.RESTART. of [^,]* [0-9]+, which waited")
        self.assertRegex(told, "WAL read lock of " + reader + " of python3[^ ]* app.py [0-9]+, open for .* of that outside SQLite[.]")
        self.assertEqual(said.count(", which waited"), 1)

    def test_refused_at_once(self):
        db = self.record(REFUSED_AT_ONCE)
        (refused,) = db.execute("SELECT outcome, write_lock_ns, duration_ns > 100000000 FROM transaction_log"
                                " WHERE first_query LIKE 'SELECT count%'").fetchall()
        self.assertEqual(refused, ("read", 0, 1))

    def test_lock_that_is_given_back_before_the_end(self):
        for mode in ("wal", "delete"):
            with self.subTest(mode):
                db = self.record(READS_ON, mode)
                (mine,) = db.execute("SELECT outcome, write_lock_ns, exclusive_lock_ns, pending_lock_ns, duration_ns"
                                     " FROM transaction_log WHERE first_query LIKE 'SELECT x FROM t%'").fetchall()
                self.assertEqual(mine[0], "commit")
                self.assertGreater(mine[1], 0)
                for held in mine[1:4]:
                    self.assertLess(held, mine[4] - 500000000)


if __name__ == "__main__":
    unittest.main()
