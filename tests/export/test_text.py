#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof export: the text formats.

usage: test_text.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import json
import os
import shutil
import subprocess

import support
from support import (AT, BUILD_ID, FIXTURE, HOLE, MS, ODD_DATABASE, ODD_STATEMENT, OTHER, OWN, RUNNING, SLOW,
                     STATEMENT, WALK, WALK_SYMBOL)


def frame_names(stack):
    return [frame["function"] for frame in stack["frames"]]


class Command(support.Exports):
    def test_command_lines_that_make_no_sense(self):
        for arguments, says in (
                ([], "--format is missing"),
                ([self.trace, "-o", "-"], "--format is missing"),
                ([self.trace, "--format", "xls", "-o", "-"], "--format xls; expected "),
                ([self.trace, "--format", "json"], "-o is missing"),
                ([self.trace, "--format", "json", "-o"], "a value is missing after -o"),
                ([self.trace, "--format", "json", "--o", "-"], "no option --o"),
                ([self.trace, "--format", "json", "-x", "-"], "no option -x"),
                ([self.trace, "--format", "json", "-o", "-", "--type", "sundial"], "expected cpu, wall, memory, live or"),
                ([self.trace, "--format", "json", "-o", "-", "--since", "soon"], "expected a time")):
            self.assertIn(says, self.refused(2, *arguments))

    def test_failures_leave_no_file(self):
        out = os.path.join(self.folder, "out")
        none = [self.trace, "--format", "json", "-o", out]
        self.assertIn("no CPU samples of these queries", self.refused(1, *none, "--query", OWN))
        self.assertIn("no query has the id x", self.refused(1, *none, "--query", "x"))
        self.assertFalse(os.path.exists(out))
        self.assertIn("No such file", self.refused(1, self.trace + ".not", "--format", "json", "-o", out))
        self.assertIn("No such file", self.refused(1, self.trace, "--format", "json", "-o", out + "/x"))
        self.assertIn("No space left", self.refused(1, self.trace, "--format", "json", "-o", "/dev/full"))

    def test_damaged_files(self):
        out = os.path.join(self.folder, "out")
        damaged = os.path.join(self.folder, "damaged.trace")
        for change, says in (
                ("UPDATE stacks SET trace = '[1,x]' WHERE id = 3", "stack 3 is not an array of addresses"),
                ("UPDATE stacks SET trace = x'5b31' WHERE id = 3", "stack 3 is not an array of addresses"),
                ("UPDATE samples SET weight = -1 WHERE stack = 3", "weight -1, period 1000000 ns, value -1000000 ns: no sample can have"),
                ("UPDATE samples SET weight = 1 << 62 WHERE stack = 3", "no sample can have these numbers"),
                ("UPDATE series SET period_ns = 1 << 62", "no sample can have these numbers"),
                ("DROP TABLE series", "no such table: series"),
                ("UPDATE samples SET weight = 9223372036854775807, series = 4 WHERE stack = 3;"
                 "INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (4, 1, 'CPU', 0, 1)",
                 "no sample can have these numbers")):
            shutil.copy(self.trace, damaged)
            db = support.sqlite3.connect(damaged)
            db.executescript(change)
            db.close()
            for form in ("collapsed", "pprof", "speedscope", "json"):
                self.assertIn(says, self.refused(1, damaged, "--format", form, "-o", out))
                self.assertFalse(os.path.exists(out))
        # Rows that other rows refer to may be missing, or contain anything.
        shutil.copy(self.odd, damaged)
        db = support.sqlite3.connect(damaged)
        db.executescript("DELETE FROM modules; DELETE FROM statements; DELETE FROM threads;"
                         "UPDATE samples SET timestamp_ns = -9223372036854775808 WHERE timestamp_ns ="
                         " (SELECT min(timestamp_ns) FROM samples);"
                         "UPDATE samples SET timestamp_ns = 9223372036854775807 WHERE timestamp_ns ="
                         " (SELECT max(timestamp_ns) FROM samples)")
        db.close()
        for form in ("collapsed", "pprof", "speedscope", "json"):
            self.assertTrue(self.export_bytes(damaged, form))
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in self.export(damaged, "collapsed").splitlines()),
                         self.totals(self.odd)[2] // MS)

    def test_never_writes_over_what_it_exports(self):
        link = os.path.join(self.folder, "link")
        os.symlink(self.trace, link)
        with open(self.trace, "rb") as file:
            before = file.read()
        for form in ("json", "label-history"):
            for out in (self.trace, link):
                self.assertIn("is the file being exported", self.refused(1, self.trace, "--format", form, "-o", out))
            self.assertIn("is the file being exported", self.refused(1, link, "--format", form, "-o", self.trace))
        with open(self.trace, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_never_writes_over_the_log_of_what_it_exports(self):
        live = os.path.join(self.folder, "live.trace")
        shutil.copy(self.trace, live)
        link = os.path.join(self.folder, "link to live")
        os.symlink("live.trace", link)
        db = support.sqlite3.connect(live, isolation_level=None)
        self.addCleanup(db.close)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE state SET identity = 17")
        for form in ("json", "label-history"):
            for path in (live, link):
                for end in ("-wal", "-shm"):
                    self.assertIn("is part of " + path, self.refused(1, path, "--format", form, "-o", live + end))
        self.assertEqual(db.execute("SELECT identity FROM state").fetchone(), (17,))

    def test_options_that_mean_nothing_to_label_history(self):
        out = os.path.join(self.folder, "labels.csv")
        for option in (["--since", "now"], ["--like", "x"], ["--last", "1"], ["--failed"], ["--type", "cpu"],
                       ["--diff", self.odd], ["--plan"], ["--no-inlines"], ["--root", "label:route"]):
            said = self.refused(2, self.trace, "--format", "label-history", "-o", out, *option)
            self.assertRegex(said, option[0] + " does not apply to label-history, only to [a-z]+(, [a-z-]+)*\n")
            self.assertFalse(os.path.exists(out))
        self.assertIn("`queryprof pull URL`", self.refused(1, "http://127.0.0.1:1/", "--format", "label-history", "-o", out))
        self.assertTrue(self.export(self.trace, "label-history").startswith("hostname,"))

    def test_file_as_stdout(self):
        out = os.path.join(self.folder, "out.json")
        done = self.run_export(self.trace, "--format", "json", "-o", out)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.export(self.trace, "json"))

    def test_help_names_the_formats(self):
        done = self.run_export("--help")
        for name in ("collapsed", "pprof", "speedscope", "flamegraph", "json"):
            self.assertIn("\n  %s " % name, done.stdout.decode())
        self.assertLessEqual(max(map(len, done.stdout.decode().splitlines())), 80)


