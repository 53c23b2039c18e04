#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pages and bytes by b-tree and statement (page_io), compared with a log of the calls (log_calls.c). SQLite's dbstat
afterwards names the owners of the pages.

usage: test_page_io.py QUERYPROF LOG_CALLS [unittest arguments]"""

import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
LOG_CALLS = os.path.abspath(sys.argv.pop(2))
PRELOADED = os.environ.get("LD_PRELOAD", "").split()  # set in a build with a sanitizer
from recording import *

COUNTS = ("reads", "read_bytes", "wal_read_bytes", "writes", "wal_bytes", "database_bytes", "journal_bytes", "journal_read_bytes")

# Runs each statement under its own label, and prints the labels' texts. No statement frees its pages, so the owners
# afterwards are also the owners before. The statements in `free` come last.
HOST = r"""
import ctypes, json, os, random, sqlite3, sys
mode, page_size, vacuum, free = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
set_label = ctypes.CDLL(os.environ["LOG_CALLS"]).page_calls_label
texts = []
def run(db, sql, *values):
    if sql not in texts:
        texts.append(sql)
    set_label(texts.index(sql) + 1)
    rows = db.execute(sql, values).fetchall()
    set_label(0)
    return rows
def connect(name="app.db"):
    db = sqlite3.connect(name, isolation_level=None, cached_statements=1000)
    return warm(db, "sqlite_master")
# Reads the schema, and what virtual tables read when they are used first, in preparations.
def warm(db, *tables):
    for table in tables:
        db.execute("SELECT 1 FROM %s LIMIT 0" % table).fetchall()
    return db
random.seed(47)
for name in ("app.db", "other.db"):
    db = connect(name)
    for pragma in ("encoding='%s'" % ("UTF-16le" if mode == "TRUNCATE" else "UTF-8"), "page_size=%d" % page_size, "auto_vacuum=" + vacuum, "journal_mode=" + mode, "synchronous=NORMAL"):
        db.execute("PRAGMA " + pragma)
    if name == "other.db":
        db.execute("CREATE TABLE elsewhere(id INTEGER PRIMARY KEY, x)")
    else:
        db.executescript('''
            CREATE TABLE asset(id INTEGER PRIMARY KEY, amount REAL, at INT, name TEXT, b BLOB);
            CREATE INDEX i_amount ON asset(amount); CREATE INDEX i_at ON asset(at); CREATE INDEX i_name ON asset(name);
            CREATE TABLE pair(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
            CREATE VIRTUAL TABLE words USING fts5(x); CREATE VIRTUAL TABLE boxes USING rtree(id, a, b);
            INSERT INTO words(words, rank) VALUES ('automerge', 0); INSERT INTO words(words, rank) VALUES ('crisismerge', 1000);
            CREATE TABLE "größe"(x UNIQUE);''')
    db.close()
db = connect()
run(db, "ATTACH 'other.db' AS other")
warm(db, "words", "boxes", "elsewhere")
# Also without a transaction, each with a commit of its own.
for batch in range(30):
    if batch % 3:
        run(db, "BEGIN")
    for i in range(batch * 20, batch * 20 + 20):
        big = random.choice((0, 0, 0, 3 * page_size + i))
        run(db, "INSERT INTO asset(amount, at, name, b) VALUES (?, ?, ?, ?)", random.random(), i, "n%d" % random.randrange(10**6), b"x" * big)
        run(db, "INSERT INTO pair VALUES (?, ?)", "k%d" % i, i)
        if batch % 9 == 1:  # the list of its segments remains short: a longer one leaves pages
            run(db, "INSERT INTO words VALUES (?)", "word%d and w%d" % (i, i % 7))
        run(db, "INSERT INTO boxes VALUES (?, ?, ?)", i, random.random(), 2 + random.random())
        run(db, "INSERT INTO elsewhere VALUES (?, ?)", i, "y" * 50)
        run(db, 'INSERT INTO "größe" VALUES (?)', "%06d" % random.randrange(10**9))
    if batch % 3:
        run(db, "COMMIT")
    run(db, "UPDATE asset SET amount = amount + 0.001 WHERE id = ?", 1 + random.randrange(batch * 20 + 20))
if mode == "WAL":
    run(db, "PRAGMA wal_checkpoint(PASSIVE)")
    run(db, "INSERT INTO elsewhere VALUES (?, ?)", 10**6, "")
