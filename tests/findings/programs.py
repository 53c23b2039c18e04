# SPDX-License-Identifier: Apache-2.0
"""Small programs for test_findings.py, each with a known fault or none.

  programs.py NAME DATABASE    runs one, and prints how long its faulty statement took, in ns by the program's own clock

A program is a function with the arguments (database, timed). It runs the faulty statement through `timed`."""

import collections
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time

Program = collections.namedtuple("Program", "name setup finding text run also cure", defaults=(None,))
PROGRAMS = {}

ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d) "
ORDERS = """
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INT, status TEXT, created INT, total REAL, note TEXT);
INSERT INTO orders """ + ROWS % 60000 + """
SELECT i, i * 7919 %% 6000, CASE i %% 500 WHEN 0 THEN 'open' ELSE 'done' END, i * 60, i * 31 %% 1000 / 10.0, 'note ' || i FROM n;
CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, city TEXT);
INSERT INTO customers """.replace("%%", "%") + ROWS % 6000 + """SELECT i, 'Name ' || i, 'city ' || (i % 300) FROM n;
"""
BY_CUSTOMER = "CREATE INDEX orders_by_customer ON orders(customer_id);"


def program(setup, finding=None, text=None, also=None, cure=None):
    """finding, text: the expected finding, and a part of its statement. also: other findings that are true, too. cure: a part
    of the expected cure or evidence."""
    def add(run):
        PROGRAMS[run.__name__] = Program(run.__name__, setup, finding, text, run, also, cure)
        return run
    return add


def connect(path, **options):
    return sqlite3.connect(path, isolation_level=None, **options)


def repeat(db, timed, sql, values, seconds=0.3):
    """Runs the statement with one value after the other for this much CPU time, at least three times."""
    end, number = time.process_time() + seconds, 0
    while time.process_time() < end or number < 3:
        timed(lambda: db.execute(sql, values(number)).fetchall())
        number += 1


def nothing(_):
    return ()


# --- scans ---------------------------------------------------------------------------------------------------------

def scan(name, sql, values=lambda i: (i,), setup=ORDERS, finding="unindexed_scan", text=None, also=None, cure=None):
    def run(path, timed):
        repeat(connect(path), timed, sql, values)
    run.__name__ = name
    program(setup, finding, text or sql[:40], also, cure)(run)


scan("scan_one_column", "SELECT * FROM orders WHERE customer_id = ?")
scan("scan_two_columns", "SELECT id FROM orders WHERE customer_id = ? AND status = 'open'")
scan("scan_range", "SELECT id FROM orders WHERE created > ?", lambda i: (60000 * 60 - 600,))
scan("scan_alias", "SELECT o.total FROM orders AS o WHERE o.customer_id = ?")
scan("scan_short_alias", "SELECT o.total FROM orders o WHERE o.customer_id = ?")
scan("scan_update", "UPDATE orders SET note = 'x' WHERE customer_id = ?", also="commit_sync")
scan("scan_delete", "DELETE FROM orders WHERE customer_id = ?", lambda i: (-i - 1,), also="commit_sync")
scan("scan_count", "SELECT count(*) FROM orders WHERE customer_id = ?")
scan("scan_quoted", 'SELECT id FROM "order lines" WHERE "order id" = ?',
     setup='CREATE TABLE "order lines"(id INTEGER PRIMARY KEY, "order id" INT, t TEXT); INSERT INTO "order lines" '
     + ROWS % 60000 + "SELECT i, i % 6000, 'text ' || i FROM n;")
scan("scan_join", "SELECT c.name, o.total FROM customers AS c CROSS JOIN orders AS o ON o.customer_id = c.id WHERE c.id = ?", lambda i: (i % 6000 + 1,))
scan("scan_view", "SELECT * FROM open_orders WHERE customer_id = ?",
     setup=ORDERS + "CREATE VIEW open_orders AS SELECT * FROM orders WHERE status = 'open';")
scan("scan_in_subquery", "SELECT name FROM customers WHERE id IN (SELECT customer_id FROM orders WHERE status = 'open' AND created = ?)")
scan("scan_or_of_parameters", "SELECT id FROM orders WHERE (?1 IS NULL OR customer_id = ?1) AND (?2 IS NULL OR total = ?2)", lambda i: (i, None), cure="of the values that are given")
scan("scan_wrong_index", "SELECT id FROM orders WHERE status = 'open' AND customer_id = ?",
     setup=ORDERS + "CREATE INDEX by_total ON orders(total);")

scan("expression_lower", "SELECT id FROM customers WHERE lower(name) = ?", lambda i: ("name %d" % i,), finding="expression_scan")
scan("expression_like_inside", "SELECT id FROM orders WHERE note LIKE ?", lambda i: ("%% %d" % (i % 60000),), finding="expression_scan")
scan("expression_like_prefix", "SELECT id FROM customers WHERE name LIKE 'Name 59%'", nothing, finding="expression_scan",
     setup=ORDERS + "CREATE INDEX customers_by_name ON customers(name);")
scan("expression_substr", "SELECT id FROM orders WHERE substr(note, 6) = ?", lambda i: (str(i),), finding="expression_scan")
scan("expression_date", "SELECT id FROM orders WHERE date(created, 'unixepoch') = ?", lambda i: ("1970-01-0%d" % (i % 3 + 1),),
     setup="CREATE TABLE orders(id INTEGER PRIMARY KEY, created INT); INSERT INTO orders " + ROWS % 60000 + "SELECT i, i * 6000 FROM n;",
     finding="expression_scan")

# The index exists, but the comparison has another collation or type. fine_collation and fine_type have no fault.
BY_NAME = "CREATE INDEX customers_by_name ON customers(name);"
CODES = ("CREATE TABLE tags(id INTEGER PRIMARY KEY, code TEXT, v INT); INSERT INTO tags " + ROWS % 20000 + "SELECT i, i, i FROM n; CREATE INDEX by_code ON tags(code);"
         "CREATE TABLE items(id INTEGER PRIMARY KEY, number %s); INSERT INTO items " + ROWS % 2000 + "SELECT i, i * 7 FROM n;")
OF_ITEM = "SELECT i.id, t.v FROM items AS i LEFT JOIN tags AS t ON t.code = i.number WHERE i.id = ?"
scan("unused_collation", "SELECT id FROM customers WHERE name = ? COLLATE NOCASE", lambda i: ("NAME %d" % i,), ORDERS + BY_NAME, "unused_index")
scan("unused_column_collation", "SELECT id FROM words WHERE word COLLATE BINARY = ?", lambda i: ("w%d" % i,),
     "CREATE TABLE words(id INTEGER PRIMARY KEY, word TEXT COLLATE NOCASE); INSERT INTO words " + ROWS % 60000 + "SELECT i, 'w' || i FROM n; CREATE INDEX by_word ON words(word);",
     "unused_index")
