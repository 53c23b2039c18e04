#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof pages --walk: compares the owners of pages that a recording does not know with dbstat.

usage: as lib/tool.py"""

import contextlib
import json
import os
import random
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import databases
import trace_file
from tool import SCHEMA, Tool, main, run

START = 1795000000 * 10**9
UNKNOWN = 0
# A walk ends after a second. A busy machine may stop it for that long, but not each time.
TRIES = 10
COUNTS = ("reads", "read_bytes", "wal_read_bytes", "writes", "rewritten", "wal_bytes", "database_bytes", "journal_bytes", "journal_read_bytes")


def make_trace(path, database, pages):
    """A recording in which each of the pages was written once, and no page has a known owner."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        with open(SCHEMA, encoding="utf-8") as file:
            db.executescript(file.read())
        db.execute("PRAGMA application_id = %d" % 0x51505246)
        db.execute("PRAGMA user_version = %d" % trace_file.version(SCHEMA))
        db.execute("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) VALUES (1, 'host', 100, ?, '/usr/bin/app')", (START,))
        db.executemany(
            "INSERT INTO page_sums (process, thread_id, start_ns, kind, root, statement, database, btree, table_name, %s)"
            " VALUES (1, 101, ?, ?, ?, 0, ?, '', '', 0, 0, 0, 1, 0, 4096, 0, 0, 0)" % ", ".join(COUNTS),
            ((START, UNKNOWN, page, database) for page in pages))
        db.commit()


