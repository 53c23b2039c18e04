#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of unknown types, as a newer version may store them, are shown as a separate type, in their own unit, and never as
time.

usage: test_future.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import unittest

import support
from pprof_profile import Profile
from support import MS, START

ALLOCATED = [(1, 4096), (2, 2048), (1, 16)]  # stack, bytes
WAITED = 7 * MS


def add_future_samples(path):
    """Adds samples in bytes, times that no timer measured, and an unknown unit."""
    db = sqlite3.connect(path)
    db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch, unit) VALUES"
               " (10, 1, 'MemoryPeak', 0, 1, 'bytes'), (11, 1, 'Stolen', 0, 1, 'ns'), (12, 1, 'Quux', 5, 1, 'furlongs')")
    # size: the part of the value beyond weight times period.
    rows = [(START + 10 * MS + i, 10, stack, size) for i, (stack, size) in enumerate(ALLOCATED)]
    rows += [(START + 11 * MS, 11, 3, WAITED), (START + 12 * MS, 12, 1, 33 - 5)]
    db.executemany("INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
                   " VALUES (?, ?, 1, ?, 0, 1, 0, ?)", rows)
    db.commit()
    db.close()


class Future(support.Exports):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.future = os.path.join(cls.folder, "future.trace")
        shutil.copy(cls.trace, cls.future)
        add_future_samples(cls.future)

    def tool(self, *arguments):
        done = subprocess.run([support.QUERYPROF, *arguments], capture_output=True, text=True, timeout=300, check=False,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, COLUMNS="200"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def same_as_without(self, *arguments):
        def normal(out):
            return out.replace("future.trace", "app.trace")
        command, *options = arguments
        self.assertEqual(normal(self.tool(command, self.future, *options)), self.tool(command, self.trace, *options))

    def test_times_are_as_they_were(self):
        for trace_type in ("CPU", "Real"):
            self.same_as_without("report", "--type", trace_type)
            for form in ("collapsed", "json", "speedscope"):
                self.same_as_without("export", "--format", form, "-o", "-", "--type", trace_type)
            self.assertEqual(self.export_bytes(self.future, "pprof", "--type", trace_type),
                             self.export_bytes(self.trace, "pprof", "--type", trace_type))

    def test_the_views(self):
        total = sum(size for _, size in ALLOCATED)
        for view, value, time in (("top_functions", "sum(self_value)", "sum(self_ms)"),
                                  ("top_stacks", "sum(value)", "sum(ms)"),
                                  ("stack_times", "sum(value)", "sum(time_ns) / 1e6"),
                                  ("query_functions", "sum(self_value)", "sum(self_ms)"),
                                  ("statement_functions", "sum(self_value)", "sum(self_ms)")):
            sql = f"SELECT {value}, {time}, max(unit) FROM {view} WHERE trace_type = ?"
            self.assertEqual(support.row(sql, "MemoryPeak", path=self.future), (total, None, "bytes"), view)
            self.assertEqual(support.row(sql, "Quux", path=self.future), (33, None, "furlongs"), view)
            self.assertEqual(support.row(sql, "Stolen", path=self.future), (WAITED, WAITED / 1e6, "ns"), view)
        self.assertEqual(support.row("SELECT sum(value), sum(size) FROM trace_log WHERE unit = 'bytes'",
                                     path=self.future), (total, total))
        self.assertEqual(support.row("SELECT sum(size) FROM trace_log WHERE unit <> 'bytes'", path=self.future), (0,))

    def test_report(self):
        out = self.tool("report", self.future, "--type", "MemoryPeak")
        self.assertIn("\nTop functions, by MemoryPeak in bytes\n", out)
        self.assertRegex(out, r" self_bytes +total_bytes +function\n")
        self.assertRegex(out, r"(?m)^ +66\.8 .* 4112 +4112 +fixture_static$")
        self.assertRegex(out, r"(?m)^ *share +bytes +stack$")
        self.assertNotIn("self_ms", out)
        out = self.tool("report", self.future, "--type", "Stolen")
        self.assertIn("\nTop functions, by Stolen time\n", out)
        self.assertRegex(out, r"(?m)^ +100\.0 .* 7\.0 ms +7\.0 ms +fixture::Thing::walk")
        self.assertIn("self_furlongs", self.tool("report", self.future, "--type", "Quux"))

    def test_report_without_such_samples(self):
        done = subprocess.run([support.QUERYPROF, "report", self.trace, "--type", "MemoryPeak"], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--type MemoryPeak; expected cpu, wall, memory, live or another type of sample in the file", done.stderr)

    def test_plan(self):
        path = os.path.join(self.folder, "plan.trace")
        shutil.copy(self.future, path)
        db = sqlite3.connect(path)
        db.executescript("""
            INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns) VALUES (1, 1, 0, 11, 0);
            INSERT INTO plan_nodes VALUES (1, 1, 0, 'SCAN orders', '');
            INSERT INTO program_opcodes VALUES (1, 1, 0, 'Init', 0, 0, 0, 0), (1, 2, 1, 'Column', 0, 0, 0, 0);
            UPDATE queries SET program = 1 WHERE id = 1;
            UPDATE samples SET opcode = iif(size = 16, 1, 2) WHERE series IN (10, 11);""")
        db.close()
        out = self.tool("plan", path, "--type", "MemoryPeak", "--opcodes")
        self.assertRegex(out, r"(?m)^.* SCAN orders +\S+ +99\.7 % +99\.7 %  the whole table$")
        self.assertRegex(out, r"(?m)^address +opcode +p1 +p2 +p3 +p5 +self_bytes +self_percent +node$")
        self.assertRegex(out, r"(?m)^ +2 +Column .* 6144 +99\.7 +SCAN orders$")
        out = self.tool("plan", path, "--type", "Stolen", "--opcodes")
        self.assertRegex(out, r"(?m)^ +2 +Column .* 7\.0 ms +100\.0 +SCAN orders$")

    def test_diff(self):
        out = self.tool("diff", self.trace, self.future, "--type", "MemoryPeak")
        self.assertIn("\nFunctions: MemoryPeak in bytes", out)
        self.assertNotIn("Statements", out)  # exact times do not count as bytes
        self.assertRegex(out, r"A_bytes +B_bytes +change_bytes")
        self.assertRegex(out, r"(?m)^ *0 +4112 +\+4112 .* fixture_static$")
        self.assertIn("Functions: CPU time", self.tool("diff", self.trace, self.future))

    def test_collapsed(self):
        """There is no sampling period, so the numbers are the values."""
        lines = self.export(self.future, "collapsed", "--type", "MemoryPeak").splitlines()
        self.assertEqual(sorted(int(line.rpartition(" ")[2]) for line in lines), [2048, 4112])

    def test_json(self):
        stacks = self.stacks(self.future, "--type", "MemoryPeak")
        self.assertEqual(sum(stack["value"] for stack in stacks), 6160)
        self.assertEqual({stack["unit"] for stack in stacks}, {"bytes"})
        self.assertEqual([(stack["value"], stack["unit"]) for stack in self.stacks(self.future, "--type", "Stolen")],
                         [(WAITED, "ns")])

    def test_speedscope(self):
        for trace_type, unit, total in (("MemoryPeak", "bytes", 6160), ("Stolen", "nanoseconds", WAITED),
                                        ("Quux", "none", 33)):
            profiles = json.loads(self.export(self.future, "speedscope", "--type", trace_type))["profiles"]
            self.assertEqual([(one["unit"], one["endValue"]) for one in profiles], [(unit, total)])

    def test_pprof(self):
        for trace_type, unit, total in (("MemoryPeak", "bytes", 6160), ("Stolen", "nanoseconds", WAITED),
                                        ("Quux", "furlongs", 33)):
            profile = Profile(self.export_bytes(self.future, "pprof", "--type", trace_type))
            self.assertEqual(profile.types, [("samples", "count"), (trace_type, unit)])
            self.assertEqual(sum(values[1] for _, values, _ in profile.samples), total)

    @unittest.skipIf("not in this build" in support.HELP, "this build has no page")
    def test_flamegraph(self):
        page = self.export(self.future, "flamegraph", "--type", "MemoryPeak")
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
        self.assertEqual((data["trace_type"], data["unit"]), ("MemoryPeak", "bytes"))
        self.assertEqual(sum(data["samples"][4::5]), 6160)


if __name__ == "__main__":
    support.main()