db.close()
db = warm(connect(), "words", "boxes")
db.execute("PRAGMA cache_size=10")
for sql in ("SELECT sum(length(b)) FROM asset", "SELECT count(*) FROM pair", "SELECT * FROM words('w3')", "SELECT count(*) FROM boxes WHERE a > 0.5",
            "SELECT count(*) FROM asset INDEXED BY i_name WHERE name > ''"):
    run(db, sql)
owners = {}
for name in ("app.db", "other.db"):
    other = connect(name)
    owners[name] = other.execute("SELECT pageno, name FROM dbstat").fetchall()
    other.close()
for sql in free:
    run(db, sql)
db.close()
with open("owners", "w") as file:
    json.dump([texts, owners], file)
"""

# Calls SQLite's own methods for a file, like a VFS or a codec above SQLite's. The program, which defines `path`, begins
# with it.
METHODS = r"""
import ctypes, sqlite3, sys
path = sys.argv[1]
def connect():
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)
lib = ctypes.CDLL("libsqlite3.so.0")
def methods(db):
    # The sqlite3 * comes first in the object of CPython, after its head.
    file = ctypes.c_void_p()
    handle = ctypes.cast(id(db) + object.__basicsize__, ctypes.POINTER(ctypes.c_void_p))[0]
    assert not lib.sqlite3_file_control(ctypes.c_void_p(handle), b"main", 7, ctypes.byref(file))
    table = ctypes.cast(ctypes.cast(file, ctypes.POINTER(ctypes.c_void_p))[0], ctypes.POINTER(ctypes.c_void_p))
    transfer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_longlong)
    unlock = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    return lambda data, offset: transfer(table[2])(file, data, len(data), offset), lambda data, offset: transfer(table[3])(file, data, len(data), offset), lambda level: unlock(table[8])(file, level)