class Walk(Tool):
    def walk(self, database, pages):
        trace = os.path.join(self.folder, "walked.trace")
        if os.path.exists(trace):
            os.remove(trace)
        make_trace(trace, database, pages)
        rows = json.loads(self.output("pages", trace, "--walk", database, "--by", "btree", "--format", "json", "--limit", "1000"))
        return {row["btree"] or row["kind"]: row for row in rows}, self.output("pages", trace, "--walk", database)

    def whole_walk(self, database, pages):
        """A walk that was not too slow. JSON does not tell, but then there are pages with no known owner."""
        for _ in range(TRIES):
            rows, text = self.walk(database, pages)
            if "unknown" not in rows and "a second had passed" not in " ".join(text.split()):
                break
        return rows, text

    def compare(self, path, db):
        total = db.execute("PRAGMA page_count").fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
        rows, text = self.whole_walk(path, range(1, total + 1))
        stored = dict(db.execute("SELECT name, count(*) FROM dbstat GROUP BY 1"))
        stored["freelist"] = db.execute("PRAGMA freelist_count").fetchone()[0]
        maps = total - sum(stored.values())
        if maps:
            stored["pointer map"] = maps
        self.assertEqual({name: row["writes"] for name, row in rows.items()}, {name: pages for name, pages in stored.items() if pages})
        for name, row in rows.items():
            if name in ("freelist", "pointer map"):
                self.assertIsNone(row["size_mb"], name)
            else:
                self.assertEqual(row["size_mb"], round(stored[name] * size / 1e6, 3), name)
        kinds = {name: (row["kind"], row["table"]) for name, row in rows.items()}
        self.assertEqual(kinds["plain"], ("table", "plain"))
        self.assertEqual(kinds["by_word"], ("index", "plain"))
        self.assertEqual(kinds["keyed"], ("without rowid", "keyed"))
        self.assertEqual(kinds["texts_data"], ("shadow", "texts_data"))
        self.assertEqual(kinds["boxes_node"], ("shadow", "boxes_node"))
        self.assertEqual(kinds["sqlite_schema"][0], "schema")
        self.assertIn("showed the owners of %d of its %d pages." % (total, total), " ".join(text.split()))
        self.assertIn("The owner of 0.0 % of these bytes is not known.", " ".join(text.split()))

    def test_against_dbstat(self):
        for pragmas in ({"page_size": 512}, {"page_size": 4096}, {"page_size": 65536}, {"page_size": 1024, "auto_vacuum": "FULL"},
                        {"page_size": 4096, "auto_vacuum": "INCREMENTAL"}, {"page_size": 4096, "encoding": "'UTF-16be'"}):
            with self.subTest(**pragmas):
                path, db = databases.make(self.folder, **pragmas)
                with contextlib.closing(db):
                    self.compare(path, db)

    def test_pages_in_the_wal(self):
        """The connection stays open, so the file contains only its first page, and the WAL all others."""
        path, db = databases.make(self.folder, page_size=4096, journal_mode="WAL", wal_autocheckpoint=0)
        with contextlib.closing(db):
            self.assertLess(os.path.getsize(path), 100000)
            self.compare(path, db)

    def test_locks(self):
        """The walk neither waits for a lock nor takes one."""
        path, db = databases.make(self.folder, page_size=2048)
        with contextlib.closing(db):
            db.execute("BEGIN EXCLUSIVE")
            rows, _ = self.whole_walk(path, [2])
            self.assertEqual(list(rows), ["plain"])

    def test_damaged(self):
        """The walk may know fewer owners of damaged pages. It ends, and does not report pages that do not exist."""
        chance = random.Random(databases.SEED)
        path, db = databases.make(self.folder, page_size=512, application_id=1)
        db.close()
        with open(path, "rb") as file:
            whole = file.read()
        for _ in range(10):
            damaged = bytearray(whole)
            for _ in range(len(damaged) // 2000):
                damaged[chance.randrange(200, len(damaged))] = chance.choice((0, 1, 2, 5, 10, 13, 0x80, 0xFF))
            with open(path, "wb") as file:
                file.write(damaged)
            rows, _ = self.walk(path, range(1, len(whole) // 512 + 2))
            self.assertEqual(sum(row["writes"] for row in rows.values()), len(whole) // 512 + 1)
            self.assertGreaterEqual(rows["unknown"]["writes"], 1)

    def test_bound(self):
        """The walk does not read all of a tree of a gigabyte."""
        path, db = databases.make(self.folder, page_size=4096, user_version=7)
        with contextlib.closing(db):
            root, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'plain'").fetchone()
        children = 400
        with open(path, "r+b") as file:
            first = 10000 # the first of its pages, after the database's own

            def interior(page, below):
                cells = b"".join(below.to_bytes(4, "big") + bytes((index // 128 + 128, index % 128)) for index, below in enumerate(below))
                start = 4096 - len(cells)
                pointers = b"".join((start + 6 * i).to_bytes(2, "big") for i in range(len(below)))
                file.seek((page - 1) * 4096)
                file.write(b"\x05\0\0" + len(below).to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0" + below[-1].to_bytes(4, "big") + pointers)
                file.seek((page - 1) * 4096 + start)
                file.write(cells)

            interior(root, range(first, first + children))
            for i in range(children):
                interior(first + i, range(first + children * (i + 1), first + children * (i + 2)))
            for i in range(children * 100):
                interior(first + children + i, [1] * 400)
            file.truncate(2**30)
        _, text = self.walk(path, [2])
        self.assertRegex(" ".join(text.split()), r"Reading (6[0-7]|[0-5]?[0-9])\.\d MB of it in \d+ ms showed the owners of \d+ of its 262144 pages, then (64 MB were read|a second had passed)\.")

    def test_refused(self):
        self.assertIn("--walk %s: not a database of SQLite, or encrypted" % SCHEMA, self.refused(1, "pages", self.trace, "--walk", SCHEMA))
        self.assertIn("--walk /nowhere: No such file or directory", self.refused(1, "pages", self.trace, "--walk", "/nowhere"))
        path, db = databases.make(self.folder, page_size=8192)
        db.close()
        self.assertIn("has no page of a database with this name", self.refused(1, "pages", self.trace, "--walk", path))
        self.assertEqual(run("pages", self.trace, "--walk", self.folder)[0], 1)


if __name__ == "__main__":
    main()
