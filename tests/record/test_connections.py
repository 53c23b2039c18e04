#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""SQLite's counters of a connection's page cache, compared with sqlite3_db_status() in the program, and the connections
that read pages repeatedly.

usage: test_connections.py QUERYPROF HOST [unittest arguments]"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

HOST = os.path.abspath(sys.argv.pop(1))
# A reader of 400 scattered rows, with a cache that holds them all, and a second connection that commits after each run if
# the second argument is 1.
EMPTIED = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -100000; CREATE TABLE t (id INTEGER PRIMARY KEY, x); CREATE TABLE u (x);"
                 "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) INSERT INTO t SELECT i, zeroblob(3900) FROM n;")
other = sqlite3.connect(sys.argv[1], isolation_level=None)
end = time.monotonic() + 2.5
runs = 0
while time.monotonic() < end or runs < 100:
    db.execute("SELECT sum(length(x)) FROM t WHERE id % 5 = ?", (runs % 5,)).fetchall()
    runs += 1
    if sys.argv[2] == "1":
        other.execute("INSERT INTO u VALUES (1)")
"""
COUNTS = "page_cache_hits, page_cache_misses, page_cache_writes, page_cache_spills"


class Connections(Recording):
    # A sample's function determines what could be saved.
    names = ()

    def host(self, pages):
        """Returns the program's counts, and the rows."""
        self.path = os.path.join(self.folder, "app.db")
        done = self.record(HOST, self.path, str(pages), options=OPTIONS + ("--setting", "log_queries_min_query_duration_ns=0"))
        self.assertEqual(done.returncode, 0, self.seen)
        return [int(count) for count in done.stdout.split()], self.rows(
            "SELECT state, database, page_cache_bytes, database_bytes, %s FROM connections ORDER BY timestamp_ns" % COUNTS)

    def findings(self):
        done = subprocess.run([QUERYPROF, "findings", self.trace, "--format", "json"], capture_output=True, text=True, timeout=300, check=True)
        return [one for one in json.loads(done.stdout) if one["finding"] == "repeated_reads"]

    def emptied(self, is_emptied):
        done = self.record(PYTHON, "-c", EMPTIED, os.path.join(self.folder, "app.db"), str(int(is_emptied)),
                           options=OPTIONS + ("--setting", "log_queries_min_query_duration_ns=0"))
        self.assertEqual(done.returncode, 0, self.seen)
        return self.findings()

    def test_small(self):
        (hits, *others), rows = self.host(20)
        self.assertEqual([row[0] for row in rows[-2:]], ["open", "closing"])
        self.assertEqual({row[1] for row in rows}, {os.path.realpath(self.path)})
        for row in rows:
            self.assertTrue(0 < row[2] < 200000, row)
            self.assertLessEqual(row[3], os.path.getsize(self.path))
        # On a slow disk there is a row from before the table is filled.
        self.assertEqual({row[3] for row in rows[-2:]}, {os.path.getsize(self.path)})
        for counts in zip(*rows):
            if isinstance(counts[0], int) and None not in counts[3:]:
                self.assertEqual(list(counts[1:]), sorted(counts[1:]))
        self.assertEqual(list(rows[-1][5:]), others)
        # Look-ups between a row and the program's reset of the counter are lost.
        self.assertTrue(rows[0][4] <= rows[-1][4] <= hits, (rows, hits))
        finding, = self.findings()
        missed = 100 * others[0] / (rows[-1][4] + others[0])
        self.assertIn("%.0f %% of the page look-ups" % missed, finding["evidence"])
        self.assertEqual(finding["query"], "SELECT sum(length(x)) FROM t WHERE id BETWEEN ?1 AND ?1 + 400")
        self.assertIn(" of a file of %.1f MB," % (os.path.getsize(self.path) / 1e6), finding["title"])
        self.assertGreater(finding["saved_ms"], 0)
        kib = int(re.search(r"cache_size = -(\d+) ", finding["cure"])[1])
        self.assertGreater(kib * 1024, os.path.getsize(self.path))

    def test_large(self):
        counts, rows = self.host(10000)
        self.assertEqual(list(rows[-1][5:]), counts[1:])
        self.assertEqual(counts[3], 0)
        self.assertEqual(self.findings(), [])

    def test_emptied(self):
        """A connection that reads after another one has committed begins with an empty cache. A larger one is no cure."""
        finding, = self.emptied(True)
        self.assertIn("because commits of other connections empty its page cache", finding["title"])
        commits, runs = map(int, re.search(r"at least (\d+) commits of other connections during (\d+) runs", finding["evidence"].replace(",", "")).groups())
        self.assertTrue(runs / 2 <= commits <= runs, finding)
        self.assertIn("mmap_size = 9437184 ", finding["cure"])

    def test_kept(self):
        """The other connection is open, and commits nothing."""
        self.assertEqual(self.emptied(False), [])

    def test_short(self):
        """A connection that lives for less than a second has no row."""
        done = self.record(PYTHON, "-c", "import sqlite3, time; start = time.monotonic(); db = sqlite3.connect(':memory:');"
                           "db.execute('SELECT 1').fetchall(); db.close(); print(time.monotonic() - start)")
        if float(done.stdout) < 1:
            self.assertEqual(self.rows("SELECT * FROM connections"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
