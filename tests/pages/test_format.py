#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the pages of databases of many kinds, as sqlite/pages/btree_page.h reads them, with SQLite's own dbstat and
sqlite_schema. Compares the pointer map and the freelist, which dbstat leaves out, with the rest of the file: each page has
one use, and the map's entries name the parents that the walk found.

usage: test_format.py READ_PAGES"""

import collections
import itertools
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import databases
from databases import LONG, SEED

READ_PAGES = sys.argv.pop(1)
TYPES = {"table": 1, "index": 2, "view": 3, "trigger": 4}
ROOT, FREE, OVERFLOW, OVERFLOW_REST, CHILD = range(1, 6)


def read(path, *options):
    done = subprocess.run([READ_PAGES, path, *options], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError("read_pages %s %s: exit status %d: %s" % (path, options, done.returncode, done.stdout[-300:] + done.stderr))
    return done.stdout.splitlines()


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make(self, **pragmas):
        path, db = databases.make(self.folder, **pragmas)
        self.addCleanup(db.close)
        return path, db

    def compare(self, path, db):
        lines = read(path)
        pages, schema = {}, {}
        for line in lines:
            words = line.split()
            if words[0] == "schema":
                row = dict(word.split("=", 1) for word in words[1:])
                schema[row["name"]] = int(row["type"]), row["table"], int(row["root"]), int(row["known"]), int(row["sql"])
            else:
                self.assertNotIn(int(words[0]), pages, "two uses of one page")
                pages[int(words[0])] = words[1], int(words[2]), int(words[3]), int(words[4])
        size = db.execute("PRAGMA page_size").fetchone()[0]
        encoded = "utf-16-le" if db.execute("PRAGMA encoding").fetchone()[0] == "UTF-16le" else "utf-8"
        for kind, name, table, root, sql in db.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema"):
            if name == LONG and not (LONG in schema and schema[LONG][3]):
                continue
            found = schema[name]
            self.assertEqual(found[:4], (TYPES[kind], table, root or 0, 1), name)
            # The text may continue on an overflow page.
            self.assertIn(found[4], (len((sql or "").encode(encoded)), 0), name)
        roots = {1: "sqlite_schema", **{row[2]: name for name, row in schema.items() if row[2]}}
        stored = {page: (kind, name, cells, payload) for name, page, kind, cells, payload in db.execute(
            "SELECT name, pageno, pagetype, ncell, payload FROM dbstat")}
        # A long row of the schema may continue on another page before its root page, but not with pages of 64 KB.
        lost = {page for page, row in stored.items() if row[1] == LONG and LONG not in roots.values()}
        if size in (512, 65536):
            self.assertEqual(len(lost), size == 512)
        own = {page: (kind, roots[root], cells, payload) for page, (kind, root, cells, payload) in pages.items()
               if kind in ("internal", "leaf", "overflow")}
        for page in lost:
            del stored[page]
        self.assertEqual(sorted(set(own.items()) ^ set(stored.items()))[:10], [])
        free = [page for page, row in pages.items() if row[0] in ("trunk", "free")]
        self.assertEqual(len(free), db.execute("PRAGMA freelist_count").fetchone()[0])
        return pages, lost

    def compare_map(self, path, db, pages, lost):
        maps, entries = set(), {}
        for line in read(path, "--map"):
            words = line.split()
            if words[0] == "entry":
                entries[int(words[1])] = int(words[2]), int(words[3])
            else:
                maps.add(int(words[0]))
        total = db.execute("PRAGMA page_count").fetchone()[0]
        self.assertEqual(set(range(1, total + 1)), set(pages) | maps | lost)
        self.assertFalse(maps & set(pages))
        self.assertEqual(set(entries), set(range(2, total + 1)) - maps)
        kinds = collections.Counter()
        for page, (kind, root, _, _) in pages.items():
            if page == 1:
                continue
            type_, parent = entries[page]
            kinds[type_] += 1
            if kind in ("trunk", "free"):
                self.assertEqual((type_, parent), (FREE, 0))
            elif page == root:
                self.assertEqual((type_, parent), (ROOT, 0))
            else:
                self.assertIn(type_, (OVERFLOW, OVERFLOW_REST) if kind == "overflow" else (CHILD,))
                self.assertEqual(pages[parent][1], root, "the parent is in the same b-tree")
        self.assertGreater(min(kinds[OVERFLOW], kinds[OVERFLOW_REST], kinds[CHILD]), 0)

    def test_against_dbstat(self):
        for size, vacuum in itertools.product((512, 1024, 4096, 65536), ("NONE", "INCREMENTAL")):
            with self.subTest(size=size, vacuum=vacuum):
                path, db = self.make(page_size=size, auto_vacuum=vacuum)
                pages, lost = self.compare(path, db)
                kinds = collections.Counter(row[0] for row in pages.values())
                self.assertGreater(min(kinds[kind] for kind in ("internal", "leaf", "overflow", "trunk", "free")), 0, kinds)
                if vacuum == "NONE":
                    self.assertEqual(read(path, "--map"), [])
                else:
                    self.compare_map(path, db, pages, lost)

    def test_utf16(self):
        path, db = self.make(encoding="'UTF-16le'", page_size=4096)
        self.compare(path, db)

    def test_wal(self):
        path = os.path.join(self.folder, "wal.db")
        db = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(db.close)
        db.execute("PRAGMA page_size = 2048")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (1)")
        header, *frames = [line.split() for line in read(path + "-wal", "--wal")]
        self.assertEqual(header, ["wal", "2048"])
        total = str(db.execute("PRAGMA page_count").fetchone()[0])
        # CREATE TABLE writes pages 1 and 2, INSERT page 2. The last frame of a commit contains the size of the
        # database.
        self.assertEqual(frames, [["frame", "1", "0", "1"], ["frame", "2", total, "1"], ["frame", "2", total, "1"]])
        # After a checkpoint the WAL begins again. The remaining frames have the earlier salts.
        db.execute("PRAGMA wal_checkpoint")
        db.execute("INSERT INTO t VALUES (2)")
        self.assertEqual([line.split()[3] for line in read(path + "-wal", "--wal")[1:]], ["1", "0", "0"])

    def test_damaged(self):
        for size in (512, 4096, 65536):
            path, _ = self.make(page_size=size, auto_vacuum="FULL")
            print(read(path, "--damage", "20000" if size < 65536 else "500")[0])

    def test_not_a_database(self):
        path = os.path.join(self.folder, "random")
        with open(path, "wb") as file:
            file.write(random.Random(SEED).randbytes(8192))
        done = subprocess.run([READ_PAGES, path], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, "not a database\n"))


if __name__ == "__main__":
    unittest.main()
