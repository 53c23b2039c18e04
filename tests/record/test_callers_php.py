#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The file, line and function from which a PHP program called SQLite equal the ones of debug_backtrace().

usage: test_callers_php.py QUERYPROF"""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# debug_backtrace() returns the place of a call and the name of the callee. So a frame's name is the next entry's.
HEAD = r'''<?php
const SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60000) SELECT sum(x), '%s' FROM c";
$told = [];
function slow(string $name): string {
    $frames = [];
    $trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    foreach ($trace as $i => $call) {
        if (!isset($call["file"])) continue;
        $in = $trace[$i + 1] ?? [];
        $function = $in["function"] ?? "{main}";
        if (!isset($in["class"]) && in_array($function, ["include", "require", "include_once", "require_once", "eval"])) $function = "{main}";
        $class = isset($in["class"]) ? explode("\0", $in["class"])[0] . "::" : "";
        $frames[] = [$call["file"], $call["line"], $class . $function];
    }
    $GLOBALS["told"][$name] = array_slice($frames, 0, 32);
    return sprintf(SLOW, $name);
}
'''
TAIL = r'''
echo json_encode($told, JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
'''
DRIVERS = {
    "SQLite3": r'''
$db = new SQLite3(":memory:");
function query($db, $sql) { return $db->querySingle($sql); }
''',
    "PDO": r'''
$db = new PDO("sqlite::memory:");
function query($db, $sql) { return $db->query($sql)->fetchAll(); }
''',
}


class PhpCallers(Recording):
    def run_php(self, script, *options, setup=DRIVERS["SQLite3"], file="app.php"):
        return self.told_and_seen(file, HEAD + setup + script + TAIL, "php", *options)

    def expect_all(self, script, *options, drivers=DRIVERS, **more):
        """query() runs the statement, so there is one frame more than the program reports."""
        for driver in drivers:
            told, seen = self.run_php(script, *options, setup=DRIVERS[driver], **more)
            self.assertTrue(told)
            for name, frames in told.items():
                with self.subTest(driver=driver, query=name):
                    self.assertEqual(seen.get(name, [[]])[0][2:], ["query"])
                    self.assertEqual(seen[name][1:], frames[:31])
        return told

    def test_functions(self):
        """Functions, methods, closures, generators, callbacks of internal functions, other alphabets, included files and eval."""
        self.file("größe_数.php", "<?php\nquery($db, slow('included'));\nfunction of_file($db) {\n\n  query($db, slow('of a file')); }\nof_file($db);\n")
        self.expect_all(r'''
class Cart {
    public $db;
    function total() { return query($this->db, slow("method")); }
    static function rows($db) { return query($db, slow("static")); }
    function __get($name) { return query($this->db, slow("get")); }
    function __call($name, $arguments) { return query($this->db, slow("call")); }
    function each() { return array_map(function ($i) { return query($this->db, slow("closure $i")); }, [1, 2]); }
}
trait Counts { function count($db) { return query($db, slow("trait")); } }
class Order extends Cart { use Counts; }
function größe_数_𐌰($db) { return query($db, slow("unicode")); }
$cart = new Cart; $cart->db = $db;
$cart->total();
Cart::rows($db);
$cart->other;
$cart->other();
$cart->each();
(new Order)->count($db);
größe_数_𐌰($db);
usort($list = [2, 1], fn ($a, $b) => query($db, slow("usort")) ? 1 : 0);
$a = new class { function f($db) {
    return query($db, slow("anonymous class")); } };
$a->f($db);
call_user_func_array("query", [$db,
    slow("user func")]);
include __DIR__ . "/größe_数.php";
eval("query(\$db, slow('eval'));\n\n\nquery(\$db, slow('eval 4'));");
if (count($told) > 3) {


    query($db, slow("main"));
}
'''.replace("usort($list = [2, 1]", "$list = [2, 1]; usort($list"))

    def test_generators(self):
        """Generators, including ones that delegate, whose frames stand for several."""
        self.expect_all(r'''
function inner($db) { yield query($db, slow("inner")); yield query($db, slow("inner again")); }
function middle($db) { yield 0;
    yield from inner($db); yield query($db, slow("middle")); }
function outer($db) { yield query($db, slow("outer"));
    yield from middle($db); }
function consume($db) { foreach (outer($db) as $x) {} }
consume($db);
foreach (inner2($db) as $x) {}
function inner2($db) { yield from inner3($db); }
function inner3($db) { yield query($db, slow("one level")); }
''')

    def test_exceptions_and_collector(self):
        """While an exception is handled, in finally, in destructors, and with a collection at each call."""
        self.expect_all(r'''
function fails($db) {
    try { throw new Exception("x"); }
    catch (Exception $e) { query($db, slow("catch")); }
    finally {
        query($db, slow("finally")); }
}
class Ends { public $db, $me; function __construct($db) { $this->db = $db; $this->me = $this; }
    function __destruct() { query($this->db, slow("destructor")); } }
function collects($db) { new Ends($db);
    gc_collect_cycles(); }
fails($db);
collects($db);
''')

    def test_deep(self):
        script = r'''
ini_set("memory_limit", "1G");
function deep($db, $n) { return $n ? deep($db, $n - 1) : query($db, slow("deep")); }
deep($db, 10000);
'''
        self.assertEqual(len(self.expect_all(script)["deep"]), 32)

    def test_optimized(self):
        """With code that opcache has put into shared memory, optimized and, if possible, compiled."""
        script = r'''
function inlined($db, $n) { return query($db, slow("optimized $n")); }
for ($i = 0; $i < 4; $i++) inlined($db, $i);
'''
        self.expect_all(script, "-d", "opcache.enable_cli=1")
        self.expect_all(script, "-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=16M", "-d", "opcache.jit=1205")

    def test_fiber(self):
        self.expect_all(r'''
if (PHP_VERSION_ID >= 80100) {
    function in_fiber($db) { query($db, slow("fiber"));
        Fiber::suspend();
        query($db, slow("resumed")); }
    $fiber = new Fiber("in_fiber");
    $fiber->start($db);
    $fiber->resume();
}
query($db, slow("after"));
''')

    def test_callback_and_fork(self):
        """A query inside a function of another query, and a query of a forked child."""
        script = r'''
$other = new SQLite3(":memory:");
$db->createFunction("nested", function ($x) use ($other) { return $other->querySingle(slow("nested")); }, 1);
function asks($db) { $db->querySingle("SELECT nested(1)"); }
asks($db);
function child() { (new SQLite3(":memory:"))->querySingle(sprintf(SLOW, "child")); }
if (function_exists("pcntl_fork")) {
    if (!($pid = pcntl_fork())) { child(); posix_kill(getmypid(), 9); }
    pcntl_waitpid($pid, $status);
}
'''
        told, seen = self.run_php(script)
        self.assertEqual(seen["nested"], told["nested"])
        if "child" in seen:
            self.assertEqual([frame[2] for frame in seen["child"]], ["child", "{main}"])

    def test_caller(self):
        """The caller is the application's frame, not its library's, in a file of another alphabet."""
        os.mkdir(os.path.join(self.folder, "vendor"))
        self.file("vendor/orm.php", "<?php\nfunction orm($db, $sql) { return query2($db, $sql); }\nfunction query2($db, $sql) { return $db->querySingle($sql); }\n")
        told, _ = self.run_php(r'''
require __DIR__ . "/vendor/orm.php";
function orders($db) { return orm($db, slow("orm")); }
for ($i = 0; $i < 5; $i++)
    orders($db);
''', file="заказы.php")
        file, line, function = told["orm"][0]
        self.assertEqual(function, "orders")
        self.assertEqual(set(self.rows("SELECT caller, caller_function FROM query_log WHERE query LIKE '%orm%'")),
                         {("%s:%d" % (file, line), "orders")})


if __name__ == "__main__":
    if not shutil.which("php") or subprocess.run(["php", "-r", "exit(class_exists('SQLite3') && class_exists('PDO') ? 0 : 1);"], check=False).returncode:
        print("no php with SQLite3 and PDO")
        sys.exit(77)
    unittest.main()
