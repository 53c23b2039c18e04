#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""WALs and their checkpoints: the trace file must agree with the results of PRAGMA wal_checkpoint
and with the -shm file.

usage: test_checkpoints.py QUERYPROF [unittest arguments]

QUERYPROF_TEST_ROUNDS sets the number of random schedules (default 40)."""

import glob
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

ROUNDS = int(os.environ.get("QUERYPROF_TEST_ROUNDS", "40"))
SEED = int(os.environ.get("QUERYPROF_TEST_SEED", "44"))

# Reads the head of the index on request. It is another process, because closing the file drops its process's locks.
SHM = r"""
import struct, sys
for path in sys.stdin:
    try:
        with open(path.rstrip("\n"), "rb") as file:
            head = file.read(136)
        print(*struct.unpack_from("=I", head, 16), *struct.unpack_from("=6I", head, 96), flush=True)
    except (OSError, struct.error):
        print("none", flush=True)
"""

# Prints as JSON: the result of each checkpoint, the index before and after it, and the frames of each writer.
SCHEDULES = r"""
import json, os, random, sqlite3, subprocess, sys
rounds, seed, shm = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
reader = subprocess.Popen([sys.executable, shm], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean)
def index(path):
    reader.stdin.write(path + "-shm\n"); reader.stdin.flush()
    line = reader.stdout.readline().split()
    return None if line == ["none"] else list(map(int, line))
random.seed(seed)
told, frames = [], {}
for number in range(rounds):
    path = os.path.abspath("s%d.db" % number)
    connect = lambda: sqlite3.connect(path, isolation_level=None, timeout=0)
    writers = [connect() for _ in range(random.choice((1, 2)))]
    page = random.choice((1024, 4096, 65536))
    for connection in writers:
        connection.execute("PRAGMA page_size=%d" % page); connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=%s" % random.choice(("OFF", "NORMAL", "FULL")))
        connection.execute("PRAGMA wal_autocheckpoint=0"); connection.execute("PRAGMA cache_size=%d" % random.choice((5, 2000)))
    def write(connection, name, statements):
        before = index(path)
        for sql in statements:
            connection.execute(sql)
        after = index(path)
        # A WAL that was copied begins again.
        begins = before is None or after[0] < before[0] or (before[1] == before[0] and after[1] == 0)
        frames[name] = frames.get(name, 0) + after[0] - (0 if begins else before[0])
    write(writers[0], "create", ["CREATE TABLE t(id INTEGER PRIMARY KEY, b) /* create */"])
    readers = {}
    for step in range(random.randrange(5, 30)):
        what = random.random()
        connection = random.choice(writers)
        if what < 0.4:
            write(connection, "one", ["INSERT INTO t(b) VALUES (zeroblob(%d)) /* one */" % random.choice((10, 5000, 60000))])
        elif what < 0.5:
            write(connection, "many", ["BEGIN IMMEDIATE", "SELECT count(*) FROM t", "INSERT INTO t(b) SELECT zeroblob(30000) /* many */",
                                       "UPDATE t SET b = zeroblob(100) WHERE id % 3 = 0", "COMMIT"])
        elif what < 0.55:
            connection.execute("BEGIN"); connection.execute("INSERT INTO t(id, b) VALUES (NULL, zeroblob(90000)) /* undone */"); connection.execute("ROLLBACK")
        elif what < 0.7 and len(readers) < 4:
            name = "r%d.%d" % (number, step); other = connect(); other.execute("BEGIN")
            other.execute("SELECT count(*) FROM t /* %s */" % name).fetchall(); readers[name] = other
        elif what < 0.8 and readers:
            readers.pop(random.choice(list(readers))).close()
        else:
            mode = random.choice(("PASSIVE", "FULL", "RESTART", "TRUNCATE")); before = index(path)
            result = connection.execute("PRAGMA wal_checkpoint(%s) /* %d.%d */" % (mode, number, step)).fetchone()
            told.append(["%d.%d" % (number, step), mode, result, before, index(path), list(readers)])
    for connection in (*readers.values(), *writers):
        connection.close()
print(json.dumps([told, frames]))
"""

READER = r"""
import sqlite3, sys, time
r = sqlite3.connect("app.db", isolation_level=None); r.execute("BEGIN")
r.execute("SELECT id FROM t LIMIT 1 /* pins */").fetchall(); print("reads", flush=True); time.sleep(600)
"""

PINNED = r"""
import signal, sqlite3, subprocess, sys
w = sqlite3.connect("app.db", isolation_level=None); w.execute("PRAGMA journal_mode=WAL"); w.execute("PRAGMA synchronous=OFF")
w.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB)"); w.execute("INSERT INTO t(b) VALUES (1)")
if sys.argv[1] == "cursor":
    r = sqlite3.connect("app.db", isolation_level=None)
    cursor = r.execute("SELECT id, b FROM t UNION ALL SELECT 1, 2 /* forgotten */"); next(cursor)
