#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof export --format flamegraph: the page's data and, if Chromium is installed, the page in it.

usage: test_flamegraph.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import base64
import json
import os
import re
import unittest

import browser
import support
from support import HOLE, MS, ODD_DATABASE, OTHER, RUNNING, SLOW, START, WALK

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

    def shown(self, data):
        """The samples of the displayed type, in groups of five numbers."""
        self.assertEqual(sum(5 * count for _, count in data["types"]), len(data["samples"]))
        at, found = 0, []
        for name, count in data["types"]:
            found += data["samples"][at:at + 5 * count] if name == data["trace_type"] else []
            at += 5 * count
        return found

    def test_stacks(self):
        data = self.data(self.trace)
        found = {}
        for node, query, _, samples, ns in zip(*(self.shown(data)[i::5] for i in range(5))):
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
        self.assertEqual(data["queries"], [[0, SLOW, "", 100 * MS, 0], [1, RUNNING, "", 3 * MS, 0]])
        self.assertEqual(data["runs"], [0, 0, 0, 0])
        self.assertEqual(data["sides"], [self.trace])
        first, last = support.row("SELECT min(timestamp_ns), max(timestamp_ns) FROM samples JOIN series ON series.id = series"
                                  " WHERE unit = 'ns'", path=self.trace)
        self.assertEqual(data["times"], [[first // MS, last // MS]])
        self.assertEqual(data["programs"], [[*support.row("SELECT executable FROM processes", path=self.trace), 0, 103 * MS]])
        script = support.changed_copy(self.trace, self.trace + ".script", "UPDATE processes SET script = 'bin/app.py'")
        self.assertEqual(self.data(script)["programs"], [["bin/app.py", 0, 103 * MS]])
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
                shown = self.shown(data)
                self.assertEqual((sum(shown[3::5]), sum(shown[4::5])), (samples, ns))
                self.assertEqual(sum(query[3] for query in data["queries"]), ns)

    def test_odd(self):
        data = self.data(self.odd)
        self.assertIn([OTHER, ODD_DATABASE, 18 * MS, 0], [query[1:] for query in data["queries"]])
        self.assertIn("SELECT '</script>\u20ac\ufffd\"' -- ", data["statements"])

    def test_two_files(self):
        """Runs are not merged, even if they have the same id. Each file has its own addresses."""
        moved = support.changed_copy(self.trace, os.path.join(self.folder, "moved.trace"),
                                     "UPDATE modules SET path = '/not/here/full.so'")
        data = self.data(self.trace, "--diff", moved)
        self.assertEqual(data["sides"], [self.trace, moved])
        self.assertEqual(data["queries"], [[statement, name, "", ns, side] for side in (0, 1)
                                           for statement, name, ns in ((0, SLOW, 100 * MS), (1, RUNNING, 3 * MS))])
        self.assertEqual(sum(self.shown(data)[4::5]), 2 * 103 * MS)
        at = [support.AT[name] + 4 for name in ("fixture_calls_out", "fixture_visit", "fixture_static")]
        walk = support.AT[support.WALK_SYMBOL]
        self.assertEqual(self.names_of(data, 0), {"0x1234", "fixture_calls_out", "fixture_visit", "fixture_static", HOLE,
                                                  WALK})
        self.assertEqual(self.names_of(data, 1), {"0x1234", HOLE, *("full.so+" + hex(offset)
                                                                    for offset in (*at, walk, walk + 1))})

    def names_of(self, data, side):
        """The functions on the stacks of a side's samples."""
        found = set()
        for node, query in zip(data["samples"][0::5], data["samples"][1::5]):
            while data["queries"][query][4] == side and node >= 0:
                found.add(data["functions"][data["nodes"][2 * node + 1]][0])
                node = data["nodes"][2 * node]
        return found

    def test_two_files_that_cannot_be(self):
        out = os.path.join(self.folder, "out")
        page = ["--format", "flamegraph", "-o", out]
        self.assertIn("--diff does not apply to json, only to flamegraph\n",
                      self.refused(2, self.trace, "--diff", self.odd, "--format", "json", "-o", out))
        self.assertIn("none.trace: No such file",
                      self.refused(1, self.trace, "--diff", os.path.join(self.folder, "none.trace"), *page))
        self.assertIn("is the file being exported",
                      self.refused(1, self.trace, "--diff", self.odd, "--format", "flamegraph", "-o", self.odd))
        empty = support.changed_copy(self.odd, os.path.join(self.folder, "empty.trace"), "DELETE FROM samples")
        self.assertIn("empty.trace: no CPU samples", self.refused(1, self.trace, "--diff", empty, *page))
        self.assertFalse(os.path.exists(out))

    def test_nothing_is_fetched(self):
        page = self.export(self.trace, "flamegraph")
        before = page[:page.index("<!--\nThis page contains")]
        self.assertNotRegex(before, r"""(src|href)=["']?(?!data:)[a-z/.]""")
        self.assertNotRegex(before, r"@import|url\((?!data:)")
        self.assertIn("default-src 'none'", before)
        for name in ("d3-flame-graph 5.0.0 (Apache-2.0)", "d3-selection 3.0.0 (ISC)"):
            self.assertIn(name, page)


RUNS, RUNS_SHOWN = 60, 50


def make_program(path, stacks):
    """The trace of a program that calls SQLite from main() and run(): 60 runs of SELECT a, one of SELECT b, whose
    samples have `stacks`: the statement, ms, and the functions that sqlite3_step() calls."""
    names = ["main", "run", "queryprof_step", "sqlite3_step", "sort", "scan", "copy"]
    modules = ["app", "app", "libqueryprof.so.0", "libsqlite3.so.0", "libsqlite3.so.0", "libsqlite3.so.0", "libc.so.6"]
    db = support.sqlite3.connect(path)
    with open(os.path.join(support.SOURCE, "sql", "schema", "store_schema.sql"), encoding="utf-8") as file:
        db.executescript(file.read())
    db.executescript(f"""
        PRAGMA application_id = 1364218438; PRAGMA user_version = {support.VERSION};
        INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) VALUES (1, 'host', 100, {START}, '/opt/app');
        INSERT INTO threads VALUES (1, 1, 101, 'main');
        INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (1, 1, 'CPU', {MS}, 1);
        INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query)
          VALUES (1, 0, 11, 0, 'SELECT a'), (2, 0, 12, 0, 'SELECT b')""")
    db.execute("INSERT INTO statement_counters (statement, normalized_query_hash, database, program, calls)"
               " VALUES (1, 11, '', '/opt/app', 20000)")
    for i, module in enumerate(sorted(set(modules)), 1):
        db.execute("INSERT INTO modules (id, build_id, path, file_size, mtime_ns, base, extent, elf_start)"
                   " VALUES (?, ?, '/not/here/' || ?, 1, 1, ?, 0x1000, 0)", (i, "aa%02x" % i, module, i << 16))
    address = {}
    for i, (name, module) in enumerate(zip(names, modules), 1):
        address[name] = (sorted(set(modules)).index(module) + 1 << 16) + 16 * i
        db.execute("INSERT INTO names VALUES (?, ?)", (i, name))
        db.execute("INSERT INTO frames (address, level, inlined, function, symbol, file, line)"
                   " VALUES (?, 0, 0, ?, ?, 0, 0)",
                   (address[name], i, i))
    for run in range(1, RUNS + 2):
        start = START + run * 10**9
        db.execute("INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement,"
                   " query_start_ns, query_duration_ns, cpu_time_ns, thread_id)"
                   " VALUES (?, ?, 1, ?, ?, 1, ?, ?, ?, ?, 0, 101)",
                   (run, "run %d" % run, start, start + 10**9 - 1, run, 1 + (run > RUNS), start, 10**9 - 1))
    for stack, (statement, weight, *called) in enumerate(stacks, 1):
        frames = [address[name] for name in (names[:4] + called)[::-1]]
        db.execute("INSERT INTO stacks VALUES (?, 0, 1, ?)", (stack, json.dumps(frames)))
        for run in range(1, RUNS + 1) if statement == "a" else [RUNS + 1]:
            db.execute("INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
                       " VALUES (?, 1, ?, ?, 0, ?, 0, 0)", (START + run * 10**9 + stack, run, stack, weight))
    db.commit()
    db.close()


# A person's actions, one after the other, go between these two. They write the visible result to #seen.
BEFORE = """
<script>
const seen = {};
const frames = () => [...document.querySelectorAll("#chart g.frame")];
const look = (name) => seen[name] = {
    names: frames().map((frame) => frame.getAttribute("name")),
    titles: frames().map((frame) => frame.querySelector("title").textContent),
    totals: document.getElementById("totals").textContent,
    found: document.getElementById("found").textContent,
    legend: document.getElementById("legend").textContent,
    menu: [...document.querySelectorAll("#query option")].map((option) => [option.text, option.disabled]),
    fills: Object.fromEntries(frames().map((frame) =>
        [frame.getAttribute("name"), frame.querySelector("rect").getAttribute("fill")])),
    faded: document.querySelectorAll("#chart g.fade").length,
    address: location.hash,
    background: getComputedStyle(document.body).backgroundColor };
const set = (name, value) => {
    const control = document.getElementById("controls").elements[name];
    control[control.type === "checkbox" ? "checked" : "value"] = value;
    for (const event of ["input", "change"])
        control.dispatchEvent(new Event(event, { bubbles: true }));
};
const click = (name) => frames().find((g) => g.getAttribute("name") === name).dispatchEvent(new Event("click"));
"""
AFTER = """
const output = document.createElement("pre");
output.id = "seen";
output.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(seen))));
document.body.append(output);
</script>
"""


@unittest.skipIf(MISSING, "not in this build")
@unittest.skipUnless(browser.CHROMIUM, "Chromium is not installed")
@unittest.skipIf("EXPORT_TEST_NO_BROWSER" in os.environ, "the page of another build is the same")
class Browser(support.Exports):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.before = os.path.join(cls.folder, "before.trace")
        cls.after = os.path.join(cls.folder, "after.trace")
        make_program(cls.before, [("a", 2, "sort"), ("a", 1, "sort", "copy"), ("b", 60, "scan")])
        make_program(cls.after, [("a", 3, "sort", "copy"), ("b", 60, "scan"), ("b", 60, "copy")])

    def open(self, path, actions="", address="", arguments=()):
        """The page's text, and the results that the actions have noted."""
        page = os.path.join(self.folder, "page.html")
        with open(page, "w", encoding="utf-8") as file:
            file.write(self.export(path, "flamegraph", *arguments) + BEFORE + actions + AFTER)
        shown = self.browser.show("file://" + page + address)
        self.assertIn("<svg", shown, self.browser.complaints())
        encoded = re.search(r'<pre id="seen">([^<]+)</pre>', shown)
        self.assertTrue(encoded, self.browser.complaints())
        return shown, json.loads(base64.b64decode(encoded[1]))

    def test_root_and_totals(self):
        page, _ = self.open(self.trace)
        self.assertIn("103 ms of CPU time in 93 samples", page)
        self.assertIn("<title>all queries \u00b7 103 ms, 100.0 % (self 0 ns)</title>", page)
        # The root is at the top, the statements are under it.
        self.assertRegex(page, r'<g transform="translate\(0,0\)" [^>]*name="all queries"')
        self.assertRegex(page, r'<g transform="translate\([\d.]+,19\)" [^>]*name="SELECT \* FROM orders WHERE id = 1"')
        self.assertRegex(page, r'name="fixture_calls_out" class="frame"><rect [^>]*></rect><title>fixture_calls_out '
                               r'\u00b7 full.so \u00b7 \S+/fixture.c \u00b7 100 ms, 97.1 % \(self 0 ns\)</title>')
        self.assertIn('<option value="1" title="run %s">100 ms \u00b7 SELECT * FROM orders WHERE id = 1</option>' % SLOW,
                      page)
        self.assertIn("full.so 97.1 %", page)
        real, _ = self.open(self.trace, arguments=("--type", "Real"))
        self.assertIn("150 ms of wall time in 150 samples", real)

    def test_odd(self):
        page, _ = self.open(self.odd)
        self.assertIn("123 ms of CPU time in 97 samples", page)
        self.assertIn("\u20ac", page)

    def test_use(self):
        _, seen = self.open(self.trace, """
            set("scheme", "light"); look("first");
            set("search", "STATIC|walk\\\\("); look("search");
            set("search", "("); look("wrong");
            set("search", ""); click("fixture_visit"); look("zoom");
            document.getElementById("reset").click(); look("reset");
            set("query", "2"); look("query");
            set("query", "0"); set("scheme", "dark"); look("dark");""")
        statements = {"SELECT * FROM orders WHERE id = 1", "query " + RUNNING}
        everything = {"all queries", "fixture_calls_out", "fixture_visit", "fixture_static", HOLE, WALK, "0x1234",
                      *statements}
        self.assertEqual(set(seen["first"]["names"]), everything)
        self.assertEqual(seen["search"]["found"], "4 frames, 77.7 %")
        self.assertEqual(len(set(seen["search"]["fills"].values()) - set(seen["first"]["fills"].values())), 1)
        self.assertRegex(seen["wrong"]["found"], r"Invalid regular expression: /\(/")
        self.assertEqual(seen["wrong"]["fills"], seen["first"]["fills"])
        self.assertEqual(set(seen["zoom"]["names"]), {"all queries", "fixture_calls_out", "fixture_visit",
                                                      "fixture_static", "SELECT * FROM orders WHERE id = 1"})
        self.assertEqual((seen["zoom"]["faded"], seen["reset"]["faded"]), (3, 0))
        self.assertEqual(set(seen["reset"]["names"]), everything)
        self.assertEqual(seen["query"]["totals"], "3.00 ms of CPU time in 3 samples")
        self.assertEqual(set(seen["query"]["names"]), {"run " + RUNNING, "query " + RUNNING, "0x1234"})
        self.assertEqual(set(seen["dark"]["names"]), everything)
        self.assertNotEqual(seen["dark"]["background"], seen["first"]["background"])
        self.assertFalse(set(seen["dark"]["fills"].values()) & set(seen["first"]["fills"].values()))

    def test_views(self):
        _, seen = self.open(self.before, """
            look("folded"); click("host frames"); look("opened"); set("own", true); look("own");
            set("host", false); set("own", false); set("inverted", true); click("copy"); look("inverted");""")
        inside = {"all queries", "SELECT a", "SELECT b", "sqlite3_step", "sort", "scan", "copy"}
        self.assertEqual(set(seen["folded"]["names"]), inside | {"host frames"})
        self.assertTrue(any("click to open them" in title for title in seen["folded"]["titles"]))
        self.assertEqual(set(seen["opened"]["names"]), inside | {"main", "run"})
        self.assertIn("host=1", seen["opened"]["address"])
        self.assertEqual(set(seen["own"]["names"]), inside | {"main", "run", "queryprof_step"})
        # 60 of 240 ms are in sort, which only SELECT a calls.
        self.assertEqual(set(seen["inverted"]["names"]),
                         {"all queries", "copy", "sort", "sqlite3_step", "host frames", "SELECT a"})
        self.assertIn("copy \u00b7 libc.so.6 \u00b7 60.0 ms, 25.0 %", seen["inverted"]["titles"])
        menu = seen["folded"]["menu"]
        self.assertEqual(menu[1], ["180 ms \u00b7 all 60 runs with samples, of 20,000", False])
        self.assertEqual([text for text, is_disabled in menu if is_disabled], ["30.0 ms \u00b7 10 more runs, not listed"])
        self.assertEqual(len(menu), 1 + 1 + RUNS_SHOWN + 1 + 1)

    def test_times(self):
        """The page has a switch if the file has more than one of CPU, wall and waits."""
        _, none = self.open(self.before, """
            seen.hidden = [...document.querySelectorAll(".times")].every((part) => !part.getClientRects().length);""")
        self.assertTrue(none["hidden"])
        path = support.changed_copy(self.before, self.before + ".waits", f"""
            INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (2, 1, 'OffCPU', {MS}, 1);
            INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size, wait)
              SELECT timestamp_ns + 1000, 2, query, stack, 0, 0, 0, {12 * MS}, 1 FROM samples WHERE query <= 60;""")
        actions = """
            seen.times = [["first", document.getElementById("times").textContent]];
            const time = (value) => { set("type", value); look(value);
                seen.times.push([value, document.getElementById("times").textContent]); };
            look("first"); time("wall"); time("waits"); set("query", "1"); time("wall"); time("");
            set("query", "0"); set("type", "wall");"""
        page, seen = self.open(path, actions)
        everything = "CPU 240 ms \u00b7 wall 1.68 s (14.3 % on CPU) \u00b7 waits 1.44 s"
        a = "CPU 180 ms \u00b7 wall 1.62 s (11.1 % on CPU) \u00b7 waits 1.44 s"
        self.assertEqual(seen["times"], [["first", everything], ["wall", everything], ["waits", everything], ["wall", a], ["", a]])
        self.assertEqual(seen["first"]["totals"], "240 ms of CPU time in 121 samples")
        self.assertEqual(seen["waits"]["totals"], "1.44 s of waited time in 120 samples")
        self.assertEqual(seen["waits"]["menu"][0][0], "all: 60 runs with samples")
        self.assertNotIn("SELECT b", seen["waits"]["names"])
        self.assertEqual(seen["wall"]["totals"], "1.62 s of wall time in 240 samples")
        self.assertIn("type=wall&query=1", seen["wall"]["address"])
        self.assertTrue(any(name.startswith("[wait: ") for name in seen["wall"]["names"]))
        self.assertEqual(seen[""]["totals"], "180 ms of CPU time in 120 samples")
        _, again = self.open(path, 'look("page");', "#type=wall&query=1")
        self.assertEqual(sorted(again["page"]["titles"]), sorted(seen["wall"]["titles"]))
        _, wall = self.open(path, 'look("page");', arguments=("--type", "wall"))
        self.assertEqual(wall["page"]["totals"], "1.68 s of wall time in 241 samples")
        _, both = self.open(path, """
            set("type", "wall"); look("page"); seen.times = document.getElementById("times").textContent;""",
                            arguments=("--diff", path))
        side = "before.trace.waits"
        self.assertEqual(both["times"], " \u00b7 ".join("%s %s %s \u2192 %s %s" % (text, side, value, side, value) for text, value in (
            ("CPU", "240 ms"), ("wall", "1.68 s (14.3 % on CPU)"), ("waits", "1.44 s"))))
        self.assertRegex(both["page"]["totals"], "^%s 1.68 s of wall time in 241 samples \u2192 " % side)
        self.assertIn("no OffCPU samples of these queries",
                      self.refused(1, path, "--type", "offcpu", "--like", "SELECT b", "--format", "flamegraph", "-o", path + ".html"))

    def test_title(self):
        page, seen = self.open(self.before, """
            const first = new Date(START), two = (number) => String(number).padStart(2, "0");
            seen.start = `${first.getFullYear()}-${two(first.getMonth() + 1)}-${two(first.getDate())} `
                + `${two(first.getHours())}:${two(first.getMinutes())}`;
            seen.title = document.title; seen.heading = document.getElementById("title").textContent;
            seen.files = document.getElementById("files").textContent;"""
                               .replace("START", str((START + 10**9) // MS)))
        self.assertEqual(seen["heading"], f"app, {seen['start']}, 60 s")
        self.assertEqual(seen["title"], seen["heading"] + " \u00b7 queryprof")
        self.assertEqual(seen["files"], self.before)

    def test_search_in_folded_frames(self):
        """The search does not open frames. It marks the folded frame that contains the match, and shows the name."""
        _, seen = self.open(self.before, """
            look("first"); set("search", "^run$"); look("search"); set("query", "1"); look("statement");
            set("host", true); look("opened");""")
        self.assertEqual(seen["search"]["names"], seen["first"]["names"])
        self.assertEqual(seen["search"]["found"], "2 frames, 100.0 %, folded: run")
        self.assertEqual({name for name, fill in seen["search"]["fills"].items() if fill != seen["first"]["fills"][name]},
                         {"host frames"})
        self.assertEqual(seen["statement"]["found"], "1 frames, 100.0 %, folded: run")
        self.assertEqual(seen["opened"]["found"], "1 frames, 100.0 %")
        _, again = self.open(self.before, 'look("page");', "#search=%5Erun%24")
        self.assertEqual(again["page"]["found"], seen["search"]["found"])

    def test_address(self):
        """The address contains choices, search and zoom, and opening it restores them."""
        _, seen = self.open(self.before, """
            set("query", "52"); look("one"); set("query", "0"); set("host", true); set("search", "s.*t");
            click("copy"); look("zoom");""")
        self.assertEqual(seen["one"]["address"], "#query=52")
        address = seen["zoom"]["address"]
        self.assertEqual(address, "#search=s.*t&host=1&zoom=SELECT+a&zoom=main&zoom=run&zoom=sqlite3_step&zoom=sort&zoom=copy")
        everything = {"all queries", "SELECT a", "SELECT b", "host frames", "sqlite3_step", "sort", "scan", "copy"}
        # An address for another page may name items that do not exist here.
        _, again = self.open(self.before, """
            look("zoom");
            const visit = (address) => { location.hash = address; dispatchEvent(new Event("hashchange")); };
            visit("#zoom=SELECT+b"); look("changed");
            visit("#query=999&zoom=none&search=%28&compare=x"); look("other");""", address)
        self.assertEqual(sorted(again["zoom"].pop("titles")), sorted(seen["zoom"].pop("titles")))
        self.assertEqual(sorted(again["zoom"].pop("names")), sorted(seen["zoom"].pop("names")))
        self.assertEqual(again["zoom"], seen["zoom"])
        self.assertEqual(again["zoom"]["found"], "5 frames, 100.0 %")
        self.assertEqual(set(again["changed"]["names"]), everything - {"SELECT a", "sort", "copy"})
        self.assertEqual(set(again["other"]["names"]), everything)

    def label(self, path):
        """A copy of a program's file in which some samples have labels, one of them hostile."""
        return support.changed_copy(path, path + ".labels", """
            INSERT INTO label_sets VALUES (7, 1, 1, '{"n":7,"route":"users"}', '', '', ''),
              (8, 2, 1, '{"route":"</script><script>alert(1)</script>"}', '', '', '');
            UPDATE samples SET labels = 7 WHERE query BETWEEN 1 AND 20;
            UPDATE samples SET labels = 8 WHERE query BETWEEN 21 AND 30;""")

    def test_labels(self):
        _, none = self.open(self.before, """
            seen.hidden = [...document.querySelectorAll(".labels")].map((label) => label.getClientRects().length);""")
        self.assertEqual(none["hidden"], [0, 0])
        path = self.label(self.before)
        _, seen = self.open(path, """
            seen.menus = ["label", "by"].map((name) => [...document.getElementById("controls").elements[name].options]
                .map((option) => [option.text, option.value]));
            seen.hidden = [...document.querySelectorAll(".labels")].map((label) => label.getClientRects().length);
            set("label", "route=users"); look("users"); set("query", "2"); look("run"); set("query", "0");
            set("label", "n"); look("without"); set("label", ""); set("by", "label:route"); look("grouped");
            set("inverted", true); set("label", "n=7"); look("inverted");
            location.hash = "#label=route%3Dusers&by=label:n"; dispatchEvent(new Event("hashchange")); look("address");
            location.hash = "#label=route%3Dnobody&by=label:x"; dispatchEvent(new Event("hashchange")); look("stranger");""")
        self.assertEqual(seen["hidden"], [1, 1])
        hostile = "</script><script>alert(1)</script>"
        self.assertEqual(seen["menus"], [
            [["any or none", ""], ["180 ms \u00b7 (no n)", "n"], ["60.0 ms \u00b7 7", "n=7"],
             ["150 ms \u00b7 (no route)", "route"], ["60.0 ms \u00b7 users", "route=users"],
             ["30.0 ms \u00b7 " + hostile, "route=" + hostile]],
            [["statements", ""], ["label n", "label:n"], ["label route", "label:route"]]])
        stack = {"host frames", "sqlite3_step", "sort", "copy"}
        self.assertEqual(set(seen["users"]["names"]), stack | {"all queries, route=users", "SELECT a"})
        self.assertRegex(seen["users"]["totals"], "^60.0 ms .* in 40 samples")
        self.assertRegex(seen["run"]["totals"], "^3.00 ms .* in 2 samples")
        self.assertRegex(seen["without"]["totals"], "^180 ms .* in 81 samples")
        self.assertEqual(set(seen["grouped"]["names"]),
                         stack | {"all queries", "SELECT a", "SELECT b", "scan", "users", "(no route)", hostile})
        self.assertIn("users \u00b7 60.0 ms, 25.0 % (self 0 ns)", seen["grouped"]["titles"])
        self.assertEqual(set(seen["inverted"]["names"]), stack | {"all queries, n=7", "users", "SELECT a"})
        self.assertEqual(seen["inverted"]["address"], "#label=n%3D7&by=label%3Aroute&inverted=1")
        self.assertEqual(set(seen["address"]["names"]), stack | {"all queries, route=users", "7", "SELECT a"})
        self.assertEqual(set(seen["stranger"]["names"]), stack | {"all queries", "SELECT a", "SELECT b", "scan"})
        # In a comparison both sides have them.
        _, both = self.open(self.before, 'set("by", "label:route"); look("page");',
                            arguments=("--diff", self.label(self.after)))
        self.assertIn("(no route) \u00b7 before.trace 240 ms, 100.0 % \u2192 after.trace.labels 210 ms, 70.0 %",
                      both["page"]["titles"])

    def test_colours_stay_from_page_to_page(self):
        _, before = self.open(self.before, 'set("scheme", "light"); look("page");')
        _, after = self.open(self.after, 'set("scheme", "light"); look("page");')
        self.assertNotEqual(before["page"]["legend"], after["page"]["legend"])
        for name in ("sqlite3_step", "copy", "scan", "sort"):
            self.assertEqual(before["page"]["fills"][name], after["page"]["fills"][name])
        hues = [re.match(r"hsl\((\d+) ", before["page"]["fills"][name])[1] for name in ("sort", "scan", "copy")]
        self.assertEqual(len(set(hues)), 2)

    def test_difference(self):
        _, seen = self.open(self.before, """
            set("scheme", "light"); look("times"); set("compare", "shares"); look("shares");""",
                            arguments=("--diff", self.after))
        page = seen["times"]
        self.assertRegex(page["totals"], r"^before.trace 240 ms .* in 121 samples \u2192 after.trace 300 ms .* in 62 samples$")
        self.assertIn("SELECT a \u00b7 before.trace 180 ms, 75.0 % \u2192 after.trace 180 ms, 60.0 %", page["titles"])
        colors = {name: [float(number) for number in re.findall(r"[\d.]+", fill)] for name, fill in page["fills"].items()}
        # Hue and saturation: red is more, blue is less.
        self.assertEqual(colors["SELECT a"][1], 0)
        self.assertEqual(colors["SELECT b"][0], 0)
        self.assertGreater(colors["SELECT b"][1], 0)
        # sort, with its callees, had 180 ms in SELECT a on both sides.
        self.assertEqual(colors["sort"][1], 0)
        # Its share became smaller: from 3/4 of 240 ms to 3/5 of 300 ms.
        shares = [float(number) for number in re.findall(r"[\d.]+", seen["shares"]["fills"]["SELECT a"])]
        self.assertEqual(shares[0], 220)
        self.assertGreater(shares[1], 0)
        self.assertEqual(seen["shares"]["address"].replace("scheme=light", ""), "#compare=shares&")
        self.assertIn("only in after.trace", page["legend"])


support.main()
