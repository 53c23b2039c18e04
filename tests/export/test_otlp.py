# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles, decoded by an independent reader of protocol buffers with the field numbers of opentelemetry-proto's
profiles/v1development. Their totals equal SQL's."""
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from collections import Counter

COMMAND, ROOT = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(ROOT, "tests", "push"))
import maker  # noqa: E402


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """{number: [values]}: numbers, or bytes."""
    at, found = 0, {}
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


class Otlp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = os.path.join(folder.name, "a.trace")
        cls.file = maker.Maker(ROOT, path)
        cls.addClassCleanup(cls.file.db.close)
        cls.file.add(2000)
        data = subprocess.run([COMMAND, "export", path, "--format", "otlp", "-o", "-"], check=True, capture_output=True,
                              env={**os.environ, "OTEL_SERVICE_NAME": "shop"}).stdout
        message = fields(data)
        cls.resources = message[1]
        dictionary, = message[2]
        tables = fields(dictionary)
        cls.mappings, cls.locations, cls.functions, cls.links, strings, cls.attributes, cls.stacks = (
            tables[number] for number in range(1, 8))
        cls.strings = [text.decode() for text in strings]

    def attribute(self, number):
        parts = fields(self.attributes[number])
        value = fields(parts[2][0])
        return self.strings[parts[1][0]], value[1][0].decode() if 1 in value else value[3][0]

    def test_first_items_are_empty(self):
        for table in (self.mappings, self.locations, self.functions, self.links, self.attributes, self.stacks):
            self.assertEqual(table[0], b"")
        self.assertEqual(self.strings[0], "")
        self.assertEqual(len(set(self.strings)), len(self.strings))

    def profile(self):
        resource_profiles, = self.resources
        resource_profiles = fields(resource_profiles)
        attributes = [fields(one) for one in fields(resource_profiles[1][0])[1]]
        self.assertEqual({one[1][0] for one in attributes}, {b"service.name", b"host.name", b"process.pid"})
        self.assertIn(b"shop", attributes[0][2][0])
        scope, = resource_profiles[2]
        profile, = fields(scope)[2]
        return fields(profile)

    def test_totals(self):
        profile = self.profile()
        kind = fields(profile[1][0])
        self.assertEqual((self.strings[kind[1][0]], self.strings[kind[2][0]]), ("cpu", "nanoseconds"))
        by_query, by_leaf, labels, times = Counter(), Counter(), Counter(), []
        for sample in map(fields, profile[2]):
            attributes = dict(map(self.attribute, packed(sample[2][0])))
            values = packed(sample[4][0])
            of_sample = struct.unpack(f"<{len(values)}Q", sample[5][0])
            times += of_sample
            by_query[attributes["query_id"]] += sum(values)
            labels[attributes.get("route")] += len(values)
            self.assertEqual((attributes["thread.name"], attributes["thread.id"]), ("worker", 101))
            location = fields(self.locations[packed(fields(self.stacks[sample[1][0]])[1][0])[0]])
            line = fields(location[3][0])
            name = self.strings[fields(self.functions[line[1][0]])[1][0]]
            by_leaf[name] += sum(values)
            mapping = fields(self.mappings[location[1][0]])
            self.assertEqual(self.strings[mapping[4][0]], "/opt/app")
            self.assertEqual(self.attribute(packed(mapping[5][0])[0]), ("process.executable.build_id.gnu", "abcd"))
        self.assertEqual(by_query, dict(self.file.rows("SELECT query_id, sum(value) FROM trace_log GROUP BY 1")))
        self.assertEqual(by_leaf, dict(self.file.rows(
            "SELECT symbols ->> 0, sum(value) FROM trace_log GROUP BY 1")))
        self.assertEqual(labels, dict(self.file.rows("SELECT labels ->> 'route', count(*) FROM trace_log GROUP BY 1")))
        self.assertEqual(sorted(times), [row[0] for row in self.file.rows(
            "SELECT timestamp_ns FROM trace_log ORDER BY 1")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
