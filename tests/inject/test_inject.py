#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each place of the library that asks the system for something (memory, a mapping, a file, a
thread, a timer) is refused it once, and from then on each time: a program under `record` goes on
as without queryprof, and what is missing in the trace file is told.

usage: test_inject.py QUERYPROF INJECT [--long]

A short run takes some of the places, by a seed that is printed (QUERYPROF_TEST_SEED); --long
takes all."""

import collections
import os
import random
import sys

INJECT, LONG = os.path.abspath(sys.argv[2]), "--long" in sys.argv[3:]
del sys.argv[2:]

from recording import *

# Two threads, 40 marked queries, one long enough to be sampled, a failure and a child.
PROGRAM = """
import os, sqlite3, threading
def work(name):
    db = sqlite3.connect(':memory:')
    for i in range(20):
        print(name, db.execute('SELECT /* marked %s */ ?' % name, (i,)).fetchall())
    print(db.execute('WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60000) SELECT sum(x) FROM c').fetchall())
    try:
        db.execute('SELECT abs(-9223372036854775808)').fetchall()
    except sqlite3.Error as error:
        print(error)
    db.close()
work('one')
thread = threading.Thread(target=work, args=('two',))
thread.start()
thread.join()
if os.fork() == 0:
    db = sqlite3.connect(':memory:')
    os._exit(db.execute('SELECT 7').fetchone()[0])
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
MARKED = 40
SHORT_RUNS = 12

# Where queries may be missing without a word.
KNOWN = {
    ("always", "replace_memory"): "a forked child that gets no mapping in place of the one that it inherits",
    ("always", "read_file"): "a disk from which the log's index can never be read",
}


def name_place(place):
    """The function, and where it is inlined: for people."""
    done = subprocess.run(["addr2line", "-s", "-p", "-f", "-e", LIBRARY, hex(int(place, 16) - 1)],
                          capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Inject(Recording):
    def run_injected(self, what):
        """The output, the marked queries in the file, what `record` said."""
        if os.path.exists(self.trace):
            os.unlink(self.trace)
        done = self.record(PYTHON, "-c", PROGRAM,
                           options=("--cpu", "1ms", "--real", "2ms", "--setting", "log_queries_min_query_duration_ns=0"),
                           env=dict(os.environ, LD_PRELOAD=INJECT, INJECT=what))
        try:
            stored, = self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* marked%'")[0]
        except sqlite3.OperationalError:
            stored = 0  # no file
        return done, stored

    def places(self):
        path = os.path.join(self.folder, "places")
        done, stored = self.run_injected("list:" + path)
        self.assertEqual((done.returncode, stored), (0, MARKED), self.seen)
        with open(path, encoding="ascii") as file:
            # A place of two processes is one.
            places = sorted(set(tuple(line.split()) for line in file))
        # The hooks' calls are the program's own.
        return [place for place in places if not name_place(place[1]).startswith("queryprof_")], done.stdout

    def test_each_place(self):
        places, wanted = self.places()
        functions = {function for function, _ in places}
        for function in "malloc", "calloc", "realloc", "mmap", "open64", "pthread_create", "sigaction", "timer_create":
            self.assertIn(function, functions)
        seed = int(os.environ.get("QUERYPROF_TEST_SEED", "1"))
        rounds = [(how, *place) for place in places for how in ("once", "always")]
        if not LONG:
            # In turns, each of another function.
            random.Random(seed).shuffle(rounds)
            turns = collections.Counter()
            ordered = []
            for entry in rounds:
                ordered.append((turns[entry[1]], entry))
                turns[entry[1]] += 1
            rounds = [entry for _, entry in sorted(ordered)[:SHORT_RUNS]]
        print("%d places of %s; %d runs, seed %d" % (len(places), ", ".join(sorted(functions)), len(rounds), seed))
        for how, function, place in rounds:
            with self.subTest(how=how, function=function, place=place, name=name_place(place)):
                done, stored = self.run_injected(how + ":" + place)
                self.assertEqual((done.returncode, done.stdout), (0, wanted), self.seen)
                if stored < MARKED and (how, name_place(place).split()[0]) not in KNOWN:
                    self.assertRegex(done.stderr, "lost|missing|refused|cannot|nothing was recorded",
                                     "%d of %d queries are stored, and not a word%s" % (stored, MARKED, self.seen))


unittest.main()