class Collapsed(support.Exports):
    def test_all(self):
        self.assertEqual(self.export(self.trace, "collapsed"), f"""\
0x1234 3
fixture_calls_out;{WALK};{WALK};{WALK} 20
fixture_calls_out;fixture_visit;fixture_static 60
fixture_calls_out;{HOLE} 20
""")

    def test_selected(self):
        real = "fixture_calls_out;fixture_visit;fixture_static 150\n"
        self.assertEqual(self.export(self.trace, "collapsed", "--type", "Real"), real)
        self.assertEqual(self.export(self.trace, "collapsed", "--type", "Real", "--like", "ORDERS"), real)
        self.assertEqual(self.export(self.trace, "collapsed", "--type", "Real", "--query", SLOW[:17]), real)
        self.assertNotIn("0x1234", self.export(self.trace, "collapsed", "--like", "orders"))

    def test_odd(self):
        self.assertEqual(self.export(self.odd, "collapsed"), f"""\
(no stack) 6
0x1234 3
fixture_calls_out;{WALK};{WALK};{WALK} 20
fixture_calls_out;fixture_visit;fixture_static 72
fixture_calls_out;{HOLE} 22
""")

    def test_periods_that_differ(self):
        """Numbers are proportional to times. The samples of a single period are counted."""
        for periods, unit in (((1, 10), 1), ((4, 10), 2), ((10, 10), 10)):
            path = support.changed_copy(self.odd, os.path.join(self.folder, "periods.trace"), f"""
                UPDATE series SET period_ns = {periods[0] * MS} WHERE id = 1;
                UPDATE series SET period_ns = {periods[1] * MS} WHERE id = 3""")
            lines = self.export(path, "collapsed").splitlines()
            times = {}
            for stack in self.stacks(path):
                name = ";".join(reversed(frame_names(stack))) or "(no stack)"
                times[name] = times.get(name, 0) + stack["value"]
            self.assertEqual({name: int(number) * unit * MS for name, number in (line.rsplit(" ", 1) for line in lines)}, times)

    def test_same_from_sql(self):
        for path in (self.trace, self.odd):
            done = subprocess.run([support.QUERYPROF, "sql", path, "--format", "json",
                                   "SELECT flameGraph(trace, value / 1000000) AS lines FROM trace_log WHERE trace_type = 'CPU'"],
                                  capture_output=True, text=True, timeout=300, check=True)
            # In SQL, a missing stack is not a trace.
            self.assertEqual(json.loads(done.stdout)[0]["lines"].splitlines(),
                             [line for line in self.export(path, "collapsed").splitlines()
                              if not line.startswith("(no stack)")])


