#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof pages on a program with three indexes: one on random values, one on rising values, and one that no statement
reads. Compares its output with the frames of the WAL, whose owners dbstat names afterwards.

usage: test_pages.py QUERYPROF [unittest arguments]"""

import collections
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# The test's connection keeps the WAL when the program closes its own.
PROGRAM = r"""
import random, sqlite3, sys
random.seed(20220930)
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA wal_autocheckpoint = 0")
db.execute("PRAGMA synchronous = OFF")
db.executescript('''
    CREATE TABLE asset (id INTEGER PRIMARY KEY, name TEXT, created INT, amount INT);
    CREATE INDEX i_name ON asset (name);
    CREATE INDEX i_created ON asset (created);
    CREATE INDEX i_amount ON asset (amount);''')
for transaction in range(150):
    db.execute("BEGIN")
    for row in range(30):
        db.execute("INSERT INTO asset (name, created, amount) VALUES (?, ?, ?)",
                   ("%032x" % random.getrandbits(128), transaction * 30 + row, random.getrandbits(40)))
    db.execute("COMMIT")
for i in range(200):
    db.execute("SELECT count(*) FROM asset WHERE name > ? AND name < 'f'", ("%x" % i,)).fetchone()
    db.execute("SELECT max(id) FROM asset WHERE created = ?", (i,)).fetchone()
"""


def frames(path):
    """The number of each page's frames in the WAL."""
    with open(path, "rb") as file:
        header = file.read(32)
        size, = struct.unpack_from(">I", header, 8)
        counts = collections.Counter()
        while (frame := file.read(24 + size)):
            assert len(frame) == 24 + size and frame[8:16] == header[16:24]
            counts[struct.unpack_from(">I", frame)[0]] += 1
    return size, counts


