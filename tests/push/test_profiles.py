# SPDX-License-Identifier: Apache-2.0
"""queryprof push --format otlp and pyroscope. The test decodes what a collector and Pyroscope get, with readers that share no
code with the writers, and compares it with SQL. Nothing may be missing, whatever happens to requests and to push.

usage: test_profiles.py COMMAND ROOT
If QUERYPROF_TEST_OTLP_PROTO names a checkout of opentelemetry-proto, a reader from npm decodes the profiles by it, too."""
import base64
import json
import os
import random
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import unittest
import uuid
from collections import Counter

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "export")]
import case  # noqa: E402
import fake  # noqa: E402
import maker  # noqa: E402
import pprof_profile  # noqa: E402
from case import COMMAND, ROOT, environment, push  # noqa: E402
from test_otlp import fields, packed  # noqa: E402

PROTO = os.environ.get("QUERYPROF_TEST_OTLP_PROTO")
LINK = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
LINK_OF_THREAD = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
# Two runs of a third of a second, so that each has samples, one of them in a trace.
PROGRAM = """import ctypes, sqlite3, sys
database, library = sqlite3.connect(":memory:"), ctypes.CDLL(sys.argv[1])
run = lambda: database.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2000000)"
                               " SELECT sum(x) FROM c").fetchall()
run()
assert library.qp_trace_begin(None) == 0
run()
library.qp_trace_end()"""
PROFILES, TRACES, PYROSCOPE = "/v1development/profiles", "/v1/traces", "/push.v1.PusherService/Push"


class Server(fake.Fake):
    """taken: (path, body) of each request that arrived. rules: called with both before the response is chosen."""

    def __init__(self, **how):
        self.taken, self.rules, self.answers = [], lambda path, body: None, {}
        super().__init__(ROOT, **how)

    def take(self, path, query, body, headers):
        self.taken.append((path, body))
        self.rules(path, body)
        return self.answers.get(path, ("", 200))

    def bodies(self, path):
        return [body for taken, body in self.taken if taken == path]


def otlp_samples(body):
    """Yields (resource, type, attributes, time, value) of each sample of a ProfilesData. The attribute link is the sample's
    link."""
    message = fields(body)
    tables = fields(message[2][0])
    strings = [text.decode() for text in tables[5]]

    def value(data):
        kinds = fields(data)
        return kinds[1][0].decode() if 1 in kinds else kinds[3][0]

    def attribute(number):
        parts = fields(tables[6][number])
        return strings[parts[1][0]], value(parts[2][0])

    for resource_profiles in map(fields, message[1]):
        resource = {}
        for item in map(fields, fields(resource_profiles[1][0])[1]):
            resource[item[1][0].decode()] = value(item[2][0])
        for profile in map(fields, fields(resource_profiles[2][0])[2]):
            kind = strings[fields(profile[1][0])[1][0]]
            for sample in map(fields, profile[2]):
                link = fields(tables[4][sample[3][0]]) if 3 in sample else {1: [b""], 2: [b""]}
                attributes = {**dict(map(attribute, packed(sample[2][0]))), "link": link[1][0].hex() + link[2][0].hex()}
                values = packed(sample[4][0])
                for time_ns, one in zip(struct.unpack(f"<{len(values)}Q", sample[5][0]), values):
                    yield resource, kind, attributes, time_ns, one


def add_links(file):
    """Adds the trace of another tracer to the label set, and another one as a context that a thread publishes."""
    file.db.execute("UPDATE label_sets SET otel_trace_id = ?, otel_span_id = ?", LINK)
    file.db.execute("INSERT INTO trace_contexts VALUES (1, 1, ?, ?)", LINK_OF_THREAD)


