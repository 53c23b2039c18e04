#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Spans in the formats perfetto and otlp-traces, compared with SQL.

usage: test_spans.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import json
import sqlite3
import os

import support
from support import row


class Spans(support.Spans):
    def test_perfetto(self):
        file = json.loads(self.export(self.spans, "perfetto"))
        events = file["traceEvents"]
        base = int(file["otherData"]["start_ns"])
        self.assertEqual(base, row("SELECT min(timestamp_ns, (SELECT min(query_start_ns) FROM queries WHERE query_start_ns > 0))"
                                   " FROM samples ORDER BY 1 LIMIT 1", path=self.spans)[0])
        # Runs without a span.
        runs = [event for event in events if event["ph"] in "Xb" and "trace_id" not in event["args"]]
        events = [event for event in events if event["ph"] not in "Xbe" or "trace_id" in event["args"]]
        self.assertEqual({event["args"]["query_id"] for event in runs},
                         {id for id, in self.rows("SELECT query_id FROM query_log EXCEPT SELECT query_id FROM span_log")})
        whole = [event for event in events if event["ph"] == "X"]
        found = sorted((event["args"]["span_id"], base + round(event["ts"] * 1000), round(event["dur"] * 1000), event["tid"],
                        event["name"]) for event in whole)
        # Spans that are not inside another span of their thread.
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
        self.assertEqual({event["ph"] for event in events}, {"i", "M", "X"})
        self.assertEqual([event["args"]["name"] for event in events if event["ph"] == "M"], ["/usr/bin/app", "main"])
        runs = [(event["args"]["query_id"], event["args"].get("status", ""), round(event["dur"] * 1000), event["cat"])
                for event in events if event["ph"] == "X"]
        with contextlib.closing(sqlite3.connect(self.trace)) as db:
            wanted = db.execute("SELECT query_id, iif(exception_code, 'error', ''), query_duration_ns, 'statement' FROM queries"
                                " WHERE id > 0 AND (finished OR statement)").fetchall()
        self.assertEqual(sorted(runs), sorted(wanted))


