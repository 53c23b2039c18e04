# SPDX-License-Identifier: Apache-2.0
"""ClickHouse's Native format and its compressed frames, read after their documentation."""
import struct


def unpack_lz4(data, size):
    out, at = bytearray(), 0

    def length(value):
        nonlocal at
        if value == 15:
            while True:
                value += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        return value

    while at < len(data):
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at:at + literals]
        at += literals
        if at >= len(data):
            break
        offset = data[at] | data[at + 1] << 8
        at += 2
        count = length(token & 15) + 4
        begin = len(out) - offset
        assert begin >= 0 < offset
        if offset >= count:
            out += out[begin:begin + count]
        else:
            out += (bytes(out[begin:]) * (count // offset + 1))[:count]
    assert len(out) == size
    return bytes(out)


def unpack(body):
    parts, at = [], 0
    while at < len(body):
        method, packed, size = struct.unpack_from("<BII", body, at + 16)
        assert method == 0x82, hex(method)
        parts.append(unpack_lz4(body[at + 25:at + 16 + packed], size))
        at += 16 + packed
    return b"".join(parts)


NUMBERS = {"UInt8": "B", "UInt16": "H", "UInt32": "I", "UInt64": "Q", "Int8": "b", "Int16": "h", "Int32": "i",
           "Int64": "q", "Float64": "d", "Date": "H", "DateTime": "I"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code, count=1):
        values = struct.unpack_from(f"<{count}{code}", self.data, self.at)
        self.at += struct.calcsize(f"<{count}{code}")
        return values

    def size(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self):
        size = self.size()
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def prefix(self, kind):
        if kind == "LowCardinality(String)":
            assert self.take("Q") == (1,)
        elif kind.startswith("Array("):
            self.prefix(kind[6:-1])
        elif kind.startswith("Map("):
            for part in self.parts(kind):
                self.prefix(part)

    @staticmethod
    def parts(kind):
        key, value = kind[4:-1].split(", ")
        return key, value

    def values(self, kind, count):
        if kind in NUMBERS:
            return list(self.take(NUMBERS[kind], count))
        if kind == "String":
            return [self.text() for _ in range(count)]
        if kind == "LowCardinality(String)":
            if not count:
                return []
            flags, keys = self.take("Q", 2)
            assert flags & ~3 == 0x600
            words = [self.text() for _ in range(keys)]
            assert self.take("Q") == (count,) and len(set(words)) == keys
            return [words[i] for i in self.take("BHIQ"[flags & 3], count)]
        ends = self.take("Q", count)
        whole = ends[-1] if ends else 0
        if kind.startswith("Array("):
            items = self.values(kind[6:-1], whole)
            make = list
        else:
            keys, values = (self.values(part, whole) for part in self.parts(kind))
            items = list(zip(keys, values))
            make = dict
        return [make(items[begin:end]) for begin, end in zip((0,) + ends, ends)]


def read_block(data, types):
    """The rows, as dictionaries. types: what each column must be."""
    reader = Reader(data)
    columns, rows = reader.size(), reader.size()
    block = {}
    for _ in range(columns):
        name, kind = reader.text(), reader.text()
        assert types[name] == kind, (name, kind, types.get(name))
        reader.prefix(kind)
        block[name] = reader.values(kind, rows)
    assert reader.at == len(data)
    return [dict(zip(block, row)) for row in zip(*block.values())]
