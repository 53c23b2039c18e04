# SPDX-License-Identifier: Apache-2.0
"""A reader for ClickHouse's format RowBinary and its compressed frames, written from their documentation."""
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
           "Int64": "q", "Float64": "d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size:self.at]

    def count(self):
        value = shift = 0
        while True:
            byte, = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def value(self, kind):
        if kind in NUMBERS:
            return struct.unpack("<" + NUMBERS[kind], self.take(struct.calcsize(NUMBERS[kind])))[0]
        if kind in ("String", "LowCardinality(String)"):
            return self.take(self.count()).decode()
        if kind.startswith("Array("):
            return [self.value(kind[6:-1]) for _ in range(self.count())]
        key, text = kind[4:-1].split(", ")
        return {self.value(key): self.value(text) for _ in range(self.count())}


def read_rows(data, names, types):
    """Returns the rows as dictionaries. names: the columns in their order. types: by name of the column."""
    reader, rows = Reader(data), []
    while reader.at < len(data):
        rows.append({name: reader.value(types[name]) for name in names})
    return rows
