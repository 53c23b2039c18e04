# SPDX-License-Identifier: Apache-2.0
"""Reads a pprof profile by the wire format of protocol buffers and the published field numbers, independently of the
writer."""

import gzip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value - (1 << 64) if value >> 63 else value
        elif tag & 7 == 1:
            yield tag >> 3, int.from_bytes(data[at:at + 8], "little")
            at += 8
        elif tag & 7 == 2:
            size, at = varint(data, at)
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            raise ValueError(f"wire type {tag & 7}")


def message(data, names, repeated=()):
    found = {name: [] if name in repeated else 0 for name in names.values()}
    for number, value in fields(data):
        name = names[number]
        if name in repeated:
            found[name].append(value)
        else:
            found[name] = value
    return found


def numbers(values):
    """The numbers of a repeated field, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
        else:
            at = 0
            while at < len(value):
                number, at = varint(value, at)
                yield number


class Profile:
    """unique: no two strings are equal, as in a file without user-defined query ids."""

    def __init__(self, compressed, unique=True):
        raw = message(gzip.decompress(compressed), {
            1: "sample_type", 2: "sample", 3: "mapping", 4: "location", 5: "function", 6: "strings",
            9: "time_nanos", 10: "duration_nanos", 11: "period_type", 12: "period", 13: "comment",
            14: "default"}, {"sample_type", "sample", "mapping", "location", "function", "strings", "comment"})
        self.strings = [text.decode("utf-8") for text in raw["strings"]]
        assert self.strings[0] == "" and (not unique or len(set(self.strings)) == len(self.strings)), self.strings
        self.types = [self.value_type(data) for data in raw["sample_type"]]
        self.period = (self.value_type(raw["period_type"]), raw["period"])
        self.time_nanos, self.duration_nanos = raw["time_nanos"], raw["duration_nanos"]
        self.default = self.strings[raw["default"]]
        self.mappings = self.by_id(raw["mapping"], {
            1: "id", 2: "start", 3: "limit", 4: "offset", 5: "filename", 6: "build_id", 7: "has_functions",
            8: "has_filenames", 9: "has_lines", 10: "has_inlines"}, (), ("filename", "build_id"))
        self.functions = self.by_id(raw["function"], {1: "id", 2: "name", 3: "system_name", 4: "file"}, (),
                                    ("name", "system_name", "file"))
        self.locations = self.by_id(raw["location"], {1: "id", 2: "mapping", 3: "address", 4: "line"},
                                    ("line",), ())
        for location in self.locations.values():
            location["line"] = [message(line, {1: "function", 2: "line"}) for line in location["line"]]
        self.samples = [self.sample(data) for data in raw["sample"]]

    def value_type(self, data):
        found = message(data, {1: "type", 2: "unit"})
        return self.strings[found["type"]], self.strings[found["unit"]]

    def by_id(self, items, names, repeated, texts):
        found = {}
        for data in items:
            item = message(data, names, repeated)
            assert item["id"] > 0 and item["id"] not in found, item
            for text in texts:
                item[text] = self.strings[item[text]]
            found[item["id"]] = item
        return found

    def sample(self, data):
        """A sample's frames as (function, line), leaf first; its values; its labels."""
        raw = message(data, {1: "location", 2: "value", 3: "label"}, {"location", "value", "label"})
        labels = {}
        for label in raw["label"]:
            label = message(label, {1: "key", 2: "str", 3: "num", 4: "unit"})
            labels[self.strings[label["key"]]] = self.strings[label["str"]]
        frames = [(self.functions[line["function"]]["name"], line["line"])
                  for location in numbers(raw["location"]) for line in self.locations[location]["line"]]
        return frames, list(numbers(raw["value"])), labels