class Pages(Recording):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "asset.db")
        db = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(db.close)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("SELECT * FROM sqlite_schema").fetchall()
        self.db = db
        done = self.record(PYTHON, self.file("program.py", PROGRAM), self.path)
        self.assertEqual(done.returncode, 0, self.seen)

    def pages(self, *options):
        done = subprocess.run([QUERYPROF, "pages", self.trace, *options], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def json(self, *options):
        return json.loads(self.pages(*options, "--format", "json"))

    def test_indexes(self):
        size, counts = frames(self.path + "-wal")
        owners = dict(self.db.execute("SELECT pageno, name FROM dbstat"))
        written, distinct = collections.Counter(), collections.Counter()
        for page, count in counts.items():
            written[owners.get(page, "")] += count
            distinct[owners.get(page, "")] += 1
        rows = {row["btree"] or row["kind"]: row for row in self.json("--by", "btree") if row["database"] == self.path}
        total = sum(counts.values()) * (size + 24)

        # Each frame counts once, for its owner, if the owner is known.
        megabyte = (size + 24) / 1e6
        seen = sum(row["wal_mb"] for row in rows.values())
        self.assertAlmostEqual(seen, total / 1e6, delta=0.002 + 0.0005 * len(rows), msg=rows)  # each is rounded
        unknown = rows.get("unknown", {"wal_mb": 0})["wal_mb"]
        self.assertLess(unknown, 0.02 * total / 1e6)
        for name in "asset", "i_name", "i_created", "i_amount":
            self.assertLessEqual(rows[name]["wal_mb"], written[name] * megabyte + 0.001, name)
            self.assertGreaterEqual(rows[name]["wal_mb"], written[name] * megabyte - unknown - 0.001, name)
            if not unknown:
                self.assertEqual(rows[name]["pages_written"], distinct[name], name)
                self.assertEqual(rows[name]["times"], round(written[name] / distinct[name], 1), name)

        # Rising values fill page after page; random ones change pages everywhere.
        self.assertGreater(rows["i_amount"]["wal_mb"], 2 * rows["i_created"]["wal_mb"])
        self.assertGreater(rows["i_amount"]["times"], 2 * rows["i_created"]["times"])
        self.assertEqual([rows[name]["texts_reading"] for name in ("i_name", "i_created", "i_amount")], [1, 1, 0])
        self.assertIsNone(rows["asset"]["texts_reading"])

        first = self.json("--by", "index")[0]
        self.assertEqual((first["index"], first["table"], first["is_read"]), ("i_amount", "asset", "no"))

        # The statements and the b-trees have the same bytes. Bytes written at the transaction's end count for the
        # COMMIT, or for its statements.
        statements = self.json("--by", "statement", "--limit", "100")
        self.assertAlmostEqual(sum(row["wal_mb"] for row in statements), seen, delta=0.001 * (len(rows) + len(statements)))
        self.assertEqual(sum(row["run_written_bytes"] or 0 for row in statements if row["query"].startswith("SELECT")), 0)

    def test_sentence(self):
        text = " ".join(self.pages().split())
        shares = {row["index"]: row["share_%"] for row in self.json("--by", "index")}
        found = re.search(r"Index i_amount of asset: (\d+) % of all bytes written to the WAL, each of its pages (\d+|\d\.\d) times; "
                          r"no recorded statement reads it \(0 of (\d+) texts[^)]*\)\.", text)
        self.assertTrue(found, text)
        self.assertAlmostEqual(int(found[1]), shares["i_amount"], delta=0.56)
        self.assertGreaterEqual(int(found[3]), 3)  # INSERT and two SELECTs
        self.assertNotRegex(text, r"Index i_name of asset[^.]*no recorded statement")
        done = subprocess.run([QUERYPROF, "findings", self.trace, "--format", "json"], capture_output=True, text=True, timeout=300, check=False)
        titles = [one["title"] for one in json.loads(done.stdout) if one["finding"] == "index_writes"]
        self.assertEqual(len(titles), 1, done.stdout)
        self.assertIn("index i_amount of asset", titles[0])
        # No byte counts twice in the map, because each b-tree has its own line.
        self.assertRegex(text, r"B-trees over time: \d+ s; a full block is \d+\.\d+ MB index i_\w+ of asset [▁▂▃▄▅▆▇█ ]+")

    def test_table(self):
        """Selected rows keep the shares that they have among all rows."""
        whole = {row["btree"]: row for row in self.json("--by", "btree") if row["btree"]}
        part = self.json("--by", "btree", "--table", "I_AMOUNT")
        self.assertEqual(part, [whole["i_amount"]])
        of_table = {row["btree"] for row in self.json("--by", "btree", "--table", "asset")}
        self.assertEqual(of_table, {"asset", "i_name", "i_created", "i_amount"})
        self.assertIn("no page that matches the options", self.pages("--table", "nothing"))

    def test_walk(self):
        sizes = dict(self.db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
        wanted = {name: round(sizes[name] / 1e6, 3) for name in ("asset", "i_name", "i_created", "i_amount")}
        for _ in range(10):  # a walk ends after a second, and a busy machine may stop it for that long
            rows = {row["btree"]: row["size_mb"] for row in self.json("--by", "btree", "--walk", self.path)}
            if wanted.items() <= rows.items():
                break
        self.assertLessEqual(wanted.items(), rows.items())


class Databases(Recording):
    def test_names(self):
        """If two databases have the same tables, each line names its database."""
        done = self.record(PYTHON, "-c", """
import sqlite3, sys
for path in sys.argv[1:]:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t(x)")
    db.execute("CREATE INDEX i ON t(x)")
    db.executemany("INSERT INTO t VALUES (?)", ((i,) for i in range(1000)))
    db.commit()
    db.close()
""", *[os.path.join(self.folder, name) for name in ("one.db", "two.db")])
        self.assertEqual(done.returncode, 0, self.seen)
        done = subprocess.run([QUERYPROF, "pages", self.trace], capture_output=True, text=True, timeout=300, check=False)
        text = " ".join(done.stdout.split())
        for name in "one.db", "two.db":
            self.assertIn("Index i of t in %s:" % name, text)
            self.assertRegex(text, r"B-trees over time:.* table t in %s [▁▂▃▄▅▆▇█]" % name)
            self.assertIn("50 %% journal in %s" % name, text)  # written by the INSERTs


if __name__ == "__main__":
    unittest.main()
