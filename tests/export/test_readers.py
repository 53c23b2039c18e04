#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The exports in readers from npm: pprof-format, OpenTelemetry's messages and, if Chromium is installed, speedscope.

usage: QUERYPROF_TEST_NODE=NODE QUERYPROF_TEST_READERS=FOLDER test_readers.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import base64
import json
import os
import re
import subprocess
import unittest

import browser
import support
from pprof_profile import Profile
from support import BUILD_ID, FIXTURE, MS, READERS


class PprofFormat(support.Exports):
    def read(self, path, *arguments):
        out = os.path.join(self.folder, "out.pb.gz")
        self.assertEqual(self.run_export(path, "--format", "pprof", "-o", out, *arguments).returncode, 0)
        reader = os.path.join(os.path.dirname(os.path.abspath(__file__)), "readers", "read_pprof.mjs")
        done = subprocess.run([os.environ["QUERYPROF_TEST_NODE"], reader, READERS, out], capture_output=True, text=True, encoding="utf-8",
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, "rb") as file:
            return json.loads(done.stdout), Profile(file.read())

    def test_same_as_our_decoder(self):
        for path in (self.trace, self.odd):
            read, profile = self.read(path)
            self.assertEqual(read["samples"], [[[list(frame) for frame in frames], values, labels]
                                               for frames, values, labels in profile.samples])
        self.assertEqual(read["mappings"], [[FIXTURE, BUILD_ID]])

    def test_totals(self):
        for trace_type in ("CPU", "Real"):
            read, _ = self.read(self.odd, "--type", trace_type)
            count, _, ns = self.totals(self.odd, trace_type)
            self.assertEqual([sum(values[i] for _, values, _ in read["samples"]) for i in range(2)], [count, ns])


class Otlp(support.Spans):
    """All names and value types exist in OTLP, and nothing is lost when the message is encoded and decoded."""

    def test_request(self):
        out = os.path.join(self.folder, "out.json")
        self.assertEqual(self.run_export(self.spans, "--format", "otlp-traces", "-o", out).returncode, 0)
        reader = os.path.join(os.path.dirname(os.path.abspath(__file__)), "readers", "read_otlp.mjs")
        done = subprocess.run([os.environ["QUERYPROF_TEST_NODE"], reader, READERS, out], capture_output=True, text=True,
                              encoding="utf-8", timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        both = json.loads(done.stdout)
        self.assertGreater(done.stdout.count('"spanId"'), 20)
        self.assertEqual(both["read"], both["given"])


@unittest.skipUnless(browser.CHROMIUM, "Chromium is not installed")
class Speedscope(support.Spans):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self, path, form):
        # speedscope's own command passes a file to the page in this way.
        script = os.path.join(self.folder, "file.js")
        with open(script, "w", encoding="utf-8") as file:
            content = base64.b64encode(self.export_bytes(path, form)).decode()
            file.write(f"speedscope.loadFileFromBase64('exported', '{content}')")
        page = os.path.join(READERS, "node_modules", "speedscope", "dist", "release", "index.html")
        shown = self.browser.show(f"file://{page}#localProfilePath={script}")
        text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", shown))
        self.assertIn("Left Heavy", text, self.browser.complaints())
        return shown, text

    def test_own_format(self):
        shown, text = self.open(self.trace, "speedscope")
        self.assertIn(f"<title>{self.trace} - speedscope</title>", shown)
        self.assertIn("SELECT * FROM orders WHERE id = 1 (1/2)", text)
        self.assertRegex(text, r"1 SELECT \* FROM orders WHERE id = 1 100\.00ms 2 query \S+ 3\.00ms")
        self.assertEqual(self.totals(self.trace)[2], 103 * MS)

    def test_spans(self):
        _, text = self.open(self.spans, "perfetto")
        # A profile for each thread contains the sum of its spans.
        self.assertRegex(text, r"shopd \(pid 100\), render \(tid 103\) 25\.00ms")
        self.assertRegex(text, r"shopd \(pid 100\), writer \(tid 104\) 40\.00ms")

    def test_others(self):
        for form in ("collapsed", "pprof"):
            self.assertIn(" - speedscope</title>", self.open(self.trace, form)[0])


support.main()
