#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Spans in the formats perfetto and otlp-traces, against what SQL says of them.

usage: test_spans.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import json

import support
from support import row


class Spans(support.Spans):
    def test_perfetto(self):
        file = json.loads(self.export(self.spans, "perfetto"))
        events = file["traceEvents"]
        base = int(file["otherData"]["start_ns"])
        self.assertEqual(base, row("SELECT min(timestamp_ns) FROM samples", path=self.spans)[0])
        whole = [event for event in events if event["ph"] == "X"]
        found = sorted((event["args"]["span_id"], base + round(event["ts"] * 1000), round(event["dur"] * 1000), event["tid"],
                        event["name"]) for event in whole)
        # Spans that do not lie inside of another one of their thread.
        pairs = [event for event in events if event["ph"] in "be"]
        self.assertEqual([event["ph"] for event in pairs], ["b", "e"] * (len(pairs) // 2))
        for begin, end in zip(pairs[::2], pairs[1::2]):
            self.assertEqual(begin["id"], end["id"])
            found.append((begin["args"]["span_id"], base + round(begin["ts"] * 1000),
                          round((end["ts"] - begin["ts"]) * 1000), begin["tid"], begin["name"]))
        self.assertIn("POST /order", {event["name"] for event in pairs})
        expected = self.rows("SELECT span_id, start_time_ns, duration_ns, thread_id, operation_name FROM span_log")
        self.assertEqual(sorted(found), sorted(expected))
        self.assertEqual(len([event for event in events if event["ph"] == "i"]), self.totals(self.spans)[0])
        names = {(event["tid"], event["args"]["name"]) for event in events if event["name"] == "thread_name"}
        self.assertEqual(names, {(101, "shopd"), (103, "render"), (104, "writer")})

    def test_tracks_nest(self):
        file = json.loads(self.export(self.spans, "perfetto"))
        ends = {}
        for event in file["traceEvents"]:
            if event["ph"] != "X":
                continue
            open_ = ends.setdefault(event["tid"], [])
            while open_ and open_[-1] <= event["ts"]:
                open_.pop()
            if open_:
                self.assertLessEqual(event["ts"] + event["dur"], open_[-1] + 0.0005)
            open_.append(event["ts"] + event["dur"])

    def test_otlp(self):
        file = json.loads(self.export(self.spans, "otlp-traces"))
        spans = [span for resource in file["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]
        found = [(span["traceId"], span["spanId"], span.get("parentSpanId", ""), span["name"], int(span["startTimeUnixNano"]),
                  int(span["endTimeUnixNano"]), span["kind"], span["status"].get("code", 0)) for span in spans]
        self.assertEqual(sorted(found), sorted(self.rows(
            "SELECT trace_id, span_id, parent_span_id, operation_name, start_time_ns, finish_time_ns,"
            " iif(kind = 'SERVER', 2, 1), iif(status = 'ERROR', 2, 0) FROM span_log")))
        root = next(span for span in spans if span["name"] == "GET /search")
        attributes = {item["key"]: item["value"] for item in root["attributes"]}
        self.assertEqual((attributes["user"], attributes["items"]), ({"stringValue": "Jörg"}, {"intValue": "3"}))
        event = next(span for span in spans if span["name"] == "authenticate")["events"]
        self.assertEqual(event, [{"timeUnixNano": "1795000000502000000", "name": "cached"}])

    def test_without_spans(self):
        self.assertEqual(json.loads(self.export(self.trace, "otlp-traces")), {"resourceSpans": []})
        events = json.loads(self.export(self.trace, "perfetto"))["traceEvents"]
        self.assertEqual({event["ph"] for event in events}, {"i"})


support.main()
