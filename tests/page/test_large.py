#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The page of a file with a million samples: its size, its memory and whether each panel opens.

usage: test_large.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]
With QUERYPROF_BENCH_STEPS=120 in the environment, it zooms the heat map in 120 steps and prints the times of the frames."""

import os
import resource
import sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("lib", "command", "attack", "export", "bench")]
import browser
import reading
import test_browser
from tool import *

SAMPLES, RUNS = 10**6, 27000
STEPS = int(os.environ.get("QUERYPROF_BENCH_STEPS", "0"))
SIZE_MAX, MEMORY_MAX = 3 << 20, 300 << 20

# Each step selects a shorter time around the middle. works: the times until the page has handled the new address.
ZOOM = """(async () => {
    const { from, to } = %s, frames = [], works = [], frame = () => new Promise((done) => requestAnimationFrame(done));
    let last = await frame();
    for (let i = 1; i <= %d; i++) {
        const half = (to - from) / 2 * Math.pow(1 / (to - from), i / %d), begin = performance.now();
        const drawn = new Promise((done) => addEventListener("hashchange", done, { once: true }));
        location.hash = `#timeline&from=${(from + to) / 2 - half}&to=${(from + to) / 2 + half}`;
        await drawn;
        works.push(performance.now() - begin);
        const now = await frame();
        frames.push(now - last);
        last = now;
    }
    return { frames, works };
})()"""


def quantile(numbers, part):
    return sorted(numbers)[min(len(numbers) - 1, int(part * len(numbers)))]


class Large(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-page-")
        os.environ["QUERYPROF_CACHE_DIR"] = cls.folder
        cls.trace = reading.find_file(SOURCE, SAMPLES, RUNS)
        cls.chromium = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.chromium.close()
        shutil.rmtree(cls.folder)

    def cpu_seconds(self, page):
        metrics = self.chromium.call("Performance.getMetrics", page.session)["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    def test_page(self):
        out = os.path.join(self.folder, "large.html")
        self.output("report", self.trace, "--html", "-o", out)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        size = os.path.getsize(out)
        print("page of %d samples: %.2f MB, made in %.2f s of CPU time with %.0f MB" % (SAMPLES, size / 1e6, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
        self.assertLess(size, SIZE_MAX)
        page = test_browser.Page(self.chromium, "file://" + out)
        paints = page.wait("performance.getEntriesByType('paint').map((one) => one.startTime)")
        print("first paint after %.0f ms" % min(paints))
        for panel, heading in test_browser.PANELS:
            begin = page.get("performance.now()")
            page.go(panel, heading)
            print("%s: %.0f ms" % (panel, page.get("performance.now()") - begin))
        page.go("timeline", "Time line")
        self.assertIn("estimates", page.get("location.hash = '#timeline&from=-60000'; new Promise((done) => setTimeout(() => done(document.querySelector('.selection').textContent), 500))"))
        self.chromium.call("HeapProfiler.collectGarbage", page.session)
        memory = self.chromium.call("Runtime.getHeapUsage", page.session)["usedSize"]
        print("memory of the page's script: %.0f MB" % (memory / 1e6))
        self.assertLess(memory, MEMORY_MAX)
        if STEPS:
            span = "((lanes) => ({ from: Math.min(...lanes.map((one) => one.at_ms)), to: Math.max(...lanes.map((one) => one.at_ms + one.open_ms)) }))" \
                "(JSON.parse(document.getElementById('data').textContent).lanes)"
            self.chromium.call("Performance.enable", page.session, timeDomain="threadTicks")
            before = self.cpu_seconds(page)
            times = page.get(ZOOM % (span, STEPS, STEPS))
            print("a step of the zoom: %.1f ms of CPU time in the page's thread" % (1000 * (self.cpu_seconds(page) - before) / STEPS))
            for name in "frames", "works":
                print("%-6s median %.1f ms, 99 %% %.1f ms, longest %.1f ms" % (name, quantile(times[name], 0.5), quantile(times[name], 0.99), max(times[name])))
        self.assertEqual(page.close(), [])


if __name__ == "__main__":
    main()
