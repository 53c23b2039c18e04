#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The memory that `queryprof dump` and `top` read belongs to a stranger: it may have any content, and change while they
read it.

This process is the stranger: it has the name, the descriptors and the memory of a command that records itself.

usage: test_garbage.py QUERYPROF"""

import fcntl
import mmap
import random
import threading

import os
import sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import *

SEALS = 0x2 | 0x4 | 0x1  # F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL
ADD_SEALS, GET_NAME = 1033, "/proc/self/comm"
WORDS = (0, 1, 2, 3, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 2**63 - 1, 2**63, 2**64 - 1)
TEXTS = (b"\x1b[2J\x1b]0;x\x07", b"\xff\xfe\xc3(", b"%s%n%d", b"'\"\\\n\t\r", "größe \u202e".encode(), b"A" * 4096)
ROUNDS = 12


class Garbage(Live):
    original = None  # recorded once for all tests

    @staticmethod
    def memory_of(recorder):
        """Returns the shared memory of a recorded program."""
        folder = "/proc/%d/fd" % recorder.pid
        path, = [os.path.join(folder, name) for name in os.listdir(folder)
                 if os.readlink(os.path.join(folder, name)).startswith("/memfd:queryprof")]
        with open(path, "rb") as file:
            return file.read()

    def record_memory(self):
        """Returns the shared memory of a program that has a run, a waiting run and a transaction."""
        trace, self.trace = self.trace, self.trace + ".holder"  # the end of this recording may be written later
        recorder = self.start(PYTHON, self.file("holder.py", HOLDER), os.path.join(self.folder, "app.db"))
        self.find("INSERT INTO t VALUES (2) /* waits */", lambda run: run["wait_cause"] == "lock")
        memory = self.memory_of(recorder)
        self.end(recorder)
        recorder.wait()
        self.trace = trace
        return memory

    def setUp(self):
        super().setUp()
        self.random = random.Random(45)
        if Garbage.original is None:
            Garbage.original = self.record_memory()
        self.record("sqlite3", "-init", "/dev/null", ":memory:", "SELECT 1")
        with open(GET_NAME, encoding="ascii") as file:
            name = file.read()
        self.addCleanup(self.rename, name)
        self.rename("queryprof")
        self.descriptors = [os.open(self.trace, os.O_PATH), os.pidfd_open(os.getpid())]
        self.memory = self.make("queryprof", len(self.original))
        self.write(0, self.original)

    def tearDown(self):
        self.memory.close()
        for descriptor in self.descriptors:
            os.close(descriptor)

    @staticmethod
    def rename(name):
        with open(GET_NAME, "w", encoding="ascii") as file:
            file.write(name)

    def make(self, name, size, seals=SEALS):
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, ADD_SEALS, seals)
        self.descriptors.append(descriptor)
        return mmap.mmap(descriptor, size)

    def write(self, at, data):
        """Writes into the memory. Pages of zeros stay holes."""
        for start in range(0, len(data), 4096):
            page = data[start:start + 4096]
            if page.count(0) != len(page):
                self.memory[at + start:at + start + len(page)] = page

    def spoil(self, parts):
        for _ in range(self.random.randrange(1, 60)):
            at = self.random.choice(parts) + self.random.randrange(0, 4096, 4)
            kind = self.random.randrange(3)
            if kind == 0:
                value = self.random.choice(WORDS).to_bytes(8, "little")
            elif kind == 1:
                value = self.random.choice(TEXTS)
            else:
                value = self.random.randbytes(self.random.randrange(1, 300))
            end = min(at + len(value), len(self.original))
            self.memory[at:end] = value[:end - at]

    def parts(self):
        """Returns the parts of the memory with content, without the version of the layout."""
        return [at for at in range(4096, len(self.original) - 4096, 4096)
                if self.original[at:at + 4096].count(0) != 4096]

    def expect_sane(self):
        seen = self.ask("dump", self.trace, "--format", "json")
        self.assertIn(seen.returncode, (0, 1), seen.stderr)
        if seen.returncode == 0:
            found = json.loads(seen.stdout)
            self.assertEqual(output_schema.errors("dump", found), [])
            for run in found["runs"]:
                self.assertGreaterEqual(run["elapsed_ns"], 0)
        text = self.ask("dump", self.trace)
        self.assertIn(text.returncode, (0, 1), text.stderr)
        self.assertNotRegex(text.stdout + text.stderr, "[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202e]")
        return seen

    def test_it_is_believed_first(self):
        """dump accepts the unchanged memory; otherwise the other tests would prove nothing."""
        found = json.loads(self.expect_sane().stdout)
        self.assertIn("INSERT INTO t VALUES (2) /* waits */", [run["query"] for run in found["runs"]])
        self.assertIn("BEGIN IMMEDIATE /* holds */", [one["first_query"] for one in found["transactions"]])

    def test_words(self):
        parts = self.parts()
        for _ in range(ROUNDS):
            self.spoil(parts)
            self.expect_sane()
            if self.random.randrange(4) == 0:
                self.write(0, self.original)

    def test_it_changes(self):
        stop, parts = threading.Event(), self.parts()

        def change():
            while not stop.is_set():
                self.spoil(parts)
                self.write(0, self.original)
        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(ROUNDS // 2):
                self.expect_sane()
        finally:
            stop.set()
            thread.join()

    def test_front(self):
        """Changes words of the header: sizes and the version."""
        for at in self.random.sample(range(0, 1024, 8), ROUNDS):
            self.memory[at:at + 8] = self.random.choice(WORDS).to_bytes(8, "little")
            seen = self.ask("dump", self.trace, "--format", "json")
            self.assertIn(seen.returncode, (0, 1), seen.stderr)
            self.memory[at:at + 8] = self.original[at:at + 8]

    def test_other_memory(self):
        """dump does not read memory of another version, or memory that its owner can make smaller."""
        self.memory[0:16] = b"0123456789abcde\0"
        seen = self.expect_sane()
        self.assertEqual(json.loads(seen.stdout)["unread"], 1)
        self.assertIn("1 process cannot be read: recorded by another version of queryprof",
                      self.ask("dump", self.trace).stdout)
        self.memory[0:16] = self.original[0:16]
        self.memory.close()
        os.close(self.descriptors.pop())
        for size, seals in (4096, SEALS), (1 << 20, SEALS), (len(self.original), 0x1):
            self.memory = self.make("queryprof", size, seals)
            self.memory[0:4096] = self.original[0:4096]
            self.assertEqual(json.loads(self.expect_sane().stdout)["unread"], 1)
            self.memory.close()
            os.close(self.descriptors.pop())
        self.memory = self.make("other", 4096)


if __name__ == "__main__":
    unittest.main(verbosity=2)