class Case(case.Case):
    FORMAT = None

    def server(self, **how):
        server = Server(**how)
        self.addCleanup(server.close)
        return server

    def push(self, *arguments, path=None, **more):
        return push("--format", self.FORMAT, path or self.path, *arguments, **more)

    def push_large(self, samples, sets):
        """Pushes samples to a server that refuses requests of more than 4 MiB, as proxies do. Each of the `sets` sets of
        labels has a kilobyte that does not compress well. Returns the server, and (time, value) of each sample."""
        server, file, chance = self.server(), self.maker(), random.Random(1)
        server.rules = lambda path, body: server.answers.update({path: ("too large", 413) if len(body) > 4 << 20 else ("", 200)})
        file.add(samples)
        file.db.execute("BEGIN")
        file.db.executemany("INSERT INTO label_sets VALUES (?1, ?1, 1, json_object('long', ?2), '', '', '')",
                            [(2 + number, f"{chance.getrandbits(4000):01000x}") for number in range(sets)])
        file.db.execute("UPDATE samples SET labels = 2 + rowid % ?", (sets,))
        file.db.execute("COMMIT")
        done = self.push(server.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{samples} samples", done.stdout)
        return server, file.rows("SELECT timestamp_ns, value FROM trace_log ORDER BY 1")


class Otlp(Case):
    FORMAT = "otlp"

    def samples(self, server):
        return [sample for body in server.bodies(PROFILES) for sample in otlp_samples(body)]

    def test_what_is_new(self):
        server, file = self.server(), self.maker()
        for count in (2000, 1, 300):
            file.add(count)
            done = self.push(server.url + "?token=x", OTEL_SERVICE_NAME="shop",
                             OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test%2C%20two , service.name=other")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{count} samples", done.stdout)
        self.assertEqual(self.push(server.url + "?token=x").returncode, 0)
        self.assertEqual(len(server.taken), 3)
        self.assertEqual({(path, query["token"], headers["Content-Type"]) for path, query, headers, _ in server.seen},
                         {(PROFILES, "x", "application/x-protobuf")})
        found = self.samples(server)
        for resource, kind, attributes, _, _ in found:
            self.assertEqual(resource, {"service.name": "shop", "deployment.environment": "test, two",
                                        "host.name": "host", "process.pid": 100})
            self.assertEqual((kind, attributes["thread.name"]), ("cpu", "worker"))
        self.assertEqual(sorted((time_ns, attributes["query_id"], attributes.get("route"), value)
                                for _, _, attributes, time_ns, value in found),
                         file.rows("SELECT timestamp_ns, query_id, labels ->> 'route', value FROM trace_log ORDER BY 1"))

    def test_services(self):
        for service, environment, said in ((["--service", "mine"], {"OTEL_SERVICE_NAME": "shop"}, "mine"),
                                           ([], {"OTEL_RESOURCE_ATTRIBUTES": "service.name=other"}, "other"),
                                           ([], {}, "app")):
            server, path = self.server(), os.path.join(self.folder, said)
            self.maker(path).add(10)
            self.assertEqual(self.push(*service, server.url, path=path, **environment).returncode, 0)
            self.assertEqual({sample[0]["service.name"] for sample in self.samples(server)}, {said})

    def test_types(self):
        server, file = self.server(), self.maker()
        file.db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (2, 1, 'Real', ?, 1)",
                        (maker.PERIOD,))
        file.add(200)
        file.db.execute("UPDATE samples SET series = 2 WHERE timestamp_ns % 3 = 0")
        self.assertEqual(self.push(server.url).returncode, 0)
        sums = Counter()
        for _, kind, _, _, value in self.samples(server):
            sums[kind] += value
        self.assertEqual(sums, dict(file.rows(
            "SELECT iif(trace_type = 'CPU', 'cpu', 'wall'), sum(value) FROM trace_log GROUP BY 1")))

    def test_links(self):
        server, file = self.server(), self.maker()
        add_links(file)
        file.add(300)
        file.db.execute("UPDATE samples SET context = 1 WHERE timestamp_ns % 3 = 0")
        self.assertEqual(self.push(server.url).returncode, 0)
        found = sorted((time_ns, attributes["link"]) for _, _, attributes, time_ns, _ in self.samples(server))
        self.assertEqual({link for _, link in found}, {"", "".join(LINK), "".join(LINK_OF_THREAD)})
        self.assertEqual(found, file.rows("SELECT timestamp_ns, otel_trace_id || otel_span_id FROM trace_log ORDER BY 1"))

    def linked(self, rows):
        """Returns the expected links by time: to the span if the file contains it, otherwise to the other tracer's trace."""
        spans = dict(rows("SELECT span_id, trace_id FROM span_log"))
        return {time_ns: spans[span] + span if span in spans else others for time_ns, span, others in rows(
            "SELECT timestamp_ns, span_id, otel_trace_id || otel_span_id FROM trace_log")}

    def links(self, bodies):
        return {time_ns: attributes["link"] for body in bodies for _, _, attributes, time_ns, _ in otlp_samples(body)}

    def test_links_to_spans(self):
        first, file = 2 ** 62 - 1000, self.maker()
        add_links(file)
        file.add(300, spans=[0, first - 2, first, first + 1, first + 998, first + 1000, first + 1998, first + 2000])
        file.add_spans(1, first, 1000)
        file.add_spans(2, first + 1000, 999)
        expected = self.linked(file.rows)
        self.assertEqual({link[:32] for link in expected.values()},
                         {"", LINK[0], f"{1:016x}{1:016x}", f"{1:016x}{2:016x}"})
        server = self.server()
        self.assertEqual(self.push(server.url).returncode, 0)
        self.assertEqual(self.links(server.bodies(PROFILES)), expected)
        exported = subprocess.run([COMMAND, "export", self.path, "--format", "otlp", "-o", "-"], check=True,
                                  capture_output=True, env=environment()).stdout
        self.assertEqual(self.links([exported]), expected)

    def test_links_while_the_file_grows(self):
        """Samples link to the spans that the file contains when push reads them, even if a new row of spans reuses an id."""
        server, file = self.server(), self.maker()
        file.add_spans(1, 1000, 10)
        gone = file.add_spans(2, 2000, 1)
        file.add(100, spans=[1000, 3000])
        expected = self.linked(file.rows)
        process = subprocess.Popen([COMMAND, "push", "--follow", "--format", "otlp", self.path, server.url],
                                   env=environment(), stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        while process.poll() is None and not server.bodies(PROFILES):
            time.sleep(0.02)
        file.db.execute("DELETE FROM span_batches WHERE id = ?", (gone,))
        self.assertEqual(file.add_spans(3, 3000, 10), gone)
        file.add_spans(4, 4000, 10)
        before = file.now
        file.add(100, spans=[1002, 3000, 4008])
        expected.update((time_ns, link) for time_ns, link in self.linked(file.rows).items() if time_ns > before)
        while process.poll() is None and len(server.bodies(PROFILES)) < 2:
            time.sleep(0.02)
        self.assertEqual(self.links(server.bodies(PROFILES)), expected)
        self.assertEqual(len(set(expected.values())), 5)  # four spans, and none

    def test_spans_of_two_programs_with_one_id(self):
        """Two programs may have the same process id, for example in two containers on one host."""
        server, file = self.server(), self.maker()
        file.add_spans(1, 1000, 4)
        file.db.execute("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable)"
                        " SELECT 2, hostname, process_id, 1, '/opt/bill' FROM processes")
        file.db.execute("INSERT INTO threads VALUES (2, 2, 101, 'worker')")
        file.db.execute("UPDATE span_batches SET thread = 2 WHERE id = ?", (file.add_spans(2, 2000, 4),))
        file.add(10)
        self.assertEqual(self.push(server.url).returncode, 0)
        found = set()
        for body in server.bodies(TRACES):
            for resource in json.loads(body)["resourceSpans"]:
                attributes = {item["key"]: item["value"] for item in resource["resource"]["attributes"]}
                found.update((attributes["service.name"]["stringValue"], int(span["traceId"], 16) & 0xffff)
                             for scope in resource["scopeSpans"] for span in scope["spans"])
        self.assertEqual(found, {("app", 1), ("bill", 2)})

    @unittest.skipIf(os.environ.get("QUERYPROF_TEST_NO_RECORDING"), "under a sanitizer")
    def test_links_of_a_program(self):
        done = case.run("record", "-o", self.path, "--cpu", "1ms", "--setting", "query_profiler_max_overhead_percent=0", "--",
                        "/usr/bin/python3", "-c", PROGRAM,
                        os.path.join(os.path.dirname(COMMAND), "libqueryprof.so.0"))
        self.assertEqual(done.returncode, 0, done.stderr)
        file, server = sqlite3.connect(self.path), self.server()
        self.addCleanup(file.close)
        expected = self.linked(lambda sql: file.execute(sql).fetchall())
        self.assertEqual(self.push(server.url).returncode, 0)
        self.assertEqual(self.links(server.bodies(PROFILES)), expected)
        self.assertTrue(any(expected.values()))
        self.assertFalse(all(expected.values()))
        spans = {(span["traceId"] + span["spanId"]) for body in server.bodies(TRACES)
                 for resource in json.loads(body)["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]}
        self.assertLessEqual({link for link in expected.values() if link}, spans)

    @unittest.skipUnless(PROTO, "QUERYPROF_TEST_OTLP_PROTO names no checkout of opentelemetry-proto")
    def test_published_proto(self):
        server, file = self.server(), self.maker()
        add_links(file)
        file.add(3000)
        self.assertEqual(self.push(server.url).returncode, 0)
        requests = []
        for body in server.bodies(PROFILES):
            requests.append(os.path.join(self.folder, f"{len(requests)}.request"))
            with open(requests[-1], "wb") as request:
                request.write(body)
        folder = os.path.join(ROOT, "tests", "export", "readers")
        fetched = subprocess.run([os.path.join(ROOT, "third_party", "npm", "fetch"), folder], check=True,
                                 capture_output=True, text=True).stdout.strip()
        done = subprocess.run(["node", os.path.join(folder, "read_profiles.mjs"), fetched, PROTO, *requests],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(sorted((int(one["time_ns"]), one["type"], one["unit"], one["attributes"]["query_id"],
                                 one["attributes"].get("route"), one["link"], json.dumps(one["frames"]), int(one["value"]))
                                for one in found),
                         [(*row[:-2], json.dumps(json.loads(row[-2])), row[-1]) for row in file.rows(
                             "SELECT timestamp_ns, 'cpu', 'nanoseconds', query_id, labels ->> 'route',"
                             " otel_trace_id || otel_span_id, symbols, value FROM trace_log ORDER BY 1")])

    def test_spans(self):
        """push sends the spans that export writes, which another test compares with SQL."""
        count = self.fixed_traces().execute("SELECT count(*) FROM span_log").fetchone()[0]
        out = subprocess.run([COMMAND, "export", self.path, "--format", "otlp-traces", "-o", "-"], check=True,
                             capture_output=True, env=environment()).stdout
        server = self.server()
        done = self.push(server.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{count} spans", done.stdout)
        body, = server.bodies(TRACES)
        self.assertEqual(json.loads(body), json.loads(out))

    def test_large_profiles(self):
        server, expected = self.push_large(9000, 6000)
        self.assertEqual(sorted(sample[3:] for sample in self.samples(server)), expected)
        self.assertEqual(len(server.bodies(PROFILES)), 3)

    def test_texts_of_others(self):
        """Names are longer than queryprof writes them. Labels are written as ClickHouse writes JSON, or are not JSON."""
        server, file = self.server(), self.maker()
        file.db.execute("UPDATE series SET trace_type = ?, unit = ?", ("é" * 40, "u" * 40))
        file.db.execute("UPDATE threads SET thread_name = ?", ("ä" * 40,))
        file.db.execute("UPDATE label_sets SET labels = ?", (r'{"k8s.io\/app":"a\nb"}',))
        file.db.execute("INSERT INTO label_sets VALUES (2, 2, 1, 'x', '', '', '')")
        file.add(100)
        file.db.execute("UPDATE samples SET labels = 2 - labels")
        self.assertEqual(self.push(server.url).returncode, 0)
        self.assertEqual(len(server.bodies(PROFILES)), 1)
        found = self.samples(server)
        self.assertEqual(len(found), 100)
        self.assertEqual({kind for _, kind, _, _, _ in found}, {"é" * 40})
        self.assertEqual({(attributes["thread.name"], attributes.get("k8s.io/app")) for _, _, attributes, _, _ in found},
                         {("ä" * 31, None), ("ä" * 31, "a\nb")})

    def test_many_spans(self):
        """A collector refuses requests of more than 4 MiB, so push splits many spans, even those of one row."""
        server, file, first = self.server(), self.maker(), 2
        server.rules = lambda path, body: server.answers.update({path: ("too large", 413) if len(body) > 4 << 20 else ("", 200)})
        file.db.execute("BEGIN")
        for trace, count in enumerate([50] * 1500 + [50000] + [50] * 500):
            file.add_spans(trace + 1, first, count)
            first += count
        file.db.execute("COMMIT")
        done = self.push(server.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = Counter(span["spanId"] for body in server.bodies(TRACES) for resource in json.loads(body)["resourceSpans"]
                        for scope in resource["scopeSpans"] for span in scope["spans"])
        self.assertEqual(set(found.values()), {1})
        self.assertEqual(set(found), {f"{number:016x}" for number in range(2, first, 2)})
        self.assertGreater(len(server.bodies(TRACES)), sum(map(len, server.bodies(TRACES))) >> 22)

    def test_pieces_of_spans(self):
        """The number of spans that push reads at a time is limited unless one row has more. No row is left out."""
        file, most, seen, pieces = self.maker(), 20000, 0, 0
        counts = {file.add_spans(1, 2 * number + 2, count): count
                  for number, count in enumerate([50] * 500 + [30000, 19999, 1, 1] + [2500] * 20)}
        with open(os.path.join(ROOT, "sql", "push", "news.sql"), encoding="utf-8") as sql:
            news = sql.read()
        while True:
            until = file.db.execute(news, {"batch": 0, "samples": 0, "most": 1, "spans": seen}).fetchone()[4]
            if until == seen:
                break
            rows = [row for row in counts if seen < row <= until]
            self.assertTrue(rows)
            if len(rows) > 1:
                self.assertLessEqual(sum(counts[row] for row in rows), most)
            seen, pieces = until, pieces + 1
        self.assertEqual(seen, max(counts))
        self.assertLess(pieces, sum(counts.values()) // most * 3)

    def one_schedule(self, seed):
        chance = random.Random(seed)
        server = self.server(seed=seed)
        path = os.path.join(self.folder, f"{seed}.trace")
        file = self.maker(path, seed=seed, stacks=30, depth=5)
        for _ in range(3):
            file.add(chance.randrange(1, 200))
            process = subprocess.Popen([COMMAND, "push", "--format", self.FORMAT, "--retry-for", "1000", path, server.url],
                                       env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if chance.random() < 0.5:
                while not server.seen and process.poll() is None:
                    time.sleep(0.002)
                process.send_signal(signal.SIGKILL)
            process.communicate()
        file.add(10)
        last = self.push("--retry-for", "1000", server.url, path=path)
        self.assertEqual(last.returncode, 0, last.stderr)
        bodies = server.bodies(PROFILES)
        # If push sends a piece again, the request is the same.
        found = [sample[3:] for body in set(bodies) for sample in otlp_samples(body)]
        self.assertEqual(sorted(found), file.rows("SELECT timestamp_ns, value FROM trace_log ORDER BY 1"))
        return len(bodies) - len(set(bodies))

    def test_at_least_once(self):
        repeated = 0
        for seed in (8,):  # the first request arrives twice, or its response is lost
            print(f"seed {seed}", flush=True)
            with self.subTest(seed=seed):
                repeated += self.one_schedule(seed)
        self.assertGreater(repeated, 0, "no schedule repeated anything")

    def test_refused(self):
        server, file = self.server(), self.maker()
        file.add(10)
        server.answers[PROFILES] = ("unknown field", 400)
        done = self.push(server.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the server responded 400: unknown field", done.stderr)
        self.assertEqual((len(done.stderr.splitlines()), len(server.taken)), (1, 1))
        server.answers[PROFILES] = ("too much to do", 429)
        done = self.push("--retry-for", "0", server.url)
        self.assertIn("nothing is lost", done.stderr)
        self.assertEqual(len(server.taken), 2)
        server.taken.clear()
        server.answers[PROFILES] = ("\x0a\x0b\x08\x02\x12\x07too old", 200)
        done = self.push(server.url)
        self.assertEqual(done.returncode, 0)
        self.assertIn("too old", done.stderr)
        self.assertEqual(len(self.samples(server)), 10)

    def test_command_line(self):
        self.maker().add(1)
        for arguments, more, said in ((["--zstd"], {}, "--zstd"), ([], {"OTEL_RESOURCE_ATTRIBUTES": "a=b,c"}, "a=b,c"),
                                      ([], {"OTEL_RESOURCE_ATTRIBUTES": "a=%zz"}, "%zz")):
            done = self.push(*arguments, "http://127.0.0.1:1", **more)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


class Pyroscope(Case):
    """The checks are those of Pyroscope's ValidateLabels() and ValidateProfile() with its default limits."""
    FORMAT = "pyroscope"
    ODD = {"9 lives": "a", "a-b": "first", "a.b": "second", "bytes": 4096, "empty": "", "host.name": "mine", "long": "ä" * 512,
           "route": "users#show", "service_name": "mine", "statement": "mine", "__name__": "mine",
           "traceparent": f"00-{LINK[0]}-{LINK[1]}-01"}

    def check_labels(self, series, of_sample):
        names = list(series) + list(of_sample)
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(len(names), 30)
        self.assertTrue(series["service_name"])
        self.assertRegex(series["__name__"], "^[a-zA-Z_:][a-zA-Z0-9_:]*$")
        for name, value in {**series, **of_sample}.items():
            self.assertRegex(name, "^[a-zA-Z_][a-zA-Z0-9_]*$")
            self.assertLessEqual(len(name), 1024)
            self.assertLessEqual(len(value.encode()), 2048)
        self.assertFalse([name for name in of_sample if name.startswith("__")])

    def profiles(self, server):
        """Yields (id, labels, profile) of each profile that arrived."""
        for body in server.bodies(PYROSCOPE):
            for series in json.loads(body)["series"]:
                labels = {label["name"]: label["value"] for label in series["labels"]}
                self.assertEqual(len(labels), len(series["labels"]))
                for sample in series["samples"]:
                    self.assertEqual(str(uuid.UUID(sample["ID"])), sample["ID"])
                    profile = pprof_profile.Profile(base64.b64decode(sample["rawProfile"], validate=True))
                    self.assertLessEqual(len(profile.samples), 16000)
                    self.assertFalse([kind for kind, _ in profile.types if "-" in kind])
                    for _, _, of_sample in profile.samples:
                        self.check_labels(labels, of_sample)
                    yield sample["ID"], labels, profile

    def test_large_profiles(self):
        """Each profile fits into a request, but two do not."""
        server, expected = self.push_large(48000, 3000)
        found = sum(values[1] for _, _, profile in self.profiles(server) for _, values, _ in profile.samples)
        self.assertEqual(found, sum(value for _, value in expected))
        self.assertEqual(len(server.bodies(PYROSCOPE)), 5)

    def test_attributes_of_one_name(self):
        """Pyroscope refuses a series that has a label twice, so push sends the first of equal names."""
        server = self.server()
        self.maker().add(10)
        done = self.push(server.url, OTEL_RESOURCE_ATTRIBUTES="service_name=x,a.b=1,a_b=2,host-name=y")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([labels for _, labels, _ in self.profiles(server)],
                         [{"__name__": "process_cpu", "service_name": "x", "a_b": "1", "host_name": "y"}])

    def test_waits_are_frames(self):
        """A wait is the innermost frame of its stack, as in the profile that export writes."""
        server, file = self.server(), self.maker()
        file.db.execute("UPDATE series SET trace_type = 'OffCPU'")
        file.add(30)
        file.db.execute("UPDATE samples SET wait = 1 + rowid % 5, wait_ns = 1000000")
        self.assertEqual(self.push(server.url).returncode, 0)
        path = os.path.join(self.folder, "waits.pb.gz")
        done = subprocess.run([COMMAND, "export", self.path, "--format", "pprof", "--type", "OffCPU", "-o", path],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(path, "rb") as exported:
            expected = Counter(stack[0] for stack, _, _ in pprof_profile.Profile(exported.read()).samples)
        self.assertEqual(len(expected), 5)
        self.assertTrue(all("wait" in frame for frame in map(str, expected)), expected)
        found = Counter(stack[0] for _, _, profile in self.profiles(server) for stack, _, _ in profile.samples)
        self.assertEqual(set(map(str, found)), set(map(str, expected)))

    def test_long_types(self):
        server, file = self.server(), self.maker()
        file.db.execute("UPDATE series SET trace_type = ?, unit = ?", ("x" * 70, "u" * 40))
        file.add(100)
        self.assertEqual(self.push(server.url).returncode, 0)
        self.assertEqual([profile.types[1] for _, _, profile in self.profiles(server)], [("x" * 70, "u" * 40)])

    def test_what_is_new(self):
        server, file = self.server(), self.maker()
        odd = json.dumps(dict(sorted(self.ODD.items())), separators=(",", ":"), ensure_ascii=False)
        file.db.execute("UPDATE label_sets SET labels = ?, otel_trace_id = ?, otel_span_id = ?", (odd, *LINK))
        for count in (15000, 1, 300):
            file.add(count)
            done = self.push(server.url, OTEL_RESOURCE_ATTRIBUTES="k8s.pod.name=p1")
            self.assertEqual(done.returncode, 0, done.stderr)
        sums, ids, labels_seen, spans = Counter(), [], set(), set()
        for identity, labels, profile in self.profiles(server):
            ids.append(identity)
            self.assertEqual(labels, {"__name__": "process_cpu", "service_name": "app", "host_name": "host",
                                      "k8s_pod_name": "p1"})
            self.assertEqual(profile.types, [("samples", "count"), ("cpu", "nanoseconds")])
            self.assertEqual(profile.period, (("cpu", "nanoseconds"), maker.PERIOD))
            self.assertLess(profile.duration_nanos, 10 ** 10)
            for frames, values, of_sample in profile.samples:
                span = of_sample.pop("span_id", None)
                sums[of_sample["statement"], frames[0][0], span] += values[1]
                labels_seen.update(of_sample)
        self.assertEqual(len(ids), len(set(ids)))
        self.assertGreater(len(ids), 3)
        self.assertEqual(labels_seen, {"statement", "database", "label_9_lives", "a_b", "long", "route", "label___name__"})
        self.assertEqual(sums, {tuple(row[:3]): row[3] for row in file.rows(
            "SELECT printf('%016x', normalized_query_hash), symbols ->> 0,"
            " iif(trace_log.labels ->> 'route' IS NULL, NULL, 'b7ad6b7169203331'), sum(value) FROM trace_log"
            " JOIN query_log USING (query_id) GROUP BY 1, 2, 3")})

    def test_repeated_ones_have_one_id(self):
        server, file = self.server(), self.maker()
        file.add(100)
        server.answers[PYROSCOPE] = ("busy", 503)
        self.assertEqual(self.push("--retry-for", "0", server.url).returncode, 1)
        server.answers.clear()
        self.assertEqual(self.push(server.url).returncode, 0)
        self.assertEqual(len(server.taken), 2)
        self.assertEqual(len({identity for identity, _, _ in self.profiles(server)}), 1)

    def test_refused(self):
        server, file = self.server(), self.maker()
        file.add(10)
        server.answers[PYROSCOPE] = ('{"code":"invalid_argument","message":"profile is too old"}', 400)
        done = self.push(server.url)
        self.assertEqual((done.returncode, len(server.taken)), (1, 1))
        self.assertIn("profile is too old", done.stderr)


if __name__ == "__main__":
    case.main()
