#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The limits of the Ruby gem and its minitest assertion: for each limit an example that keeps it and one that exceeds
it.

    test_ruby.py SOURCE_DIR LIBRARY

Exit status 77: this machine has no ruby with sqlite3 and minitest."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, LIBRARY = sys.argv[1:]

OPEN = """
require 'minitest/autorun'
require 'sqlite3'
require 'queryprof/minitest'

def open
  db = SQLite3::Database.new(':memory:')
  db.execute_batch('CREATE TABLE t(a INTEGER PRIMARY KEY, b);'\\
    ' INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT i, i FROM n')
  db
end
"""

# Assertions that must hold.
KEPT = OPEN + """
class Kept < Minitest::Test
  SCAN = 'SELECT count(*) FROM t WHERE b = 5'
  ONE = 'SELECT * FROM t WHERE a = 5'

  def setup
    @db = open
  end

  def exceeded(limits, sql, times = 1)
    Queryprof.limits(@db, **limits) { times.times { @db.execute(sql) } }
    []
  rescue Queryprof::LimitExceeded => e
    e.violations.map(&:first)
  end

  [[{ max_scan: 998 }, [:max_scan], SCAN], [{ max_scan: 999 }, [], SCAN],
   [{ max_scan: 0, no_sort: true, no_auto_index: true }, [], ONE],
   [{ no_sort: true }, [:no_sort], 'SELECT * FROM t ORDER BY b'], [{ no_sort: false }, [], 'SELECT * FROM t ORDER BY b'],
   [{ no_sort: true }, [], 'SELECT * FROM t ORDER BY a'],
   [{ no_auto_index: true }, [:no_auto_index], 'SELECT count(*) FROM t AS x JOIN t AS y ON x.b = y.b'],
   [{ max_time: 0 }, [:max_time], 'SELECT * FROM t'], [{ max_time: 3600 }, [], 'SELECT * FROM t'],
   [{ max_runs: 5 }, [:max_runs], ONE, 6], [{ max_runs: 5 }, [], ONE, 5]].each_with_index do |(limits, found, *work), i|
    define_method("test_each_#{i}") { assert_equal found, exceeded(limits, *work) }
  end

  def test_what_is_checked
    Queryprof.load(@db, log_queries_min_query_duration_ns: 12_345)
    @db.execute(SCAN)
    other = open
    Queryprof.labels(@db, route: 'it''s') do
      assert_equal 7, Queryprof.limits(@db, max_scan: 0) { other.execute(SCAN); 7 }
      assert_equal({ 'route' => 'it''s' }, JSON.parse(@db.get_first_value('PRAGMA query_profiler_labels')))
    end
    assert_raises(ZeroDivisionError) { Queryprof.limits(@db, max_scan: 10) { @db.execute(SCAN); 1 / 0 } }
    assert_equal '12345', @db.get_first_value("SELECT get_setting('log_queries_min_query_duration_ns')").to_s
    assert_includes [nil, '', '{}'], @db.get_first_value('PRAGMA query_profiler_labels')
    error = assert_raises(Queryprof::LimitExceeded) { Queryprof.limits(@db, max_scan: 10) { @db.execute(SCAN) } }
    assert_equal "max_scan: a run visited 999 rows of whole tables: #{SCAN}", error.message
    assert_raises(ArgumentError) { Queryprof.limits(@db, max_scans: 10) {} }
  end
end
"""

# The example of docs/recipes.md.
EXAMPLE = OPEN + """
class Example < Minitest::Test
  def test_kept
    db = open
    assert_query_limits(db, max_scan: 500) { db.execute('SELECT * FROM t WHERE a = 7') }
  end

  def test_exceeded
    db = open
    assert_query_limits(db, max_scan: 500) { db.execute('SELECT * FROM t WHERE b = 7') }
  end
end
"""


def main():
    ruby = shutil.which("ruby")
    if not ruby or subprocess.run([ruby, "-e", "require 'sqlite3'; require 'minitest'"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("no ruby with sqlite3 and minitest")
        return 77
    with tempfile.TemporaryDirectory(prefix="queryprof-limits-") as folder:
        shutil.copytree(os.path.join(SOURCE, "packaging/ruby/queryprof/lib"), os.path.join(folder, "lib"))
        os.makedirs(os.path.join(folder, "vendor", "lib"))
        os.symlink(LIBRARY, os.path.join(folder, "vendor", "lib", "libqueryprof.so"))
        said = []
        for name, program in ("kept", KEPT), ("example", EXAMPLE):
            path = os.path.join(folder, name + ".rb")
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            said.append(subprocess.run([ruby, "-I", os.path.join(folder, "lib"), path], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True, timeout=300, check=False))
    kept, example = said
    assert kept.returncode == 0 and re.search(r"^12 runs, \d+ assertions, 0 failures, 0 errors, 0 skips$", kept.stdout, re.M), kept.stdout
    assert example.returncode == 1 and re.search(r"^2 runs, 2 assertions, 1 failures, 0 errors", example.stdout, re.M), example.stdout
    assert "max_scan: a run visited 999 rows of whole tables: SELECT * FROM t WHERE b = 7" in example.stdout, example.stdout
    return 0


sys.exit(main())