"""


class PageIo(Recording):
    def calls(self):
        """The sums of the calls: {(database, statement's number, page or kind of file): counts}. They leave out the
        head of page 1, which the first connection reads while it is opened."""
        sums, frames = collections.defaultdict(collections.Counter), {}
        sizes = {}
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
            for line in file:
                label, kind, size, offset, number, path = line.rstrip("\n").split(" ", 5)
                label, size, offset, number, is_read = int(label), int(size), int(offset), int(number), kind == "r"
                base, _, role = os.path.basename(path).partition("-")
                if base not in ("app.db", "other.db") or role not in ("", "wal", "journal") or (is_read and (size, offset) == (100, 0) and not label):
                    continue
                if not role:
                    if size >= 512:
                        sizes[base] = size
                    count = sums[base, label, offset // sizes.get(base, size) + 1 if size >= 512 else 1]
                    count["reads"] += is_read
                    count["read_bytes" if is_read else "database_bytes"] += size
                    # A checkpoint copies pages; it does not change them.
                    count["writes"] += not is_read and not self.mode == "WAL"
                elif role == "journal":
                    sums[base, label, role]["journal_read_bytes" if is_read else "journal_bytes"] += size
                elif offset < 32:
                    sums[base, label, "head"]["wal_read_bytes" if is_read else "wal_bytes"] += size
                elif not is_read and size == 24:
                    frames[base, offset + 24] = number
                    sums[base, label, number]["wal_bytes"] += size
                else:
                    # SQLite reads whole frames if it recovers the index or changes a frame of its own transaction.
                    count = sums[base, label, number if (base, offset) not in frames else frames[base, offset]]
                    count["reads" if is_read else "writes"] += 1
                    count["wal_read_bytes" if is_read else "wal_bytes"] += size
        return sums

    def check(self, mode, page_size, vacuum, *free):
        self.mode = mode
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        calls = os.path.join(self.folder, "calls")
        done = self.record(PYTHON, self.file("host.py", HOST), mode, str(page_size), vacuum, *free, cwd=self.folder,
                           env=dict(os.environ, LD_PRELOAD=":".join([*PRELOADED, LOG_CALLS]), LOG_CALLS=LOG_CALLS, PAGE_CALLS=calls))
        self.assertEqual(done.returncode, 0, self.seen)
        with open(os.path.join(self.folder, "owners"), encoding="utf-8") as file:
            texts, owners = json.load(file)
        owners = {(name, page): owner for name in owners for page, owner in owners[name]}
        hashes = dict(self.rows("SELECT DISTINCT query, normalized_query_hash FROM statement_stats"))
        labels = {hashes[text]: number for number, text in enumerate(texts, 1)}
        self.assertEqual(len(labels), len(texts))

        truth, owned = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        for (base, label, page), count in self.calls().items():
            truth[base, label].update(count)
            if label:
                owned[base, label, owners.get((base, page), "") if isinstance(page, int) else page].update(count)
        seen, by_btree, unknown, whole = (collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter), 0, 0)
        for path, hash_, btree, kind, *values in self.rows(
                "SELECT database, normalized_query_hash, btree, kind, %s FROM page_io" % ", ".join(COUNTS)):
            base, label, count = os.path.basename(path), labels.get(hash_, 0), collections.Counter(dict(zip(COUNTS, values)))
            seen[base, label].update(count)
            total = sum(count[name] for name in COUNTS if name.endswith("bytes"))
            whole += total
            unknown += total * (kind == "unknown")
            if label:
                name = {"journal": "journal", "wal header": "head"}.get(kind, btree)
                by_btree[base, label, name if kind != "unknown" else None].update(count)

        # The sums by file and statement must be exact.
        for key in set(truth) | set(seen):
            expected = +truth[key]
            # A session begins after the connection has read for the first time, and a preparation is label 0.
            if key[1]:
                self.assertEqual(+seen[key], expected, (key, texts[key[1] - 1], self.seen))
        self.assertTrue(any(key[1] and count["reads"] for key, count in seen.items()))
        # The sums by b-tree must not be larger than the true ones; the rest is unknown.
        if free:
            self.assertLess(unknown, 0.02 * whole, self.seen)
            return
        for key, count in by_btree.items():
            expected = owned[key]
            if key[2] is None:
                continue
            name = key[2] if key[2] not in ("sqlite_schema",) else "sqlite_schema"
            for what in COUNTS:
                self.assertLessEqual(count[what], expected[what], (key, what, texts[key[1] - 1]))
        missing = sum((owned[key] - by_btree.get(key, collections.Counter())).total() for key in owned)
        self.assertLessEqual(missing, 0.02 * whole)
        self.assertLess(unknown, 0.02 * whole, self.seen)

    def test_wal(self):
        self.check("WAL", 4096, "NONE")

    def test_wal_of_small_pages(self):
        self.check("WAL", 512, "NONE")

    def test_delete(self):
        self.check("DELETE", 4096, "NONE")

    def test_truncate_with_large_pages(self):
        self.check("TRUNCATE", 65536, "NONE")

    def test_auto_vacuum(self):
        self.check("DELETE", 512, "FULL")
        self.check("WAL", 1024, "INCREMENTAL")

    def test_freed_pages(self):
        for mode, page_size in (("WAL", 512), ("DELETE", 4096)):
            self.check(mode, page_size, "NONE", "DELETE FROM asset WHERE id % 3 = 0", "INSERT INTO pair SELECT 'z' || id, b FROM asset",
                       "DROP TABLE words", "CREATE TABLE made AS SELECT * FROM asset")

    def test_tables_made_and_filled_in_one_transaction(self):
        """Most pages are written before any page leads to them, and page 1, which contains the names, is written last.
        There are more writes than single events are kept."""
        for mode in ("WAL", "DELETE"):
            path = os.path.join(self.folder, mode + "made.db")
            done = self.record(PYTHON, "-c", """
import json, random, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.executescript("PRAGMA page_size=512; PRAGMA journal_mode=" + sys.argv[2])
db.execute("SELECT * FROM sqlite_master").fetchall()
db.executescript("PRAGMA cache_size=50; PRAGMA synchronous=OFF; BEGIN; CREATE TABLE t(id INTEGER PRIMARY KEY, x, y); CREATE INDEX i ON t(y)")
random.seed(47)
db.executemany("INSERT INTO t(x, y) VALUES (?, ?)", (("x" * 60, random.randrange(1 << 40)) for _ in range(9000)))
db.execute("COMMIT")
print(json.dumps(db.execute("SELECT name, count(*) FROM dbstat GROUP BY name").fetchall()))
""", path, mode)
            pages = dict(json.loads(done.stdout))
            rows = self.rows("SELECT btree, kind, sum(writes), sum(writes - rewritten), sum(read_bytes + wal_read_bytes + wal_bytes + database_bytes) FROM page_io "
                             "WHERE database LIKE '%%%smade.db' AND normalized_query_hash IN (SELECT normalized_query_hash FROM statement_stats WHERE query LIKE 'INSERT%%' OR query LIKE 'COMMIT%%') "
                             "GROUP BY 1, 2" % mode)
            writes, first = ({name: sum(row[at] for row in rows if row[0] == name and row[1] != "unknown") for name in ("t", "i")} for at in (2, 3))
            unknown = sum(row[4] for row in rows if row[1] == "unknown")
            self.assertGreater(sum(writes.values()), 9000, (mode, rows))
            self.assertLess(unknown, 0.02 * sum(row[4] for row in rows), (mode, rows))
            # Each page was written, and no page was written for the first time twice.
            for name in ("t", "i"):
                self.assertLessEqual(first[name], pages[name], (mode, rows))
                self.assertGreaterEqual(first[name], 0.97 * pages[name], (mode, rows))

    def test_destination_of_a_backup(self):
        """The destination of a backup runs no statement."""
        self.record(PYTHON, "-c", """
import sqlite3, sys
source = sqlite3.connect(sys.argv[1] + "/source.db", isolation_level=None)
source.executescript("CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO t SELECT hex(randomblob(100)) FROM n")
source.backup(sqlite3.connect(sys.argv[1] + "/copy.db"))
""", self.folder)
        written = self.rows("SELECT sum(database_bytes) FROM page_io WHERE database LIKE '%/copy.db'")[0][0]
        self.assertEqual(written, os.path.getsize(os.path.join(self.folder, "copy.db")), self.seen)

    def run_methods(self, program, *arguments):
        done = self.record(PYTHON, "-c", METHODS + program, os.path.join(self.folder, "app.db"), *arguments)
        self.assertEqual(done.returncode, 0, (done.stderr, self.seen))
        return done

    def test_page_1_that_becomes_nonsense(self):
        """This happens if a key is set on a database that has a pointer map. Its pages are unknown afterwards."""
        self.run_methods("""
db = connect()
db.executescript("PRAGMA auto_vacuum=FULL; CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(30000))")
db.execute("SELECT sum(length(x)) FROM t").fetchall()
read, write, unlock = methods(db)
db.execute("BEGIN IMMEDIATE")
for page in (5, 3, 1, 4):
    assert not write(bytes(i * 7 % 251 for i in range(4096)), (page - 1) * 4096)
unlock(0)
""")
        self.assertEqual(self.rows("SELECT sum(writes) FROM page_io WHERE normalized_query_hash = 0"), [(4,)], self.seen)

    def test_beginning_of_an_overflow_page(self):
        """SQLite may read only the beginning, a power of two of bytes. It counts for the same page."""
        self.run_methods("""
db = connect()
db.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE TABLE u(y)")
db.execute("BEGIN")
db.executemany("INSERT INTO t VALUES (?, zeroblob(100000))", [(i,) for i in range(9)])
db.executemany("INSERT INTO u VALUES (?)", [("y" * 3000,)] * 900)
db.execute("COMMIT")
db.close()
db = connect()
db.execute("SELECT count(*) FROM t").fetchall()
for i in range(1, 9):
    db.execute("SELECT sum(length(x || '')) FROM t WHERE id = ?", (i,)).fetchall()
read, write, unlock = methods(db)
pages = [page for page, in db.execute("SELECT pageno FROM dbstat WHERE name = 't' AND pagetype = 'overflow'")]
assert len(pages) > 150
for page in pages[:100]:
    assert not read(bytes(512), (page - 1) * 4096)
""")
        rows = self.rows("SELECT btree, kind, sum(reads) FROM page_io WHERE read_bytes % 4096 != 0 AND normalized_query_hash = 0 AND kind != 'schema' GROUP BY 1, 2")
        self.assertEqual({row[:2] for row in rows}, {("t", "overflow")}, (rows, self.seen))

    def test_schema_that_another_process_changes(self):
        """The new table is known after the connection has read page 1 again."""
        self.run_methods("""
import subprocess
db = connect()
db.executescript("CREATE TABLE t(x); INSERT INTO t VALUES (1); PRAGMA cache_size=10")
db.execute("SELECT * FROM t").fetchall()
subprocess.run([sys.executable, "-c", "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('CREATE TABLE later(x)'); "
                "db.executemany('INSERT INTO later VALUES (zeroblob(900))', [()] * 1000); db.commit()", path], check=True, env={})
for i in range(3):
    db.execute("SELECT sum(length(x)) FROM later").fetchall()
""")
        rows = self.rows("SELECT btree, sum(reads) FROM page_io JOIN statement_stats USING (normalized_query_hash) WHERE query LIKE 'SELECT sum%' GROUP BY 1")
        self.assertGreater(dict(rows).get("later", 0), 0.9 * sum(row[1] for row in rows), (rows, self.seen))

    def test_flush_between_reads(self):
        """Each b-tree keeps its own reads, although its sum has another place after a flush."""
        self.run_methods("""
import random, time
db, tables = connect(), list(range(150))
db.execute("BEGIN")
for i in tables:
    db.execute("CREATE TABLE t%d(x)" % i)
    db.executemany("INSERT INTO t%d VALUES (zeroblob(3000))" % i, [()] * 20)
db.execute("COMMIT")
db.close()
db = connect()
db.execute("PRAGMA cache_size=10")
sql = " UNION ALL ".join("SELECT sum(length(x)) FROM t%d WHERE ?1 = %d" % (i, i) for i in tables)
random.seed(47)
random.shuffle(tables)
for order in (tables, tables[::-1], tables):
    for i in order:
        for _ in range(2):
            db.execute(sql, (i,)).fetchall()
    time.sleep(1.1)  # the sums are written when the next lock is given back
""")
        rows = self.rows("SELECT btree, sum(reads) FROM page_io JOIN statement_stats USING (normalized_query_hash) WHERE query LIKE 'SELECT sum%' AND kind = 'table' GROUP BY 1")
        self.assertEqual(len(rows), 150, rows)
        # All have the same number, except for pages that are still in the cache.
        reads = [row[1] for row in rows]
        self.assertGreater(min(reads), 6 * 20 - 10, rows)
        self.assertLessEqual(max(reads), 6 * 21, rows)

    def test_function_of_a_host_that_opens_files(self):
        """A function that the host has set after queryprof remains when queryprof finds another connection."""
        self.run_methods("""
db, seen = connect(), []
db.execute("SELECT 1").fetchall()
lib.sqlite3_vfs_find.restype = ctypes.c_void_p
vfs = ctypes.cast(lib.sqlite3_vfs_find(b"unix"), ctypes.POINTER(ctypes.c_void_p))
opens = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_int, ctypes.c_void_p)
before = opens(vfs[5])
def open_file(*arguments):
    seen.append(arguments)
    return before(*arguments)
own = opens(open_file)
vfs[5] = address = ctypes.cast(own, ctypes.c_void_p).value
for i in range(2):
    connect().execute("CREATE TABLE t%d(x)" % i)
    assert vfs[5] == address and len(seen) > 2 * i, (i, seen)
""")

    def test_shared_cache(self):
        """Threads share the caches of two databases, and each connection attaches the other database. No call by the
        library may wait for a cache's mutex."""
        done = self.record(PYTHON, "-c", """
import sqlite3, sys, threading
for mode in ("delete", "wal"):
    names = [sys.argv[1] + "/" + mode + str(i) for i in (1, 2)]
    for name in names:
        db = sqlite3.connect(name, isolation_level=None)
        db.executescript("PRAGMA journal_mode=%s; CREATE TABLE t(x)" % mode)
    def work(own, other, errors):
        for i in range(100):
            db = sqlite3.connect("file:" + own + "?cache=shared", uri=True, isolation_level=None, timeout=60)
            db.execute("ATTACH 'file:%s?cache=shared' AS other" % other)
            for sql in ("PRAGMA cache_size=10", "INSERT INTO t VALUES (zeroblob(20000))", "INSERT INTO other.t VALUES (1)", "SELECT sum(length(x)) FROM t, other.t LIMIT 1"):
                try:
                    db.execute(sql).fetchall()
                except sqlite3.OperationalError as error:
                    assert "locked" in str(error), error
            db.close()
    threads = [threading.Thread(target=work, args=(names[i % 2], names[1 - i % 2], [])) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        print(sqlite3.connect(name).execute("PRAGMA integrity_check").fetchall()[0][0])
""", self.folder)
        self.assertEqual(done.stdout, "ok\n" * 4, done.stderr)
        self.assertEqual(self.rows("SELECT count(DISTINCT database) FROM page_io WHERE wal_bytes + database_bytes > 0")[0][0], 4)

    def test_index_on_the_heap(self):
        """With locking_mode=EXCLUSIVE SQLite makes no -shm file, and neither does the library."""
        done = self.record(PYTHON, "-c", """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.executescript("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA cache_size=5; CREATE TABLE t(x); BEGIN")
db.executemany("INSERT INTO t VALUES (?)", [("x" * 2000,)] * 200)
db.execute("COMMIT")
print(db.execute("SELECT count(*) FROM t").fetchall(), os.path.exists(sys.argv[1] + "-shm"))
""", os.path.join(self.folder, "heap.db"))
        self.assertEqual(done.stdout, "[(200,)] False\n", self.seen)
        # The SELECT has read the INSERTs' writes.
        self.assertGreater(self.rows("SELECT sum(wal_read_bytes) FROM page_io JOIN statement_stats USING (normalized_query_hash) WHERE query LIKE 'SELECT%'")[0][0], 0)


if __name__ == "__main__":
    unittest.main()
