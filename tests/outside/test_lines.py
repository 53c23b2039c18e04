#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The lines of the program between rows and in a transaction, in its own language.

usage: test_lines.py QUERYPROF [unittest arguments]"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# Each program spends CPU time in format_row() between rows, and sleeps and spends more in make_report() in a transaction. The
# lines that do it end with a comment that names them. burn() makes a number of turns, which is measured before, and reads the
# wall clock in each. If it ran until a time of the wall clock, it might use no CPU time on a busy machine. A thread that reads
# its CPU clock all the time tends to lose its processor right before a tick, which then hits another thread (lib/spin.h).
PYTHON_PROGRAM = """
import sqlite3, sys, time, threading
def burn(seconds):
    for _ in range(int(seconds * rate)): time.monotonic()  # LINE burn
def measure():
    global rate
    rate, took = 1e5, 0
    while took < 0.05:
        rate *= 2
        start = time.thread_time()
        burn(1)
        took = time.thread_time() - start
    rate /= took
measure()
def format_row(row):
    burn(0.02)  # LINE row
def make_report():
    burn(0.4)  # LINE report
    time.sleep(0.2)  # LINE sleep
def work(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (i)")
    db.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(20)])
    db.commit()
    for row in db.execute("SELECT i FROM t"):
        format_row(row)
    db.execute("BEGIN IMMEDIATE")
    make_report()
    db.commit()
threads = [threading.Thread(target=work, args=("%s%d" % (sys.argv[1], i),)) for i in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
# A thread for each request, and a forked process. None of their statements has to have a sample.
REQUESTS = """
import os, sqlite3, sys, threading, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA synchronous = OFF")
db.execute("CREATE TABLE t (i)")
db.close()
def request():
    db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO t VALUES (1)")
    time.sleep(0.2)  # LINE sleep
    db.execute("COMMIT")
for _ in range(4):
    thread = threading.Thread(target=request)
    thread.start()
    thread.join()
request()
child = os.fork()
if not child:
    request()
    os._exit(0)
os.waitpid(child, 0)
"""
PHP_PROGRAM = """<?php
function burn($seconds) {
    $turns = $seconds * $GLOBALS['rate'];
    for ($i = 0; $i < $turns; $i++) hrtime(true);  // LINE burn
}
function cpu_seconds() {
    $used = getrusage();
    return $used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec'] + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) / 1e6;
}
for ($rate = 1e5, $took = 0; $took < 0.05;) {
    $rate *= 2;
    $start = cpu_seconds();
    burn(1);
    $took = cpu_seconds() - $start;
}
$rate /= $took;
function format_row($row) {
    burn(0.02);  // LINE row
}
function make_report() {
    burn(0.4);  // LINE report
    usleep(200000);  // LINE sleep
}
$db = new SQLite3($argv[1]);
$db->exec('CREATE TABLE t (i)');
for ($i = 0; $i < 20; $i++)
    $db->exec("INSERT INTO t VALUES ($i)");
$rows = $db->query('SELECT i FROM t');
while ($row = $rows->fetchArray())
    format_row($row);
$db->exec('BEGIN IMMEDIATE');
make_report();
$db->exec('COMMIT');
"""
PERL_PROGRAM = """
use DBI;
use Time::HiRes qw(time sleep clock);
sub burn {
    my $turns = $_[0] * $rate;
    while ($turns-- > 0) { $now = time }  # LINE burn
}
for ($rate = 1e5, $took = 0; $took < 0.05;) {
    $rate *= 2;
    my $start = clock();
    burn(1);
    $took = clock() - $start;
}
$rate /= $took;
sub format_row {
    burn(0.02);  # LINE row
    return 1;
}
sub make_report {
    burn(0.4);  # LINE report
    sleep(0.2);  # LINE sleep
    return 1;
}
my $db = DBI->connect("dbi:SQLite:dbname=$ARGV[0]", '', '', { AutoCommit => 1 });
$db->do('CREATE TABLE t (i)');
$db->do("INSERT INTO t VALUES ($_)") for 1 .. 20;
my $rows = $db->prepare('SELECT i FROM t');
$rows->execute;
while ($rows->fetchrow_arrayref) { format_row() }
$db->do('BEGIN IMMEDIATE');
make_report();
$db->do('COMMIT');
"""
RUBY_PROGRAM = """
require 'sqlite3'
def burn(seconds)
  turns = seconds * $rate
  while (turns -= 1) > 0 && Process.clock_gettime(Process::CLOCK_MONOTONIC)  # LINE burn
  end
end
$rate, took = 1e5, 0
while took < 0.05
  $rate *= 2
  start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  burn(1)
  took = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start
end
$rate /= took
def format_row(row)
  burn(0.02)  # LINE row
end
def make_report
  burn(0.4)  # LINE report
  sleep(0.2)  # LINE sleep
