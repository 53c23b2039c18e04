#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares locks and transactions with a reference: a library between SQLite and the kernel
(lock_tracer.c) logs each request for a lock with the time before and after. Four processes run
1,000 random transactions in three journal modes.

Both sides see a thread's calls in the same order. queryprof's time of a lock is therefore
between the kernel's answer and the thread's next request, even on a busy machine. These are the
bounds of every time here.

test_lock_truth.py QUERYPROF TRACER"""

import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

TRACER = os.path.abspath(sys.argv.pop(1))
TRANSACTIONS = 84  # per process and mode; SQLite itself makes more of them

PROGRAM = """
import os, random, sqlite3, sys, time
MODE, TRANSACTIONS = sys.argv[1], int(sys.argv[2])
log = os.open(os.environ["QUERYPROF_TEST_LOCKS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def run(db, text):
    before = time.monotonic_ns()
    try:
        db.execute(text).fetchall()
        is_fine = True
    except sqlite3.OperationalError:
        is_fine = False
    os.write(log, b"run %d %d %d %d %s\\n" % (os.getpid(), is_fine, before, time.monotonic_ns(), text.encode()))
    return is_fine

def work(number):
    chance = random.Random(44 + number)
    db = sqlite3.connect("app.db", isolation_level=None)
    db.execute("SELECT count(*) FROM t").fetchall()
    for i in range(TRANSACTIONS):
        db.execute("PRAGMA busy_timeout = %d" % chance.choice([0, 5, 50, 400]))
        begin = chance.choice(["", "BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
        if begin and not run(db, "%s /* %d.%d */" % (begin, number, i)):
            continue
        for k in range(chance.randrange(1, 4)):
            run(db, chance.choice(["SELECT count(*) FROM t /* %d.%d.%d */", "UPDATE t SET x = x + 1 /* %d.%d.%d */"]) % (number, i, k))
            time.sleep(chance.choice([0, 0, 0.0002, 0.002]))
        if begin and not (chance.random() < 0.8 and run(db, "COMMIT /* %d.%d */" % (number, i))) and db.in_transaction:
            run(db, "ROLLBACK /* %d.%d */" % (number, i))
        time.sleep(chance.choice([0, 0.001]))
    db.close()

db = sqlite3.connect("app.db", isolation_level=None)
db.execute("PRAGMA journal_mode = " + MODE)
db.execute("CREATE TABLE t(x)")
db.execute("INSERT INTO t VALUES (1), (2), (3)")
db.close()
children = []
for number in range(4):
    child = os.fork()
    if not child:
        work(number)
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""

# The bytes that SQLite locks in the database file and in the index of its WAL.
FILE, INDEX = "app.db", "app.db-shm"
PENDING, RESERVED, SHARED = 0x40000000, 0x40000001, 0x40000002
WAL_WRITE, WAL_READ, WAL_END = 120, 123, 128
WAL_NAMES = ["WAL write", "WAL checkpoint", "WAL recover"] + 5 * ["WAL read"]
# Waits of at least this length must have a row. queryprof's limit is 50 us on its own clock.
WAITED_NS = 50000

Lock = collections.namedtuple("Lock", "file kind first size refused before after next")
Run = collections.namedtuple("Run", "is_fine before after text locks")


def name_of(lock):
    if lock.file == INDEX:
        return WAL_NAMES[lock.first - WAL_WRITE]
    if lock.kind == "shared":
        return "SHARED"
    return "RESERVED" if lock.first == RESERVED else "EXCLUSIVE"


def bytes_of(lock):
    """Returns the bytes that matter. One byte represents the whole SHARED range."""
    which = (PENDING, RESERVED, SHARED) if lock.file == FILE else range(WAL_WRITE, WAL_END)
    return [(lock.file, byte) for byte in which if lock.first <= byte and (not lock.size or byte < lock.first + lock.size)]


def read_log(path):
    """Returns the locks and the runs of each process."""
    locks, runs = collections.defaultdict(list), collections.defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            what, process, *words = line.split(None, 8)
            if what == "run":
                fine, before, after, text = line.split(None, 5)[2:]
                runs[int(process)].append(Run(fine == "1", int(before), int(after), text.strip(), []))
                continue
            file, kind, *numbers = words
            first, size, refused, before, after = map(int, numbers)
            if file == FILE or (file == INDEX and (first < WAL_END or not size)):
                locks[int(process)].append([file, kind, first, size, refused, before, after])
    for process, lines in locks.items():
        ends = [line[5] for line in lines[1:]] + [lines[-1][6]]
        locks[process] = [Lock(*line, end) for line, end in zip(lines, ends)]
        for run in runs[process]:
            run.locks.extend(lock for lock in locks[process] if run.before <= lock.before <= run.after)
    return {process: (locks[process], runs[process]) for process in locks if runs[process]}


def transactions_of(locks, runs):
    """Returns the first and the last lock of each transaction, and the runs in which it begins and
    ends. If a run begins again after a refusal, that is the same transaction."""
    def run_of(lock):
        return next((run for run in runs if run.before <= lock.before <= run.after), None)

    held, found, has_index, first = {FILE: set(), INDEX: set()}, [], False, None
    for i, lock in enumerate(locks):
        if lock.refused:
            continue
        change = held[lock.file].difference_update if lock.kind == "unlock" else held[lock.file].update
        change(bytes_of(lock))
        has_index |= lock.file == INDEX
        # The connection keeps the lock of the database file as long as the WAL is open.
        is_held = held[INDEX] if has_index else (FILE, SHARED) in held[FILE]
        if is_held and not first:
            first = i
        elif not is_held and first is not None:
            begins, ends = run_of(locks[first]), run_of(lock)
            after_begin = locks[first + 1].next if locks[first].file == FILE else locks[first].next
            one = (locks[first].after, after_begin, locks[i - 1].after, lock.before, begins, ends)
            if found and begins and found[-1][5] is begins:
                found[-1] = (*found[-1][:2], *one[2:4], found[-1][4], ends)
            else:
                found.append(one)
            first = None
    return [one for one in found if one[4]]


def holds_of(locks):
    """Returns for each byte when the process may have held it, and whether exclusively."""
    held, found = {}, collections.defaultdict(list)
    for lock in locks:
        if lock.refused:
            continue
        for byte in bytes_of(lock):
            if byte in held:
                since, kind = held.pop(byte)
                found[byte].append((since, lock.after, kind == "exclusive"))
            if lock.kind != "unlock":
                held[byte] = (lock.before, lock.kind)
    for byte, (since, kind) in held.items():
        found[byte].append((since, float("inf"), kind == "exclusive"))
    return found


def write_bounds(locks, begun, ended_by):
    """Returns the bounds of the time for which the transaction held the write lock."""
    least = most = 0
    taken = None
    for i, lock in enumerate(locks):
        if not begun <= lock.after or lock.before > ended_by or lock.refused:
            continue
        if (lock.file == INDEX and (INDEX, WAL_WRITE) in bytes_of(lock)) or (FILE, RESERVED) in bytes_of(lock):
            if lock.kind == "exclusive":
                taken = taken or lock
            elif taken:
                # To return to SHARED, SQLite first turns its lock of these bytes into a shared
                # lock.
                before = locks[i - 2 if locks[i - 1].kind == "shared" else i - 1]
                least += max(0, before.after - taken.next)
                most += lock.before - taken.after
                taken = None
    return least, most


Wait = collections.namedtuple("Wait", "lock tries begin least most is_refused")


def waits_of(run):
    """Returns what the run waited for, and the bounds of each wait's duration."""
    found, first, tries = [], None, 0

    def add(ends_at, ends_by, is_refused):
        found.append(Wait(name_of(first), tries, first, max(0, ends_at - first.next), ends_by - first.after, is_refused))

    for i, lock in enumerate(run.locks):
        name = None if lock.kind == "unlock" else name_of(lock)
        if lock.refused and first and name in (name_of(first), "SHARED"):
            tries += 1
        elif lock.refused and not (name == "WAL read" and lock.kind == "exclusive"):
            first, tries = lock, 1
        elif not lock.refused and first and name == name_of(first) and (lock.file == INDEX or lock.first != PENDING):
            # SQLite releases PENDING before the call that acquires SHARED returns.
            add(lock.after, run.locks[i + 1].next if name == "SHARED" else lock.next, False)
            first = None
    if first and not run.is_fine:
        add(run.locks[-1].after, run.after, True)
    return found


class Truth(Recording):
    def check_transactions(self, process, locks, runs):
        truth = transactions_of(locks, runs)
        rows = self.rows("SELECT duration_ns, write_lock_ns, outcome, first_query, last_query, state FROM transaction_log WHERE process_id = ?"
                         " AND first_query LIKE '%/*%' ORDER BY timestamp_ns", process)
        self.assertEqual([one[4].text for one in truth], [row[3] for row in rows])
        for (begun, begun_by, last, ended_by, _, ends), (ns, write_ns, outcome, _, last_query, state) in zip(truth, rows):
            self.assertTrue(last - begun_by - 1000 <= ns <= ended_by - begun + 1000, (ns, begun, begun_by, last, ended_by, last_query))
            self.assertEqual(last_query, ends.text)
            self.assertIn((outcome, state), [("read", "ended"), ("commit", "committed"), ("rollback", "rolled back")])
            if outcome == "commit":
                least, most = write_bounds(locks, begun, ended_by)
                self.assertTrue(ends.is_fine and least - 1000 <= write_ns <= most + 1000, (ends, write_ns, least, most))
        return len(truth)

    def check_waits(self, process, runs, holds):
        """Every recorded wait happened, every long wait is recorded, and the recorded holder held
        the lock."""
        rows = collections.defaultdict(list)
        for query, *row in self.rows("SELECT query, lock, wait_ns, outcome, reason, tries, holder_process_id FROM lock_waits WHERE process_id = ?"
                                     " ORDER BY id", process):
            rows[query].append(row)
        count = held = 0
        for run in runs:
            seen = [row for row in rows.pop(run.text, []) if row[3] != "old snapshot"]
            for wait in waits_of(run):
                row = seen[0] if seen and seen[0][0] == wait.lock and (seen[0][2] != "SQLITE_OK") == wait.is_refused else None
                if not row:
                    self.assertFalse(wait.is_refused or wait.least > WAITED_NS, (run.text, wait, seen))
                    continue
                lock, ns, _, reason, tries, holder = seen.pop(0)
                count += 1
                self.assertTrue(wait.least - 1000 <= ns <= wait.most + 1000, (run.text, wait, ns))
                self.assertEqual(tries, wait.tries, (run.text, wait))
                self.assertTrue(reason if wait.is_refused else not reason)
                if holder:
                    held += 1
                    first = wait.begin
                    conflicts = [hold for byte in bytes_of(first) for hold in holds[holder][byte] if first.kind == "exclusive" or hold[2]]
                    self.assertTrue([1 for since, until, _ in conflicts if since <= first.next and until >= first.before], (run.text, wait, holder))
            self.assertFalse(seen, run)
        self.assertFalse([query for query in rows if "/*" in query], rows)
        return count, held

    def check(self, mode):
        log = os.path.join(self.folder, "locks")
        preloaded = [name for name in (os.environ.get("LD_PRELOAD"), TRACER) if name]
        done = self.record(PYTHON, self.file("work.py", PROGRAM), mode, str(TRANSACTIONS), cwd=self.folder,
                           options=("--setting", "log_queries_min_query_duration_ns=0"),
                           env={**os.environ, "LD_PRELOAD": ":".join(preloaded), "QUERYPROF_TEST_LOCKS": log})
        self.assertEqual(done.returncode, 0, self.seen)
        processes = read_log(log)
        self.assertEqual(len(processes), 4)
        holds = {process: holds_of(locks) for process, (locks, _) in processes.items()}
        transactions = sum(self.check_transactions(process, *processes[process]) for process in processes)
        waits, held = map(sum, zip(*(self.check_waits(process, processes[process][1], holds) for process in processes)))
        print("%s: %d transactions, %d waits, %d of them with the holder" % (mode, transactions, waits, held))
        self.assertGreater(transactions, 4 * TRANSACTIONS / 2)
        self.assertGreater(held, waits / 2)
        self.assertGreater(waits, 10)

    def test_delete(self):
        self.check("DELETE")

    def test_truncate(self):
        self.check("TRUNCATE")

    def test_wal(self):
        self.check("WAL")


if __name__ == "__main__":
    unittest.main(verbosity=2)
