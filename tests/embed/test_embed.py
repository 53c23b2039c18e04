#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names and lines in the trace file. The test follows a stack with known frames from its recording to every format and view,
while the program exists and after it was removed.

usage: test_embed.py QUERYPROF SOURCE_DIR KNOWN_PROGRAM [unittest arguments]
environment: EMBED_TEST_NODE and EMBED_TEST_READERS, as tests/export/test_readers.py has
them; EMBED_TEST_NO_RECORD if this build cannot be preloaded"""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

QUERYPROF, SOURCE, PROGRAM = sys.argv[1:4]
SCHEMA = os.path.join(SOURCE, "sql", "schema", "store_schema.sql")
SCHEMA_1 = os.path.join(SOURCE, "tests", "store", "schema_1.sql")
sys.path[:0] = [os.path.join(SOURCE, "tests", folder) for folder in ("export", "command")]

import json_stacks  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file  # noqa: E402
from pprof_profile import Profile  # noqa: E402

VERSION = trace_file.version(SCHEMA)

BASE = 0x550000000000
NOWHERE = 1 << 62
MS = 10**6
START = 1795000000 * 10**9
FORMATS = ("collapsed", "pprof", "speedscope", "json", "flamegraph")

# A shell's background job ignores SIGINT, and so would the command.
signal.signal(signal.SIGINT, signal.default_int_handler)


def output(*command, code=0):
    done = subprocess.run(command, capture_output=True, timeout=300, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != code:
        raise AssertionError(f"{command}: {done.returncode}, {done.stdout!r}, {done.stderr!r}")
    return done.stdout


def text(*command, code=0):
    return output(*command, code=code).decode()


def build_id(path):
    return re.search("Build ID: ([0-9a-f]+)", text("readelf", "-n", path))[1]


def find_mark(path, number):
    """Returns the address of the marked instruction in the ELF file."""
    with open(path, "rb") as file:
        offset = file.read().index(b"\x0f\x1f\x80" + struct.pack("<I", number))
    for line in text("readelf", "-lW", path).splitlines():
        words = line.split()
        if words[:1] == ["LOAD"]:
            start, address, size = int(words[1], 16), int(words[2], 16), int(words[4], 16)
            if start <= offset < start + size:
                return offset - start + address
    raise AssertionError("not in a segment")


def find_lines():
    with open(os.path.join(SOURCE, "tests", "embed", "known.cpp"), encoding="utf-8") as file:
        return {found[1]: number for number, line in enumerate(file, 1)
                if (found := re.search(r"/\* line (\w+) \*/", line))}


LINE = find_lines()
SMALL_AT, ENTRY_AT = find_mark(PROGRAM, 0x51505201), find_mark(PROGRAM, 0x51505202)
FRAMES = [(f"known::{name}(int)", LINE[name]) for name in ("small", "middle", "outer", "entry")]
NAMES = [name for name, _ in FRAMES]
WITHOUT_INLINES = [FRAMES[2], FRAMES[3]]
OFFSETS = [f"known+{hex(SMALL_AT)}", f"known+{hex(ENTRY_AT)}"]
HOLE = "known+0x10"


def make(path, program, schema=SCHEMA, version=VERSION, identity=None):
    """Makes a trace file with three stacks: the known one (20 ms), one in no function of the program (5 ms), and one
    in code that this process might have generated (2 ms)."""
    db = sqlite3.connect(path)
    with open(schema, encoding="utf-8") as file:
        db.executescript(file.read())
    db.execute(f"PRAGMA application_id = {0x51505246}")
    db.execute(f"PRAGMA user_version = {version}")
    db.execute("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) VALUES (1, ?, ?, ?, ?)",
               (socket.gethostname(), os.getpid(), time.time_ns() - 3600 * 10**9, program))
    db.execute("INSERT INTO threads VALUES (1, 1, 101, 'main')")
    db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (1, 1, 'CPU', ?, 1)", (MS,))
    db.execute("INSERT INTO modules VALUES (1, ?, ?, 0, 0, ?, ?, 0)",
               (identity or build_id(PROGRAM), program, BASE, 0x100000))
    db.executemany("INSERT INTO stacks VALUES (?, 0, 1, ?)", [
        (1, f"[{BASE + SMALL_AT},{BASE + ENTRY_AT}]"),
        (2, f"[{BASE + 0x10},{BASE + ENTRY_AT}]"),
        (3, f"[{NOWHERE | 0x7010}]"),
    ])
    db.execute("INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query) VALUES (1, 0, 77, 0, 'SELECT spin(300)')")
    db.execute("INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement,"
               " query_start_ns, query_duration_ns, cpu_time_ns, samples_cpu)"
               " VALUES (1, 'known', 1, ?, ?, 1, 1, 1, ?, ?, ?, 27)",
               (START, START + 30 * MS, START, 30 * MS, 27 * MS))
    db.executemany("INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
                   " VALUES (?, 1, 1, ?, 0, 1, 0, 0)",
                   [(START + number * MS, 1 if number < 20 else 2 if number < 25 else 3) for number in range(27)])
    db.commit()
    db.close()


def rows(path, sql, *parameters):
    db = sqlite3.connect(path)
    try:
        return db.execute(sql, parameters).fetchall()
    finally:
        db.close()


class Known(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="queryprof-embed-")
        self.program = os.path.join(self.folder, "known")
        self.trace = os.path.join(self.folder, "app.trace")
        shutil.copy(PROGRAM, self.program)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def export(self, form, *arguments):
        return output(QUERYPROF, "export", self.trace, "--format", form, "-o", "-", *arguments)

    def embedded_and_gone(self):
        make(self.trace, self.program)
        output(QUERYPROF, "embed", self.trace)
        os.unlink(self.program)

    def frames(self):
        return rows(self.trace, "SELECT * FROM frames ORDER BY 1, 2")


class Formats(Known):
    """Every format has exactly this stack after the program was removed."""

    def setUp(self):
        super().setUp()
        self.embedded_and_gone()

    def test_collapsed(self):
        self.assertEqual(set(self.export("collapsed").decode().splitlines()), {
            f"{hex(0x7010)} 2", ";".join(NAMES[::-1]) + " 20", f"{NAMES[3]};{HOLE} 5"})
        self.assertIn("known::entry(int);known::outer(int) 20\n", self.export("collapsed", "--no-inlines").decode())

    def test_json(self):
        for arguments, expected in ((), FRAMES), (("--no-inlines",), WITHOUT_INLINES):
            stack = json_stacks.read(self.export("json", *arguments))[0]
            self.assertEqual([(frame["function"], frame["line"]) for frame in stack["frames"]], expected)
            self.assertEqual({os.path.basename(frame["file"]) for frame in stack["frames"]}, {"known.cpp"})
            self.assertEqual([frame.get("inlined", False) for frame in stack["frames"]],
                             [True, True, False, False][-len(expected):])
            self.assertEqual(stack["frames"][-2]["symbol"], "_ZN5known5outerEi")
            self.assertEqual((stack["weight"], stack["value"]), (20, 20 * MS))

    def test_pprof(self):
        for arguments, expected in ((), FRAMES), (("--no-inlines",), WITHOUT_INLINES):
            profile = Profile(self.export("pprof", *arguments))
            frames, values, _ = profile.samples[0]
            self.assertEqual((frames, values), (expected, [20, 20 * MS]))
            # A location for each address, innermost line first.
            self.assertEqual([len(location["line"]) for location in profile.locations.values()][:2],
                             [len(expected) - 1, 1])
            self.assertEqual([mapping["has_inlines"] for mapping in profile.mappings.values()], [not arguments])

    @unittest.skipUnless(shutil.which("go"), "Go is not installed")
    def test_go_pprof(self):
        path = os.path.join(self.folder, "app.pb.gz")
        with open(path, "wb") as file:
            file.write(self.export("pprof"))
        raw = text("go", "tool", "pprof", "-symbolize=none", "-raw", path)
        found = re.findall(r"(known::\w+\(int\)) \S+/known\.cpp:(\d+)", raw)
        self.assertEqual([(name, int(line)) for name, line in found[:4]], FRAMES, raw)
        self.assertRegex(raw, r"20 +20000000: 1 2 ")

    @unittest.skipUnless(os.environ.get("EMBED_TEST_READERS"), "pprof-format is not here")
    def test_pprof_format(self):
        path = os.path.join(self.folder, "app.pb.gz")
        with open(path, "wb") as file:
            file.write(self.export("pprof"))
        reader = os.path.join(SOURCE, "tests", "export", "readers", "read_pprof.mjs")
        read = json.loads(output(os.environ["EMBED_TEST_NODE"], reader, os.environ["EMBED_TEST_READERS"], path))
        self.assertEqual([tuple(frame) for frame in read["samples"][0][0]], FRAMES)
        self.assertEqual(read["samples"][0][1], [20, 20 * MS])

    def test_speedscope(self):
        file = json.loads(self.export("speedscope"))
        frames = file["shared"]["frames"]
        profile = file["profiles"][0]
        stacks = [[frames[number]["name"] for number in stack] for stack in profile["samples"]]
        self.assertEqual(stacks[0], NAMES[::-1])
        self.assertEqual(profile["weights"][0], 20 * MS)

    def test_flamegraph(self):
        help_text = text(QUERYPROF, "export", "--help")
        if "not in this build" in help_text:
            self.skipTest("this build has no page")
        page = self.export("flamegraph").decode()
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
        self.assertEqual([function[0] for function in data["functions"]][:4], NAMES[::-1])

    def test_report(self):
        report = text(QUERYPROF, "report", self.trace)
        self.assertRegex(report, r"74\.1 .* 74\.1 .* known::small\(int\)\n")
        self.assertRegex(report, r"known::small\(int\) \(\S+:\d+\)\n +known::middle\(int\) \(\S+:\d+\)\n +known::outer\(int\) \(\S+:\d+\)\n"
                                 r" +known::entry\(int\) \(\S+:\d+\)\n")

    def test_sql_functions_of_the_command(self):
        self.assertEqual(json.loads(text(QUERYPROF, "sql", self.trace, "--format", "json",
                                         "SELECT addressToSymbol(trace->>0) AS symbol, addressToLine(trace->>0) LIKE"
                                         f" '%/known.cpp:{LINE['small']}' AS line, traceToText(trace, ' ') AS trace"
                                         " FROM trace_log LIMIT 1")),
                         [{"symbol": "_ZN5known5outerEi", "line": 1, "trace": "known::outer(int) known::entry(int)"}])


class Views(Known):
    """Reads the views with SQLite alone: Python's and the shell's."""

    def setUp(self):
        super().setUp()
        self.embedded_and_gone()

    def test_trace_log(self):
        symbols, lines, trace = rows(self.trace, "SELECT symbols, lines, trace FROM trace_log LIMIT 1")[0]
        self.assertEqual(json.loads(symbols), ["known::outer(int)", "known::entry(int)"])
        self.assertEqual([re.sub("^.*/", "", line) for line in json.loads(lines)],
                         [f"known.cpp:{LINE['small']}", f"known.cpp:{LINE['entry']}"])
        self.assertEqual(len(json.loads(trace)), 2)
        hole, nowhere = rows(self.trace, "SELECT symbols, lines FROM trace_log WHERE stack_id > 1 GROUP BY stack_id")
        self.assertEqual(json.loads(hole[0]), [HOLE, "known::entry(int)"])
        self.assertEqual(json.loads(hole[1])[0], self.program)
        self.assertEqual([json.loads(column) for column in nowhere], [[hex(0x7010)], [None]])

    def test_stack_frames(self):
        self.assertEqual(rows(self.trace, "SELECT function, line, frame, level, inlined FROM stack_frames"
                                          " WHERE stack_id = 1"),
                         [(*FRAMES[0], 0, 0, 1), (*FRAMES[1], 0, 1, 1), (*FRAMES[2], 0, 2, 0), (*FRAMES[3], 1, 0, 0)])

    def test_past_the_end_of_a_module(self):
        db = sqlite3.connect(self.trace)
        db.execute("INSERT INTO modules VALUES (2, '', '/other', 0, 0, ?, 16, 0)", (BASE + 0x200000,))
        db.execute("INSERT INTO stacks VALUES (9, 0, 1, ?)",
                   (f"[{BASE - 1},{BASE + 0x100000},{BASE + 0x200000},{BASE + 0x200010}]",))
        self.assertEqual(db.execute("SELECT function, module FROM stack_frames WHERE stack_id = 9").fetchall(),
                         [(hex(BASE - 1), ""), (hex(BASE + 0x100000), ""), ("other+0x0", "/other"),
                          (hex(BASE + 0x200010), "")])
        db.close()

    TOP = [("CPU", 74.07, 74.07, 20.0, 20.0, NAMES[0]), ("CPU", 18.52, 18.52, 5.0, 5.0, "(known)"),
           ("CPU", 7.41, 7.41, 2.0, 2.0, "(no module)"), ("CPU", 0.0, 92.59, 0.0, 25.0, NAMES[3]),
           ("CPU", 0.0, 74.07, 0.0, 20.0, NAMES[1]), ("CPU", 0.0, 74.07, 0.0, 20.0, NAMES[2])]
    COLUMNS = "trace_type, self_percent, total_percent, self_ms, total_ms, function"

    def test_top_functions(self):
        self.assertEqual(rows(self.trace, f"SELECT {self.COLUMNS} FROM top_functions"), self.TOP)

    def test_query_functions(self):
        for view, where in (("query_functions", "query_id = 'known'"),
                            ("statement_functions", "normalized_query_hash = 77"),
                            ("statement_functions", "query LIKE '%spin%'")):
            self.assertEqual(rows(self.trace, f"SELECT {self.COLUMNS} FROM {view} WHERE {where}"), self.TOP, view)
        self.assertEqual(rows(self.trace, "SELECT * FROM query_functions WHERE query_id = 'x'"), [])

    def test_top_stacks(self):
        self.assertEqual(rows(self.trace, "SELECT trace_type, percent, ms, samples, stack FROM top_stacks"), [
            ("CPU", 74.07, 20.0, 20, " < ".join(NAMES)),
            ("CPU", 18.52, 5.0, 5, f"{HOLE} < {NAMES[3]}"),
            ("CPU", 7.41, 2.0, 2, hex(0x7010))])

    def test_top_queries(self):
        self.assertEqual(rows(self.trace, "SELECT * FROM top_queries"),
                         [(77, 1, 30.0, 27.0, 30.0, 27, 0, 0, "SELECT spin(300)", 1)])

    def test_totals(self):
        for view in ("stack_times", "top_stacks", "top_functions", "query_functions", "statement_functions"):
            column = "time_ns / 1e6" if view == "stack_times" else "ms" if view == "top_stacks" else "self_ms"
            self.assertEqual(rows(self.trace, f"SELECT sum({column}) FROM {view}"), [(27.0,)], view)

    def test_untrusted_schema(self):
        db = sqlite3.connect(self.trace)
        db.execute("PRAGMA trusted_schema = 0")
        for (view,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
            db.execute(f"SELECT * FROM {view}").fetchall()
        db.close()

    def test_shell(self):
        shell = shutil.which("sqlite3")
        if not shell:
            self.skipTest("there is no sqlite3 shell")
        self.assertEqual(text(shell, self.trace, f"SELECT {self.COLUMNS} FROM top_functions LIMIT 1"),
                         f"CPU|74.07|74.07|20.0|20.0|{NAMES[0]}\n")

    def test_odd_names(self):
        """Quotation marks and backslashes are escaped in JSON."""
        db = sqlite3.connect(self.trace)
        db.execute("UPDATE names SET name = ? WHERE name = ?", ('operator"" _x\\', "known::outer(int)"))
        db.commit()
        self.assertEqual(json.loads(db.execute("SELECT symbols FROM trace_log").fetchone()[0])[0], 'operator"" _x\\')
        db.close()


class Embedding(Known):
    def test_same_with_the_program_and_without(self):
        make(self.trace, self.program)
        help_text = text(QUERYPROF, "export", "--help")
        for form in FORMATS:
            if re.search(f"  {form} +not in this build", help_text):
                continue
            with self.subTest(form):
                looked_up = self.export(form)
                output(QUERYPROF, "embed", self.trace)
                os.rename(self.program, self.program + ".gone")
                self.assertEqual(self.export(form), looked_up)
                os.rename(self.program + ".gone", self.program)
                db = sqlite3.connect(self.trace)
                db.execute("DELETE FROM frames")
                db.commit()
                db.close()

    def test_neither_program_nor_names(self):
        make(self.trace, self.program)
        os.unlink(self.program)
        self.assertIn(f"{OFFSETS[1]};{OFFSETS[0]} 20\n", self.export("collapsed").decode())
        self.assertEqual([name for name, _ in Profile(self.export("pprof")).samples[0][0]], OFFSETS)
        self.assertEqual([frame["function"] for frame in json_stacks.read(self.export("json"))[0]["frames"]], OFFSETS)
        self.assertRegex(text(QUERYPROF, "report", self.trace), r"\(known\)\n")
        self.assertEqual(json.loads(rows(self.trace, "SELECT symbols FROM trace_log")[0][0]), OFFSETS)
        self.assertEqual(rows(self.trace, "SELECT function, self_ms FROM top_functions"),
                         [("(known)", 25.0), ("(no module)", 2.0)])
        # embed reports that it found no names.
        self.assertRegex(text(QUERYPROF, "embed", self.trace), rf"3 +3 +3 +{self.program}\n")
        self.assertEqual(self.frames(), [])

    def test_again(self):
        make(self.trace, self.program)
        self.assertRegex(text(QUERYPROF, "embed", self.trace), rf"3 +1 +1 +{self.program}\n")
        before = self.frames()
        self.assertEqual(len(before), 4)
        output(QUERYPROF, "embed", self.trace)
        self.assertEqual(self.frames(), before)
        # embed adds only what is new.
        db = sqlite3.connect(self.trace)
        db.execute("INSERT INTO stacks VALUES (9, 0, 1, ?)", (f"[{BASE + ENTRY_AT - 1},{BASE + ENTRY_AT}]",))
        db.execute("UPDATE frames SET line = 7 WHERE address = ?", (BASE + ENTRY_AT,))
        db.commit()
        db.close()
        output(QUERYPROF, "embed", self.trace)
        self.assertEqual(len(self.frames()), len(before) + 1)
        self.assertEqual(rows(self.trace, "SELECT line FROM frames WHERE address = ?", BASE + ENTRY_AT), [(7,)])

    def test_a_stack_that_is_none(self):
        """The other stacks get their names, and the list of missing names is right."""
        make(self.trace, self.program)
        db = sqlite3.connect(self.trace)
        db.execute("INSERT INTO stacks VALUES (9, 0, 1, '[1,2')")
        db.commit()
        db.close()
        self.assertRegex(text(QUERYPROF, "embed", self.trace), rf"3 +1 +1 +{self.program}\n")
        self.assertEqual(len(self.frames()), 4)

    def test_better_names_stay_and_come(self):
        make(self.trace, self.program)
        stripped = os.path.join(self.folder, "stripped")
        output("strip", "--strip-debug", "-o", stripped, PROGRAM)
        os.replace(stripped, self.program)  # the same build id, without lines
        output(QUERYPROF, "embed", self.trace)
        self.assertEqual(rows(self.trace, "SELECT function, line FROM stack_frames WHERE stack_id = 1"),
                         [(NAMES[2], 0), (NAMES[3], 0)])
        shutil.copy(PROGRAM, self.program)
        output(QUERYPROF, "embed", self.trace)
        best = self.frames()
        self.assertEqual(rows(self.trace, "SELECT function, line FROM stack_frames WHERE stack_id = 1"), FRAMES)
        for option in "--strip-debug", "--strip-all":
            output("strip", option, "-o", stripped, PROGRAM)
            os.replace(stripped, self.program)
            output(QUERYPROF, "embed", self.trace)
            self.assertEqual(self.frames(), best)

    def test_another_program_in_its_place(self):
        make(self.trace, self.program, identity="00" * 20)
        output(QUERYPROF, "embed", self.trace)
        self.assertEqual(self.frames(), [])

    def test_generated_code(self):
        path = f"/tmp/perf-{os.getpid()}.map"
        with open(path, "w", encoding="utf-8") as file:
            file.write("7000 100 generated\n")
        self.addCleanup(os.unlink, path)
        make(self.trace, self.program)
        output(QUERYPROF, "embed", self.trace)
        self.assertIn("generated 2\n", self.export("collapsed").decode())
        self.assertEqual(rows(self.trace, "SELECT symbols, lines FROM trace_log WHERE stack_id = 3 LIMIT 1"),
                         [('["generated"]', "[null]")])
        # Two processes share a stack; one has no map of its code.
        other = os.path.join(self.folder, "other.trace")
        make(other, self.program)
        db = sqlite3.connect(other)
        db.executescript("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) SELECT 2, hostname, 0, start_time_ns, executable FROM processes;"
                         "INSERT INTO threads VALUES (2, 2, 1, '');"
                         "INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (2, 2, 'CPU', 1, 1);"
                         "INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
                         " VALUES (1, 2, 0, 3, 0, 1, 0, 0)")
        db.close()
        output(QUERYPROF, "embed", other)
        self.assertEqual(rows(other, "SELECT DISTINCT symbols FROM trace_log WHERE stack_id = 3"),
                         [(f'["{hex(0x7010)}"]',)])

    def test_while_another_writes(self):
        make(self.trace, self.program)
        db = sqlite3.connect(self.trace, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        for interrupted in (False, True):
            with self.subTest(interrupted=interrupted):
                db.execute("DELETE FROM frames")
                db.execute("BEGIN IMMEDIATE")
                embed = subprocess.Popen([QUERYPROF, "embed", self.trace], text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                while embed.poll() is None and not self.catches_interrupt(embed.pid):
                    time.sleep(0.01)
                if interrupted:
                    embed.send_signal(signal.SIGINT)
                else:
                    db.execute("COMMIT")
                _, errors = embed.communicate(timeout=300)
                if interrupted:
                    db.execute("COMMIT")
                    self.assertEqual(embed.returncode, 1, errors)
                    self.assertIn("stopped", errors)
                else:
                    self.assertEqual((embed.returncode, errors), (0, ""))
                self.assertEqual(len(self.frames()), 0 if interrupted else 4)
        db.close()

    @staticmethod
    def catches_interrupt(pid):
        """Returns whether the command catches SIGINT, as it does while it looks names up."""
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            caught = int(re.search(r"^SigCgt:\s*(\w+)", file.read(), re.MULTILINE)[1], 16)
        return caught >> (signal.SIGINT - 1) & 1

    def test_refusals(self):
        for name, content, says in (("not", None, "No such file"), ("empty", b"", "not a trace file"),
                                    ("text", b"remember the milk " * 20, "not a trace file")):
            path = os.path.join(self.folder, name)
            if content is not None:
                with open(path, "wb") as file:
                    file.write(content)
            done = subprocess.run([QUERYPROF, "embed", path], capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(says, done.stderr)
            if content is not None:
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), content)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "not")))


class Versions(Known):
    """A file of version 1: commands read it unchanged, and embed upgrades it."""

    def test_read_as_it_is(self):
        make(self.trace, self.program, schema=SCHEMA_1, version=1)
        with open(self.trace, "rb") as file:
            before = file.read()
        collapsed = self.export("collapsed")
        report = text(QUERYPROF, "report", self.trace)
        queries = text(QUERYPROF, "queries", self.trace)
        log = text(QUERYPROF, "sql", self.trace, "SELECT query_id, prepare_time_ns, library_path FROM query_log")
        top = text(QUERYPROF, "sql", self.trace, "SELECT function, self_ms FROM top_functions")
        with open(self.trace, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertRegex(log, r"known +0 *\n")
        self.assertRegex(top, r"\(known\) +25\.0\n")
        # A file of this version gives the same output.
        self.trace = os.path.join(self.folder, "new.trace")
        make(self.trace, self.program)
        self.assertEqual((self.export("collapsed"), text(QUERYPROF, "report", self.trace),
                          text(QUERYPROF, "queries", self.trace)), (collapsed, report, queries))

    def test_embed_brings_it_up(self):
        make(self.trace, self.program, schema=SCHEMA_1, version=1)
        output(QUERYPROF, "embed", self.trace)
        os.unlink(self.program)
        self.assertEqual(rows(self.trace, "PRAGMA user_version"), [(VERSION,)])
        self.assertEqual(rows(self.trace, "SELECT function, line FROM stack_frames WHERE stack_id = 1"), FRAMES)
        self.assertEqual(rows(self.trace, "PRAGMA integrity_check"), [("ok",)])


@unittest.skipIf(os.environ.get("EMBED_TEST_NO_RECORD"), "this build cannot be preloaded")
class Recorded(Known):
    """The same with a recorded program that was removed after its run."""

    def record(self, *options):
        output(QUERYPROF, "record", "-o", self.trace, "--quiet", "--cpu", "1ms", *options, "--", self.program)
        os.unlink(self.program)

    def test_names_are_there(self):
        self.record()
        share = rows(self.trace, "SELECT self_percent, total_percent FROM top_functions"
                                 " WHERE function = 'known::small(int)' AND trace_type = 'CPU'")
        self.assertEqual(len(share), 1, rows(self.trace, "SELECT * FROM top_functions"))
        self.assertGreater(share[0][0], 50)
        stacks = rows(self.trace, "SELECT stack FROM top_stacks WHERE trace_type = 'CPU' ORDER BY ms DESC LIMIT 1")
        self.assertRegex(stacks[0][0], "^" + re.escape(" < ".join(NAMES)) + " < spin\\(.* < sqlite3VdbeExec < .*main < ")
        self.assertIn(";".join(NAMES[::-1]), self.export("collapsed").decode())
        lines = rows(self.trace, "SELECT DISTINCT line FROM stack_frames WHERE function = 'known::middle(int)'")
        self.assertEqual(lines, [(LINE["middle"],)])

    def elsewhere(self, *arguments):
        """Runs queryprof in a root folder that contains only queryprof, its libraries in an unusual folder, and the trace
        file."""
        root = os.path.join(self.folder, "root")
        os.makedirs(os.path.join(root, "x"), exist_ok=True)
        # The libraries for recorded programs stay outside.
        for path in [QUERYPROF, *re.findall(r"(/\S+) \(0x", text("ldd", QUERYPROF))]:
            shutil.copy(path, os.path.join(root, "x"))
        shutil.copy(self.trace, os.path.join(root, "app.trace"))
        loader = "/x/ld-linux-x86-64.so.2"
        enter = ["unshare", "--map-root-user", "chroot", root]
        if subprocess.run([*enter, loader, "--version"], capture_output=True, check=False).returncode:
            self.skipTest("no new root folder can be had here")
        return text(*enter, loader, "--library-path", "/x", "/x/queryprof", *arguments)

    def test_in_another_root(self):
        self.record()
        collapsed = self.export("collapsed").decode()
        self.assertEqual(self.elsewhere("export", "/app.trace", "--format", "collapsed", "-o", "-"), collapsed)
        line = next(line for line in collapsed.splitlines() if NAMES[0] in line)
        self.assertRegex(line, r";main;.*;sqlite3_exec;.*;sqlite3VdbeExec;.*;known::small\(int\) \d+$")
        self.assertIn("known.cpp:", self.elsewhere(
            "sql", "/app.trace", "SELECT lines FROM trace_log WHERE symbols LIKE '%known::outer%' LIMIT 1"))

    def test_in_another_root_without(self):
        self.record("--no-symbols")
        collapsed = self.elsewhere("export", "/app.trace", "--format", "collapsed", "-o", "-")
        for line in collapsed.splitlines():
            for frame in line.rsplit(" ", 1)[0].split(";"):
                self.assertRegex(frame, r"^((known|\[vdso\]|(lib|ld-)[a-z]+\S*\.so\S*)\+)?0x[0-9a-f]+$", line)

    def test_without(self):
        self.record("--no-symbols")
        self.assertEqual(self.frames(), [])
        stack = rows(self.trace, "SELECT stack FROM top_stacks WHERE trace_type = 'CPU' ORDER BY ms DESC LIMIT 1")[0][0]
        self.assertRegex(stack, r"^known\+0x[0-9a-f]+ < known\+0x[0-9a-f]+ < ")
        self.assertNotIn("known::", self.export("collapsed").decode())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