end
db = SQLite3::Database.new(ARGV[0])
db.execute('CREATE TABLE t (i)')
20.times { |i| db.execute("INSERT INTO t VALUES (#{i})") }
db.execute('SELECT i FROM t') { |row| format_row(row) }
db.execute('BEGIN IMMEDIATE')
make_report
db.execute('COMMIT')
"""


class Lines(Recording):
    names = ()

    def run_program(self, command, program, suffix, *arguments):
        self.path = self.file("program" + suffix, program)
        done = self.record(*command, self.path, os.path.join(self.folder, "app.db"), *arguments,
                           options=("--cpu", "1ms", "--setting", "query_profiler_max_overhead_percent=0"))
        self.assertEqual(done.returncode, 0, self.seen)
        self.lines = {line.rpartition(" LINE ")[2]: number
                      for number, line in enumerate(program.splitlines(), 1) if " LINE " in line}

    def share(self, where, lines):
        """Which part of the samples has these frames from the newest on."""
        samples = self.rows("SELECT value, frames FROM trace_log LEFT JOIN call_stacks ON id = call_stack_id WHERE " + where)
        self.assertTrue(samples, where)
        whole = sum(value for value, _ in samples)
        wanted = [[self.path, self.lines[line]] for line in lines]
        return sum(value for value, frames in samples
                   if frames and [frame[:2] for frame in json.loads(frames)][:len(lines)] == wanted) / whole

    def check(self, *, sleeps=True):
        # Now and then a sample interrupts burn() elsewhere than in its loop, or queryprof between two calls.
        self.assertGreater(self.share("trace_type = 'ProgramCPU' AND outside = 'rows'", ["burn", "row"]), 0.75)
        self.assertGreater(self.share("trace_type = 'ProgramCPU' AND outside = 'transaction'", ["burn", "report"]), 0.75)
        if sleeps:
            self.assertEqual(self.share("trace_type = 'ProgramOffCPU' AND wait_ns > 1e8", ["sleep"]), 1)
        # No sample of a query has its own.
        self.assertEqual(self.rows("SELECT count(*) FROM trace_log WHERE call_stack_id <> 0 AND outside = ''"), [(0,)])
        if not sleeps:
            return
        report, findings = (subprocess.run([QUERYPROF, command, self.trace], capture_output=True, text=True, timeout=300, check=True).stdout
                            for command in ("report", "findings"))
        place = os.path.basename(self.path) + r":%d *\n"
        self.assertRegex(report, r"\nbetween rows +[\d.]+ ms +[\d.]+ % +on CPU +\S*burn +" + place % self.lines["burn"])
        self.assertRegex(report, r"\nin a transaction +[\d.]+ ms +[\d.]+ % +\w+ +\S*make_report +" + place % self.lines["sleep"])
        self.assertRegex(findings, r"(?s)\(slow_consumer\).*\d % of it in \S*burn \(program\.\w+:\d+\)")

    def test_python(self):
        self.run_program([PYTHON], PYTHON_PROGRAM, ".py", "1")
        self.check()

    def test_python_threads(self):
        """The interpreter's lock makes their waits short ones, so only CPU time is checked."""
        self.run_program([PYTHON], PYTHON_PROGRAM, ".py", "4")
        self.check(sleeps=False)

    def test_first_calls(self):
        """The first sleep of a thread, and of a forked process, has its line."""
        self.run_program([PYTHON], REQUESTS, ".py")
        sleeps = "trace_type = 'ProgramOffCPU' AND wait_ns > 1e8 AND outside = 'transaction'"
        self.assertEqual(self.rows("SELECT count(*) FROM trace_log WHERE " + sleeps), [(6,)])
        self.assertEqual(self.share(sleeps, ["sleep"]), 1)

    def test_php(self):
        self.run_program(["php"], PHP_PROGRAM, ".php")
        self.check()

    def test_perl(self):
        self.run_program(["perl"], PERL_PROGRAM, ".pl")
        self.check()

    def test_ruby(self):
        self.run_program(["ruby"], RUBY_PROGRAM, ".rb")
        self.check()

    def test_export(self):
        """In a stack the program's frames replace those of its interpreter."""
        self.run_program([PYTHON], PYTHON_PROGRAM, ".py", "1")
        stacks = subprocess.run([QUERYPROF, "export", self.trace, "--format", "collapsed", "--type", "ProgramCPU", "-o", "-"],
                                capture_output=True, text=True, timeout=300, check=True).stdout
        self.assertRegex(stacks, r"(?m)^.*;work \(program\.py:\d+\);format_row \(program\.py:%d\);burn \(program\.py:%d\)"
                         % (self.lines["row"], self.lines["burn"]))
        counts = [line.rpartition(" ")[::2] for line in stacks.splitlines()]
        self.assertLess(sum(int(count) for stack, count in counts if "_PyEval_EvalFrameDefault" in stack),
                        sum(int(count) for _, count in counts) / 4)


if __name__ == "__main__":
    unittest.main()
