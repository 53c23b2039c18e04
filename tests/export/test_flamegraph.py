#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof export --format flamegraph: the page's data, and the page in Chromium
where that is installed.

usage: test_flamegraph.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import base64
import json
import os
import re
import unittest

import support
from support import HOLE, MS, ODD_DATABASE, OTHER, RUNNING, SLOW, WALK

MISSING = re.search(r"\n  flamegraph +not in this build: ", support.HELP)


class Missing(support.Exports):
    @unittest.skipUnless(MISSING, "this build has the page")
    def test_says_so(self):
        out = os.path.join(self.folder, "out")
        self.assertIn("flamegraph is not in this build: ",
                      self.refused(1, self.trace, "--format", "flamegraph", "-o", out))
        self.assertFalse(os.path.exists(out))


@unittest.skipIf(MISSING, "not in this build")
class Data(support.Exports):
    def data(self, path, *arguments):
        page = self.export(path, "flamegraph", *arguments)
        found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
        self.assertEqual(len(found), 1)
        return json.loads(found[0])

    def test_stacks(self):
        data = self.data(self.trace)
        found = {}
        for node, query, samples, ns in zip(*(data["samples"][i::4] for i in range(4))):
            names = []
            while node >= 0:
                self.assertLess(data["nodes"][2 * node], node)
                names.insert(0, data["functions"][data["nodes"][2 * node + 1]][0])
                node = data["nodes"][2 * node]
            found[data["queries"][query][1], *names] = samples, ns
        self.assertEqual(found, {
            (SLOW, "fixture_calls_out", "fixture_visit", "fixture_static"): (60, 60 * MS),
            (SLOW, "fixture_calls_out", HOLE): (10, 20 * MS),
            (SLOW, "fixture_calls_out", WALK, WALK, WALK): (20, 20 * MS),
            (RUNNING, "0x1234"): (3, 3 * MS)})

    def test_tables(self):
        data = self.data(self.trace)
        self.assertEqual(data["statements"], ["SELECT * FROM orders WHERE id = 1", "query " + RUNNING])
        self.assertEqual(data["queries"], [[0, SLOW, "", 100 * MS], [1, RUNNING, "", 3 * MS]])
        self.assertEqual(data["modules"], ["full.so"])
        self.assertEqual({name: (module, os.path.basename(file)) for name, module, file in data["functions"]},
                         {"fixture_calls_out": (0, "fixture.c"), "fixture_visit": (0, "fixture.c"),
                          "fixture_static": (0, "fixture.c"), HOLE: (0, "fixture_code.S"),
                          WALK: (0, "fixture_cxx.cpp"), "0x1234": (-1, "")})

    def test_totals(self):
        for path in (self.trace, self.odd):
            for trace_type in ("CPU", "Real"):
                data = self.data(path, "--type", trace_type)
                samples, _, ns = self.totals(path, trace_type)
                self.assertEqual((sum(data["samples"][2::4]), sum(data["samples"][3::4])), (samples, ns))
                self.assertEqual(sum(query[3] for query in data["queries"]), ns)

    def test_odd(self):
        data = self.data(self.odd)
        self.assertIn([OTHER, ODD_DATABASE, 18 * MS], [query[1:] for query in data["queries"]])
        self.assertIn("SELECT '</script>\u20ac\ufffd\"' -- ", data["statements"])

    def test_nothing_is_fetched(self):
        page = self.export(self.trace, "flamegraph")
        before = page[:page.index("<!--\nThis page contains")]
        self.assertNotRegex(before, r"""(src|href)=["']?(?!data:)[a-z/.]""")
        self.assertNotRegex(before, r"@import|url\((?!data:)")
        self.assertIn("default-src 'none'", before)
        for name in ("d3-flame-graph 5.0.0 (Apache-2.0)", "d3-selection 3.0.0 (ISC)"):
            self.assertIn(name, page)


