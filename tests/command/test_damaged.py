#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trace files that no queryprof writes. The command reports the damage, or shows the remaining content.

usage: test_damaged.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import json
import os
import random
import shutil
import sqlite3

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tool import Tool, main, run
from trace_file import START

PLAN = """
    INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns) VALUES (1, 1, 0, 11, 0);
    INSERT INTO plan_nodes VALUES (1, 1, 0, 'SCAN orders', ''), (1, 2, 0, 'SCAN items', '');
    INSERT INTO program_opcodes VALUES (1, 1, 1, 'Column', 0, 0, 0, 0), (1, 2, 2, 'Next', 0, 0, 0, 0);
    UPDATE queries SET program = 1 WHERE id = 1;
    UPDATE samples SET opcode = iif(stack = 1, 1, 2) WHERE query = 1;"""
TRACE = "%016x%016x" % (1, 2)


class Damaged(Tool):
    def changed(self, sql):
        path = os.path.join(self.folder, "changed.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(sql)
        return path

    def with_page(self, table, sql=""):
        """Damages the first page of the table, so that it cannot be read."""
        path = self.changed(sql)
        with contextlib.closing(sqlite3.connect(path)) as db:
            page, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
            size, = db.execute("PRAGMA page_size").fetchone()
        with open(path, "r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
        return path

    @staticmethod
    def spans(spans):
        return f"""
            INSERT INTO span_sites (id, name, file, line, function, statement)
            VALUES (1, 'first', '', 0, '', 0), (2, 'second', '', 0, '', 0);
            INSERT INTO span_batches (trace_hi, trace_lo, parent, first_span, thread, start_ns, dropped, flags, lasted_ns,
                                      count, statements, spans)
            VALUES (1, 2, 0, 1000, 1, {START}, 0, 0, 100, 2, 0, '{spans}');"""

    def with_spans(self, spans):
        return self.changed(self.spans(spans))

    def test_pages(self):
        path = self.with_page("span_batches", self.spans("[]"))
        self.assertIn("malformed", self.refused(1, "trace", path, TRACE))
        path = self.with_page("plan_nodes", PLAN)
        self.assertIn("malformed", self.refused(1, "export", path, "--format", "collapsed", "--plan", "-o", "-"))

    def test_pages_of_samples(self):
        """Any byte of these pages may be wrong. The command reads the rest, or reports that it cannot."""
        with contextlib.closing(sqlite3.connect(self.trace)) as db:
            page, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'samples'").fetchone()
            size, = db.execute("PRAGMA page_size").fetchone()
        self.assertIn("malformed", self.refused(1, "report", self.with_page("samples")))
        with open(self.trace, "rb") as file:
            whole = file.read()
        chance, begin, words = random.Random(4), (page - 1) * size, []
        cells = begin + int.from_bytes(whole[begin + 5:begin + 7], "big")
        for _ in range(60):
            damaged = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                damaged[chance.choice((begin + chance.randrange(16), chance.randrange(cells, begin + size)))] = chance.choice(
                    (0, 1, 127, 128, 255, chance.randrange(256)))
            path = os.path.join(self.folder, "damaged.trace")
            with open(path, "wb") as file:
                file.write(damaged)
            code, _, err = run("export", path, "--format", "collapsed", "-o", "-")
            self.assertIn(code, (0, 1), err)
            words.append(err.partition(path + ": ")[2] if code else "")
        self.assertEqual(len({word for word in words if word}), 1, words)  # 'malformed', and no other words
        self.assertIn("", words)

    def test_shares_of_a_plan(self):
        """-500 of 500, and 1000."""
        path = self.changed(PLAN + """
            DELETE FROM samples WHERE timestamp_ns NOT IN (
                SELECT min(timestamp_ns) FROM samples WHERE query = 1 AND series = 1 GROUP BY stack);
            UPDATE samples SET weight = iif(stack = 1, -500, 500);""")
        for command in ("plan", "report"):
            out = self.output(command, path)
            self.assertRegex(out, r"SCAN orders {10,}-100\.0 %")
            self.assertRegex(out, r"SCAN items +█{8} 200\.0 %")

    def test_label_sets(self):
        path = self.changed("INSERT INTO label_sets VALUES (1, 1, 1, 'x', '', '', ''); UPDATE samples SET labels = 1;")
        for form in ("collapsed", "json", "speedscope"):
            arguments = ["--format", form, "-o", "-"]
            self.assertEqual(self.output("export", path, *arguments).replace("changed.trace", "app.trace"),
                             self.output("export", self.trace, *arguments))

    def test_label_sets_of_others(self):
        """As ClickHouse writes JSON."""
        path = self.changed(r"""INSERT INTO label_sets VALUES (1, 1, 1, '{"k8s.io\/app":"a\/b"}', '', '', '');
                                UPDATE samples SET labels = 1;""")
        out = self.output("export", path, "--format", "collapsed", "--root", "label:k8s.io/app", "-o", "-")
        self.assertEqual({line.partition(";")[0] for line in out.splitlines()}, {"a/b"})

    def test_spans_that_are_each_others_parent(self):
        out = self.output("trace", self.with_spans("[[1,-1,0,10],[2,1,5,10]]"), TRACE)
        self.assertRegex(out, r"(?m)\| first\b.*\n.*\|   second$")
        self.assertNotIn("more span", out)

    def test_spans_that_end_before_they_begin(self):
        events = json.loads(self.output("export", self.with_spans("[[1,0,5,-1005],[2,0,-2000,0]]"), "--format", "perfetto",
                                        "-o", "-"))["traceEvents"]
        self.assertEqual({event["name"]: (event["ts"], event["dur"]) for event in events
                          if event["ph"] == "X" and "trace_id" in event["args"]},
                         {"first": (0.005, -1.005), "second": (-2, 0)})

    def test_no_unit(self):
        path = self.changed("""
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'TEXT    NOT NULL DEFAULT ''ns''', 'TEXT') WHERE name = 'series';
            PRAGMA writable_schema = RESET;
            INSERT INTO series (id, thread, trace_type, period_ns, epoch, unit) VALUES (9, 1, 'Odd', 5, 1, NULL);
            UPDATE samples SET series = 9 WHERE stack = 3;""")
        self.assertIn("Top functions, by Odd in unknown\n", self.output("report", path, "--type", "odd"))


if __name__ == "__main__":
    main()