class Json(support.Exports):
    def line_of(self, frame):
        self.assertTrue(os.path.exists(frame["file"]), frame)
        with open(frame["file"], encoding="utf-8") as file:
            return file.read().splitlines()[frame["line"] - 1]

    def test_stacks(self):
        stacks = self.stacks(self.trace, "--query", SLOW)
        self.assertEqual([frame_names(stack) for stack in stacks],
                         [["fixture_static", "fixture_visit", "fixture_calls_out"],
                          [HOLE, "fixture_calls_out"],
                          [WALK, WALK, WALK, "fixture_calls_out"]])
        self.assertEqual([(stack["samples"], stack["weight"], stack["value"]) for stack in stacks],
                         [(60, 60, 60 * MS), (10, 20, 20 * MS), (20, 20, 20 * MS)])
        for stack in stacks:
            self.assertEqual({name: stack[name] for name in
                              ("trace_type", "query_id", "thread", "database", "statement", "truncated")},
                             {"trace_type": "CPU", "query_id": SLOW, "thread": "main (101)", "database": "",
                              "statement": STATEMENT, "truncated": False})

    def test_frames(self):
        static, hole, walk = self.stacks(self.trace, "--query", SLOW)
        frame = static["frames"][0]
        self.assertEqual((frame["symbol"], frame["module"], frame["build_id"], frame["offset"]),
                         ("fixture_static", FIXTURE, BUILD_ID, AT["fixture_static"] + 4))
        self.assertIn("static int fixture_static", "\n".join(self.line_of(dict(frame, line=frame["line"] - back))
                                                             for back in range(3)))
        self.assertIn("visit(value)", self.line_of(dict(static["frames"][1],
                                                        line=static["frames"][1]["line"] + 1)))
        self.assertNotIn("symbol", hole["frames"][0])
        self.assertEqual(walk["frames"][0]["symbol"], WALK_SYMBOL)

    def test_odd(self):
        stacks = self.stacks(self.odd)
        mine = [stack for stack in stacks if stack["query_id"] == OTHER]
        self.assertEqual([(stack["thread"], stack["database"], stack["statement"], stack["value"],
                           stack["truncated"], len(stack["frames"])) for stack in mine],
                         [("sort;er\n (102)", ODD_DATABASE, ODD_STATEMENT, 10 * MS, False, 3),
                          ("sort;er\n (102)", ODD_DATABASE, ODD_STATEMENT, 2 * MS, True, 2),
                          ("sort;er\n (102)", ODD_DATABASE, ODD_STATEMENT, 6 * MS, False, 0)])
        none = [stack for stack in stacks if stack["query_id"] == ""]
        self.assertEqual([(stack["statement"], stack["value"]) for stack in none], [("", 2 * MS)])
        outside = [stack for stack in stacks if "module" not in (stack["frames"] or [{"module": 1}])[0]]
        self.assertEqual([stack["frames"] for stack in outside], [[{"function": "0x1234"}]])

    def test_labels_that_are_no_json(self):
        """Invalid labels from a damaged or foreign file are left out, and the document is valid JSON."""
        for labels in '{"a":x}', '{"a":{"b":1}}', '{"a":"\\q"}', '{"a":-}':
            path = support.changed_copy(self.trace, os.path.join(self.folder, "labels.trace"), f"""
                INSERT INTO label_sets VALUES (9, 9, 1, '{labels}', '', '', '');
                UPDATE samples SET labels = 9""")
            for sample in json.loads(self.export(path, "json"))["labels"]:
                self.assertNotIn("labels", sample)

    def test_what_samples_share_is_written_once(self):
        document = json.loads(self.export(self.odd, "json"))
        self.assertEqual([module["path"] for module in document["modules"]], [FIXTURE])
        for table in ("frames", "stacks", "statements", "labels"):
            texts = [json.dumps(item) for item in document[table]]
            self.assertEqual(len(texts), len(set(texts)), texts)
        named = {"stack": "stacks", "labels": "labels"}
        for name, table in named.items():
            self.assertEqual({sample[name] for sample in document["samples"]}, set(range(len(document[table]))))

    def test_size(self):
        """A run that resembles another one adds its labels and numbers, but no frames or texts."""
        runs = 2000
        many = support.changed_copy(self.trace, os.path.join(self.folder, "many.trace"), f"""
            WITH n(i) AS (VALUES (100) UNION ALL SELECT i + 1 FROM n LIMIT {runs})
            INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement,
                query_start_ns, query_duration_ns, cpu_time_ns, thread_id)
            SELECT i, 'run ' || i, 1, first_ns, last_ns, 1, i, statement, query_start_ns, query_duration_ns, 0, 101
            FROM n, queries WHERE id = 1;
            INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)
            SELECT first_ns + 1000 * id + 1, 1, id, 1 + id % 3, 0, 1, 0, 0 FROM queries WHERE id >= 100""")
        added = len(self.export(many, "json")) - len(self.export(self.trace, "json"))
        self.assertLess(added / runs, 160)

    def test_without_the_files_that_were_sampled(self):
        moved = support.changed_copy(self.trace, os.path.join(self.folder, "moved.trace"),
                                     "UPDATE modules SET path = '/not/here/full.so'")
        static = self.stacks(moved)[0]["frames"]
        self.assertEqual(static, [
            {"function": "full.so+" + hex(AT[name] + 4), "module": "/not/here/full.so", "build_id": BUILD_ID,
             "offset": AT[name] + 4} for name in ("fixture_static", "fixture_visit", "fixture_calls_out")])

    def test_totals(self):
        for path in (self.trace, self.odd):
            for trace_type in ("CPU", "Real"):
                stacks = self.stacks(path, "--type", trace_type)
                self.assertEqual(tuple(sum(stack[name] for stack in stacks)
                                       for name in ("samples", "weight", "value")),
                                 self.totals(path, trace_type))


