# SPDX-License-Identifier: Apache-2.0
"""Programs for test_advise.py: for some, the best indexes are known; for the others, no index helps.

  programs.py NAME DATABASE    runs one"""

import collections
import sqlite3
import sys

Program = collections.namedtuple("Program", "setup run best condition")
PROGRAMS = {}
ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d) "


def program(setup, *best, condition=()):
    """best: for each index that advise must find, its table and first columns. condition: parts of the text of a partial
    index."""
    def add(run):
        PROGRAMS[run.__name__] = Program(setup, run, best, condition)
        return run
    return add


# --- an index helps -------------------------------------------------------------------------------------------------

TPCH = ("CREATE TABLE orders(o_orderkey INTEGER PRIMARY KEY, o_custkey INT, o_orderdate TEXT, o_comment TEXT);"
        "CREATE TABLE lineitem(l_id INTEGER PRIMARY KEY, l_orderkey INT, l_quantity INT, l_extendedprice REAL, l_shipdate TEXT, l_comment TEXT);"
        "INSERT INTO orders " + ROWS % 5000 + "SELECT i, i * 7919 % 500, date('1992-01-01', '+' || (i * 31 % 2400) || ' days'), 'comment ' || i FROM n;"
        "INSERT INTO lineitem " + ROWS % 20000 + "SELECT i, i * 31 % 5000 + 1, i % 50, i % 1000, date('1992-01-01', '+' || (i * 17 % 2400) || ' days'), "
        "'comment of the line ' || i FROM n;")


@program(TPCH, ("lineitem", "l_orderkey"))
def tpch(db):
    for i in range(30):
        db.execute("SELECT o_orderkey, sum(l_extendedprice) FROM orders CROSS JOIN lineitem ON l_orderkey = o_orderkey "
                   "WHERE o_custkey = ? GROUP BY o_orderkey", (i,)).fetchall()


SHOP = ("CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INT, status TEXT, created INT, total REAL, note TEXT);"
        "INSERT INTO orders " + ROWS % 30000 + "SELECT i, i * 7919 % 3000, CASE i % 500 WHEN 0 THEN 'open' ELSE 'done' END, i * 60, "
        "i * 31 % 1000 / 10.0, 'a note about the order ' || i FROM n;")


@program(SHOP, ("orders", "customer_id"))
def shop(db):
    for i in range(40):
        db.execute("SELECT id, total, note FROM orders WHERE customer_id = ?", (i,)).fetchall()
        db.execute("INSERT INTO orders(customer_id, status, created, total, note) VALUES (?, ?, ?, ?, ?)", (i, "open", i, 1.5, "new"))


EVENTS = ("CREATE TABLE events(id INTEGER PRIMARY KEY, device INT, at INT, kind TEXT, payload TEXT);"
          "INSERT INTO events " + ROWS % 30000 + "SELECT i, i * 7919 % 100, i * 10, 'kind ' || (i % 7), 'payload ' || i FROM n;")


@program(EVENTS, ("events", "device", "at"))
def events(db):
    for i in range(40):
        db.execute("SELECT at, payload FROM events WHERE device = ? ORDER BY at DESC LIMIT 10", (i,)).fetchall()
        db.execute("INSERT INTO events(device, at, kind, payload) VALUES (?, ?, ?, ?)", (i, 300000 + i, "kind 1", "new"))


@program(SHOP, ("orders", "created"), condition=[") WHERE \"status\" = 'open'"])
def partial(db):
    """Few rows are open, and the program writes many rows that are not."""
    for i in range(40):
        db.execute("SELECT max(total) FROM (SELECT total FROM orders WHERE status = 'open' AND created > ? ORDER BY created LIMIT 20)", (i * 1000,)).fetchall()
    db.execute("BEGIN")
    for i in range(3000):
        db.execute("INSERT INTO orders(customer_id, status, created, total, note) VALUES (?, 'done', ?, ?, ?)", (i, i, 1.5, "new"))
    db.execute("COMMIT")


TREE = ("CREATE TABLE nodes(id INTEGER PRIMARY KEY, parent INT REFERENCES nodes(id), name TEXT);"
        "INSERT INTO nodes " + ROWS % 5000 + "SELECT i, i / 4, 'node ' || i FROM n;")


@program(TREE, ("nodes", "parent"))
def tree(db):
    for i in range(10):
        db.execute("WITH RECURSIVE below(id) AS (SELECT id FROM nodes WHERE parent = ? UNION ALL "
                   "SELECT nodes.id FROM below CROSS JOIN nodes ON nodes.parent = below.id) SELECT count(*) FROM below", (i * 100 + 500,)).fetchall()


CHAT = ("CREATE TABLE messages(id INTEGER PRIMARY KEY, room INT, sender TEXT, body TEXT);"
        "CREATE VIRTUAL TABLE texts USING fts5(body, content='messages', content_rowid='id');"
        "INSERT INTO messages " + ROWS % 20000 + "SELECT i, i * 7919 % 1000, 'person ' || (i % 300), 'word' || (i % 200) || ' and more text' FROM n;"
        "INSERT INTO texts(texts) VALUES ('rebuild');")


@program(CHAT, ("messages", "sender"))
def chat(db):
    for i in range(40):
        db.execute("SELECT count(*), max(id) FROM messages WHERE sender = ?", ("person %d" % i,)).fetchall()
        db.execute("SELECT rowid FROM texts WHERE texts MATCH ? LIMIT 5", ("word%d" % i,)).fetchall()


# --- no index helps -------------------------------------------------------------------------------------------------

@program(SHOP)
def primary_key(db):
    for i in range(2000):
        db.execute("SELECT note FROM orders WHERE id = ?", (i,)).fetchall()


@program(SHOP + "CREATE INDEX by_customer ON orders(customer_id);")
def indexed(db):
    for i in range(1000):
        db.execute("SELECT * FROM orders WHERE customer_id = ?", (i,)).fetchall()


@program(SHOP)
def whole_table(db):
    for _ in range(10):
        db.execute("SELECT * FROM orders WHERE total >= -1").fetchall()


@program("CREATE TABLE small(id INTEGER PRIMARY KEY, k INT, t TEXT); INSERT INTO small VALUES (1, 1, 'a'), (2, 2, 'b');")
def tiny(db):
    for i in range(500):
        db.execute("SELECT t FROM small WHERE k = ?", (i % 3,)).fetchall()


@program(EVENTS)
def write_heavy(db):
    """An index would help one statement, which runs once, but each of many new rows would have to be added to it."""
    db.execute("BEGIN")
    for i in range(40000):
        db.execute("INSERT INTO events(device, at, kind, payload) VALUES (?, ?, ?, ?)", (i % 100, i, "kind 2", "new"))
    db.execute("COMMIT")
    db.execute("SELECT count(*) FROM events WHERE at BETWEEN ? AND ?", (100, 200)).fetchall()


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]].run(sqlite3.connect(sys.argv[2], isolation_level=None))
