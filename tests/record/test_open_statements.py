#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Statements that are never finalized: their number, the number of their texts, and their memory compared with
sqlite3_db_status().

usage: test_open_statements.py QUERYPROF HOST [unittest arguments]"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

HOST = os.path.abspath(sys.argv.pop(1))


class OpenStatements(Recording):
    def open(self, statements, texts, end):
        """Returns SQLite's own memory of statements at the end, and the rows."""
        done = self.record(HOST, str(statements), str(texts), end)
        self.assertEqual(done.returncode, 0, self.seen)
        return int(done.stdout.split()[0]), self.rows(
            "SELECT statements, memory_usage, measured, texts, query_statements, query, database FROM open_statements ORDER BY timestamp_ns")

    def findings(self):
        done = subprocess.run([QUERYPROF, "findings", self.trace, "--format", "json"], capture_output=True, text=True, timeout=300, check=True)
        return [one for one in json.loads(done.stdout) if one["finding"] == "never_finalized"]

    def test_that_grow(self):
        used, rows = self.open(20000, 20, "keep")
        counts = [row[0] for row in rows]
        self.assertEqual(counts, sorted(set(counts)))
        self.assertLess(len(rows), 30)
        statements, memory, measured, texts, same, query, _ = rows[-1]
        self.assertTrue(16000 <= statements <= 20000, rows)
        self.assertTrue(300 < measured < 900, rows)
        self.assertEqual(texts, 20)
        self.assertEqual(query, "INSERT INTO t SELECT ?" + " + ?" * 19)
        self.assertTrue(0.5 * statements < 20 * same < 1.6 * statements, rows)
        # Estimated from a sample of texts whose memory differs by less than half.
        self.assertAlmostEqual(memory / statements, used / 20000, delta=0.05 * used / 20000)
        finding, = self.findings()
        self.assertIn("{:,} statements of a connection were open at once".format(statements), finding["title"])
        self.assertIn("about {:,.1f} MB".format(memory / 1e6), finding["title"])
        self.assertIn("20 different texts", finding["evidence"])
        self.assertEqual(finding["query"], query)
        done = subprocess.run([QUERYPROF, "report", self.trace], capture_output=True, text=True, timeout=300, check=True)
        self.assertIn("(never_finalized)", done.stdout)

    def test_at_the_end_of_their_connection(self):
        used, rows = self.open(1999, 1, "close")
        statements, memory, measured, texts, same, *_ = rows[-1]
        self.assertEqual((statements, texts, same), (1999, 1, 1999))
        self.assertAlmostEqual(memory, used, delta=0.01 * used)
        self.assertTrue(300 < measured < 900, rows)

    def test_few(self):
        self.assertEqual(self.open(900, 20, "close")[1], [])
        self.assertEqual(self.findings(), [])

    def test_that_are_finalized(self):
        self.assertEqual(self.open(20000, 20, "finalize")[1], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