scan("unused_type", OF_ITEM, lambda i: (i % 2000 + 1,), CODES % "INT", "unused_index")
scan("unused_or", "SELECT id FROM customers WHERE name = ?1 OR ?2 IS NULL", lambda i: ("Name %d" % i, 1), ORDERS + BY_NAME, "unused_index")

# --- indexes of a run, sorting ---------------------------------------------------------------------------------------

TWO = ("CREATE TABLE a(id INT, k INT); CREATE TABLE b(id INT, k INT, v TEXT); INSERT INTO a " + ROWS % 200 + "SELECT i, i FROM n; "
       "INSERT INTO b " + ROWS % 20000 + "SELECT i, i % 5000, 'v' || i FROM n;")
scan("automatic_join", "SELECT count(*), max(v) FROM a CROSS JOIN b ON a.k = b.k", nothing, TWO, "automatic_index")
scan("automatic_left_join", "SELECT a.id, b.v FROM a LEFT JOIN b ON b.k = a.k WHERE a.id > ?", lambda i: (190 - i % 100,), TWO, "automatic_index")
scan("automatic_alias", "SELECT count(y.v) FROM a AS x LEFT JOIN b AS y ON x.k = y.k", nothing, TWO, "automatic_index")

scan("join_order", "SELECT count(DISTINCT o.note) FROM orders AS o JOIN customers AS c ON c.id = o.customer_id WHERE c.city < ?", lambda i: ("city 10",),
     ORDERS + "CREATE INDEX by_city ON customers(city); CREATE INDEX orders_by_customer ON orders(customer_id); ANALYZE;"
     "UPDATE sqlite_stat1 SET stat = '6000 2000' WHERE idx = 'by_city'; UPDATE sqlite_stat1 SET stat = '60000 3000' WHERE idx = 'orders_by_customer';",
     "join_order", also="sort")

scan("sort_limit", "SELECT id, note FROM orders ORDER BY total DESC, note LIMIT 10", nothing, finding="sort")
scan("sort_all", "SELECT id FROM orders WHERE id > ? ORDER BY note", lambda i: (i,), finding="sort")
scan("sort_group", "SELECT customer_id, sum(total) FROM orders GROUP BY customer_id", nothing, finding="sort")
scan("sort_distinct", "SELECT DISTINCT note FROM orders", nothing, finding="sort")

# fine_correlated and fine_exists are the same with few rows.
LATEST = "SELECT id FROM orders AS o WHERE total = (SELECT max(total) FROM orders AS p WHERE p.customer_id = o.customer_id)"
scan("correlated", LATEST, nothing, ORDERS + BY_CUSTOMER, "correlated_subquery")
scan("correlated_column", "SELECT id, (SELECT sum(total) FROM orders AS o WHERE o.customer_id = c.id) FROM customers AS c", nothing, ORDERS + BY_CUSTOMER, "correlated_subquery")
scan("correlated_rank", "SELECT id, (SELECT count(*) FROM customers AS d WHERE d.city > c.city) AS place FROM customers AS c WHERE id <= 2000", nothing,
     ORDERS + "CREATE INDEX by_city ON customers(city);", "correlated_subquery", cure="window function")

# fine_shuffle, fine_both_ends, fine_view, fine_wide_rows and fine_union_join are the same without the fault.
scan("random_order", "SELECT id, note FROM orders ORDER BY random() LIMIT 1", nothing, finding="random_order")
BY_TOTAL = "CREATE INDEX by_total ON orders(total);"
scan("min_max", "SELECT min(total), max(total) FROM orders", nothing, ORDERS + BY_TOTAL, "min_max")
scan("whole_view", "SELECT c.name, s.n FROM customers AS c LEFT JOIN counts AS s ON s.customer_id = c.id WHERE c.id = ?", lambda i: (i % 6000 + 1,),
     ORDERS + BY_CUSTOMER + "CREATE VIEW counts AS SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id;", "whole_view", also="automatic_index")
FILES = "CREATE TABLE files(id INTEGER PRIMARY KEY, %s); INSERT INTO files " + ROWS % 400 + "SELECT i, %s FROM n;"
OWNERS = "SELECT owner, count(*) FROM files GROUP BY owner"
scan("wide_rows", OWNERS, nothing, FILES % ("content BLOB, owner INT", "zeroblob(60000), i % 3"), "wide_rows", also="repeated_reads sort")
STARS = ORDERS + "CREATE TABLE stars(name TEXT PRIMARY KEY); INSERT INTO stars " + ROWS % 20 + "SELECT 'Name ' || (i * 7) FROM n; CREATE INDEX by_name ON customers(name); CREATE INDEX by_city ON customers(city);"
scan("join_or", "SELECT c.id FROM customers AS c JOIN stars AS s ON (c.name = s.name OR c.city = s.name)", nothing, STARS, "join_order")


scan("fts_rank", "SELECT rowid FROM words WHERE words MATCH 'common' ORDER BY rank LIMIT 10", nothing,
     "CREATE VIRTUAL TABLE words USING fts5(t); INSERT INTO words " + ROWS % 20000 + "SELECT 'common w' || (i % 100) FROM n;", "fts_rank")
# fine_range_join and fine_count_of_few are the same without the fault, fine_count_all is quick.
scan("cross_join", "SELECT count(*), max(c.name) FROM customers AS c, orders AS o WHERE c.id < 300 AND o.id > 59000 AND o.total > ?", lambda i: (i,),
     finding="cross_join", also="unindexed_scan")
scan("count_all", "SELECT count(*) FROM lines", nothing, "CREATE TABLE lines(id INTEGER PRIMARY KEY, line TEXT); INSERT INTO lines " + ROWS % 60000
     + "SELECT i, hex(zeroblob(200)) FROM n;", "count_all", also="repeated_reads")
scan("json_rows", "SELECT DISTINCT n.id FROM notes AS n, json_each(n.tags) AS j WHERE j.value = ?", lambda i: ("v%d" % i,),
     "CREATE TABLE notes(id INTEGER PRIMARY KEY, tags TEXT); INSERT INTO notes " + ROWS % 10000 + "SELECT i, json_array('t' || (i % 50), 'v' || i) FROM n;", "json_rows")
POSTS = ("CREATE TABLE posts(id INTEGER PRIMARY KEY); CREATE TABLE comments(id INTEGER PRIMARY KEY, post INT); CREATE TABLE votes(id INTEGER PRIMARY KEY, post INT);"
         "INSERT INTO posts " + ROWS % 100 + "SELECT i FROM n; INSERT INTO comments " + ROWS % 6000 + "SELECT i, i % 100 + 1 FROM n;"
         "INSERT INTO votes " + ROWS % 6000 + "SELECT i, i % 100 + 1 FROM n; CREATE INDEX by_post ON comments(post); CREATE INDEX of_post ON votes(post); ANALYZE;")