def otlp_spans(text):
    """Pairs of a resource's attributes and a span."""
    return [({item["key"]: item["value"] for item in resource["resource"]["attributes"]}, span)
            for resource in json.loads(text)["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]


class Selected(support.Spans):
    """Three runs: one is a span of its trace, the samples of one fell into another trace, and one does not belong to a
    trace."""
    TRACES = {"0a": "00000000000000aa00000000000000cc", "0b": "4bf92f3577b34da623ce929d0e0e4736", "0c": None}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.selected = support.changed_copy(cls.spans, os.path.join(cls.folder, "selected.trace"), """
            INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, query_start_ns, thread_id)
            VALUES (91, '0a', 1, 1795000002000001000, 1795000002000004000, 1, 1795000002000001000, 101),
                   (92, '0b', 1, 1795000000580000000, 1795000000590000000, 1, 1795000000580000000, 103),
                   (93, '0c', 1, 1795000009000000000, 1795000009000000009, 1, 1795000009000000000, 101);
            UPDATE span_batches SET spans = '[[7,0,1000,3000,3000,1,91]]' WHERE id = 5;
            UPDATE samples SET query = 92 WHERE timestamp_ns = 1795000000580000001;
            INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size, span)
            VALUES (1795000009000000001, 1, 93, 1, 0, 1, 0, 0, 0)""")

    def span_ids(self, form, *arguments):
        text = self.export(self.selected, form, *arguments)
        if form == "otlp-traces":
            return {(span["traceId"], span["spanId"]) for _, span in otlp_spans(text)}
        return {(event["args"]["trace_id"], event["args"]["span_id"])
                for event in json.loads(text)["traceEvents"] if event["ph"] in "Xb" and "trace_id" in event["args"]}

    def test_spans_are_those_of_the_selected_runs_traces(self):
        for form in ("otlp-traces", "perfetto"):
            every = self.span_ids(form)
            self.assertEqual(len({trace for trace, _ in every}), 4)
            for run, trace in self.TRACES.items():
                found = self.span_ids(form, "--query", run)
                self.assertEqual(found, {span for span in every if span[0] == trace}, (form, run))
                self.assertEqual(bool(found), bool(trace))
            self.assertEqual(self.span_ids(form, "--since", "2026-11-18 11:06:42"),
                             self.span_ids(form, "--query", "0a"))
            self.assertEqual(self.span_ids(form, "--process", "100", "--min-duration", "0ms"),
                             self.span_ids(form, "--query", "0a") | self.span_ids(form, "--query", "0b"))

    def test_samples_are_of_the_same_runs(self):
        events = json.loads(self.export(self.selected, "perfetto", "--query", "0b"))["traceEvents"]
        self.assertEqual([event["args"]["query_id"] for event in events if event["ph"] == "i"], ["0b"])

    def test_options_of_samples(self):
        for option in (["--type", "cpu"], ["--plan"], ["--no-inlines"]):
            said = self.refused(2, self.selected, "--format", "otlp-traces", "-o", "-", *option)
            self.assertRegex(said, option[0] + " does not apply to otlp-traces, only to ([a-z]+, )+perfetto, otlp\n")


class Processes(support.Spans):
    """Four processes, of which three have one id: on two hosts, and two programs on one host. Each has a sample and a
    span. Their thread numbers are equal, too."""
    PROGRAMS = {1: ("/opt/shop/bin/shopd", "shop-1", 100), 2: ("/opt/bill/billd", "shop-1", 100),
                3: ("/opt/shop/bin/shopd", "shop-2", 100), 4: ("/opt/shop/bin/shopd", "shop-1", 7)}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        sql = "DELETE FROM span_batches; DELETE FROM span_links; DELETE FROM samples;"
        for process, (program, host, number) in cls.PROGRAMS.items():
            sql += f"""
                INSERT OR REPLACE INTO processes (id, hostname, process_id, start_time_ns, executable)
                VALUES ({process}, '{host}', {number}, {process}, '{program}');
                INSERT INTO threads VALUES (20 + {process}, {process}, 101, 'main');
                INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (20 + {process}, 20 + {process}, 'CPU', 1000000, 1);
                INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)
                VALUES (1795000000000000000 + {process}, 20 + {process}, 0, {process}, 0, 1, 0, 0);
                INSERT INTO span_batches (trace_hi, trace_lo, parent, first_span, thread, start_ns, dropped, flags, lasted_ns,
                                          count, statements, spans)
                VALUES (1, {process}, 0, 1000 * {process}, 20 + {process}, 1795000000000000000 - {process}, 0, 0, 100, 1, 0,
                        '[[2,0,0,100]]');"""
        cls.several = support.changed_copy(cls.spans, os.path.join(cls.folder, "several.trace"), sql)

    def test_resources(self):
        found = {int(span["traceId"], 16) & 0xffff: (resource["service.name"]["stringValue"],
                                                     resource["host.name"]["stringValue"],
                                                     int(resource["process.pid"]["intValue"]))
                 for resource, span in otlp_spans(self.export(self.several, "otlp-traces"))}
        self.assertEqual(found, {process: (os.path.basename(program), host, number)
                                 for process, (program, host, number) in self.PROGRAMS.items()})

    def test_tracks(self):
        events = json.loads(self.export(self.several, "perfetto"))["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(len(names), len([event for event in events if event["name"] == "process_name"]))
        spans = {int(event["args"]["trace_id"], 16) & 0xffff: event["pid"] for event in events
                 if event["ph"] == "X" and "trace_id" in event["args"]}
        base = row("SELECT min(start_ns) FROM span_batches", path=self.several)[0]
        first = row("SELECT min(timestamp_ns) - 1 FROM samples", path=self.several)[0]
        samples = {base + round(event["ts"] * 1000) - first: event["pid"] for event in events if event["ph"] == "i"}
        self.assertEqual(samples, spans)
        self.assertEqual(len(set(spans.values())), len(self.PROGRAMS))
        for process, (program, host, number) in self.PROGRAMS.items():
            name = names[spans[process]]
            # One process has the number, the others have it in their names.
            self.assertEqual(name, program if spans[process] == number else f"{program} ({number} on {host})")
        self.assertIn(100, spans.values())
        self.assertIn(7, spans.values())


support.main()
