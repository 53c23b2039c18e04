#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: each panel, for a finished file and during a recording. The test looks for elements and their texts,
not
for pixels.

usage: test_browser.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import json
import os
import re
import sqlite3
import sys
import time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("lib", "command", "attack", "export")]
import browser
import test_golden
import test_server
import test_texts
from tool import *

SECONDS = 300  # ends a test that hangs
PYTHON = "/usr/bin/python3"
STATEMENT = "SELECT count(*), 'endless' FROM c"
PROGRAM = "import sqlite3; sqlite3.connect(':memory:').execute(\"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) %s\").fetchone()" % STATEMENT


# Each panel's address, and the beginning of its heading.
PANELS = [("statements", "Statements"), ("flame", "Flame graph"), ("timeline", "Time line"), ("locks", "Locks"), ("pages", "Pages"), ("findings", "Findings"),
          ("health", "Health"), ("now", "What runs")]


class Page:
    """A page of the browser."""

    def __init__(self, chromium, url):
        self.chromium = chromium
        self.target = chromium.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = chromium.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        chromium.events.clear()
        for domain in "Page", "Runtime", "Log":
            chromium.call(domain + ".enable", self.session)
        chromium.call("Page.navigate", self.session, url=url)
        self.wait("document.readyState === 'complete' && document.querySelectorAll('nav a').length === 8")

    def close(self):
        """Closes the page. Returns its exceptions and errors, for example violations of its security policy."""
        complaints, self.chromium.said = self.chromium.said, []
        self.chromium.call("Target.closeTarget", targetId=self.target)
        return complaints

    def get(self, expression):
        answer = self.chromium.call("Runtime.evaluate", self.session, expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            value = self.get(expression)
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError("never came: %s\n%s" % (expression, self.get("document.body.innerText")))

    def go(self, panel, heading):
        self.get("location.hash = %s" % json.dumps("#" + panel))
        self.wait("document.querySelector('main h2')?.textContent.startsWith(%s)" % json.dumps(heading))

    def texts(self, selector):
        return self.get("[...document.querySelectorAll(%s)].map((one) => one.textContent)" % json.dumps(selector))

    def column(self, table, number):
        return self.texts("table[data-name='%s'] tbody td:nth-child(%d)" % (table, number))


def shown_ms(ms):
    """Returns the time as the page prints it."""
    return "%.2f s" % (ms / 1000) if ms >= 1000 else "%.1f ms" % ms if ms >= 1 or not ms else "%.1f µs" % (ms * 1000)


def share_ms(text):
    number, unit = text.split()
    return float(number) * {"s": 1000, "ms": 1, "µs": 0.001}[unit]


class Shown(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-page-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        test_golden.make(cls.trace, "fixed.sql", "fixed_plans.sql", "fixed_callers.sql", "fixed_pages.sql")
        with contextlib.closing(sqlite3.connect(cls.trace)) as db:
            db.execute("INSERT INTO losses VALUES (1, 'the ring was full', 1, 2, 34, 5)")
            db.execute("UPDATE state SET removals = 1")
            db.commit()
        cls.chromium = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.chromium.close()
        shutil.rmtree(cls.folder)

    def open(self, url):
        page = Page(self.chromium, url)
        self.addCleanup(lambda: self.assertEqual(page.close(), []))
        return page

    def open_file(self, trace, *arguments):
        out = os.path.join(self.folder, "report.html")
        self.output("report", trace, "--html", "-o", out, *arguments)
        with open(out, encoding="utf-8") as file:
            data = json.loads(re.search(r'id="data">(.*?)</script>', file.read(), re.DOTALL)[1])
        return self.open("file://" + out), data

    def check_statement(self, page, data, statement):
        """The panel of a statement contains everything that the data contains about it."""
        page.go("statement=" + statement["statement"], "Statement " + statement["statement"][:8])
        of = {part: [one for one in data[part] if one["statement"] == statement["statement"]] for part in ("plans", "callers", "runs", "findings")}
        self.assertEqual(page.texts("main pre")[0], statement["query"])
        nodes = page.get("[...document.querySelectorAll('.node span:first-child')].map((one) => one.textContent)")
        self.assertEqual(sorted(nodes), sorted(one["detail"] for one in of["plans"]))
        self.assertEqual(len(page.texts("article")), len(of["findings"]))
        self.assertEqual(page.get("document.querySelectorAll('svg circle').length"), len(of["runs"]))
        self.assertEqual(page.column("callers", 3), [one["caller"] or "not known" for one in of["callers"]])
        self.assertEqual(len(page.column("slow runs", 1)), min(20, len(of["runs"])))
        self.assertEqual(page.texts("nav a[aria-current]"), ["Statements"])
        self.assertEqual(len(page.column("plan history", 1)), sum(one["statement"] == statement["statement"] for one in data["history"]))

    def test_panels_of_a_file(self):
        page, data = self.open_file(self.trace)
        self.assertEqual(page.get("document.title"), "queryprof: app.trace")
        self.assertEqual(page.texts("nav a"), ["Statements", "Flame graph", "Time line", "Locks and WALs", "Pages", "Findings", "Health", "Now"])
        self.assertEqual(len(page.column("statements", 1)), len(data["statements"]))
        for statement in data["statements"]:
            self.check_statement(page, data, statement)
        page.go("findings", "Findings")
        self.assertEqual(len(page.texts("article")), len(data["findings"]))
        self.assertTrue(data["findings"])
        self.assertEqual(page.texts("article pre"), [one["cure"] for one in data["findings"] if one["cure"]])
        self.assertEqual(len(page.texts("article button")), len(page.texts("article pre")))
        page.go("pages", "Pages")
        self.assertEqual(page.column("pages", 2), [one["btree"] for one in data["pages"]])
        self.assertEqual(page.get("[...document.querySelectorAll('svg.cells')].map((one) => one.querySelectorAll('rect').length)"),
                         [sum(cell != "0" for cell in one["cells"].split(",")) for one in data["pages"]])
        page.go("health", "Health")
        self.assertEqual((page.column("losses", 1), page.column("losses", 2)), (["34", "not known"], ["5", "0"]))
        self.assertEqual(page.column("losses", 3), [one["reason"] for one in data["losses"]])
        self.assertEqual(len(page.column("sampling", 1)), len(data["sampling"]))
        page.go("now", "What runs now")
        self.assertIn("Not known", page.texts("main p")[0])

    def test_flame_graph(self):
        """The graph's total is the time of the samples. A search shows the share of the functions that it finds."""
        page, data = self.open_file(self.trace)
        page.go("flame", "Flame graph")
        page.wait("document.querySelectorAll('.flame svg g').length > 1")
        sums = {}
        for stack in data["stacks"]:
            sums[stack["statement"]] = sums.get(stack["statement"], 0) + (stack["ms"] if stack["trace_type"] == "CPU" else 0)
        page.get("{ const time = document.getElementById('flame-time'); time.value = 'cpu'; time.dispatchEvent(new Event('change')); }")
        page.wait("document.querySelector('.flame').getAttribute('aria-label').includes('CPU time')")
        self.assertIn(": %s of CPU time" % shown_ms(sum(sums.values())), page.get("document.querySelector('.flame').getAttribute('aria-label')"))
        statement = max((one for one in sums if one.strip("0")), key=sums.get)
        page.go("flame=%s&time=cpu" % statement, "Flame graph of a statement")
        self.assertIn(": %s of CPU time" % shown_ms(sums[statement]), page.get("document.querySelector('.flame').getAttribute('aria-label')"))
        page.wait("document.querySelectorAll('.flame svg g').length > 1")
        totals = {name: share_ms(total) for name, total in zip(page.column("functions", 3), page.column("functions", 2))}
        name = max(totals, key=totals.get)
        search = "{ const search = document.getElementById('flame-search'); search.value = %s; search.dispatchEvent(new Event('input')); }"
        page.get(search % json.dumps(name))
        self.assertAlmostEqual(float(page.texts(".choices [role=status]")[0].split()[0]), 100 * totals[name] / sums[statement], delta=1)
        page.get(search % "''")
        self.assertEqual(page.texts(".choices [role=status]"), [""])

    def test_time_line(self):
        page, data = self.open_file(self.trace)
        page.go("timeline", "Time line")
        self.assertEqual(page.get("document.querySelectorAll('.timeline rect').length"), len(data["lanes"]))
        press = "[...document.querySelectorAll('.choices button')].find((one) => one.textContent === '%s').click()"
        page.get(press % "Closer")
        page.wait("location.hash.includes('from=')")
        first, last = (float(page.get("new URLSearchParams(location.hash.split('&').slice(1).join('&')).get('%s')" % name)) for name in ("from", "to"))
        inside = [one for one in data["lanes"] if one["at_ms"] <= last and one["at_ms"] + one["open_ms"] >= first]
        self.assertLess(len(inside), len(data["lanes"]))
        page.wait("document.querySelectorAll('.timeline rect').length === %d" % len(inside))
        page.get(press % "Whole")
        page.wait("document.querySelectorAll('.timeline rect').length === %d" % len(data["lanes"]))

    def test_selection(self):
        """A drag over the heat map selects a time, which the other panels and links keep. Another time can be compared with
        it."""
        page, data = self.open_file(self.trace)
        page.go("timeline", "Time line")
        box = page.get("document.querySelector('canvas.heat').scrollIntoView(); JSON.stringify(document.querySelector('canvas.heat').getBoundingClientRect())")
        box = json.loads(box)
        drag = "for (const [name, x, y] of [['pointerdown', %(x1)f, %(y1)f], ['pointermove', %(x2)f, %(y2)f], ['pointerup', %(x2)f, %(y2)f]]) " \
            "document.querySelector('canvas.heat').dispatchEvent(new PointerEvent(name, { clientX: x, clientY: y, bubbles: true, pointerId: 1 }));"
        page.get("HTMLCanvasElement.prototype.setPointerCapture = () => undefined;" + drag % {
            "x1": box["left"] + 1, "y1": box["top"] + 1, "x2": box["left"] + box["width"] / 2, "y2": box["bottom"] - 2})
        page.wait("location.hash.includes('from=')")
        kept = page.get("location.hash")
        self.assertTrue(kept.startswith("#timeline&from="))
        for name in "Statements", "Flame graph":
            page.get("[...document.querySelectorAll('nav a')].find((one) => one.textContent === '%s').click()" % name)
            page.wait("document.querySelector('main h2').textContent === '%s'" % name)
            self.assertTrue(page.get("location.hash").endswith(kept[len("#timeline"):]))
        page.get("location.hash = %s" % json.dumps(kept.replace("timeline", "statements")))
        page.wait("document.querySelectorAll(\"table[data-name='selected']\").length === 1")
        share = sum(float(text.split()[0]) for text in page.column("selected", 1))
        self.assertAlmostEqual(share, 100, delta=1)
        page.get("[...document.querySelectorAll('.choices button')].find((one) => one.textContent === 'Compare with this').click()")
        page.wait("document.querySelector('.selection').textContent.includes('Compared with')")
        self.assertIn("before", page.texts("table[data-name='selected'] thead th"))
        page.go("flame&" + page.get("location.hash").split("&", 1)[1], "Flame graph")
        self.assertIn("change", page.texts("table[data-name='functions'] thead th"))

    def test_locks(self):
        page, data = self.open_file(self.trace)
        page.go("locks", "Locks and WALs")
        self.assertEqual(page.column("locks", 3), [one["cause"] for one in data["locks"]])
        self.assertEqual(page.texts("main h3"), ["WAL of " + one["database"] for one in data["wals"]])

    def test_sorting_and_filter(self):
        page, data = self.open_file(self.trace)
        for number, name in ((4, "wall_ms"), (6, "runs")):
            button = "document.querySelector(\"table[data-name='statements'] thead tr > :nth-child(%d) button\")" % number
            page.get(button + ".click()")
            self.assertEqual(page.get(button + ".parentElement.getAttribute('aria-sort')"), "descending")
            known = [one for one in data["statements"] if one[name] is not None]
            order = sorted(known, key=lambda one: -one[name]) + [one for one in data["statements"] if one[name] is None]
            ids = page.get("[...document.querySelectorAll(\"table[data-name='statements'] tbody a\")].map((one) => one.hash)")
            self.assertEqual(ids, ["#statement=" + one["statement"] for one in order])
        page.get("{ const input = document.getElementById('filter'); input.value = 'INSERT INTO report'; input.dispatchEvent(new Event('input')); }")
        self.assertEqual(len(page.column("statements", 1)), 1)

    def test_accessible(self):
        """The page has what keyboards and screen readers need: captions, column headings, labels, names of buttons and
        pictures."""
        page, data = self.open_file(self.trace)
        for panel, heading in [*PANELS, ("statement=" + data["statements"][0]["statement"], "Statement ")]:
            page.go(panel, heading)
            self.assertEqual(page.get("""[...document.querySelectorAll("table")].filter((one) => !one.caption?.textContent
                || one.querySelectorAll("thead th:not([scope=col])").length || !one.closest("[role=region][tabindex='0'][aria-label]")).length"""), 0, panel)
            self.assertEqual(page.get("[...document.querySelectorAll('button, a')].filter((one) => !one.textContent.trim()).length"), 0, panel)
            self.assertEqual(page.get("[...document.querySelectorAll('svg')].filter((one) => !one.closest('[aria-label], [aria-hidden]')).length"), 0, panel)
            self.assertEqual(page.get("[...document.querySelectorAll('input, select')].filter((one) => !one.labels.length).length"), 0, panel)
        self.assertEqual(page.get("document.activeElement.id"), "view")  # a change of panel moves the focus to its beginning

    @unittest.skipUnless(os.environ.get("QUERYPROF_TEST_AXE"), "without axe-core")
    def test_axe(self):
        """axe-core finds no serious problem in the light page at 1300 px and in the dark page at 360 px; neither is too
        wide."""
        page, data = self.open_file(self.trace)
        with open(os.environ["QUERYPROF_TEST_AXE"], encoding="utf-8") as file:
            page.get(file.read() + ";0")
        for width, scheme in ((1300, "light"), (360, "dark")):
            self.chromium.call("Emulation.setDeviceMetricsOverride", page.session, width=width, height=900, deviceScaleFactor=1, mobile=False)
            self.chromium.call("Emulation.setEmulatedMedia", page.session, features=[{"name": "prefers-color-scheme", "value": scheme}])
            for panel, heading in [*PANELS, ("statement=" + data["statements"][0]["statement"], "Statement ")]:
                page.go(panel, heading)
                self.assertEqual(page.get("""axe.run().then(({violations}) => violations.filter(({impact}) => impact === "serious" || impact === "critical")
                    .map(({id, nodes}) => id + ": " + nodes.slice(0, 3).map(({html}) => html.slice(0, 200)).join(" ")))"""), [], (width, panel))
                self.assertLessEqual(page.get("document.documentElement.scrollWidth"), width, panel)

    def test_programs(self):
        """Every panel shows the recordings of four programs."""
        statement = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 300000) SELECT sum(x) FROM c"
        programs = {
            "python": [PYTHON, "-c", "import sqlite3; sqlite3.connect(':memory:').execute(%r).fetchall()" % statement],
            "threads": [PYTHON, "-c", "import sqlite3, threading; all = [threading.Thread(target=lambda: sqlite3.connect(':memory:').execute(%r).fetchall()) for _ in range(3)]; "
                        "[one.start() for one in all]; [one.join() for one in all]" % statement],
            "shell": ["sqlite3", ":memory:", statement],
            "writer": ["sqlite3", os.path.join(self.folder, "writer.db"), "PRAGMA journal_mode = WAL; CREATE TABLE t (x); CREATE INDEX i ON t (x);"
                       "INSERT INTO t " + statement.replace("sum(x)", "x") + "; SELECT count(*) FROM t WHERE x + 0 = 5; PRAGMA wal_checkpoint;"],
        }
        for name, words in programs.items():
            if not shutil.which(words[0]):
                continue
            trace = os.path.join(self.folder, name + ".trace")
            subprocess.run([QUERYPROF, "record", "-o", trace, "--", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           timeout=SECONDS, check=True)
            page, data = self.open_file(trace)
            self.assertTrue(any("RECURSIVE c(x)" in one["query"] for one in data["statements"]), name)
            for panel, heading in [*PANELS, *(("statement=" + one["statement"], "Statement ") for one in data["statements"])]:
                page.go(panel, heading)
            page.go("timeline", "Time line")
            self.assertEqual(page.get("document.querySelectorAll('.timeline rect').length"), len(data["lanes"]))
            self.assertEqual(page.get("document.querySelectorAll('canvas.heat').length"), 1)

    def test_hostile(self):
        """The page shows any content of a file as text."""
        hostile = os.path.join(self.folder, "hostile.trace")
        test_texts.make_hostile(hostile)
        evil = "</script><script>hacked = 1</script><img src=x onerror='hacked = 1'><style>*{display:none}</style><a href='javascript:hacked = 1'>"
        with contextlib.closing(sqlite3.connect(hostile)) as db:
            db.execute("UPDATE statements SET query = 'SELECT ' || ?1 || id", (evil,))
            db.execute("UPDATE plan_nodes SET detail = 'SCAN ' || ?1 || node, compared = ?1", (evil,))
            db.execute("UPDATE losses SET reason = ?1", (evil,))
            db.execute("UPDATE call_stacks SET caller = ?1, caller_function = ?1", (evil,))
            db.execute("UPDATE page_sums SET database = ?1, btree = ?1, table_name = ?1", (evil,))
            db.execute("UPDATE processes SET executable = ?1, script = ?1", (evil,))
            db.execute("UPDATE names SET name = ?1 || id", (evil,))
            db.execute("UPDATE threads SET thread_name = ?1", (evil,))
            db.commit()
        page, data = self.open_file(hostile)
        for panel, heading in [*PANELS, *(("statement=" + one["statement"], "Statement ") for one in data["statements"])]:
            page.go(panel, heading)
            self.assertEqual(page.get("document.querySelectorAll('img, iframe, main script, main style, a[href^=\"javascript:\"]').length"), 0)
            self.assertEqual(page.get("document.scripts.length"), 2)
        self.assertEqual(page.get("typeof hacked"), "undefined")
        page.go("health", "Health")
        self.assertEqual(page.column("losses", 3), [evil])

    def test_without_text(self):
        page, data = self.open_file(self.trace, "--no-text")
        statement = data["statements"][0]["statement"]
        self.assertEqual(page.texts("table[data-name='statements'] tbody a")[0], "[%s]" % statement)
        page.go("statement=" + statement, "Statement ")
        self.assertIn("Its text was left out of this page.", page.texts("main p"))

    def test_plan(self):
        """A page with --plan opens at the statement of the plan."""
        page, data = self.open_file(self.trace, "--plan", "total > 20")
        self.assertEqual(page.get("location.hash"), "#statement=" + data["statements"][0]["statement"])
        self.assertEqual(page.texts("main pre")[0], data["statements"][0]["query"])

    def test_served(self):
        """The page from a server shows the same, and that no process records to the file."""
        server = test_server.Server(self.trace)
        self.addCleanup(server.close)
        page, data = self.open(server.address), server.data()
        page.wait("document.querySelector('main p')?.textContent.includes('no process records to this file now')")
        self.assertEqual(page.texts("nav a"), ["Now", "Statements", "Flame graph", "Time line", "Locks and WALs", "Pages", "Findings", "Health"])
        page.wait("document.title === 'queryprof: app.trace'")
        page.go("statements", "Statements")
        self.assertEqual(len(page.column("statements", 1)), len(data["statements"]))
        self.check_statement(page, data, data["statements"][0])

    def test_now(self):
        """A query that never ends is shown while it runs."""
        trace = os.path.join(self.folder, "live.trace")
        program = subprocess.Popen([QUERYPROF, "record", "-o", trace, "--", PYTHON, "-c", PROGRAM], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            end = time.monotonic() + SECONDS
            while run("dump", trace, "--format", "json")[1].find("endless") < 0:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            server = test_server.Server(trace)
            self.addCleanup(server.close)
            page = self.open(server.address)
            page.wait("document.querySelector(\"table[data-name='runs'] tbody\")?.textContent.includes(\"'endless'\")")
            self.assertTrue(page.column("runs", 1)[0].endswith("s"))
        finally:
            os.killpg(program.pid, test_server.signal.SIGKILL)
            program.communicate()
        page.wait("document.querySelector('main p')?.textContent.includes('no process records to this file now')")


if __name__ == "__main__":
    main()
