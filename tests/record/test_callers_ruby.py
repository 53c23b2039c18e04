#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The file, line and function from which a Ruby program called SQLite equal the ones of caller_locations().

usage: test_callers_ruby.py QUERYPROF"""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# caller_locations() reports a function in C at its caller's place, and since 3.4 the class before the function's name.
HEAD = r'''
require "sqlite3"
require "json"
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60000) SELECT sum(x), '%s' FROM c"
IN_C = %w[each each_value times map sort sort_by sort_by! new require require_relative load eval instance_eval class_eval instance_exec
          loop catch send public_send call yield sum inject synchronize initialize resume next tap each_entry backtrace
          each_with_index each_slice raise at_exit to_s puts method_missing kill sleep] - %w[to_s method_missing]
$told = {}
def slow(name)
  frames = caller_locations(1).map do |at|
    label = at.label.gsub(/(\A| in )[A-Z][^ ]*?[#.](?=[^#.]+\z)/, '\1')
    [at.path.to_s.start_with?("/") ? at.path : at.absolute_path || at.path.to_s, at.lineno, label]
  end
  $told[name] = frames.reject { |path, _, label| IN_C.include?(label) || path.start_with?("<internal:") }.first(32)
  format(SLOW, name)
end
def query(db, sql) db.execute(sql) end
$db = SQLite3::Database.new(":memory:")
query($db, format(SLOW, "first"))  # the interpreter is found: threads that come while one looks wait for a moment only
'''
TAIL = r'''
puts JSON.generate($told)
'''


class RubyCallers(Recording):
    def run_ruby(self, script, *options, file="app.rb"):
        return self.told_and_seen(file, HEAD + script + TAIL, "ruby", *options)

    def own(self, frames):
        """Removes the newest frames, which belong to the driver."""
        while frames and "/sqlite3/" in frames[0][0]:
            frames = frames[1:]
        return [frame for frame in frames if not frame[0].startswith("<internal:")]

    def expect_all(self, script, *options, **more):
        """query() runs the statement, so there is one frame more than the program reports."""
        told, seen = self.run_ruby(script, *options, **more)
        self.assertTrue(told)
        for name, frames in told.items():
            with self.subTest(query=name):
                own = self.own(seen.get(name, []))
                self.assertEqual([frame[2] for frame in own[:1]], ["query"])
                self.assertEqual(own[1:], frames[:len(own) - 1])
                self.assertIn(len(own), (len(frames) + 1, 32 - len(seen[name]) + len(own)))
        return told, seen

    def test_functions(self):
        """Methods, blocks, procs, callbacks of functions in C, eval, classes, required files, other alphabets."""
        self.file("Größe.rb", "query($db, slow('required'))\ndef of_file\n\n  query($db, slow('of a file'))\nend\n")
        self.expect_all(r'''
class Cart
  query($db, slow("class body"))
  def total; query($db, slow("method")); end
  def self.rows() query($db, slow("class method")) end
  def method_missing(name, *args) query($db, slow("missing")) end
  def respond_to_missing?(*) true end
  def <=>(other) query($db, slow("operator")); 0 end
  def [](i) query($db, slow("index")) end
  define_method(:defined) { |x| query($db, slow("defined")) }
  def each_row; yield 1; yield 2; end
  def to_s; query($db, slow("to_s")); "x" end
end
module Größe_数
  def self.größe_数() query($db, slow("unicode")) end
end
cart = Cart.new
cart.total
Cart.rows
cart.anything
cart <=> cart
cart[1]
cart.defined(1)
cart.each_row { |i| query($db, slow("yield #{i}")) }
"#{cart}"
Größe_数.größe_数
[2, 1].each { |i| query($db, slow("each #{i}")) }
[2, 1].sort_by do |i|
  [1].map do
    query($db, slow("sort_by #{i}"))
    i
  end
end
3.times { |i| query($db, slow("times #{i}")) }
lambda { query($db, slow("lambda")) }.call
proc { |x| query($db, slow("proc")) }.(1)
method(:query).to_proc.call($db, slow("method object"))
eval "\n\nquery($db, slow('eval'))"
eval "\n\nquery($db, slow('eval in a file'))", binding, "/nowhere/else.rb", 40
cart.instance_eval { query($db, slow("instance_eval")) }
Cart.class_eval "def evaled() query($db, slow('class_eval')) end", "/nowhere/cart.rb", 7
cart.evaled
require_relative "Größe"
of_file
catch(:done) { loop { query($db, slow("catch")); throw :done } }
cart.public_send(:total)
def many(a, b = 2, *c, d:, e: 5, **f, &g)
  x = a +
    b


  query($db, slow("many"))
  g.call
end
many(1, d: 4) { query($db, slow("block of many")) }
if $told.size > 3


  query($db, slow("main"))
end
''')

    def test_long_functions(self):
        """Lines of functions with more instructions than fit into the first part of the table of lines."""
        lines = "".join("  x += %d * x if x > %d\n" % (i, i) + ("  query($db, slow('long %d'))\n" % i if i % 97 == 5 else "")
                        for i in range(1000))
        told, _ = self.expect_all("def long(x)\n%send\nlong(-1)\n" % lines)
        self.assertEqual(len(told), 11)

    def test_exceptions_and_destructors(self):
        self.expect_all(r'''
def fails
  begin
    begin
      raise "x"
    rescue => e
      query($db, slow("rescue"))
      raise
    ensure
      query($db, slow("ensure"))
    end
  rescue StandardError
    query($db, slow("outer rescue"))
  end
  query($db, slow("after"))
end
def returns
  return 1
ensure
  query($db, slow("ensure of return"))
end
def signals
  trap("USR1") { query($db, slow("signal")) }
  Process.kill("USR1", Process.pid)
  sleep 0.01 until $told["signal"]
end
fails
returns
signals
''')

    def test_fibers_and_threads(self):
        """Each fiber and thread has a stack. An enumerator is a fiber."""
        self.expect_all(r'''
fiber = Fiber.new do
  query($db, slow("fiber"))
  Fiber.yield 1
  [1].each { query($db, slow("fiber again")) }
end
def outer(fiber) fiber.resume end
outer(fiber)
query($db, slow("between"))
outer(fiber)
rows = Enumerator.new { |to| to << 1; query($db, slow("enumerator")); to << 2 }
rows.next
rows.next
def work(i)
  db = SQLite3::Database.new(":memory:")
  5.times { |n| query(db, slow("thread #{i} #{n}")); Thread.pass }
end
(1..4).map { |i| Thread.new { work(i) } }.each(&:value)
''')

    def test_deep(self):
        told, _ = self.expect_all(r'''
def deep(n) n > 0 ? deep(n - 1) : query($db, slow("deep")) end
deep(10000)
''')
        self.assertEqual(len(told["deep"]), 32)

    def test_collector(self):
        """Garbage is collected at each allocation, and objects are moved."""
        script = r'''
def f(i) query($db, slow("stress #{i}")) end
f(0)
GC.stress = true
f(1)
[1].each { f(2) }
GC.stress = false
GC.compact if GC.respond_to?(:compact)
f(3)
GC.auto_compact = true if GC.respond_to?(:auto_compact=)
GC.start
f(4)
'''
        self.expect_all(script)
        self.expect_all(script, "--jit")

    def test_ended_by_the_collector(self):
        """A statement that the collector ends keeps its own caller."""
        told, seen = self.run_ruby(r'''
def leaves(i)
  statement = $db.prepare(slow("left #{i}"))
  statement.step
  nil
end
def elsewhere
  GC.start
  10000.times { Object.new }
  GC.start
end
20.times { |i| leaves(i) }
elsewhere
''')
        for name, frames in seen.items():
            if name.startswith("left"):
                self.assertEqual([frame[2] for frame in self.own(frames)][:1], ["leaves"], name)

    def test_callback_and_fork(self):
        """A query inside a function of another query, and a query of a forked child."""
        told, seen = self.run_ruby(r'''
$other = SQLite3::Database.new(":memory:")
$db.create_function("nested", 1) { |f, x| query($other, slow("nested")); f.result = 1 }
$db.execute("SELECT nested(1)")
pid = fork do
  def child() query(SQLite3::Database.new(":memory:"), format(SLOW, "child")) end
  child
  exit!(0)
end
Process.wait(pid)
''')
        nested = self.own(seen["nested"])
        self.assertEqual(nested[0][2], "query")
        self.assertEqual(nested[1], told["nested"][0])
        self.assertEqual([frame[2] for frame in self.own(seen["child"])[:3]], ["query", "child", "block in <main>"])

    def test_caller(self):
        """The caller is the application's frame, not its library's or the driver's."""
        os.makedirs(os.path.join(self.folder, "gems"))
        self.file("gems/orm.rb", "def orm(db, text)\n  [1].each { query(db, text) }\nend\n")
        told, seen = self.run_ruby(r'''
require_relative "gems/orm"
eval "def query(db, sql) db.execute(sql) end", binding, "/gems/query.rb"
def orders
  orm($db, slow("orm"))
end
5.times { orders }
''')
        file, line, function = told["orm"][0]
        self.assertEqual(set(self.rows("SELECT caller, caller_function FROM query_log WHERE query LIKE '%''orm''%'")),
                         {("%s:%d" % (file, line), "orders")})
        done = subprocess.run([QUERYPROF, "queries", self.trace], capture_output=True, text=True, timeout=300, check=True)
        self.assertIn("from app.rb:%d (orders)" % line, done.stdout)

    def expect_orm(self, library, program):
        if subprocess.run(["ruby", "-e", "require '%s'" % library], capture_output=True, check=False).returncode:
            self.skipTest("no %s" % library)
        done = self.record("ruby", self.file("app.rb", program))
        self.assertEqual(done.returncode, 0, self.seen)
        lines = {i + 1: line for i, line in enumerate(program.splitlines())}
        seen = dict(self.rows("SELECT DISTINCT query, caller FROM query_log WHERE query LIKE 'SELECT%slow%'"))
        self.assertEqual(len(seen), 2, self.seen)
        for query, caller in seen.items():
            file, _, line = caller.rpartition(":")
            self.assertEqual(os.path.basename(file), "app.rb", query)
            self.assertIn("here: %s" % ("second" if "second" in query else "first"), lines[int(line)])

    def test_active_record(self):
        self.expect_orm("active_record", r'''
require "active_record"
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define { create_table(:orders) { |t| t.string :name; t.integer :n } }
class Order < ActiveRecord::Base
  scope :slow, -> { where("name <> 'slow'") }
end
Order.insert_all((1..20000).map { |i| { name: "n#{i}", n: i } })
def first
  Order.slow.where("n % 7 = 'first'").
    to_a  # here: first
end
def second
  Order.slow.where("n % 7 = 'second'").each { |order| p order }  # here: second
end
5.times { first; second }
''')

    def test_sequel(self):
        self.expect_orm("sequel", r'''
require "sequel"
DB = Sequel.sqlite
DB.create_table(:orders) { primary_key :id; String :name; Integer :n }
DB[:orders].import([:name, :n], (1..20000).map { |i| ["n#{i}", i] })
def first
  DB[:orders].where(Sequel.lit("name <> 'slow' AND n % 7 = 'first'")).all  # here: first
end
def second
  DB[:orders].where(Sequel.lit("name <> 'slow' AND n % 7 = 'second'")).each { |order| p order }  # here: second
end
5.times { first; second }
''')

    def test_unchanged(self):
        """The program's output does not change, and its queries are right."""
        program = self.file("app.rb", r'''
require "sqlite3"
db = SQLite3::Database.new(":memory:")
db.execute("CREATE TABLE t(a, b)")
def insert(db, i) db.execute("INSERT INTO t VALUES (?, ?)", [i, "x" * (i % 50)]) end
2000.times { |i| insert(db, i) }
begin; db.execute("SELECT nothing"); rescue SQLite3::SQLException => e; puts e.message, e.backtrace.last; end
p db.execute("SELECT count(*), sum(a), sum(length(b)) FROM t"), ObjectSpace.count_objects.keys.size, caller_locations.size
''')
        plain = subprocess.run(["ruby", program], capture_output=True, text=True, timeout=300, check=True)
        done = self.record("ruby", program)
        self.assertEqual(done.stdout, plain.stdout)
        self.assertEqual(self.rows("SELECT sum(calls) FROM statement_stats WHERE query LIKE 'INSERT%'"), [(2000,)])


if __name__ == "__main__":
    if not shutil.which("ruby") or subprocess.run(["ruby", "-e", "require 'sqlite3'"], capture_output=True, check=False).returncode:
        print("no ruby with sqlite3")
        sys.exit(77)
    unittest.main()
