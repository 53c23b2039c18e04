#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The page that `queryprof report --html` writes: its data, what options leave out, and texts that could end an element.

usage: test_file.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import json
import os
import re
import sqlite3
import sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("lib", "command", "attack")]
import test_golden
import test_texts
from tool import *

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


class File(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-page-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        cls.hostile = os.path.join(cls.folder, "hostile.trace")
        test_golden.make(cls.trace, "fixed.sql", "fixed_plans.sql", "fixed_callers.sql", "fixed_pages.sql")
        test_texts.make_hostile(cls.hostile)

    def page(self, *arguments, trace=None):
        out = os.path.join(self.folder, "report.html")
        self.output("report", trace or self.trace, *arguments, "--html", "-o", out)
        with open(out, encoding="utf-8") as file:
            return file.read()

    def data(self, *arguments, trace=None):
        return json.loads(DATA.search(self.page(*arguments, trace=trace))[1])

    def test_data(self):
        data = self.data()
        expected = json.loads(self.output("queries", self.trace, "--format", "json", "--limit", "200"))
        self.assertEqual([(one["statement"], one["runs"], one["rows"], one["waits"], one["notes"]) for one in data["statements"]],
                         [(one["statement"], one["runs"], one["rows"], one["waits"], one["notes"]) for one in expected])
        ids = {one["statement"] for one in data["statements"]}
        for part in "plans", "callers", "runs", "lanes":
            self.assertTrue(data[part], part)
            self.assertLessEqual({one["statement"] for one in data[part]}, ids, part)
        # Other nodes than those of the plan appear only if they took time.
        self.assertTrue(all(one["node"] > 0 or one["self_ms"] > 0 for one in data["plans"]))
        for statement in ids:
            walls = [one["wall_ms"] for one in data["runs"] if one["statement"] == statement]
            self.assertEqual(walls, sorted(walls, reverse=True))

    def test_pages(self):
        """The page has the b-trees of `queryprof pages`, and the cells of each add up to its bytes."""
        pages = self.data()["pages"]
        expected = json.loads(self.output("pages", self.trace, "--format", "json"))
        names = ("wal_mb", "database_mb", "read_mb", "pages_written", "times", "texts_reading", "database")
        self.assertEqual([[one[name] for name in names] for one in pages], [[one[name] for name in names] for one in expected])
        for one in pages:
            self.assertAlmostEqual(sum(map(int, one["cells"].split(","))) / 1e6,
                                   one["wal_mb"] + one["database_mb"] + one["journal_mb"] + one["read_mb"], delta=0.003)

    def test_stacks(self):
        """The stacks add up to all samples, and their frames are the functions of the list."""
        data = self.data()
        with contextlib.closing(sqlite3.connect(self.trace)) as db:
            sums = {kind: ms for kind, ms in db.execute("""SELECT trace_type, sum(size + weight * period_ns) / 1e6 FROM samples JOIN series ON series.id = series
                                                           WHERE trace_type IN ('CPU', 'OffCPU', 'Real') GROUP BY 1""")}
        for kind in {one["trace_type"] for one in data["stacks"]}:
            self.assertAlmostEqual(sum(one["ms"] for one in data["stacks"] if one["trace_type"] == kind), sums[kind], delta=0.1)
        self.assertEqual({one["trace_type"] for one in data["stacks"]}, {kind for kind in sums if kind != "Real" or "OffCPU" not in sums})
        frames = {int(number) for one in data["stacks"] if one["frames"] for number in one["frames"].split(",")}
        self.assertEqual(frames, set(range(len(data["functions"]))))
        with contextlib.closing(sqlite3.connect(self.trace)) as db:
            names = {name for name, in db.execute("SELECT name FROM names")}
        self.assertTrue({one["function"].split(" (")[0] for one in data["functions"]} & names)

    def test_times(self):
        """The points add up to the stacks, and each belongs to a thread of the file."""
        data = self.data()
        times, digits = data["times"], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        numbers, number, scale = [], 0, 1
        for digit in times["points"]:
            value = digits.index(digit)
            number, scale = number + value % 32 * scale, scale * 32
            if value < 32:
                numbers.append(number)
                number, scale = 0, 1
        points = list(zip(*[iter(numbers)] * 4))
        self.assertEqual(len(points), sum(one["samples"] for one in data["stacks"]))
        sums = [0] * len(data["stacks"])
        for _, stack, origin, value in points:
            sums[stack] += value * times["unit_ms"]
            self.assertTrue(data["origins"][origin]["thread_id"])
        for one, ms in zip(data["stacks"], sums):
            self.assertAlmostEqual(one["ms"], ms, delta=0.01)
        with contextlib.closing(sqlite3.connect(self.trace)) as db:
            first, last = db.execute("SELECT min(timestamp_ns) / 1000000, max(timestamp_ns) / 1000000 FROM samples JOIN series ON series.id = series "
                                     "WHERE trace_type IN ('CPU', 'OffCPU')").fetchone()
        self.assertEqual((times["from_ms"], times["from_ms"] + sum(point[0] for point in points), times["thinned"]), (first, last, False))

    def test_history(self):
        """The plans of a statement are listed by time, newest first."""
        self.assertEqual(self.data()["history"], [])
        trace = os.path.join(self.folder, "history.trace")
        shutil.copy(self.trace, trace)
        with contextlib.closing(sqlite3.connect(trace)) as db:
            run, program, statement = db.execute("SELECT max(q.id), program, printf('%016x', normalized_query_hash) FROM queries AS q JOIN statements AS x ON x.id = q.statement "
                                                 "WHERE program AND finished GROUP BY program HAVING count(*) > 1 ORDER BY count(*) DESC").fetchone()
            db.execute("CREATE TEMP TABLE other AS SELECT * FROM programs WHERE id = ?", (program,))
            db.execute("UPDATE other SET id = 9999, plan_hash = 9999")
            db.execute("INSERT INTO programs SELECT * FROM other")
            db.execute("INSERT INTO plans VALUES (9999, 'SCAN other')")
            db.execute("UPDATE queries SET program = 9999 WHERE id = ?", (run,))
            db.commit()
        history = self.data(trace=trace)["history"]
        self.assertEqual({one["statement"] for one in history}, {statement})
        self.assertGreaterEqual(len({one["plan"] for one in history}), 2)
        self.assertEqual([one["from_ms"] for one in history], sorted((one["from_ms"] for one in history), reverse=True))

    def test_plan(self):
        """A page with --plan contains the statements whose text matches."""
        whole, data = self.data(), self.data("--plan", "total > 20")
        self.assertEqual((whole["is_plan"], data["is_plan"]), (False, True))
        self.assertEqual([one["statement"] for one in data["statements"]],
                         [one["statement"] for one in whole["statements"] if "total > 20" in one["query"]])
        self.assertEqual({one["statement"] for one in data["plans"]}, {data["statements"][0]["statement"]})
        self.assertIn("no run", self.refused(1, "report", self.trace, "--html", "--plan", "no such text", "-o", os.path.join(self.folder, "none.html")))

    def test_selected(self):
        """Options that select runs limit what the page shows."""
        one = self.data()["statements"][0]["statement"]
        self.assertEqual([other["statement"] for other in self.data("--statement", one)["statements"]], [one])

    def test_alone(self):
        page = self.page()
        self.assertNotRegex(page, r'(src|href)="(?!data:)')
        self.assertRegex(page, r'Content-Security-Policy" content="default-src \'none\'; script-src \'sha256-')
        self.assertNotIn("unsafe", page[:page.index("<style>")])
        self.assertEqual(self.page("--no-paths").count("<script"), page.count("<script"))

    def test_to_stdout(self):
        self.assertTrue(self.output("report", self.trace, "--html", "-o", "-").startswith("<!DOCTYPE html>"))

    def test_hostile(self):
        """No text of the file ends the element that contains it."""
        with contextlib.closing(sqlite3.connect(self.hostile)) as db:
            db.execute("UPDATE statements SET query = 'SELECT </script><script>alert(1)</script><!--<script>' || id")
            db.execute("UPDATE plan_nodes SET detail = 'SCAN </script><img src=x onerror=alert(1)>' || node")
            db.commit()
        page, plain = self.page(trace=self.hostile), self.page()
        for piece in "<script", "</script", "<!--", "<img":
            self.assertEqual(page.count(piece), plain.count(piece), piece)
        data = json.loads(DATA.search(page)[1])
        self.assertTrue(any("</script><script>alert(1)" in one["query"] for one in data["statements"]))

    def test_no_text(self):
        whole, bare = self.page(), self.page("--no-text")
        # Words of statements and plans, such as names of tables.
        with contextlib.closing(sqlite3.connect(self.trace)) as db:
            texts = " ".join(text for text, in db.execute("SELECT query FROM statements UNION SELECT detail FROM plan_nodes WHERE detail NOT LIKE '(%'"))
        words = set(re.findall(r"[A-Za-zäöüß_]{4,}", texts))
        names = {word for word in words if word.islower() and re.search(r"\b%s\b" % word, DATA.search(whole)[1])}
        self.assertIn("orders", names)
        data = json.loads(DATA.search(bare)[1])
        kept = " ".join(str(value) for part in ("statements", "plans", "history", "findings", "lanes", "locks", "chains", "wals", "pages") for one in data[part] for key, value in one.items()
                        if key not in ("statement", "caller", "caller_function", "sure", "see", "waits", "seen", "finding", "title", "database"))
        self.assertEqual([name for name in names if re.search(r"\b%s\b" % name, kept)], [])
        self.assertTrue(data["no_text"])
        self.assertEqual({one["query"] for one in data["statements"]}, {None})
        self.assertEqual([one["statement"] for one in data["statements"]],
                         [one["statement"] for one in json.loads(DATA.search(whole)[1])["statements"]])
        for one in data["findings"]:
            self.assertEqual((one["title"], one["evidence"], one["cure"]), (one["finding"], "", ""))

    def test_no_paths(self):
        self.assertTrue([one for one in self.data()["callers"] if "/" in one["caller"]])
        page = self.page("--no-paths")
        data = json.loads(DATA.search(page)[1])
        self.assertEqual([one for one in data["callers"] if "/" in one["caller"]], [])
        for folder in self.folder, "/opt/shop":
            self.assertNotIn(folder, page)

    def test_misuse(self):
        out = os.path.join(self.folder, "x.html")
        for arguments, sentence in ((["--html"], "--html needs -o FILE"), (["-o", out], "-o needs --html"),
                                    (["--no-text"], "--no-text needs --html"), (["--no-paths"], "--no-paths needs --html"), (["--plan", "x"], "--plan needs --html"),
                                    (["--html", "-o", out, "--plan", "x", "--like", "y"], "--plan x and --like y cannot be combined"),
                                    (["--html", "-o", out, "--plan", "x", "y"], "STATEMENT y and --like x cannot be combined"),
                                    (["--html", "-o", out, "--type", "cpu"], "--html and --type cannot be combined"),
                                    (["--html", "-o", out, "--full"], "--html and --full cannot be combined"),
                                    (["--html", "-o", out, "--limit", "3"], "--html and --limit cannot be combined")):
            self.assertIn(sentence, self.refused(2, "report", self.trace, *arguments))
        self.assertFalse(os.path.exists(out))
        with open(self.trace, "rb") as file:
            before = file.read()
        self.refused(1, "report", self.trace, "--html", "-o", self.trace)
        with open(self.trace, "rb") as file:
            self.assertEqual(file.read(), before)


if __name__ == "__main__":
    main()
