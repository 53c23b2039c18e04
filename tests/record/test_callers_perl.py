#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The file, line and function from which a Perl program called SQLite equal the ones of caller().

usage: test_callers_perl.py QUERYPROF"""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# caller() returns the place of a call and the name of the callee. So a frame's name is the next entry's, except in eval
# {}.
HEAD = r'''
use strict; use warnings; use utf8; use DBI; use DBD::SQLite; use JSON::PP;
our $SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60000) SELECT sum(x), '%s' FROM c";
our %told;
sub slow {
    my ($name) = @_;
    my (@frames, @place, @call);
    for (my $i = 0; @call = caller($i); $i++) {
        my ($package, $file, $line, $sub, undef, undef, $text, $is_require) = @call;
        next if $sub eq "(eval)" && !defined $text && !$is_require;
        utf8::decode($file);
        push @frames, [@place, $sub] if @place;
        @place = ($file, $line + 0);
    }
    push @frames, [@place, "(main)"];
    $#frames = 31 if @frames > 32;
    $told{$name} = \@frames;
    return sprintf $SLOW, $name;
}
our $db = DBI->connect("dbi:SQLite:dbname=:memory:", "", "", { RaiseError => 1 });
sub query { my ($db, $sql) = @_; return $db->selectall_arrayref($sql); }
query($db, sprintf $SLOW, "first");  # the interpreter is found: threads that come while one looks wait for a moment only
'''
TAIL = r'''
print JSON::PP->new->utf8->encode(\%told);
'''


class PerlCallers(Recording):
    def run_perl(self, script, file="app.pl"):
        return self.told_and_seen(file, HEAD + script + TAIL, "perl", "-I", self.folder)

    def own(self, frames):
        """Removes the newest frames, which belong to the driver."""
        while frames and "/DB" in frames[0][0]:
            frames = frames[1:]
        return frames

    def expect_all(self, script, **more):
        """query() runs the statement, so there is one frame more than the program reports."""
        told, seen = self.run_perl(script, **more)
        self.assertTrue(told)
        for name, frames in told.items():
            with self.subTest(query=name):
                own = self.own(seen.get(name, []))
                self.assertEqual([frame[2] for frame in own[:1]], ["main::query"])
                self.assertEqual(own[1:], frames[:len(own) - 1])
                self.assertIn(len(own), (len(frames) + 1, 32 - len(seen[name]) + len(own)))
        return told

    def test_functions(self):
        """Subs, methods, closures, callbacks of operators, AUTOLOAD, overloading, tie, local names, other alphabets, eval."""
        self.file("Größe.pm", "use utf8; package Größe;\nmain::query($main::db, main::slow('required'));\nsub of_file {\n\n main::query($main::db, main::slow('of a file')) }\n1;\n")
        self.expect_all(r'''
package Cart { sub new { bless {}, shift }
    sub total { main::query($db, main::slow("method")) }
    our $AUTOLOAD; sub AUTOLOAD { return if $AUTOLOAD =~ /DESTROY/; main::query($db, main::slow("autoload")) }
    use overload '""' => sub { main::query($db, main::slow("overload")); "x" };
}
package Tied { sub TIESCALAR { bless [] } sub FETCH { main::query($db, main::slow("tied")); 1 } }
sub größe_数 { query($db, slow("unicode")) }
sub café { query($db, slow("latin")) }
Cart->new->total;
Cart->new->missing;
my $text = "" . Cart->new;
tie my $tied, "Tied"; my $fetched = $tied;
größe_数();
café();
my $closure = sub { query($db, slow("closure")) };
$closure->();
my @sorted = sort { query($db, slow("sort")); $a <=> $b } 2, 1;
my @mapped = map { query($db, slow("map $_")) } 1, 2;
sub by_name { query($db, slow("sort by name")); $a <=> $b }
@sorted = sort by_name 2, 1;
my sub lexical { query($db, slow("lexical")) }
lexical();
*alias = sub { query($db, slow("glob")) };
alias();
"a" =~ /a(?{ query($db, slow("regex")) })/;
"b" =~ s/b/query($db, slow("substitution")); "c"/er;
eval "query(\$db, slow('eval'));\n\n\nquery(\$db, slow('eval 4')); 1" or die;
my $required = "Größe.pm"; utf8::encode($required); require $required;
Größe::of_file();
for my $i (1 .. 3) { while (1) {
    query($db, slow("loops $i")); last } }
if (keys %told > 3) {


    query($db, slow("main"));
}
''')

    def test_exceptions_and_destructors(self):
        self.expect_all(r'''
sub fails { eval { eval { query($db, slow("in eval")); die "x" };
        query($db, slow("after eval")); die { a => 1 } };
    query($db, slow("after both")) }
package Ends { sub new { bless {}, shift } sub DESTROY { main::query($db, main::slow("destructor")) } }
sub ends { my $e = Ends->new; undef $e; }
local $SIG{__WARN__} = sub { query($db, slow("warn hook")) };
local $SIG{USR1} = sub { query($db, slow("signal")) };
sub warns { warn "x" }
sub signals { kill USR1 => $$; 1 }
fails();
ends();
warns();
signals();
sub goes { goto &gone } sub gone { query($db, slow("goto")) }
goes();
''')

    def test_freed(self):
        """A sub whose name is deleted while it runs."""
        told, seen = self.run_perl(r'''
sub freed { my ($me) = @_; no strict "refs"; undef &freed2; delete $main::{freed}; query($db, slow("freed")) }
sub freed2 {}
freed();
''')
        own = self.own(seen["freed"])
        self.assertEqual([frame[:2] for frame in own[1:]], [frame[:2] for frame in told["freed"]])

    def test_deep(self):
        told = self.expect_all(r'''
no warnings "recursion";
sub deep { my ($n) = @_; return $n ? deep($n - 1) : query($db, slow("deep")) }
deep(10000);
''')
        self.assertEqual(len(told["deep"]), 32)

    def test_threads(self):
        """Each thread has its own interpreter."""
        script = r'''
use threads;
sub work { my ($i) = @_;
    my $own = DBI->connect("dbi:SQLite:dbname=:memory:", "", "", { RaiseError => 1 });
    query($own, slow("thread $i"));
    return $told{"thread $i"};
}
my @threads = map { my $i = $_; threads->create({ context => "scalar" }, "work", $i) } 1 .. 3;
$told{"thread " . ($_ + 1)} = $threads[$_]->join for 0 .. 2;
'''
        told, seen = self.run_perl(script)
        self.assertEqual(sorted(told), ["thread 1", "thread 2", "thread 3"])
        for name, frames in told.items():
            own = self.own(seen[name])
            self.assertEqual([frame[2] for frame in own[:2]], ["main::query", "main::work"])
            self.assertEqual(own[1], frames[0])

    def test_callback_and_fork(self):
        """A query inside a function of another query, and a query of a forked child."""
        told, seen = self.run_perl(r'''
my $other = DBI->connect("dbi:SQLite:dbname=:memory:", "", "", { RaiseError => 1 });
$db->sqlite_create_function("nested", 1, sub { query($other, slow("nested")); 1 });
sub asks { $db->selectall_arrayref("SELECT nested(1)") }
asks();
sub child { my $own = DBI->connect("dbi:SQLite:dbname=:memory:"); query($own, sprintf $SLOW, "child") }
my $pid = fork;
if (!$pid) { child(); kill 9, $$ }
waitpid $pid, 0;
''')
        own = self.own(seen["nested"])
        self.assertEqual(own[1:], told["nested"])
        self.assertEqual([frame[2] for frame in self.own(seen["child"])], ["main::query", "main::child", "(main)"])

    def test_caller(self):
        """The caller is the application's frame, not its library's, in a file of another alphabet."""
        told, _ = self.run_perl(r'''
sub orders { return $db->selectall_arrayref(slow("driver")) }
orders() for 1 .. 5;
''', file="заказы.pl")
        file, line, function = told["driver"][0]
        self.assertEqual(function, "main::orders")
        self.assertEqual(set(self.rows("SELECT caller, caller_function FROM query_log WHERE query LIKE '%driver%'")),
                         {("%s:%d" % (file, line), "main::orders")})


if __name__ == "__main__":
    if not shutil.which("perl") or subprocess.run(["perl", "-MDBD::SQLite", "-MJSON::PP", "-e", "1"], capture_output=True, check=False).returncode:
        print("no perl with DBD::SQLite")
        sys.exit(77)
    unittest.main()
