#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof export --format pprof, read by an independent decoder and, if Go is installed, by pprof.

usage: test_pprof.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import os
import shutil
import subprocess
import unittest

import support
from pprof_profile import Profile
from support import (AT, BASE, BUILD_ID, FIXTURE, HOLE, MS, ODD_DATABASE, ODD_STATEMENT, OTHER, SLOW, START,
                     STATEMENT, WALK, WALK_SYMBOL)

GO = shutil.which("go")


class Pprof(support.Exports):
    def profile(self, path, *arguments):
        return Profile(self.export_bytes(path, "pprof", *arguments))

    def test_stacks_and_labels(self):
        profile = self.profile(self.trace)
        labels = {"query_id": SLOW, "thread": "main (101)", "statement": STATEMENT}
        self.assertEqual([([name for name, _ in frames], values, of) for frames, values, of in profile.samples], [
            (["fixture_static", "fixture_visit", "fixture_calls_out"], [60, 60 * MS], labels),
            ([HOLE, "fixture_calls_out"], [10, 20 * MS], labels),
            ([WALK, WALK, WALK, "fixture_calls_out"], [20, 20 * MS], labels),
            (["0x1234"], [3, 3 * MS], {"query_id": support.trace_file.RUNNING, "thread": "main (101)"}),
        ])

    def test_head(self):
        profile = self.profile(self.trace)
        self.assertEqual(profile.types, [("samples", "count"), ("cpu", "nanoseconds")])
        self.assertEqual(profile.period, (("cpu", "nanoseconds"), MS))
        self.assertEqual(profile.default, "cpu")
        self.assertEqual(profile.time_nanos, START + 1000)
        self.assertEqual(profile.duration_nanos, 600 * MS + 3000 - 1000)
        real = self.profile(self.trace, "--type", "Real")
        self.assertEqual(real.types[1], ("wall", "nanoseconds"))
        self.assertEqual(self.profile(self.odd).period[1], 0)  # there are two periods

    def test_places(self):
        profile = self.profile(self.trace)
        self.assertEqual([(mapping["start"], mapping["limit"], mapping["filename"], mapping["build_id"], mapping["has_functions"],
                           mapping["has_lines"]) for mapping in profile.mappings.values()],
                         [(BASE, BASE + 0x100000, FIXTURE, BUILD_ID, 1, 1)])
        self.assertEqual({function["system_name"] for function in profile.functions.values()},
                         {"fixture_static", "fixture_visit", "fixture_calls_out", WALK_SYMBOL, HOLE, "0x1234"})
        outside = {location["address"] for location in profile.locations.values() if not location["mapping"]}
        self.assertEqual(outside, {0x1234})
        self.assertEqual({location["address"] - BASE for location in profile.locations.values()} - {0x1234 - BASE},
                         {AT["fixture_static"] + 4, AT["fixture_visit"] + 4, AT["fixture_calls_out"] + 4,
                          AT["fixture_hole"], AT[WALK_SYMBOL], AT[WALK_SYMBOL] + 1})
        # The same lines as in JSON.
        lines = {frame["function"]: frame.get("line", 0)
                 for stack in self.stacks(self.trace) for frame in stack["frames"]}
        self.assertEqual({name: line for frames, _, _ in profile.samples for name, line in frames}, lines)
        self.assertGreater(lines["fixture_static"], 0)

    def test_odd(self):
        samples = [sample for sample in self.profile(self.odd).samples if sample[2].get("query_id") == OTHER]
        self.assertEqual([len(frames) for frames, _, _ in samples], [3, 2, 0])
        self.assertEqual(samples[0][2], {"query_id": OTHER, "thread": "sort;er\n (102)",
                                         "database": ODD_DATABASE, "statement": ODD_STATEMENT})

    def test_totals(self):
        for path in (self.trace, self.odd):
            for trace_type in ("CPU", "Real"):
                samples = self.profile(path, "--type", trace_type).samples
                count, _, ns = self.totals(path, trace_type)
                self.assertEqual([sum(values[i] for _, values, _ in samples) for i in range(2)], [count, ns])

    def test_same_twice(self):
        self.assertEqual(self.export_bytes(self.odd, "pprof"), self.export_bytes(self.odd, "pprof"))

    def test_full_disk(self):
        self.assertIn("No space left", self.refused(1, self.trace, "--format", "pprof", "-o", "/dev/full"))


@unittest.skipUnless(GO, "Go is not installed")
class GoToolPprof(support.Exports):
    def pprof(self, path, *arguments):
        out = os.path.join(self.folder, "out.pb.gz")
        self.assertEqual(self.run_export(path, "--format", "pprof", "-o", out).returncode, 0)
        environment = dict(os.environ, HOME=self.folder, PPROF_TMPDIR=self.folder, GOFLAGS="", GOTOOLCHAIN="local")
        done = subprocess.run([GO, "tool", "pprof", *arguments, out], capture_output=True, text=True, timeout=300,
                              env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_top(self):
        out = self.pprof(self.trace, "-top")
        self.assertIn("Total samples = 103ms", out)
        self.assertRegex(out, r"\n +60ms +\S+ +\S+ +60ms +\S+ +fixture_static\n")
        self.assertRegex(out, r"\n +0 +\S+ +\S+ +100ms +\S+ +fixture_calls_out\n")
        self.assertRegex(self.pprof(self.trace, "-top", "-sample_index=samples"), r"\n +60 .* fixture_static\n")

    def test_tags(self):
        out = self.pprof(self.odd, "-tags")
        for name in ("query_id", "thread", "database", "statement"):
            self.assertRegex(out, rf"\n? {name}: Total ")
        self.assertRegex(self.pprof(self.odd, "-top", "-tagfocus=query_id=" + OTHER), "Total samples = .*\n"
                         "Active filters:\n +tagfocus=.*\nShowing nodes accounting for 12ms")

    def test_stacks(self):
        raw = self.pprof(self.trace, "-raw")
        self.assertIn("Type: cpu", self.pprof(self.trace, "-top"))
        self.assertIn(f"({WALK_SYMBOL})", raw)
        self.assertIn(f"{FIXTURE} {BUILD_ID} [FN][FL][LN][IN]", raw)


support.main()
