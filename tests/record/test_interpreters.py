#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One interpreter under `queryprof record`. Each loads SQLite in a different way.

usage: test_interpreters.py QUERYPROF NAME"""

import json
import re
import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# By name: the command that shows whether the interpreter has its SQLite, and the program that it runs.
INTERPRETERS = {
    # Linked with the library.
    "sqlite3": (["sqlite3", "-init", "/dev/null", ":memory:"], "SELECT 1", SLOW),
    # A module that is loaded with its own scope.
    "python3": ([PYTHON, "-c"], "import sqlite3", """import sqlite3
db = sqlite3.connect(':memory:')
print(db.execute(%r).fetchone()[0])""" % SLOW),
    # Modules are loaded with RTLD_DEEPBIND, so a preload does not come first.
    "php": (["php", "-r"], "new SQLite3(':memory:');", """
$db = new SQLite3(':memory:'); echo $db->querySingle('%s'), "\n";""" % SLOW),
    "php-pdo": (["php", "-r"], "new PDO('sqlite::memory:');", """
$db = new PDO('sqlite::memory:'); echo $db->query('%s')->fetchColumn(), "\n";""" % SLOW),
    "ruby": (["ruby", "-e"], "require 'sqlite3'", """require 'sqlite3'
puts SQLite3::Database.new(':memory:').execute('%s')[0][0]""" % SLOW),
    "perl": (["perl", "-e"], "use DBI; require DBD::SQLite;", """use DBI;
my $db = DBI->connect('dbi:SQLite:dbname=:memory:');
print $db->selectrow_array('%s'), "\n";""" % SLOW),
    "tclsh": (["tclsh"], "package require sqlite3", """package require sqlite3
sqlite3 db :memory:
puts [db eval {%s}]""" % SLOW),
}

# TIMED_TABLE and the other SQL of tests/lib/recording.py, with the program's own clock around each run.
TIMED = {
    "python3": """import sqlite3, time
db = sqlite3.connect(':memory:', isolation_level=None)
db.execute(%r)
for sql, n in (%r, 2000), (%r, 20):
    sum = 0
    for i in range(1, n + 1):
        start = time.monotonic_ns()
        db.execute(sql %% i).fetchall()
        sum += time.monotonic_ns() - start
    print(n, sum)""",
    "php": """$db = new SQLite3(':memory:'); $db->exec('%s');
foreach ([['%s', 2000], ['%s', 20]] as [$sql, $n]) {
    for ($i = 1, $sum = 0; $i <= $n; $i++) {
        $start = hrtime(true); $db->querySingle(sprintf($sql, $i)); $sum += hrtime(true) - $start;
    }
    echo "$n $sum\n";
}""",
    "php-pdo": """$db = new PDO('sqlite::memory:'); $db->exec('%s');
foreach ([['%s', 2000], ['%s', 20]] as [$sql, $n]) {
    for ($i = 1, $sum = 0; $i <= $n; $i++) {
        $start = hrtime(true); $db->query(sprintf($sql, $i))->fetchAll(); $sum += hrtime(true) - $start;
    }
    echo "$n $sum\n";
}""",
    "ruby": """require 'sqlite3'
db = SQLite3::Database.new(':memory:')
db.execute('%s')
clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
[['%s', 2000], ['%s', 20]].each do |sql, n|
    sum = 0
    (1..n).each { |i| start = clock.call; db.execute(sql %% i); sum += clock.call - start }
    puts "#{n} #{sum}"
end""",
    "perl": """use DBI; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
my $db = DBI->connect('dbi:SQLite:dbname=:memory:');
$db->do('%s');
for (['%s', 2000], ['%s', 20]) {
    my ($sql, $n) = @$_; my $sum = 0;
    for my $i (1 .. $n) {
        my $start = clock_gettime(CLOCK_MONOTONIC); $db->selectall_arrayref(sprintf($sql, $i));
        $sum += clock_gettime(CLOCK_MONOTONIC) - $start;
    }
    printf "%%d %%.0f\n", $n, $sum * 1e9;
}""",
    "tclsh": """package require sqlite3
sqlite3 db :memory:
db eval {%s}
foreach {sql n} {{%s} 2000 {%s} 20} {
    set sum 0
    for {set i 1} {$i <= $n} {incr i} { set q [format $sql $i]; incr sum [lindex [time {db eval $q}] 0] }
    puts "$n ${sum}000"
}""",
}


class Interpreter(Recording):
    names = ()

    def command(self, program):
        if NAME == "tclsh":
            return [*COMMAND, self.file("program.tcl", program)]
        return [*COMMAND, program]

    def setUp(self):
        super().setUp()
        try:
            ask = subprocess.run(self.command(QUESTION), capture_output=True, text=True, timeout=300, check=False)
            reason = ask.returncode and ask.stderr
        except FileNotFoundError as error:
            reason = str(error)
        if reason:
            self.skipTest(f"{NAME} is not here: {reason}")

    @unittest.skipIf(IN_COVERAGE, "times")
    def test_times(self):
        if NAME not in TIMED:
            return
        done = self.record(*self.command(TIMED[NAME] % (TIMED_TABLE, TIMED_SHORT, TIMED_LONG)))
        self.assertEqual(done.returncode, 0, self.seen)
        self.expect_own_times(done.stdout)

    def test_sampled(self):
        plain = subprocess.run(self.command(PROGRAM), capture_output=True, text=True, timeout=300, check=True)
        self.assertEqual(plain.stdout, ANSWER + "\n")
        done = self.record(*self.command(PROGRAM))
        self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), self.seen)
        self.expect_sampled(1)
        self.assertRegex(done.stderr, r"^queryprof: .*app\.trace: \d+ samples?, \d+ runs?, 1 process \([^)]*\)\. "
                         r"To read it: queryprof report .*app\.trace\n"
                         # PHP's SQLite3 gives each connection an authorizer.
                         r"(queryprof: plans: 1 of 1 sampled statement has none: the connection has an authorizer \(1\)\n)?"
                         r"(queryprof: the findings take longer than .*\n)?"  # on a busy machine
                         + (r"queryprof: callers: the lines of the program are not known for tclsh[\d.]*: queryprof does not understand "
                            r"this interpreter, or its driver \(.*\)\n$" if NAME == "tclsh" else "$"))
        # Every stack of the query contains the library's own code, or a wrapper's that encloses it. Three kinds of time
        # are left out: a busy machine's run queues have no stack, the interpreter's own time between two rows has its
        # own (ProgramCPU), and closing the connection is a query, too.
        names = subprocess.run([QUERYPROF, "sql", self.trace,
                                "SELECT traceToText(s.trace) AS stack FROM trace_log AS s JOIN query_log AS q "
                                "USING (query_id) WHERE s.trace_type IN ('CPU', 'Real') AND q.query LIKE 'WITH RECURSIVE%'",
                                "--format", "json"], capture_output=True, text=True, timeout=300, check=True)
        stacks = [row["stack"] for row in json.loads(names.stdout)]
        self.assertGreater(sum("sqlite3_step" in stack for stack in stacks), len(stacks) / 2, stacks)
        for stack in stacks:
            self.assertRegex(stack, "sqlite3_(step|prepare|reset|finalize)|queryprof_")


NAME = sys.argv.pop(1)
COMMAND, QUESTION, PROGRAM = INTERPRETERS[NAME]
outcome = unittest.main(exit=False).result
sys.exit(SKIPPED if outcome.skipped else not outcome.wasSuccessful())