else:
    p = subprocess.Popen([sys.executable, "reader.py"], stdout=subprocess.PIPE); p.stdout.readline(); print(p.pid)
for i in range(300):
    w.execute("INSERT INTO t(b) VALUES (zeroblob(20000)) /* grows */")
print(*w.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone())
if sys.argv[1] != "cursor":
    p.send_signal(signal.SIGKILL); p.wait()
"""

PAYS = r"""
import sqlite3
db = sqlite3.connect("app.db", isolation_level=None); db.execute("PRAGMA journal_mode=WAL"); db.execute("PRAGMA synchronous=NORMAL")
db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("CREATE TABLE big(id INTEGER PRIMARY KEY, b BLOB)"); db.execute("CREATE TABLE hot(x)")
db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) INSERT INTO big(b) SELECT zeroblob(3000) FROM n")
db.execute("DELETE FROM big WHERE id % 2 = 0")
db.execute("PRAGMA wal_autocheckpoint=1000")
for i in range(6):
    db.execute("INSERT INTO hot VALUES (?)", (i,))
"""

STOPPED = r"""
import sqlite3, subprocess, sys, threading, time
if sys.argv[1:]:
    c = sqlite3.connect("app.db", isolation_level=None, timeout=600); print("begins", flush=True)
    c.execute("PRAGMA wal_checkpoint(RESTART)"); sys.exit()
w = sqlite3.connect("app.db", isolation_level=None); w.execute("PRAGMA journal_mode=WAL"); w.execute("CREATE TABLE t(x)")
w.execute("INSERT INTO t VALUES (1), (2), (3)")
r = sqlite3.connect("app.db", isolation_level=None); cursor = r.execute("SELECT x FROM t WHERE x > 0 /* reads */"); next(cursor)
w.execute("INSERT INTO t VALUES (4)")
c = subprocess.Popen([sys.executable, sys.argv[0], "checkpoint"], stdout=subprocess.PIPE); c.stdout.readline()
# Until it has the lock of checkpoints, and waits.
while True:
    try:
        if w.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0]:
            break
    except sqlite3.OperationalError:
        break
    time.sleep(0.01)
