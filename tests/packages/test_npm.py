#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The npm packages in an empty folder, without a network: three commands lead to a plan, and a program uses require().

usage: test_npm.py PACKAGES_DIR RUNTIME... [-- unittest arguments]
RUNTIME: a node, bun or deno. A node without node:sqlite uses better-sqlite3 or sqlite3 in the node_modules folder
QUERYPROF_TEST_NPM; otherwise only its children are recorded. This machine's npm installs the packages; for bun, bun does."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

END = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
PACKAGES, RUNTIMES = os.path.abspath(sys.argv[1]), [os.path.abspath(path) for path in sys.argv[2:END]]
NPM = os.path.join(os.path.dirname(os.path.realpath(shutil.which("npm") or "/usr/bin/npm")))  # npm-cli.js and npx-cli.js
MODULES = os.environ.get("QUERYPROF_TEST_NPM", "")
IS_ALONE = not subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode

COSTLY = "SELECT day, note FROM orders WHERE note LIKE '%999%' ORDER BY note"
STATEMENTS = ["CREATE TABLE orders(id INTEGER PRIMARY KEY, day INT, note TEXT)",
              "INSERT INTO orders(day, note) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30000)"
              " SELECT i % 365, 'the order with number ' || i FROM n", *[COSTLY] * 60]
ROWS = "3420\n"

# For each kind: code that opens a connection, which can load extensions and whose statements have all().
OPEN = {
    "node:sqlite": ("const { DatabaseSync } = require('node:sqlite');", "new DatabaseSync(':memory:', { allowExtension: true })"),
    "bun:sqlite": ("const { Database } = require('bun:sqlite');", "new Database(':memory:')"),
    "better-sqlite3": ("const Database = require('better-sqlite3');", "new Database(':memory:')"),
}
PROGRAM = """%s
const db = %s;
let rows = 0;
for (const line of require('fs').readFileSync('statements', 'utf8').split('\\n').filter(Boolean)) {
  const statement = db.prepare(line);
  if (line.startsWith('SELECT')) rows += statement.all().length; else statement.run();
}
console.log(rows);
"""
ASYNCHRONOUS = """
const db = new (require('sqlite3')).Database(':memory:');
let rows = 0;
db.serialize(() => {
  for (const line of require('fs').readFileSync('statements', 'utf8').split('\\n').filter(Boolean))
    db.all(line, (error, found) => { rows += found.length; });
});
db.close(() => console.log(rows));
"""
CHILD = "process.exitCode = require('child_process').spawnSync('/usr/bin/python3', ['app.py'], { stdio: 'inherit' }).status;\n"
PYTHON = """import sqlite3
db = sqlite3.connect(":memory:", isolation_level=None)
print(sum(len(db.execute(line).fetchall()) for line in open("statements")))
"""
LOADS = """%s
const queryprof = require('queryprof');
const db = queryprof.load(%s, { log_queries_min_query_duration_ns: 0 });
queryprof.setLabels(db, { route: "user's" });
db.prepare('SELECT 1 /* seen */').all();
const [row] = db.prepare("SELECT query, labels FROM query_log WHERE query LIKE 'SELECT 1 /%%'").all();
console.log(row.query, row.labels);
try {
  queryprof.set(db, { no_such_setting: 1 });
} catch (error) {
  console.log(error.message);
}
"""


class Runtime(unittest.TestCase):
    """The test of one runtime, whose name it has."""

    def __init__(self, runtime):
        super().__init__("run_all")
        self.runtime, self.name = runtime, os.path.basename(runtime)

    def shortDescription(self):
        return self.runtime

    def run_command(self, *command, is_expected=True):
        environment = dict(os.environ, PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin", HOME=self.folder, NODE_NO_WARNINGS="1",
                           npm_config_cache=os.path.join(self.folder, "cache"), npm_config_offline="true", npm_config_yes="true",
                           BUN_INSTALL_CACHE_DIR=os.path.join(self.folder, "cache"), DENO_DIR=os.path.join(self.folder, "cache"),
                           NODE_PATH=MODULES, TERM="dumb")
        done = subprocess.run([*(("unshare", "--net") if IS_ALONE else ()), *command], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        if is_expected:
            self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
        return done

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def kind(self):
        """Returns the kind of SQLite that a program of this runtime has."""
        if self.name == "bun":
            return "bun:sqlite"
        for kind in "node:sqlite", "better-sqlite3", "sqlite3":
            self.write("probe.cjs", "const module_ = require('%s'); if (module_.verbose) new module_.Database(':memory:');"
                                    "else new (module_.DatabaseSync || module_)(':memory:');" % kind)
            if not self.run_command(*self.program("probe.cjs"), is_expected=False).returncode:
                return kind
        return None

    def program(self, name):
        return [self.name, "run", "-A", name] if self.name == "deno" else [self.name, name]

    def run_all(self):
        folder = tempfile.TemporaryDirectory(prefix="queryprof-npm-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "bin"))
        os.symlink(self.runtime, os.path.join(self.folder, "bin", self.name))
        tarballs = sorted(path for path in glob.glob(os.path.join(PACKAGES, "queryprof*.tgz")) if "arm64" not in path)
        self.assertEqual(len(tarballs), 2)
        for path in tarballs:
            shutil.copy(path, self.folder)
        names = ["./" + os.path.basename(path) for path in tarballs]
        self.write("package.json", '{ "private": true }\n')
        self.write("statements", "\n".join(STATEMENTS) + "\n")
        self.write("app.py", PYTHON)
        node = "node" if self.name == "node" else "/usr/bin/node"
        if self.name == "bun":
            install, npx = ["bun", "add", *names], ["bun", "x", "queryprof"]
        else:
            install, npx = [node, NPM + "/npm-cli.js", "install", "--silent", "--no-audit", "--no-fund", *names], [node, NPM + "/npx-cli.js", "queryprof"]
        if self.name == "deno":
            npx = ["deno", "run", "-A", "--node-modules-dir=manual", "npm:queryprof"]
        version = self.run_command(self.name, "--version").stdout.split("\n", maxsplit=1)[0]
        kind = self.kind()
        if kind in OPEN:
            self.write("app.cjs", PROGRAM % OPEN[kind])
            self.write("load.cjs", LOADS % OPEN[kind])
        else:
            self.write("app.cjs", ASYNCHRONOUS if kind else CHILD)
        # From nothing to a plan.
        self.run_command(*install)
        recorded = self.run_command(*npx, "record", "-o", "app.trace", "--", *self.program("app.cjs"))
        self.assertEqual(recorded.stdout, ROWS, recorded.stderr)
        plan = self.run_command(*npx, "plan", "app.trace", "note LIKE", is_expected=False)
        self.assertRegex(plan.stdout + plan.stderr, r"SCAN orders .*?\d+ ms", recorded.stderr)
        ended = self.run_command(*npx, "record", "--quiet", "--new", "-o", "b.trace", "--", "sh", "-c", "exit 7", is_expected=False)
        self.assertEqual(ended.returncode, 7, ended.stderr)
        loaded = "not loaded"
        if kind in OPEN:
            out = self.run_command(*self.program("load.cjs")).stdout
            self.assertRegex(out, r'^SELECT 1 /\* seen \*/ {"route":"user\'s"}\n.*no_such_setting')
            loaded = "loaded"
        print("%s: %s, %s" % (version, kind or "a child's SQLite", loaded), file=sys.stderr, flush=True)


if __name__ == "__main__":
    suite = unittest.TestSuite(Runtime(path) for path in RUNTIMES)
    sys.exit(not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful())