scan("distinct_counts", "SELECT p.id, count(DISTINCT c.id), count(DISTINCT v.id) FROM posts AS p LEFT JOIN comments AS c ON c.post = p.id LEFT JOIN votes AS v ON v.post = p.id "
     "GROUP BY p.id", nothing, POSTS, "distinct_counts")
scan("distinct_of_a_join", "SELECT DISTINCT p.* FROM posts AS p JOIN comments AS c ON c.post = p.id JOIN votes AS v ON v.post = p.id WHERE c.id > 5 AND v.id > 5", nothing,
     POSTS.replace("posts(id INTEGER PRIMARY KEY)", "posts(id INT)"), "sort", also="automatic_index cross_join", cure="EXISTS")

# fine_union_all, fine_list and fine_list_of_few are the same without the fault.
PATHS = ("CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT); CREATE TABLE seen(id INTEGER PRIMARY KEY, path TEXT); INSERT INTO files " + ROWS % 20000
         + "SELECT i, '/srv/media/' || i FROM n; INSERT INTO seen " + ROWS % 20000 + "SELECT i, '/srv/media/' || (i * 2) FROM n;")
NOT_SEEN = "SELECT count(*) FROM files WHERE path NOT IN (SELECT path FROM seen)"
scan("union_rows", "SELECT count(*) FROM (SELECT path FROM files UNION SELECT path FROM seen)", nothing, PATHS, "union")
scan("list_subquery", NOT_SEEN, nothing, PATHS, "list_subquery")


# --- how a program calls ------------------------------------------------------------------------------------------------


def for_a_while(seconds=0.3):
    end, number = time.process_time() + seconds, 0
    while time.process_time() < end:
        yield number
        number += 1


@program(ORDERS, "preparing", "SELECT name FROM customers WHERE id =")
def prepared_with_literals(path, timed):
    db = connect(path)
    for i in for_a_while():
        timed(lambda: db.execute("SELECT name FROM customers WHERE id = %d" % (i % 6000)).fetchall())


@program(ORDERS + BY_CUSTOMER, "preparing", "SELECT c.name, count(*)")
def prepared_each_time(path, timed):
    db = connect(path, cached_statements=0)
    for i in for_a_while():
        timed(lambda: db.execute("SELECT c.name, count(*) FROM customers AS c JOIN orders AS o ON o.customer_id = c.id AND o.total > 5 "
                                 "LEFT JOIN orders AS p ON p.id = o.id + 1 WHERE c.id = ? GROUP BY c.id HAVING count(*) > 0", (i % 6000,)).fetchall())