# What a person does, one after the other; what is seen then goes to #seen.
ACTIONS = """
<script>
const seen = {};
const names = () => [...document.querySelectorAll("#chart g.frame")].map((frame) => frame.getAttribute("name"));
const look = (name) => seen[name] = { names: names(), totals: document.getElementById("totals").textContent,
    found: document.getElementById("found").textContent,
    fills: [...new Set([...document.querySelectorAll("#chart rect")].map((rect) => rect.getAttribute("fill")))],
    faded: document.querySelectorAll("#chart g.fade").length,
    background: getComputedStyle(document.body).backgroundColor };
const set = (id, value, event) => {
    document.getElementById(id).value = value;
    document.getElementById(id).dispatchEvent(new Event(event));
};
const frame = (name) => [...document.querySelectorAll("#chart g.frame")].find((g) => g.getAttribute("name") === name);
set("scheme", "light", "change");
look("first");
set("search", "STATIC|walk\\\\(", "input");
look("search");
set("search", "(", "input");
look("wrong");
set("search", "", "input");
frame("fixture_visit").dispatchEvent(new Event("click"));
look("zoom");
document.getElementById("reset").click();
look("reset");
set("query", "2", "change");
look("query");
set("query", "0", "change");
set("scheme", "dark", "change");
look("dark");
const output = document.createElement("pre");
output.id = "seen";
output.textContent = btoa(JSON.stringify(seen));
document.body.append(output);
</script>
"""


@unittest.skipIf(MISSING, "not in this build")
@unittest.skipUnless(support.CHROMIUM, "Chromium is not installed")
class Browser(support.Exports):
    def open(self, path, more="", arguments=()):
        page = os.path.join(self.folder, "page.html")
        with open(page, "w", encoding="utf-8") as file:
            file.write(self.export(path, "flamegraph", *arguments) + more)
        shown, errors = support.browse("file://" + page)
        self.assertIn("<svg", shown, errors[-3000:])
        return shown

    def test_root_and_totals(self):
        page = self.open(self.trace)
        self.assertIn("103 ms of CPU time in 93 samples", page)
        self.assertIn("<title>all queries \u00b7 103 ms, 100.0 % (self 0 ns)</title>", page)
        # The root is at the top.
        self.assertRegex(page, r'<g transform="translate\(0,0\)" [^>]*name="all queries"')
        self.assertRegex(page, r'name="fixture_calls_out" class="frame"><rect [^>]*></rect><title>fixture_calls_out '
                               r'\u00b7 full.so \u00b7 \S+/fixture.c \u00b7 100 ms, 97.1 % \(self 0 ns\)</title>')
        self.assertIn('<option value="1" title="%s">100 ms \u00b7 SELECT * FROM orders WHERE id = 1</option>' % SLOW,
                      page)
        self.assertIn("full.so 97.1 %", page)
        real = self.open(self.trace, arguments=("--type", "Real"))
        self.assertIn("150 ms of wall time in 150 samples", real)

    def test_odd(self):
        page = self.open(self.odd)
        self.assertIn("123 ms of CPU time in 97 samples", page)
        self.assertIn("\u20ac", page)

    def test_use(self):
        encoded = re.search(r'<pre id="seen">([^<]+)</pre>', self.open(self.trace, ACTIONS))
        self.assertTrue(encoded)
        seen = json.loads(base64.b64decode(encoded[1]))
        everything = {"all queries", "fixture_calls_out", "fixture_visit", "fixture_static", HOLE, WALK, "0x1234"}
        self.assertEqual(set(seen["first"]["names"]), everything)
        self.assertEqual(seen["search"]["found"], "4 frames, 77.7 %")
        self.assertEqual(len(set(seen["search"]["fills"]) - set(seen["first"]["fills"])), 1)
        self.assertEqual(seen["wrong"]["found"], "")
        self.assertEqual(set(seen["zoom"]["names"]), {"all queries", "fixture_calls_out", "fixture_visit",
                                                      "fixture_static"})
        self.assertEqual((seen["zoom"]["faded"], seen["reset"]["faded"]), (2, 0))
        self.assertEqual(set(seen["reset"]["names"]), everything)
        self.assertEqual(seen["query"]["totals"], "3.00 ms of CPU time in 3 samples")
        self.assertEqual(set(seen["query"]["names"]), {"query " + RUNNING, "0x1234"})
        self.assertEqual(set(seen["dark"]["names"]), everything)
        self.assertNotEqual(seen["dark"]["background"], seen["first"]["background"])
        self.assertFalse(set(seen["dark"]["fills"]) & set(seen["first"]["fills"]))
        # A hue a module: grey for what is in none, one for the library.
        self.assertEqual({re.match(r"hsl\((\d+)", fill)[1] for fill in seen["first"]["fills"]}, {"0", "28"})


support.main()
