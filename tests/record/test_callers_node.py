#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The file, line and function from which a JavaScript program called SQLite equal the ones of V8's CallSite objects.

usage: test_callers_node.py QUERYPROF NPM NODE... [-- unittest arguments]

Each existing NODE, and each of QUERYPROF_TEST_NODES (separated by colons), runs the programs. A node without node:sqlite
uses better-sqlite3 or libsql from NPM or QUERYPROF_TEST_NPM, folders node_modules."""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

END = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
NPM = [path for path in (os.environ.get("QUERYPROF_TEST_NPM"), os.path.abspath(sys.argv[1])) if path]
NODES = {os.path.realpath(path) for path in
         map(shutil.which, sys.argv[2:END] + os.environ.get("QUERYPROF_TEST_NODES", "").split(":")) if path}
del sys.argv[1:END + 1]

# Each query has a name, and the program keeps V8's report of the stack for each. A builtin has no file. The frame of
# slow() is left out. A statement runs in the first frame's function, at the line that calls slow().
HEAD = r'''
const TOLD = {};
const TEXT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60000) SELECT sum(x), '%s' FROM c";
function slow(name) {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.stackTraceLimit = 100;
  Error.prepareStackTrace = (error, sites) => sites.filter((site) => site.getFileName() && !site.isAsync()).map((site) =>
    [site.getFileName().replace(/^file:\/\//, ''), site.getLineNumber(), site.getFunctionName() || '<anonymous>']);
  const stack = {};
  Error.captureStackTrace(stack, slow);
  TOLD[name] = stack.stack;
  Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  return TEXT.replace('%s', name);
}
const Database = @DATABASE@;
const db = new Database(':memory:');
if (require('node:worker_threads').isMainThread) process.on('exit', () => console.log(JSON.stringify(TOLD)));
// The interpreter is found: threads that come while one looks wait for a moment only.
db.prepare(TEXT.replace('%s', 'first')).get();
'''


def ask(node, script):
    return subprocess.run([node, "-e", script], capture_output=True, text=True, timeout=300, check=False).returncode == 0


def open_with(node):
    """The expression for a class of databases, or None if this node has no SQLite."""
    names = ["node:sqlite"] + [os.path.join(npm, name) for npm in NPM for name in ("better-sqlite3", "libsql")]
    for name in names:
        value = "require(%s)%s" % (json.dumps(name), ".DatabaseSync" if name == "node:sqlite" else "")
        if ask(node, "new (%s)(':memory:').prepare('SELECT 1').get()" % value):
            return value
    return None


HOSTS = {node: value for node, value in ((node, open_with(node)) for node in sorted(NODES)) if value}


class NodeCallers(Recording):
    # These frames are not in the source. Frames of initializers belong to the class since V8 12.
    named_later = ("computed1", "<static_initializer>", "<instance_members_initializer>")

    # Each run is logged and so has a stack: the stack of its last call, if it was not sampled.
    every = (*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0")
    options = OPTIONS

    def record(self, *command, **named):
        return super().record(*command, options=self.options, **named)

    def run_node(self, node, script, *options, head=HEAD, name="app.js"):
        return self.told_and_seen(name, head.replace("@DATABASE@", HOSTS[node]) + script, node, "--no-warnings", *options)

    def own(self, frames):
        """Removes node's own frames, whose functions have other names in V8, and the driver's."""
        return [[file, line, "<anonymous>" if function in self.named_later else function] for file, line, function in frames
                if not file.startswith("node:") and "/node_modules/" not in file]

    def expect_same(self, node, told, seen):
        self.assertTrue(told)
        for name, frames in told.items():
            with self.subTest(node=node, query=name):
                self.assertIn(name, seen)
                own = self.own(seen[name])
                self.assertTrue(own, seen[name])
                if name.startswith("initializer"):
                    own[0][2] = "<anonymous>"
                self.assertEqual(own, self.own(frames)[:len(own)])
                self.assertIn(len(own), (len(self.own(frames)), 32 - len(seen[name]) + len(own)))

    def expect_all(self, script, *options, **more):
        for node in HOSTS:
            told, seen = self.run_node(node, script, *options, **more)
            self.expect_same(node, told, seen)

    def test_functions(self):
        """Methods, closures, callbacks of builtins, accessors, generators, many variables, other alphabets, code made at run time."""
        variables = "".join("  let v%d = %d;\n" % (i, i) for i in range(90))
        self.expect_all(r'''
class Cart {
  #hidden() { return db.prepare(slow('private')).get(); }
  total() { return db.prepare(slow('method')).get(); }
  static rows() {
    return db.prepare(slow('static')).all();
  }
  get price() { return db.prepare(slow('getter')).get(); }
  set price(value) { db.prepare(slow('setter')).get(); }
  hidden() { return this.#hidden(); }
  constructor() { db.prepare(slow('constructor ' + new.target.name)).get(); }
  static { db.prepare(slow('initializer of the class')).get(); }
  ['computed' + 1]() { return db.prepare(slow('computed')).get() && 1; }
}
class Big extends Cart { field = db.prepare(slow('initializer of a field')).get(); }
const cart = new Cart();
new Big();
cart.total(); Cart.rows(); cart.price; cart.price = 1; cart.hidden(); cart.computed1();
const arrow = () => db.prepare(slow('arrow')).get();
arrow();
(function () { db.prepare(slow('anonymous')).get(); })();
function größe_数_𐌰() {
  return db.prepare(slow('unicode')).get();
}
größe_数_𐌰();
[1, 2].map((i) =>
  [3].forEach(function inner() { db.prepare(slow('each ' + i)).get(); }));
[2, 1].sort((a, b) => { db.prepare(slow('sort')).get(); return a - b; });
'x'.replace(/x/, () => { db.prepare(slow('replace')).get(); return ''; });
JSON.parse('[1]', (key, value) => { db.prepare(slow('parse')).get(); return value; });
function* generator() {
  yield db.prepare(slow('generator')).get();

  yield db.prepare(slow('generator again')).get();
}
for (const row of generator()) ;
Reflect.apply(arrow, null, []);
arrow.bind(null)();
new Proxy({}, { get() { return db.prepare(slow('proxy')).get(); } }).x;
const made = new Function('db', 'slow', 'return db.prepare(slow("made")).get();');
function many() {
''' + variables + r'''
  const keep = () => [''' + ", ".join("v%d" % i for i in range(90)) + r'''];
  db.prepare(slow('many variables')).get();
  return keep;
}
many();
function few() {
  let a = 1, b = 2;
  const keep = () => a + b;


  return db.prepare(
    'SELECT ' + 1) && db.prepare(slow('several lines')).get(
    ) && keep;
}
few();
try { throw new Error('x'); } catch { db.prepare(slow('catch')).get(); } finally { db.prepare(slow('finally')).get(); }
if (db)


  db.prepare(slow('main')).get();
''')

    def test_compiled(self):
        """The interpreter and each compiler give the same lines: a long loop is compiled while it runs, and small
        functions are inlined."""
        program = r'''
const small = db.prepare('SELECT ? + 1 AS c');
const at = new Set([0, 50, 700, 3000, 12000, %(last)d]);
class Repository {
  read(i) {

    return small.get(i).c + this.more(i);
  }
  more(i) { return this.deep(i) + 1; }
  deep(i) {
    if (at.has(i)) {
      db.prepare(slow('deep ' + i)).get();
    }
    return i;
  }
}
const repository = new Repository();
function outer(i) {
  let sum = 0;
  for (let k = 0; k < 2; k++)
    sum += repository.read(i);
  return sum;
}
let total = 0;
for (let i = 0; i <= %(last)d; i++) {
  total += outer(i);
  if (at.has(i))
    db.prepare(slow('loop ' + i)).get();
}
''' % {"last": 40000}
        self.expect_all(program)
        self.expect_all(program, "--always-sparkplug")
        self.expect_all(program, "--no-opt", "--no-sparkplug")
        for node in HOSTS:
            if ask(node, "process.exitCode = require('child_process').spawnSync(process.execPath, ['--maglev', '-e', '0']).status"):
                told, seen = self.run_node(node, program, "--maglev")
                self.expect_same(node, told, seen)

    def test_callers_of_sqlite_from_sqlite(self):
        """A query in a function of a query: JavaScript, C++, JavaScript, C++."""
        self.options = self.every
        self.expect_all(r'''
const other = new Database(':memory:');
function nested(x) {
  return other.prepare(slow('nested ' + x)).get() && 1;
}
nested(0);  // a place that has called SQLite outside of a query
try { db.function('nested', nested); } catch { }  // libsql has no functions
function query() { return db.prepare('SELECT nested(1)').get(); }
try { query(); } catch { }
''')

    def test_asynchronous(self):
        """Promises, timers, callbacks: the stack contains the running functions, like V8's without awaited ones."""
        self.expect_all(r'''
async function first() {
  await null;
  db.prepare(slow('after await')).get();
  await second();
}
async function second() {
  await new Promise((resolve) => setTimeout(resolve, 1));

  db.prepare(slow('after a timer')).get();
}
process.prependListener('exit', () => { db.prepare(slow('exit')).get(); });
setImmediate(() => { db.prepare(slow('immediate')).get(); });
process.nextTick(() => { db.prepare(slow('tick')).get(); });
first();
''')

    def test_workers(self):
        for node in HOSTS:
            told, seen = self.run_node(node, r'''
const { Worker, isMainThread, parentPort, threadId } = require('node:worker_threads');
function work(i) {
  const db = new Database(':memory:');

  for (let k = 0; k < 3; k++) db.prepare(slow(`worker ${i} ${k}`)).get();
}
if (isMainThread) {
  for (let i = 0; i < 4; i++) new Worker(__filename).on('message', (told) => Object.assign(TOLD, told));
  work(0);
} else {
  work(threadId);
  parentPort.postMessage(TOLD);
}
''')
            self.assertEqual(len(told), 15)
            self.expect_same(node, told, seen)

    def test_modules(self):
        """Modules have URLs, whose special characters are encoded."""
        head = "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);\n" + HEAD
        self.file("größe %20 x.mjs", "export function other(db, slow) {\n\n  return db.prepare(slow('other module')).get();\n}\n")
        for node in HOSTS:
            told, seen = self.run_node(node, r'''
const { other } = await import('./' + encodeURIComponent('größe %20 x.mjs'));
let a = 1;
export const b = () => a++;
other(db, slow);
await null;
db.prepare(slow('module')).get();
''', head=head, name="app.mjs")
            told = {name: [[re.sub("(?:%[0-9A-F]{2})+", lambda part: bytes.fromhex(part[0].replace("%", "")).decode(), file), line, function]
                           for file, line, function in frames] for name, frames in told.items()}
            self.assertEqual(told["other module"][0][0], os.path.join(self.folder, "größe %20 x.mjs"))
            self.expect_same(node, told, seen)

    def test_texts(self):
        """Wide sources, and each kind of line end."""
        for node in HOSTS:
            for wide in "", "// 数 𐌰\n":
                script = wide + "a();\r\nfunction a() {\r  // x\u2028\n\n  db.prepare(slow('ends')).get();\r\n}\r\n"
                told, seen = self.run_node(node, script if wide else script.replace("\u2028", ""))
                self.expect_same(node, told, seen)

    def test_deep(self):
        for node in HOSTS:
            told, seen = self.run_node(node, r'''
function deep(n) {
  if (n)
    return deep(n - 1);
  return db.prepare(slow('deep')).get();
}
deep(5000);
''')
            self.assertEqual(len(seen["deep"]), 32)
            self.expect_same(node, told, seen)

    def test_collector(self):
        """Objects move, and code is discarded, while each run is read."""
        self.options = self.every
        script = r'''
const keep = [];
function f(i) {
  for (let k = 0; k < 2000; k++) keep[(i * 31 + k) %% 5000] = { i, k, text: 'x' + k };
  if (i %% 100 === 0) gc();
  return i %% 50 ? 0 : db.prepare(slow('collected ' + i)).get();
}
for (let i = 0; i < 300; i++)
  f(i);
'''.replace("%%", "%")
        self.expect_all(script, "--expose-gc")
        self.expect_all(script, "--expose-gc", "--stress-compaction", "--max-semi-space-size=1", "--stress-flush-code")

    def test_finalizers(self):
        """The collector closes a connection. Its caller is not the code that happens to run."""
        self.options = self.every
        for node, value in HOSTS.items():
            self.run_node(node, r'''
function open(i) {
  const db = new Database(`${__dirname}/${i}.db`);
  for (const sql of ['PRAGMA journal_mode = wal', 'CREATE TABLE IF NOT EXISTS t(a)']) db.exec(sql);
}
for (let i = 0; i < 5; i++) open(i);
for (let i = 0; i < 5; i++) gc();
slow('none');
''', "--expose-gc")
            closes = self.rows("SELECT caller FROM query_log WHERE query = 'sqlite3_close()' AND database LIKE '%/_.db'")
            if "sqlite:" in value:
                self.assertTrue(closes, node)
            self.assertLessEqual(set(closes), {("",)}, node)

    def test_caller(self):
        """The caller is the application's frame, not its library's, and the command names it."""
        folder = os.path.join(self.folder, "node_modules", "orm")
        os.makedirs(folder)
        self.file("node_modules/orm/index.js", "exports.query = function query(db, text) {\n  return run(db, text);\n};\n"
                                               "function run(db, text) {\n  return db.prepare(text).all();\n}\n")
        for node in HOSTS:
            told, seen = self.run_node(node, r'''
const orm = require('orm');
function orders() {
  return orm.query(db, slow('orm'));
}
for (let i = 0; i < 5; i++)
  orders();
''')
            file, line, function = told["orm"][0]
            self.assertEqual([frame for frame in seen["orm"] if "better-sqlite3" not in frame[0] and "libsql" not in frame[0]][:3],
                             [[folder + "/index.js", 5, "run"], [folder + "/index.js", 2, "query"], [file, line, function]])
            self.assertEqual(set(self.rows("SELECT caller, caller_function FROM query_log WHERE query LIKE '%''orm''%'")),
                             {("%s:%d" % (file, line), "orders")})
            done = subprocess.run([QUERYPROF, "queries", self.trace], capture_output=True, text=True, timeout=300, check=True)
            self.assertIn("from app.js:%d (orders)" % line, done.stdout)

    def test_unchanged(self):
        """The program's output does not change, and its queries have the right places."""
        self.options = self.every
        for node, value in HOSTS.items():
            program = self.file("app.js", r'''
const Database = %s, db = new Database(':memory:');
db.exec('CREATE TABLE t(a, b)');
const insert = db.prepare('INSERT INTO t VALUES (?, ?)');
for (let i = 0; i < 2000; i++) insert.run(i, 'x'.repeat(i %% 50));
try { db.prepare('SELECT nothing'); } catch (error) { console.log(error.message); }
const { n, a, b } = db.prepare('SELECT count(*) AS n, sum(a) AS a, sum(length(b)) AS b FROM t').get();
console.log(n, a, b, new Error('x').stack);
''' % value)
            plain = subprocess.run([node, program], capture_output=True, text=True, timeout=300, check=True)
            done = self.record(node, program)
            self.assertEqual(done.stdout, plain.stdout)
            self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'INSERT%' AND caller LIKE '%/app.js:5'"), [(2000,)])
            self.assertEqual(self.rows("SELECT sum(calls) FROM statement_stats WHERE query LIKE 'INSERT%'"), [(2000,)])
            os.unlink(self.trace)


if __name__ == "__main__":
    if not HOSTS:
        print("no node with SQLite")
        sys.exit(77)
    print(*("%s: %s" % host for host in HOSTS.items()), sep="\n")
    unittest.main()
