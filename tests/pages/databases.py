# SPDX-License-Identifier: Apache-2.0
"""Databases with pages of every kind."""

import os
import random
import sqlite3

SEED = 20220930
LONG = "t" + "x" * 300  # the name of a table


def fill(db, chance):
    db.executescript("""
        CREATE TABLE plain (id INTEGER PRIMARY KEY, word TEXT, number REAL);
        CREATE INDEX by_word ON plain (word);
        CREATE TABLE keyed (word TEXT PRIMARY KEY, more BLOB) WITHOUT ROWID;
        CREATE TABLE wide (id INTEGER PRIMARY KEY, body BLOB UNIQUE);
        CREATE TABLE empty (a, b);
        CREATE VIEW seen AS SELECT * FROM plain;
        CREATE TRIGGER fired AFTER INSERT ON empty BEGIN SELECT 1; END;
        CREATE VIRTUAL TABLE texts USING fts5 (body);
        CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1);
        CREATE TABLE lengths (body BLOB);
        CREATE INDEX by_body ON lengths (body);
        CREATE TABLE dropped (body BLOB);""")
    db.execute("CREATE TABLE %s (%s)" % (LONG, ", ".join("column%d" % i for i in range(300))))
    db.executemany("INSERT INTO plain VALUES (?, ?, ?)",
                   ((i * 7, "word %d" % chance.randrange(10**9), chance.random()) for i in range(2000)))
    db.executemany("INSERT INTO keyed VALUES (?, ?)",
                   (("key %d" % i, chance.randbytes(chance.choice((3, 30, 3000)))) for i in range(300)))
    db.executemany("INSERT INTO wide VALUES (?, ?)",
                   ((2**i if i < 60 else i + 2**62, chance.randbytes(chance.choice((1, 100, 480, 500, 1000, 4000, 70000, 200000))))
                    for i in range(80)))
    # All lengths around the ones at which a payload needs an overflow page, in a table and in an index.
    db.executemany("INSERT INTO lengths VALUES (?)",
                   ((chance.randbytes(length),) for length in (*range(70, 1020), *range(4020, 4070), *range(16390, 16430), *range(65470, 65510))))
    db.executemany("INSERT INTO texts VALUES (?)", ((" ".join("w%d" % chance.randrange(500) for _ in range(30)),) for _ in range(200)))
    db.executemany("INSERT INTO boxes VALUES (?, ?, ?)", ((i, i, i + 5) for i in range(500)))
    db.executemany("INSERT INTO dropped VALUES (?)", ((chance.randbytes(600),) for _ in range(1000)))
    db.commit()
    db.execute("DROP TABLE dropped")
    db.execute("DELETE FROM plain WHERE id % 3 = 0")
    # Free blocks between cells with overflow pages and others.
    db.execute("DELETE FROM lengths WHERE length(body) % 4 = 0")
    db.commit()


def make(folder, **pragmas):
    """Returns the path, and the connection that made the database."""
    path = os.path.join(folder, "%s.db" % "-".join(map(str, pragmas.values())))
    db = sqlite3.connect(path)
    for name, value in pragmas.items():
        db.execute("PRAGMA %s = %s" % (name, value))
    fill(db, random.Random(SEED))
    return path, db
