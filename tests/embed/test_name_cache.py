#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cache of names in the user's folder: queryprof does not look up cached names again. They equal the result of a look-up
until a file that they depend on appears, disappears or changes.

usage: as test_embed.py

To show that the cache is read, the test puts other names into it."""

import glob
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import test_embed as known

QUERYPROF, _, PROGRAM = sys.argv[1:4]
SQLITE = os.path.realpath(glob.glob("/usr/lib/*/libsqlite3.so.0")[0])
FRAMES = """SELECT address, level, inlined, f.name, y.name, x.name, line FROM frames
            LEFT JOIN names AS f ON f.id = function LEFT JOIN names AS y ON y.id = symbol
            LEFT JOIN names AS x ON x.id = file ORDER BY 1, 2"""


def settle(*paths):
    """Waits until these files are old enough for the cache to store names from them."""
    newest = max(os.stat(path).st_ctime for path in paths)
    while time.time() < newest + 3.1:
        time.sleep(0.1)


def code_of(path):
    """Returns the start and end addresses of the code in the ELF file."""
    for line in known.text("readelf", "-SW", path).splitlines():
        found = re.search(r"\] \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", line)
        if found:
            return int(found[1], 16), int(found[1], 16) + int(found[2], 16)
    raise AssertionError("no code")


def function_at(path, address):
    """Returns the start and end addresses of the function in the ELF file."""
    for line in known.text("readelf", "-sW", path).splitlines():
        found = re.match(r" *\d+: ([0-9a-f]+) +(\d+) FUNC ", line)
        if found and int(found[1], 16) <= address < int(found[1], 16) + int(found[2]):
            return int(found[1], 16), int(found[1], 16) + int(found[2])
    raise AssertionError("no function")


class Cache(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="queryprof-cache-")
        self.home = os.path.join(self.folder, "cache")
        self.file = os.path.join(self.home, "queryprof-names", "names-2.db")
        self.environment = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}

    def tearDown(self):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, trace, home):
        return subprocess.Popen([QUERYPROF, "embed", trace], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env={**self.environment, "XDG_CACHE_HOME": home})

    def frames(self, program, addresses, cached=True):
        """Runs embed, and returns the frames that it stored for these addresses of the program."""
        trace = self.path("app.trace")
        if os.path.exists(trace):
            os.unlink(trace)
        self.make(trace, program, addresses)
        command = self.start(trace, self.home if cached else "/dev/null")
        self.assertEqual((command.communicate(timeout=300)[1], command.returncode), (b"", 0))
        return known.rows(trace, FRAMES)

    def make(self, trace, program, addresses):
        known.make(trace, program, identity=known.build_id(program))
        db = sqlite3.connect(trace)
        db.execute("DELETE FROM stacks")
        db.executemany("INSERT INTO stacks VALUES (?, 0, 1, ?)",
                       [(number, f"[{known.BASE + address}]") for number, address in enumerate(addresses, 1)])
        db.commit()
        db.close()

    def both(self, program, addresses):
        """Returns the same. embed must store the same frames without the cache."""
        frames = self.frames(program, addresses)
        self.assertEqual(frames, self.frames(program, addresses, cached=False))
        return frames

    def forge(self):
        """Replaces all names in the cache."""
        db = sqlite3.connect(self.file)
        count = db.execute("UPDATE frames SET function = 'forged' WHERE function IS NOT NULL").rowcount
        db.commit()
        db.close()
        self.assertGreater(count, 0)

    def names(self, *arguments):
        return {frame[4] for frame in self.frames(*arguments)}

    def known(self):
        program = self.path("known")
        shutil.copy(PROGRAM, program)
        settle(program)
        return program

    def test_inlined_frames_and_lines(self):
        addresses = [known.SMALL_AT, known.ENTRY_AT]
        settle(PROGRAM)
        first = self.both(PROGRAM, addresses[:1])
        self.assertEqual(len(first), 3)
        self.assertEqual(self.both(PROGRAM, addresses[:1]), first)
        self.assertEqual(len(self.both(PROGRAM, addresses)), 4)
        self.forge()
        self.assertEqual(self.names(PROGRAM, addresses), {"forged"})

    def test_other_addresses_of_a_function(self):
        """The first address puts the lines of its whole function into the cache."""
        settle(PROGRAM)
        function = range(*function_at(PROGRAM, known.SMALL_AT))
        self.frames(PROGRAM, [known.SMALL_AT])
        self.assertGreater(len({frame[6] for frame in self.both(PROGRAM, function) if frame[1] == 0}), 1)
        os.unlink(self.file)
        self.frames(PROGRAM, [known.SMALL_AT])
        self.forge()
        self.assertEqual(self.names(PROGRAM, function), {"forged"})

    def test_place_without_a_name(self):
        """That nothing is known about an address is cached, too, but not beyond the place."""
        settle(PROGRAM)
        self.assertEqual(self.both(PROGRAM, [0x10]), [])
        count = len(self.both(PROGRAM, [0x10, known.SMALL_AT]))
        self.assertEqual(count, 3)
        db = sqlite3.connect(self.file)
        row = db.execute("SELECT start, end FROM frames WHERE function IS NULL AND file IS NULL").fetchone()
        db.execute("UPDATE frames SET function = 'forged' WHERE function IS NULL")
        db.commit()
        db.close()
        self.assertTrue(row[0] <= 0x10 < row[1] <= known.SMALL_AT)
        self.assertEqual(self.names(PROGRAM, [0x10]), {"forged"})

    def test_table_of_a_stripped_library(self):
        """The first addresses put the whole table into the cache: names from an archive, and places without a name."""
        start, end = code_of(SQLITE)
        self.both(SQLITE, range(start, end, (end - start) // 3))
        more = range(start, end, (end - start) // 2000)
        frames = self.both(SQLITE, more)
        self.assertGreater(len(frames), len(more) // 2)
        if known.rows(self.file, "SELECT has_all FROM objects") == [(1,)]:  # no debug information is installed
            self.forge()
            self.assertEqual(self.names(SQLITE, more), {"forged"})

    def test_copy_of_compressed_debug_information(self):
        """The first look-up copies the debug information, and the next one reads the copy. To show that, the test writes
        another file's name into the copy. A damaged copy is made anew."""
        program = self.path("known")
        known.output("objcopy", "--compress-debug-sections=zlib", PROGRAM, program)
        settle(program)
        self.both(program, [known.SMALL_AT])
        copy, = glob.glob(os.path.join(os.path.dirname(self.file), "*.debug"))
        with open(copy, "r+b") as file:
            content = file.read()
            file.seek(0)
            file.write(content.replace(b"known.cpp\0", b"other.cpp\0"))
        self.assertEqual({os.path.basename(frame[5]) for frame in self.frames(program, [known.ENTRY_AT])}, {"other.cpp"})
        for size in len(content) // 2, 0:
            os.unlink(self.file)
            os.truncate(copy, size)
            self.both(program, [known.SMALL_AT])
            self.assertEqual(os.path.getsize(copy), len(content))

    def test_changed_program(self):
        program = self.known()
        self.both(program, [known.SMALL_AT])
        self.forge()
        status = os.stat(program)
        os.rename(program, self.path("before"))
        shutil.copy(PROGRAM, program)
        os.utime(program, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertEqual(len(self.both(program, [known.SMALL_AT])), 3)
        os.unlink(program)
        self.assertEqual(self.frames_without_file(program), [])

    def frames_without_file(self, program):
        trace = self.path("gone.trace")
        known.make(trace, program)
        command = self.start(trace, self.home)
        self.assertEqual((command.communicate(timeout=300)[1], command.returncode), (b"", 0))
        return known.rows(trace, FRAMES)

    def test_debug_file_that_comes_later(self):
        program = self.path("known")
        shutil.copy(PROGRAM, program)
        symbols = self.path("known.debug")
        known.output("objcopy", "--only-keep-debug", program, symbols)
        known.output("objcopy", "--strip-all", "--add-gnu-debuglink=" + symbols, program)
        os.rename(symbols, self.path("later"))
        settle(program)
        self.both(program, [known.SMALL_AT])
        self.assertEqual(known.rows(self.file, "SELECT has_all, has_lines FROM objects"), [(1, 0)])
        os.rename(self.path("later"), symbols)
        self.assertEqual(len(self.both(program, [known.SMALL_AT])), 3)

    def test_folder_of_others(self):
        settle(PROGRAM)
        os.makedirs(os.path.dirname(self.file))
        os.chmod(os.path.dirname(self.file), 0o755)
        self.both(PROGRAM, [known.SMALL_AT])
        self.assertFalse(os.path.exists(self.file))
        os.chmod(os.path.dirname(self.file), 0o700)
        self.both(PROGRAM, [known.SMALL_AT])
        self.forge()
        os.chmod(os.path.dirname(self.file), 0o770)
        self.assertNotIn("forged", self.names(PROGRAM, [known.SMALL_AT]))

    def test_beside_the_folder_of_builds(self):
        """A build may have made the folder queryprof with other permissions. The cache works next to it."""
        settle(PROGRAM)
        builds = os.path.join(self.home, "queryprof")
        os.makedirs(builds)
        os.chmod(builds, 0o755)
        self.both(PROGRAM, [known.SMALL_AT])
        self.forge()
        self.assertEqual(self.names(PROGRAM, [known.SMALL_AT]), {"forged"})
        self.assertEqual(os.listdir(builds), [])

    def test_damaged(self):
        settle(PROGRAM)
        expected = self.both(PROGRAM, [known.SMALL_AT])
        size = os.path.getsize(self.file)
        for begin, length in (0, 100), (4096, size - 4096), (0, size):
            with open(self.file, "r+b") as file:
                file.seek(begin)
                file.write(b"\xa5" * length)
            self.assertEqual(self.frames(PROGRAM, [known.SMALL_AT]), expected)
            self.assertEqual(self.frames(PROGRAM, [known.SMALL_AT]), expected)
            self.frames(PROGRAM, [known.ENTRY_AT])
        self.forge()

    def test_several_at_once(self):
        settle(PROGRAM)
        expected = self.frames(PROGRAM, [known.SMALL_AT], cached=False)
        traces = [self.path(f"{number}.trace") for number in range(6)]
        for trace in traces:
            self.make(trace, PROGRAM, [known.SMALL_AT])
        for command in [self.start(trace, self.home) for trace in traces]:
            self.assertEqual((command.communicate(timeout=300)[1], command.returncode), (b"", 0))
        self.assertEqual([known.rows(trace, FRAMES) for trace in traces], [expected] * len(traces))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