class Speedscope(support.Exports):
    def profiles(self, path, *arguments):
        """Names of profiles to their stacks, root first, with weights."""
        file = json.loads(self.export(path, "speedscope", *arguments))
        frames = file["shared"]["frames"]
        for profile in file["profiles"]:
            self.assertEqual((profile["type"], profile["unit"], profile["startValue"]),
                             ("sampled", "nanoseconds", 0))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertEqual(sum(profile["weights"]), profile["endValue"])
        return file, {profile["name"]: [([frames[number]["name"] for number in stack], weight)
                                        for stack, weight in zip(profile["samples"], profile["weights"])]
                      for profile in file["profiles"]}

    def test_stacks(self):
        file, stacks = self.profiles(self.trace)
        self.assertEqual(stacks, {
            "SELECT * FROM orders WHERE id = 1": [
                (["fixture_calls_out", "fixture_visit", "fixture_static"], 60 * MS),
                (["fixture_calls_out", HOLE], 20 * MS),
                (["fixture_calls_out", WALK, WALK, WALK], 20 * MS)],
            "query " + RUNNING: [(["0x1234"], 3 * MS)]})
        self.assertEqual(list(stacks)[0], "SELECT * FROM orders WHERE id = 1")  # the costliest
        self.assertRegex(file["exporter"], r"^queryprof@\d")
        self.assertEqual(file["$schema"], "https://www.speedscope.app/file-format-schema.json")
        files = {frame["name"]: os.path.basename(frame.get("file", "")) for frame in file["shared"]["frames"]}
        self.assertEqual(files, {"fixture_calls_out": "fixture.c", "fixture_visit": "fixture.c",
                                 "fixture_static": "fixture.c", HOLE: "fixture_code.S", WALK: "fixture_cxx.cpp",
                                 "0x1234": ""})

    def test_odd(self):
        _, stacks = self.profiles(self.odd)
        self.assertEqual([(len(stack), weight) for stack, weight in stacks["SELECT '</script>\u20ac\ufffd\"' -- "]],
                         [(3, 10 * MS), (2, 2 * MS), (0, 6 * MS)])
        self.assertEqual([weight for _, weight in stacks["no query"]], [2 * MS])

    def test_totals(self):
        for path in (self.trace, self.odd):
            for trace_type in ("CPU", "Real"):
                _, stacks = self.profiles(path, "--type", trace_type)
                self.assertEqual(sum(weight for profile in stacks.values() for _, weight in profile),
                                 self.totals(path, trace_type)[2])

    def test_long_names_are_cut_between_characters(self):
        long = os.path.join(self.folder, "long.trace")
        shutil.copy(self.trace, long)
        for text, shown in (("\u20ac" * 200, "\u20ac" * 66 + "\u2026"), ("x" * 200, "x" * 200),
                            ("x" * 201, "x" * 200 + "\u2026"), ("x" * 199 + "\u20ac", "x" * 199 + "\u2026")):
            db = support.sqlite3.connect(long)
            db.execute("UPDATE statements SET query = ? WHERE id = 1", (text,))
            db.commit()
            db.close()
            self.assertIn(shown, self.profiles(long)[1])


support.main()
