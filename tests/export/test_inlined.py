#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Inlined functions in every format. The writers get an artificial stack.

usage: INLINED=PROGRAM test_inlined.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import json
import os
import re
import subprocess
import unittest

import support
from pprof_profile import Profile

MIDDLE = "middle<[u8; 4]>"
LEAF_FIRST = ["small", MIDDLE, "large", "main"]


def written(form):
    return subprocess.run([os.environ["INLINED"], form], capture_output=True, timeout=300, check=True).stdout


class Inlined(unittest.TestCase):
    def test_collapsed(self):
        self.assertEqual(written("collapsed"), b"main;large;middle<[u8: 4]>;small 6\n")

    def test_pprof(self):
        profile = Profile(written("pprof"))
        self.assertEqual(profile.samples, [
            ([("small", 3), (MIDDLE, 7), ("large", 20), ("main", 5)], values,
             {"query_id": "q", "thread": thread, "statement": "SELECT 1"})
            for values, thread in (([2, 40], "t (1)"), ([1, 20], "u (2)"))])
        # One location, three lines.
        self.assertEqual([(location["address"], len(location["line"])) for location in profile.locations.values()],
                         [(0x1234, 3), (0x3800, 1)])
        # The program comes first.
        self.assertEqual([(mapping["filename"], mapping["start"], mapping["has_inlines"])
                          for mapping in profile.mappings.values()],
                         [("/usr/bin/app", 0x3000, 1), ("/usr/lib/libx.so", 0x1000, 1)])

    def test_speedscope(self):
        file = json.loads(written("speedscope"))
        names = [frame["name"] for frame in file["shared"]["frames"]]
        self.assertEqual([[names[number] for number in stack] for stack in file["profiles"][0]["samples"]],
                         [LEAF_FIRST[::-1]])
        self.assertEqual(file["profiles"][0]["weights"], [60])

    def test_json(self):
        stacks = support.json_stacks.read(written("json"))
        self.assertEqual([(stack["thread"], stack["value"]) for stack in stacks], [("t (1)", 40), ("u (2)", 20)])
        frames = stacks[0]["frames"]
        self.assertEqual([(frame["function"], frame["file"], frame["line"], frame.get("inlined", False))
                          for frame in frames],
                         [("small", "x.h", 3, True), (MIDDLE, "x.h", 7, True), ("large", "x.cpp", 20, False),
                          ("main", "main.c", 5, False)])

    @unittest.skipIf("not in this build" in support.HELP, "this build has no page")
    def test_flamegraph(self):
        data = json.loads(re.search(r'id="data">(.*?)</script>', written("flamegraph").decode(), re.DOTALL)[1])
        self.assertEqual([function[0] for function in data["functions"]], LEAF_FIRST[::-1])
        self.assertEqual((data["nodes"], data["samples"]), ([-1, 0, 0, 1, 1, 2, 2, 3], [3, 0, 0, 3, 60]))


support.main()