def state():
    with open(f"/proc/{c.pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]
# It sleeps for its lock: from now on it waits.
while state() != "S":
    time.sleep(0.01)
time.sleep(0.5)
cursor.close(); c.wait()
"""

# The thread that ends the process has run no query.
IN_A_THREAD = r"""
import os, sqlite3, threading
kept = []
def work():
    db = sqlite3.connect("sums.db", isolation_level=None)
    kept.append(db)
    db.execute("PRAGMA journal_mode=WAL"); db.execute("CREATE TABLE t(x)")
    for i in range(50):
        db.execute("INSERT INTO t VALUES (1)")
thread = threading.Thread(target=work)
thread.start(); thread.join()
os._exit(0)
"""

# Each child ends with what its parent has not written yet.
FORKS = r"""
import os, sqlite3
db = sqlite3.connect("sums.db", isolation_level=None)
db.execute("PRAGMA journal_mode=WAL"); db.execute("CREATE TABLE t(x)")
for i in range(50):
    db.execute("INSERT INTO t VALUES (1)")
for i in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
os._exit(0)
"""


class Wal(Recording):
    def run_here(self, name, program, *arguments):
        done = self.record(PYTHON, self.file(name, program), *map(str, arguments), cwd=self.folder)
        self.assertEqual(done.returncode, 0, self.seen)
        return done.stdout

    def ask(self, *arguments):
        return subprocess.run([QUERYPROF, *arguments], capture_output=True, text=True, timeout=300, check=True,
                              env={**os.environ, "COLUMNS": "120"}).stdout

    def test_schedules(self):
        told, frames = json.loads(self.run_here("schedules.py", SCHEDULES, ROUNDS, SEED, self.file("shm.py", SHM)))
        found = {query.split()[-2]: row for query, *row in self.rows(
            "SELECT query, mode, result, frames, frames_left, read_mark, read_mark_frame, holder_query, stopped_by,"
            " frames_before, frames_copied FROM checkpoints WHERE origin = 'PRAGMA'")}
        self.assertEqual(set(found), {name for name, *_ in told}, "seed %d" % SEED)
        for name, mode, (busy, log, copied), before, after, readers in told:
            seen = "%s, seed %d: %s, returned %s, index %s, then %s: %s" % (
                name, SEED, mode, (busy, log, copied), before, after, found[name])
            is_mode, result, in_wal, left, mark, mark_frame, holder, stopped_by, first, moved = found[name]
            self.assertEqual(is_mode, mode, seen)
            self.assertEqual(result, "SQLITE_BUSY" if busy else "SQLITE_OK", seen)
            if mode == "TRUNCATE" and not busy:
                self.assertEqual((log, copied, left), (0, 0, 0), seen)
                self.assertEqual(in_wal, before[0], seen)
            else:
                self.assertEqual((in_wal, in_wal - left), (log, copied), seen)
                self.assertEqual((in_wal, in_wal - left), (after[0], after[1]), seen)
            self.assertEqual((first, first + moved), (before[1], in_wal - left), seen)
            if left or busy:
                self.assertTrue(stopped_by and stopped_by != "not known", seen)
                self.assertIn(holder.split()[-2], readers, seen)
            if left and mark:
                self.assertEqual(mark_frame, after[2 + mark], seen)
                self.assertEqual(mark_frame, in_wal - left, seen)
        self.assertTrue(any(row[4] for row in found.values()), "no schedule had a reader in the way, seed %d" % SEED)
        of_writers = {name: sum(count for query, count in self.rows(
            "SELECT query, frames FROM wal_log WHERE event = 'append'") if "/* %s */" % name in query) for name in frames}
        self.assertEqual(of_writers, frames, "seed %d" % SEED)
        self.assertEqual(self.rows("SELECT count(*) FROM wal_log WHERE query LIKE '%undone%' AND event = 'append'"), [(0,)])

    def test_sums_at_the_end(self):
        """What is summed up for a second is written once, whoever ends the process."""
        for program in IN_A_THREAD, FORKS:
            self.run_here("sums.py", program)
            self.assertEqual(self.rows("SELECT sum(transactions) FROM wal_log WHERE event = 'append' AND query LIKE 'INSERT%'"), [(50,)],
                             program)
            self.assertGreaterEqual(self.rows("SELECT sum(writes) FROM page_io WHERE table_name = 't'")[0][0], 50, program)
            for path in (*glob.glob(os.path.join(self.folder, "sums.db*")), self.trace):
                os.unlink(path)

    def test_pinned_by_a_cursor(self):
        busy, log, copied = map(int, self.run_here("pinned.py", PINNED, "cursor").split())
        self.assertEqual(self.rows("SELECT largest_frames, pinned_frame FROM wal_story"), [(log, copied)])
        text = self.ask("wal", self.trace)
        self.assertIn("{:,} frames".format(log), text)
        self.assertIn("read mark 1 at frame %d" % copied, text.replace("\n", " "))
        self.assertIn("/* forgotten */", text.replace("\n", " "))

    def test_pinned_by_a_killed_process(self):
        self.file("reader.py", READER)
        pid, busy, log, copied = map(int, self.run_here("pinned.py", PINNED, "process").split())
        self.assertEqual(self.rows("SELECT largest_frames, pinned_frame FROM wal_story"), [(log, copied)])
        self.assertIn("process %d" % pid, self.ask("wal", self.trace).replace("\n", " "))
        story, = json.loads(self.ask("wal", self.trace, "--format", "json"))
        self.assertEqual((story["largest_frames"], story["checkpoints_stopped"] > 100), (log, True))

    def test_who_pays(self):
        self.run_here("pays.py", PAYS)
        row, *_ = self.rows("SELECT id, copied_after - copied_before, duration_ns >= write_ns + wal_sync_ns + database_sync_ns, bytes,"
                            " page_size FROM wal_checkpoints WHERE origin = 0 AND text LIKE 'INSERT INTO hot%' ORDER BY id")
        self.assertTrue(row[2], row)
        frames = dict(self.rows("SELECT substr(query, 1, 6), sum(frames) FROM checkpoint_frames WHERE checkpoint = ? GROUP BY 1", row[0]))
        self.assertEqual(sum(frames.values()), row[1])
        self.assertGreater(frames["WITH R"], 4500)
        self.assertGreater(frames["DELETE"], 1500)
        self.assertEqual(row[3] % row[4], 0)
        text = self.ask("wal", self.trace)
        self.assertIn("of WITH RECURSIVE", text)
        self.assertIn("inside INSERT INTO hot", text.replace("\n", " "))
        report = self.ask("report", self.trace, "INSERT INTO hot").partition("Checkpoints inside these runs\n")[2]
        self.assertTrue(report.startswith("checkpoints"), report)
        self.assertIn(" of WITH RECURSIVE", report.partition("Time by cause")[0])
        self.assertNotIn("Checkpoints inside", self.ask("report", self.trace, "DELETE FROM big"))

    def test_stopped_in_another_process(self):
        self.run_here("stopped.py", STOPPED)
        row, = self.rows("SELECT mode, result, frames_left, waited_for, lock_wait_ns FROM checkpoints WHERE query LIKE '%RESTART%'")
        self.assertEqual(row[:3], ("RESTART", "SQLITE_OK", 0))
        self.assertIn("/* reads */", row[3])
        self.assertGreater(row[4], 200e6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