@program(ORDERS, "preparing", "UPDATE customers SET city")
def prepared_updates(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    for i in for_a_while():
        timed(lambda: db.execute("UPDATE customers SET city = 'c%d' WHERE id = %d" % (i, i % 6000)))
    db.execute("COMMIT")


@program(ORDERS, "repeated_lookup", "SELECT name FROM customers")
def lookup_each(path, timed):
    db = connect(path)
    for _ in range(3):
        for (customer,) in db.execute("SELECT customer_id FROM orders WHERE id <= 20000").fetchall():
            timed(lambda: db.execute("SELECT name FROM customers WHERE id = ?", (customer,)).fetchone())


@program(ORDERS + BY_CUSTOMER, "repeated_lookup", "SELECT count(*), sum(total)")
def lookup_children(path, timed):
    db = connect(path)
    for (customer,) in db.execute("SELECT id FROM customers").fetchall():
        timed(lambda: db.execute("SELECT count(*), sum(total) FROM orders WHERE customer_id = ?", (customer,)).fetchone())


@program(ORDERS, "repeated_lookup", "SELECT city FROM customers", "slow_consumer")
def lookup_while_stepping(path, timed):
    db = connect(path)
    for order in db.execute("SELECT id, customer_id FROM orders WHERE id <= 30000"):
        timed(lambda: db.execute("SELECT city FROM customers WHERE id = ?", (order[1],)).fetchone())


@program(ORDERS, "slow_consumer", "SELECT id, note FROM orders")
def slow_consumer(path, timed):
    def run():
        for row in connect(path).execute("SELECT id, note FROM orders WHERE id <= 200"):
            json.dumps([row] * 4000)
    timed(run)


@program(ORDERS, "slow_consumer", "SELECT id FROM customers")
def sleeping_consumer(path, timed):
    def run():
        for _ in connect(path).execute("SELECT id FROM customers WHERE id <= 50"):
            time.sleep(0.01)
    timed(run)


@program(ORDERS, "offset", "SELECT id, note FROM orders")
def pages_by_offset(path, timed):
    repeat(connect(path), timed, "SELECT id, note FROM orders ORDER BY id LIMIT 20 OFFSET ?", lambda i: (i * 997 % 50000 + 5000,))


@program(ORDERS + "CREATE INDEX by_total ON orders(total);", "offset", "SELECT id FROM orders")
def pages_of_an_index(path, timed):
    repeat(connect(path), timed, "SELECT id FROM orders ORDER BY total LIMIT 50 OFFSET ?", lambda i: (i * 997 % 50000 + 5000,))


# --- what writes do ----------------------------------------------------------------------------------------------------

PARENTS = ("CREATE TABLE parents(id INTEGER PRIMARY KEY); CREATE TABLE children(id INTEGER PRIMARY KEY, parent INT REFERENCES parents(id) ON DELETE %s, t TEXT);"
           "INSERT INTO parents " + ROWS % 2000 + "SELECT i FROM n; INSERT INTO children " + ROWS % 20000 + "SELECT i, 1000 + i %% 1000, 'text' FROM n;")


def delete_parents(path, timed):
    db = connect(path)
    db.execute("PRAGMA foreign_keys = 1")
    db.execute("BEGIN")
    for i in range(300):
        timed(lambda: db.execute("DELETE FROM parents WHERE id = ?", (i + 1,)))
    db.execute("COMMIT")


@program(PARENTS % "CASCADE", "foreign_key", "DELETE FROM parents")
def foreign_key_cascade(path, timed):
    delete_parents(path, timed)


@program(PARENTS % "SET NULL", "foreign_key", "DELETE FROM parents")
def foreign_key_set_null(path, timed):
    delete_parents(path, timed)


@program(ORDERS + "CREATE TABLE log(id INTEGER PRIMARY KEY, t TEXT, n INT); CREATE TRIGGER count_words AFTER UPDATE ON customers BEGIN "
         "INSERT INTO log(t, n) SELECT note, length(upper(note)) FROM orders WHERE id BETWEEN new.id AND new.id + 500; END;",
         "trigger", "UPDATE customers")
def trigger(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    repeat(db, timed, "UPDATE customers SET city = 'x' WHERE id = ?", lambda i: (i % 6000,))
    db.execute("COMMIT")


# Each row's trigger reads all rows to find its siblings, and fires itself for the parent.
@program("CREATE TABLE nodes(id INTEGER PRIMARY KEY, parent INT, size INT); INSERT INTO nodes " + ROWS % 5000 + "SELECT i, i / 2, 1 FROM n;"
         "CREATE TRIGGER summed AFTER UPDATE OF size ON nodes WHEN new.parent > 0 BEGIN "
         "UPDATE nodes SET size = (SELECT sum(size) FROM nodes WHERE parent = new.parent) WHERE id = new.parent; END;",
         "trigger", "UPDATE nodes", cure="an index on nodes(parent)")
def trigger_that_fires_itself(path, timed):
    db = connect(path)
    db.execute("PRAGMA recursive_triggers = 1")
    db.execute("BEGIN")
    repeat(db, timed, "UPDATE nodes SET size = size + 1 WHERE id = ?", lambda i: (4000 + i % 1000,))
    db.execute("COMMIT")


@program("CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB); PRAGMA journal_mode = WAL;", "checkpoint", " t",
         "commit_sync cache_spill repeated_reads")  # DELETE reads and frees 10 MB, with a cache of 2
def checkpoints(path, timed):
    db = connect(path)
    db.execute("PRAGMA wal_autocheckpoint = 1")
    db.execute("PRAGMA synchronous = FULL")
    for i in for_a_while():
        timed(lambda: db.execute("INSERT INTO t(v) VALUES (zeroblob(200000))"))
        if i % 50 == 49:
            db.execute("DELETE FROM t")


@program("CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB); INSERT INTO t VALUES (1, 0), (2, 0); PRAGMA journal_mode = WAL;", "pinned_wal", "SELECT id FROM t",
         "commit_sync checkpoint slow_consumer")
def pinned_wal(path, timed):
    reader, writer = connect(path), connect(path)
    writer.execute("PRAGMA synchronous = OFF")
    cursor = reader.execute("SELECT id FROM t")
    timed(cursor.fetchone)
    for _ in range(60):
        writer.execute("INSERT INTO t(v) VALUES (zeroblob(400000))")
    cursor.fetchall()


@program(ORDERS, "idle_writer", "BEGIN IMMEDIATE")
def idle_writer(path, timed):
    begun, asked = threading.Event(), threading.Event()

    def hold():
        db = connect(path)
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE customers SET city = 'x' WHERE id = 1")
        begun.set()
        asked.wait()
        time.sleep(0.5)
        db.execute("COMMIT")
    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    db = connect(path, timeout=60)
    asked.set()
    timed(lambda: db.execute("UPDATE customers SET city = 'y' WHERE id = 2"))
    thread.join()


@program(ORDERS, "idle_writer", "BEGIN IMMEDIATE")
def idle_writer_of_another_process(path, timed):
    holder = subprocess.Popen([sys.executable, "-c", "import sqlite3, sys, time\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                               "db.execute('BEGIN IMMEDIATE')\nprint(flush=True)\ntime.sleep(1.5)\ndb.execute('COMMIT')", path], stdout=subprocess.PIPE)
    holder.stdout.readline()
    timed(lambda: connect(path, timeout=60).execute("UPDATE customers SET city = 'y' WHERE id = 2"))
    holder.communicate()


def locked(path, timed, rows):
    """A thread changes rows in one transaction, and the main thread waits for it."""
    begun = threading.Event()

    def hold():
        db = connect(path)
        db.execute("BEGIN IMMEDIATE")
        begun.set()
        db.execute("UPDATE orders SET note = upper(note) || total WHERE id <= ?", (rows,))
        db.execute("COMMIT")
    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    timed(lambda: connect(path, timeout=60).execute("UPDATE customers SET city = 'y' WHERE id = 2"))
    thread.join()


@program("PRAGMA journal_mode = WAL;" + ORDERS.replace("60000", "600000"), "lock_holder", "BEGIN IMMEDIATE", "commit_sync")
def lock_holder(path, timed):
    locked(path, timed, 600000)


@program("PRAGMA journal_mode = WAL;" + ORDERS)
def fine_lock(path, timed):
    """Each transaction ends before the next one begins."""
    db = connect(path)
    db.execute("PRAGMA synchronous = OFF")
    for i in for_a_while():
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE customers SET city = 'y' WHERE id = ?", (i % 6000,))
        db.execute("COMMIT")


@program(ORDERS + "PRAGMA journal_mode = WAL;", "busy_snapshot", "UPDATE customers SET city = 'stale'", "commit_sync")
def busy_snapshot(path, timed):
    reader, writer = connect(path), connect(path)
    for i in range(20):
        reader.execute("BEGIN")
        reader.execute("SELECT city FROM customers WHERE id = 1").fetchone()
        writer.execute("UPDATE customers SET city = ? WHERE id = 1", (i,))
        try:
            reader.execute("UPDATE customers SET city = 'stale' WHERE id = 1")
            raise SystemExit("it was not refused")
        except sqlite3.OperationalError:
            reader.execute("ROLLBACK")
    timed(lambda: None)


@program("PRAGMA page_size = 65536;" + ORDERS, "repeated_reads", "SELECT total((SELECT total", None)
def small_cache(path, timed):
    db = connect(path)
    db.execute("PRAGMA cache_size = 3")
    time.sleep(1)  # queryprof reads no counters of a connection that lives for less than a second
    repeat(db, timed, "SELECT total((SELECT total FROM orders WHERE id = value * 7919 % 60000)) FROM json_each(?)",
           lambda i: ("[" + ",".join(map(str, range(i, i + 300))) + "]",))


@program(ORDERS, "cache_spill", "UPDATE orders SET total", "repeated_reads")
def cache_spill(path, timed):
    """fine_updates_by_key is the same with a cache that is large enough."""
    db = connect(path)
    db.execute("PRAGMA cache_size = 20")
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    for i in for_a_while():
        timed(lambda: db.execute("UPDATE orders SET total = ? WHERE id = ?", (i, i * 7919 % 60000)))
    db.execute("COMMIT")


@program(ORDERS, "never_finalized", "SELECT id FROM orders WHERE id > 7", "preparing slow_consumer repeated_lookup")
def never_finalized(path, timed):
    db = connect(path, cached_statements=0)
    kept = []
    for i in range(3000):
        cursor = db.execute("SELECT id FROM orders WHERE id > 7")
        timed(cursor.fetchone)
        kept.append(cursor)


@program(ORDERS + BY_CUSTOMER, "slower_plan", "SELECT count(*), max(note)", "unindexed_scan")
def slower_plan(path, timed):
    db = connect(path)
    sql = "SELECT count(*), max(note) FROM orders WHERE customer_id = ?"
    repeat(db, lambda run: run(), sql, lambda i: (i % 6000,), 0.15)
    db.execute("DROP INDEX orders_by_customer")
    repeat(db, timed, sql, lambda i: (i % 6000,))


MESSAGES = ("CREATE TABLE messages(id INTEGER PRIMARY KEY, source_id INT, number TEXT, UNIQUE(source_id, number)); INSERT INTO messages " + ROWS % 60000
            + "SELECT i, 1, 'm' || i FROM n;")
OF_SOURCE = "SELECT id FROM messages WHERE source_id = ? AND number IN (%s) ORDER BY id" % ",".join("?" * 500)
NUMBERS = [1] + ["m%d" % (i * 577 % 60000) for i in range(500)]


def plan_of_a_new_index(path, timed, *more):
    db = connect(path)
    repeat(db, lambda run: run(), OF_SOURCE, lambda i: NUMBERS, 0.15)
    for sql in ("CREATE INDEX by_source ON messages(source_id)", *more):
        db.execute(sql)
    repeat(db, timed, OF_SOURCE, lambda i: NUMBERS)


@program(MESSAGES, "slower_plan", "SELECT id FROM messages", "sort")
def plan_without_statistics(path, timed):
    """SQLite has no statistics of the new index, which finds every row."""
    plan_of_a_new_index(path, timed)


@program(MESSAGES, also="sort")
def fine_plan_with_statistics(path, timed):
    plan_of_a_new_index(path, timed, "ANALYZE")


@program("CREATE TABLE words(key TEXT UNIQUE COLLATE NOCASE, v INT); INSERT INTO words " + ROWS % 60000 + "SELECT 'p' || i, i FROM n;",
         "expression_scan", "SELECT v FROM words WHERE key LIKE")
def plans_that_take_turns(path, timed):
    """The values decide which plan SQLite uses, so the plan has not changed."""
    db = connect(path)
    for i in range(40):
        db.execute("SELECT v FROM words WHERE key LIKE 'p77%d%%'" % i).fetchall()
        timed(lambda i=i: db.execute("SELECT v FROM words WHERE key LIKE '%%%d7'" % i).fetchall())


WIDE = ("CREATE TABLE events(id INTEGER PRIMARY KEY, a INT, b INT, c TEXT, d TEXT); CREATE INDEX by_a ON events(a); CREATE INDEX by_b ON events(b);"
        "CREATE INDEX by_c ON events(c); CREATE INDEX by_d ON events(d); INSERT INTO events " + ROWS % 3000 + "SELECT i, i, i, i, i FROM n;")


def write_and_read(path, timed, columns):
    db = connect(path)
    db.execute("BEGIN")
    for i in for_a_while(0.6):
        text = "%08x" % (i * 2654435761 & 0xffffffff)
        timed(lambda text=text, i=i: db.execute("INSERT INTO events(a, b, c, d) VALUES (?, ?, ?, ?)", (i * 7919 % 1000003, i * 104729 % 1000003, text, text[::-1])))
    db.execute("COMMIT")
    for column in columns:
        for i in for_a_while(0.1):
            db.execute("SELECT id FROM events WHERE %s = ?" % column, (i,)).fetchall()


@program(WIDE, "many_indexes", "INSERT INTO events", "cache_spill index_writes")
def many_indexes(path, timed):
    write_and_read(path, timed, "a")


@program(WIDE)
def fine_indexes(path, timed):
    write_and_read(path, timed, "abcd")


ASSETS = ("CREATE TABLE assets(id INTEGER PRIMARY KEY, amount INT, at INT); CREATE INDEX by_amount ON assets(amount);"
          "INSERT INTO assets " + ROWS % 20000 + "SELECT i, i * 2654435761 % 1000003, i FROM n; PRAGMA journal_mode = WAL;")


def random_amounts(path, timed, is_read):
    """Each transaction changes nearly all pages of the index, and two or three of the table."""
    db = connect(path)
    db.execute("PRAGMA synchronous = OFF")
    for transaction in range(40):
        db.execute("BEGIN")
        for i in range(100):
            db.execute("INSERT INTO assets(amount, at) VALUES (?, ?)", ((transaction * 100 + i) * 2654435761 % 1000033, i))
        timed(lambda: db.execute("COMMIT"))
    for i in range(20 if is_read else 0):
        db.execute("SELECT id FROM assets WHERE amount = ?", (i,)).fetchall()


# Another program may read the assets.
@program(ASSETS, "index_writes", "COMMIT", "commit_sync checkpoint")
def index_that_is_not_read(path, timed):
    random_amounts(path, timed, False)


@program(ASSETS, also="commit_sync checkpoint")
def fine_index_that_is_read(path, timed):
    random_amounts(path, timed, True)


@program(ORDERS, "refused", "DROP TABLE", "slow_consumer", cure="fetch all its rows")
def open_statement(path, timed):
    db = connect(path)
    rows = db.execute("SELECT id FROM customers")
    rows.fetchone()
    for _ in range(30):
        try:
            timed(lambda: db.execute("DROP TABLE orders"))
            raise SystemExit("it was not refused")
        except sqlite3.OperationalError:
            time.sleep(0.01)


@program(ORDERS, "refused", "SELECT count(*)", "commit_sync", cure="without a shared cache")
def shared_cache(path, timed):
    uri = "file:%s?cache=shared" % path
    one, two = (connect(uri, uri=True, timeout=60) for _ in range(2))
    for _ in range(30):
        one.execute("BEGIN IMMEDIATE")
        one.execute("UPDATE customers SET city = 'x' WHERE id = 1")
        try:
            timed(lambda: two.execute("SELECT count(*) FROM customers").fetchall())
            raise SystemExit("it was not refused")
        except sqlite3.OperationalError:
            one.execute("COMMIT")


def read_and_write(path, timed, begin):
    one, two = (connect(path, timeout=60) for _ in range(2))
    for i in range(15):
        if begin == "BEGIN":
            two.execute("BEGIN IMMEDIATE")
        one.execute(begin)
        one.execute("SELECT city FROM customers WHERE id = 1").fetchone()
        try:
            timed(lambda: one.execute("UPDATE customers SET city = 'x' WHERE id = 1"))
        except sqlite3.OperationalError:
            pass
        one.execute("ROLLBACK")
        if begin == "BEGIN":
            two.execute("ROLLBACK")


@program(ORDERS, "refused", "UPDATE customers", cure="BEGIN IMMEDIATE")
def read_before_write(path, timed):
    """Its busy timeout does not apply."""
    read_and_write(path, timed, "BEGIN")


@program(ORDERS)
def fine_immediate(path, timed):
    read_and_write(path, timed, "BEGIN IMMEDIATE")


@program(ORDERS + "PRAGMA journal_mode = WAL;", "lock_holder", "UPDATE orders", "checkpoint commit_sync expression_scan index_writes repeated_reads cache_spill", cure="wal_checkpoint(PASSIVE)")
def checkpoint_waits(path, timed):
    """A checkpoint that waits for writers finds the lock taken whenever it wakes up."""
    begun, done = threading.Event(), threading.Event()

    def write():
        db = connect(path, timeout=60)
        db.execute("PRAGMA synchronous = OFF")
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            db.execute("UPDATE orders SET total = total + 1 WHERE id % 3 = 0")
            begun.set()
        done.set()
    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    db = connect(path, timeout=60)
    while not done.is_set():
        timed(lambda: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    thread.join()


@program(ORDERS, "idle_writer", "UPDATE customers", cure="began with: UPDATE customers SET city = 'x' WHERE id = 1")
def idle_writer_of_the_same_statement(path, timed):
    """The statement that waits and the one that began the transaction differ only in a literal."""
    held = threading.Event()

    def hold():
        db = connect(path)
        db.execute("BEGIN")
        db.execute("UPDATE customers SET city = 'x' WHERE id = 1")
        held.set()
        time.sleep(0.3)
        db.execute("ROLLBACK")
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    db = connect(path, timeout=60)
    db.execute("BEGIN")
    timed(lambda: db.execute("UPDATE customers SET city = 'x' WHERE id = 2"))
    db.execute("ROLLBACK")
    thread.join()


HOLDS = "import sqlite3, time; db = sqlite3.connect(%r); db.execute('BEGIN EXCLUSIVE'); print(1, flush=True); time.sleep(0.5); db.rollback()"


@program(ORDERS, "unrecorded_holder", "UPDATE customers")
def holder_that_is_not_recorded(path, timed):
    db = connect(path, timeout=60)
    # Another program, which has not inherited the recorder.
    with subprocess.Popen([sys.executable, "-c", HOLDS % path], stdout=subprocess.PIPE, env={}) as holder:
        holder.stdout.readline()
        timed(lambda: db.execute("UPDATE customers SET city = 'x' WHERE id = 1"))


def writers(path, timed, timeout):
    begin = threading.Barrier(4)

    def write():
        db = connect(path, timeout=timeout)
        begin.wait()
        for i in range(60):
            while True:
                try:
                    db.execute("INSERT INTO orders(note) VALUES ('x')")
                    break
                except sqlite3.OperationalError:
                    time.sleep(0.005)
    threads = [threading.Thread(target=write) for _ in range(4)]
    timed(lambda: [[thread.start() for thread in threads], [thread.join() for thread in threads]])


# The writers also wait for the disk and for each other.
@program(ORDERS, "no_busy_timeout", "INSERT INTO orders", "commit_sync lock_holder")
def no_busy_timeout(path, timed):
    writers(path, timed, 0)


@program(ORDERS, also="commit_sync lock_holder")
def fine_busy_timeout(path, timed):
    writers(path, timed, 60)


SCHEMA = ORDERS + "".join("CREATE TABLE t%d(id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT '', b INT, c REAL); CREATE INDEX i%d ON t%d(a, b);" % (i, i, i) for i in range(200))


@program(SCHEMA, "reconnecting", "")
def reconnecting(path, timed):
    for i in for_a_while(0.5):
        db = connect(path)
        timed(lambda i=i, db=db: db.execute("SELECT name FROM customers WHERE id = ?", (i % 6000,)).fetchone())
        db.close()


@program(SCHEMA)
def fine_connection(path, timed):
    db = connect(path)
    for i in for_a_while():
        timed(lambda i=i: db.execute("SELECT name FROM customers WHERE id = ?", (i % 6000,)).fetchone())


@program(SCHEMA, "reconnecting", "")
def reconnecting_with_pragmas(path, timed):
    """Each connection prepares the same statements once. That is not a fault of the statements."""
    def run():
        db = connect(path)
        for pragma in ("journal_mode = WAL", "foreign_keys = 1", "cache_size = -20000", "busy_timeout = 5000"):
            db.execute("PRAGMA " + pragma)
        db.execute("SELECT name FROM customers WHERE id = 5").fetchone()
        db.close()
    for _ in for_a_while(0.6):
        timed(run)


@program(ORDERS, "read_locks", "SELECT city")
def reads_outside_a_transaction(path, timed):
    db = connect(path)
    for i in for_a_while(0.5):
        timed(lambda i=i: db.execute("SELECT city FROM customers WHERE id = ?", (i % 6000,)).fetchone())


@program(ORDERS)
def fine_reads_in_a_transaction(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    for i in for_a_while(0.5):
        timed(lambda i=i: db.execute("SELECT city FROM customers WHERE id = ?", (i % 6000,)).fetchone())
    db.execute("COMMIT")


@program(SCHEMA, "schema_reading", "")
def asks_for_the_schema(path, timed):
    """As an ORM that reflects its tables for each request."""
    db = connect(path, cached_statements=5)

    def reflect():
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            db.execute('PRAGMA table_info("%s")' % name).fetchall()
            db.execute('PRAGMA index_list("%s")' % name).fetchall()
    for _ in for_a_while():
        timed(reflect)
        db.execute("SELECT name FROM customers WHERE id = 5").fetchone()


@program("CREATE TABLE unused(x);", "commit_sync", "CREATE", cure="BEGIN and COMMIT around")
def migrations(path, timed):
    """Each statement has another text, and is a transaction of its own."""
    db = connect(path)
    for i in range(60):
        timed(lambda i=i: db.execute("CREATE TABLE t%d(id INTEGER PRIMARY KEY, a TEXT)" % i))
        timed(lambda i=i: db.execute("CREATE INDEX i%d ON t%d(a)" % (i, i)))


@program("CREATE TABLE unused(x);")
def fine_migrations(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    for i in range(60):
        db.execute("CREATE TABLE t%d(id INTEGER PRIMARY KEY, a TEXT)" % i)
    db.execute("COMMIT")


TEMPORARY = "CREATE TEMP TABLE wanted(id INT)"
TOTALS = "SELECT c.name, o.total FROM customers AS c LEFT JOIN orders AS o ON o.customer_id = c.id WHERE c.id = ? AND o.total >= %d"


def filtered(path, timed, once):
    db = connect(path, cached_statements=300)
    if once:
        db.execute(TEMPORARY)
    for i in for_a_while(0.4):
        db.execute("DELETE FROM wanted" if once else TEMPORARY)
        db.execute("INSERT INTO wanted VALUES (?)", (i,))
        for total in range(30):
            timed(lambda total=total, i=i: db.execute(TOTALS % total, (i % 6000,)).fetchall())
        if not once:
            db.execute("DROP TABLE wanted")


@program(ORDERS + BY_CUSTOMER, "reprepared", "SELECT c.name", cure="empty it with DELETE")
def temporary_tables(path, timed):
    filtered(path, timed, False)


@program(ORDERS + BY_CUSTOMER)
def fine_temporary_table(path, timed):
    filtered(path, timed, True)


@program(ORDERS, "preparing", "SAVEPOINT", "preparing", cure="the same name")
def savepoints_with_numbers(path, timed):
    """As an ORM writes nested transactions: RELEASE is prepared as often."""
    db = connect(path)
    db.execute("BEGIN")

    def run(i):
        db.execute('SAVEPOINT "s%d"' % i)
        db.execute("UPDATE customers SET city = 'x' WHERE id = ?", (i % 6000,))
        db.execute('RELEASE SAVEPOINT "s%d"' % i)
    for i in for_a_while():
        timed(lambda i=i: run(i))
    db.execute("COMMIT")


def backup(path, timed, pages):
    source, writer, target = connect(path), connect(path), connect(path + "-copy")
    for db in (writer, target):
        db.execute("PRAGMA synchronous = OFF")
    steps = 0

    def progress(*_):
        nonlocal steps
        steps += 1
        if steps % 5 == 0 and steps < 60:
            writer.execute("UPDATE customers SET city = 'y' WHERE id = 7")
    timed(lambda: source.backup(target, pages=pages, progress=progress, sleep=0))


@program(ORDERS, "backup_restarts", "sqlite3_backup_step")
def backup_in_steps(path, timed):
    backup(path, timed, 100)


@program(ORDERS)
def fine_backup(path, timed):
    backup(path, timed, -1)


@program(ORDERS, "user_function", "SELECT id FROM customers", "sort")
def collation(path, timed):
    db = connect(path)
    db.create_collation("by_letters", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))
    repeat(db, timed, "SELECT id FROM customers ORDER BY city COLLATE by_letters", nothing, 0.5)


@program(ORDERS, "slow_consumer", "SELECT id, created")
def converted_rows(path, timed):
    db = connect(path, detect_types=sqlite3.PARSE_COLNAMES)
    sqlite3.register_converter("seconds", lambda text: time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(int(text))))
    for _ in range(4):
        timed(lambda: db.execute('SELECT id, created AS "created [seconds]" FROM orders').fetchall())


# --- nothing is wrong ---------------------------------------------------------------------------------------------------

INDEXED = (ORDERS + BY_CUSTOMER + "CREATE INDEX by_status ON orders(status, created); CREATE INDEX by_total ON orders(total);"
           "CREATE INDEX by_name ON customers(name COLLATE NOCASE); CREATE INDEX by_lower ON customers(lower(city)); ANALYZE;")


def fine(name, sql, values=lambda i: (i % 6000 + 1,), setup=INDEXED):
    def run(path, timed):
        repeat(connect(path), timed, sql, values)
    run.__name__ = name
    program(setup)(run)


fine("fine_lookup", "SELECT name FROM customers WHERE id = ?")
fine("fine_index", "SELECT * FROM orders WHERE customer_id = ?")
fine("fine_two_columns", "SELECT id FROM orders WHERE status = 'open' AND created > ?")
fine("fine_join", "SELECT c.name, o.total FROM customers AS c JOIN orders AS o ON o.customer_id = c.id WHERE c.id = ?")
fine("fine_count_all", "SELECT count(*) FROM orders", nothing)
fine("fine_sum_all", "SELECT sum(total), max(note) FROM orders", nothing)
fine("fine_export", "SELECT * FROM orders", nothing)
fine("fine_order_by_index", "SELECT id FROM orders ORDER BY total DESC LIMIT 10", nothing)
fine("fine_group_by_index", "SELECT customer_id, count(*) FROM orders GROUP BY customer_id", nothing)
fine("fine_distinct_index", "SELECT DISTINCT customer_id FROM orders", nothing)
fine("fine_like_index", "SELECT id FROM customers WHERE name LIKE 'name 59%'", nothing)
fine("fine_expression_index", "SELECT id FROM customers WHERE lower(city) = ?", lambda i: ("city %d" % (i % 300),))
fine("fine_exists", "SELECT count(*) FROM customers AS c WHERE id < ? AND EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = c.id)")
fine("fine_correlated", "SELECT id, (SELECT count(*) FROM orders AS o WHERE o.customer_id = c.id) FROM customers AS c WHERE id BETWEEN ?1 AND ?1 + 50")
fine("fine_collation", "SELECT id FROM customers WHERE name = ? COLLATE NOCASE", lambda i: ("NAME %d" % i,))
fine("fine_type", OF_ITEM, lambda i: (i % 2000 + 1,), CODES % "TEXT")
fine("fine_grouped", "SELECT count(*) FROM (SELECT customer_id, max(total) AS total FROM orders GROUP BY customer_id)", nothing)
fine("fine_keyset_pages", "SELECT id, note FROM orders WHERE id > ? ORDER BY id LIMIT 20")
fine("fine_first_pages", "SELECT id, note FROM orders ORDER BY id LIMIT 50 OFFSET ?", lambda i: (i % 50,))
fine("fine_recursive", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) SELECT sum(x) FROM c", nothing)
fine("fine_window", "SELECT id, sum(total) OVER (ORDER BY id) FROM orders WHERE id <= ?")
fine("fine_in_list", "SELECT name FROM customers WHERE id IN (1, 5, 9, ?)")
fine("fine_json", "SELECT sum(value) FROM json_each(?)", lambda i: (json.dumps(list(range(500))),))
fine("fine_union", "SELECT id FROM customers WHERE id = ?1 UNION ALL SELECT id FROM orders WHERE customer_id = ?1")
fine("fine_partial_index", "SELECT count(*) FROM orders WHERE status = 'open' AND total > 10", nothing,
     INDEXED + "CREATE INDEX open_orders ON orders(total) WHERE status = 'open';")
fine("fine_fts", "SELECT rowid FROM words WHERE words MATCH ? LIMIT 10", lambda i: ("w%d" % (i % 100),),
     "CREATE VIRTUAL TABLE words USING fts5(t); INSERT INTO words " + ROWS % 20000 + "SELECT 'w' || (i % 100) || ' w' || (i % 999) FROM n;")
fine("fine_rtree", "SELECT id FROM boxes WHERE x1 >= ?1 AND x2 <= ?1 + 5", lambda i: (i % 900,),
     "CREATE VIRTUAL TABLE boxes USING rtree(id, x1, x2); INSERT INTO boxes " + ROWS % 20000 + "SELECT i, i % 1000, i % 1000 + 1 FROM n;")
fine("fine_integrity_check", "PRAGMA integrity_check", nothing)
fine("fine_aggregate_of_half", "SELECT sum(total) FROM orders WHERE created > 1800000", nothing)


fine("fine_range_join", "SELECT count(*) FROM customers AS c JOIN orders AS o ON o.id BETWEEN c.id * 10 AND c.id * 10 + 9", nothing)
fine("fine_count_of_few", "SELECT p.id, count(DISTINCT c.id) FROM posts AS p LEFT JOIN comments AS c ON c.post = p.id GROUP BY p.id", nothing, POSTS)
fine("fine_union_all", "SELECT count(*) FROM (SELECT path FROM files UNION ALL SELECT path FROM seen)", nothing, PATHS)
fine("fine_list", NOT_SEEN, nothing, PATHS + "CREATE INDEX by_path ON seen(path);")
fine("fine_list_of_few", NOT_SEEN, nothing, PATHS + "DELETE FROM seen WHERE id > 100;")
fine("fine_shuffle", "SELECT id FROM customers ORDER BY random()", nothing)
fine("fine_both_ends", "SELECT (SELECT min(total) FROM orders), (SELECT max(total) FROM orders)", nothing)
fine("fine_view", "SELECT c.name, s.n FROM customers AS c LEFT JOIN (SELECT customer_id, count(*) AS n FROM orders WHERE customer_id = ?1) AS s ON s.customer_id = c.id WHERE c.id = ?1")
fine("fine_wide_rows", OWNERS, nothing, FILES % ("owner INT, content BLOB", "i % 3, zeroblob(60000)") + "CREATE INDEX by_owner ON files(owner);")
fine("fine_union_join", "SELECT c.id FROM stars AS s CROSS JOIN customers AS c ON c.name = s.name UNION SELECT c.id FROM stars AS s CROSS JOIN customers AS c ON c.city = s.name",
     nothing, STARS)


@program(INDEXED)
def fine_lookups_of_requests(path, timed):
    db = connect(path)
    for i in for_a_while():
        timed(lambda: db.execute("SELECT name FROM customers WHERE id = ?", (i * 31 % 6000,)).fetchone())
        db.execute("SELECT total FROM orders WHERE id = ?", (i * 17 % 60000,)).fetchone()


@program(INDEXED)
def fine_one_transaction(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    for i in range(30000):
        db.execute("INSERT INTO customers(name, city) VALUES (?, 'x')", (str(i),))
    db.execute("COMMIT")


@program(INDEXED)
def fine_executemany(path, timed):
    db = sqlite3.connect(path)
    db.executemany("INSERT INTO customers(name, city) VALUES (?, 'y')", ((str(i),) for i in range(40000)))
    db.commit()


@program(INDEXED)
def fine_updates_by_key(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    for i in for_a_while():
        db.execute("UPDATE orders SET note = ? WHERE id = ?", (str(i), i % 60000))
    db.execute("COMMIT")


@program(INDEXED)
def fine_upsert(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    for i in for_a_while():
        db.execute("INSERT INTO customers VALUES (?, 'n', 'c') ON CONFLICT(id) DO UPDATE SET city = excluded.city", (i % 7000,))
    db.execute("COMMIT")


@program(INDEXED)
def fine_deletes_by_key(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    for i in range(50000):
        db.execute("DELETE FROM orders WHERE id = ?", (i,))
    db.execute("COMMIT")


@program(PARENTS % "CASCADE" + "CREATE INDEX by_parent ON children(parent);")
def fine_foreign_key(path, timed):
    delete_parents(path, timed)


@program(ORDERS + "CREATE TABLE log(n INT); CREATE TRIGGER counted AFTER UPDATE ON orders WHEN new.id = 77 BEGIN INSERT INTO log VALUES (1); END;")
def fine_trigger(path, timed):
    db = connect(path)
    db.execute("BEGIN")
    repeat(db, timed, "UPDATE orders SET note = note || 'x' WHERE id BETWEEN ?1 AND ?1 + 100", lambda i: (i % 60000,))
    db.execute("COMMIT")


@program(INDEXED + "PRAGMA journal_mode = WAL;", also="mutex")  # the allocator's mutex, if its holder loses its processor
def fine_readers(path, timed):
    def read():
        db = connect(path)
        for i in for_a_while():
            db.execute("SELECT * FROM orders WHERE customer_id = ?", (i % 6000,)).fetchall()
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@program(INDEXED)
def fine_create_index(path, timed):
    connect(path).execute("CREATE INDEX by_note ON orders(note)")


@program(INDEXED)
def fine_vacuum(path, timed):
    connect(path).execute("VACUUM")


@program(INDEXED + "PRAGMA journal_mode = WAL;", also="checkpoint")
def fine_vacuum_in_a_program(path, timed):
    """VACUUM writes the indexes as it writes all, and reads its copy again."""
    db = connect(path)
    db.execute("UPDATE customers SET city = 'x' WHERE id = 5")
    db.execute("VACUUM")
    time.sleep(1.1)  # then queryprof reads the counters of the connection
    db.execute("SELECT name FROM customers WHERE id = 5").fetchall()


@program(INDEXED)
def fine_memory_table(path, timed):
    db = connect(":memory:")
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT)")
    db.executemany("INSERT INTO t(v) VALUES (?)", ((str(i),) for i in range(50000)))
    repeat(db, timed, "SELECT v FROM t WHERE id = ?", lambda i: (i % 50000,))


def score(path, timed, sql):
    db = connect(path)
    db.create_function("score", 1, lambda x: sum(divmod(x or 0, 7)))
    repeat(db, timed, sql, lambda i: (i % 6000,))


@program(INDEXED, "user_function", "SELECT score(id)")
def user_function(path, timed):
    score(path, timed, "SELECT score(id) FROM customers WHERE id BETWEEN ?1 AND ?1 + 200")


@program(INDEXED, "user_function", "SELECT count(*) FROM orders")
def user_function_filters(path, timed):
    score(path, timed, "SELECT count(*) FROM orders WHERE id BETWEEN ?1 AND ?1 + 2000 AND score(id) > 3")


@program(INDEXED)
def fine_function(path, timed):
    score(path, timed, "SELECT score(sum(id)) FROM customers WHERE id BETWEEN ?1 AND ?1 + 1000")


@program(INDEXED)
def fine_plan_change(path, timed):
    db = connect(path)
    sql = "SELECT count(*), max(total) FROM orders WHERE customer_id = ?"
    repeat(db, timed, sql, lambda i: (i % 6000,), 0.2)
    db.execute("CREATE INDEX by_customer_total ON orders(customer_id, total)")
    repeat(db, timed, sql, lambda i: (i % 6000,), 0.2)


@program(INDEXED)
def fine_blobs(path, timed):
    db = connect(path)
    db.execute("CREATE TABLE files(id INTEGER PRIMARY KEY, content BLOB)")
    db.execute("BEGIN")
    for i in range(40):
        db.execute("INSERT INTO files(content) VALUES (zeroblob(500000))")
    db.execute("COMMIT")
    for i in range(200):
        db.execute("SELECT content FROM files WHERE id = ?", (i % 40 + 1,)).fetchone()


def main(programs):
    spent = 0

    def timed(run):
        nonlocal spent
        start = time.monotonic_ns()
        run()
        spent += time.monotonic_ns() - start
    programs[sys.argv[1]].run(sys.argv[2], timed)
    print(spent)


if __name__ == "__main__":
    main(PROGRAMS)
