#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exported stacks have the program's own frames in place of its interpreter's.

usage: test_call_frames.py QUERYPROF NODE..."""

import gzip
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

NODE = next((path for path in map(shutil.which, [*sys.argv[1:], os.environ.get("QUERYPROF_TEST_NODES", "").rpartition(":")[2]])
             if path and not subprocess.run([path, "-e", "require('node:sqlite')"], capture_output=True, check=False).returncode), "node")
del sys.argv[1:]

PROGRAM = '''
import sqlite3
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200000) SELECT sum(x) FROM c"
db = sqlite3.connect(":memory:")
def inner(x):
    return sqlite3.connect(":memory:").execute(SLOW).fetchone()[0]
db.create_function("inner_query", 1, inner)
class Orders:
    def find(self):
        return db.execute(SLOW).fetchall()
def nested():
    return db.execute("SELECT inner_query(1)").fetchall()
for i in range(10):
    Orders().find()
    nested()
'''
CALLS = ["find (app.py:10)", "<module> (app.py:14)"]  # before 3.11 a function has no qualified name
INTERPRETER = re.compile(r"_PyEval|_Py|Py_|python[23]")
OF_LIBRARY = "sqlite3", "queryprof_"  # its own code, or a wrapper's that encloses it

# By language: the beginning of a program, its output if it has its driver, a program whose find() is on line 5 and
# called on line 8, the program's frames, and words in its interpreter's frames.
QUERY = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200000) SELECT sum(x) FROM c"
LANGUAGES = {
    "php": (["php"], ["-r", "new SQLite3(':memory:');"], """<?php
$db = new SQLite3(":memory:");
class Orders {
    function find($db) {
        return $db->querySingle("%s");
    }
}
for ($i = 0; $i < 10; $i++) (new Orders)->find($db);
""", ["Orders::find (app.php:5)", "{main} (app.php:8)"], re.compile(r"zend_|php[\d+]")),
    "pl": (["perl"], ["-MDBD::SQLite", "-e", "1"], """use DBI;
my $db = DBI->connect("dbi:SQLite:dbname=:memory:");
package Orders;
sub find {
    return $db->selectall_arrayref("%s");
}
package main;
for my $i (1 .. 10) { Orders::find() }
""", ["Orders::find (app.pl:5)", "(main) (app.pl:8)"], re.compile(r"Perl_|perl")),
    "rb": (["ruby"], ["-e", "require 'sqlite3'"], """require "sqlite3"
$db = SQLite3::Database.new(":memory:")
class Orders
  def find
    $db.execute("%s")
  end
end
10.times { Orders.new.find }
""", ["find (app.rb:5)", "block in <main> (app.rb:8)", "<main> (app.rb:8)"], re.compile(r"rb_|vm_exec|ruby")),
    "js": ([NODE, "--no-warnings"], ["-e", "require('node:sqlite')"], """const { DatabaseSync } = require('node:sqlite');
const db = new DatabaseSync(':memory:');
class Orders {
  find() {
    return db.prepare("%s").get();
  }
}
for (let i = 0; i < 10; i++) new Orders().find();
""", ["find (app.js:5)", "<anonymous> (app.js:8)"], re.compile(r"node::|v8::|Builtins_")),
}


class CallFrames(Recording):
    def export(self, *options):
        done = subprocess.run([QUERYPROF, "export", self.trace, "-o", "-", *options], capture_output=True, timeout=300, check=True)
        return done.stdout

    def stacks(self, *options):
        """The stacks, root first."""
        return [line.rpartition(" ")[0].split(";") for line in self.export("--format", "collapsed", *options).decode().splitlines()]

    def setUp(self):
        super().setUp()
        self.assertEqual(self.record(PYTHON, "-B", self.file("app.py", PROGRAM)).returncode, 0, self.seen)

    def test_stacks(self):
        shown = [stack for stack in self.stacks() if "(app.py:10)" in ";".join(stack)]
        self.assertTrue(shown)
        for stack in shown:
            calls = [frame.replace("Orders.", "") for frame in stack if "(app.py:" in frame]
            self.assertEqual(calls, CALLS[::-1], stack)
            at = next(i for i, frame in enumerate(stack) if "(app.py:10)" in frame)
            self.assertTrue(any(frame.startswith(OF_LIBRARY) for frame in stack[at:]), stack)
            self.assertFalse([frame for frame in stack[:at + 1] if INTERPRETER.search(frame)], stack)

    def test_native(self):
        """All of the sampled frames remain, and the program's are among them."""
        for stack in self.stacks("--native"):
            if any("(app.py:10)" in frame for frame in stack):
                at = next(i for i, frame in enumerate(stack) if "<module> (app.py:14)" in frame)
                self.assertTrue([frame for frame in stack[:at] if INTERPRETER.search(frame)], stack)
                break
        else:
            self.fail("no stack has the program's frames")

    def test_other_languages(self):
        """The same for each language, including frames of the driver written in it."""
        for suffix, (command, test, program, calls, interpreter) in LANGUAGES.items():
            if not shutil.which(command[0]) or subprocess.run(command + test, capture_output=True, check=False).returncode:
                print("no %s with SQLite" % command[0])
                continue
            os.unlink(self.trace)
            self.assertEqual(self.record(*command, self.file("app." + suffix, program % QUERY)).returncode, 0, self.seen)
            with self.subTest(language=command[0]):
                shown = [stack for stack in self.stacks() if calls[0] in stack]
                self.assertTrue(shown, self.stacks()[:3])
                for stack in shown:
                    self.assertEqual([frame for frame in stack if "(app." in frame], calls[::-1], stack)
                    at = stack.index(calls[0])
                    self.assertTrue(any(frame.startswith(OF_LIBRARY) for frame in stack[at:]), stack)
                    self.assertFalse([frame for frame in stack[:at + 1] if interpreter.search(frame)], stack)
                native = [stack for stack in self.stacks("--native") if calls[0] in stack]
                self.assertTrue(native)
                for stack in native:
                    self.assertTrue([frame for frame in stack[:stack.index(calls[-1])] if interpreter.search(frame)], stack)

    def test_nested(self):
        """SQLite calls the program, which calls SQLite. The frames between are unknown."""
        inner = [stack for stack in self.stacks() if sum("sqlite3_step" in frame for frame in stack) > 1]
        self.assertTrue(inner)
        for stack in inner:
            self.assertFalse([frame for frame in stack if "(app.py:" in frame], stack)

    def test_every_format(self):
        for name in ("speedscope", "flamegraph", "json", "pprof", "perfetto", "otlp"):
            if "not in this build" in self.export_help() and name == "flamegraph":
                continue
            out = self.export("--format", name)
            out = gzip.decompress(out) if out[:2] == b"\x1f\x8b" else out
            self.assertIn(b"(app.py:10)", out, name)

    def export_help(self):
        return subprocess.run([QUERYPROF, "export", "--help"], capture_output=True, text=True, timeout=300, check=True).stdout


if __name__ == "__main__":
    unittest.main()
