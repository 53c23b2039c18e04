#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each place of the library that asks the system for something (memory, a mapping, a file, a
thread, a timer) is refused it once, and from then on each time: a program under `record` goes on
as without queryprof, and what is missing in the trace file is reported.

usage: test_inject.py QUERYPROF INJECT [--long | --only NAME]

A short run takes some of the places, by a seed that is printed (QUERYPROF_TEST_SEED); --long
takes all, --only those in functions of that name."""

import collections
import concurrent.futures
import contextlib
import os
import random
import sys

INJECT, LONG = os.path.abspath(sys.argv[2]), "--long" in sys.argv[3:]
ONLY = sys.argv[4] if "--only" in sys.argv[3:4] else None
del sys.argv[2:]

from recording import *

# Two threads and a child, 41 marked queries, one long enough to be sampled, a failure.
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
    os._exit(db.execute('SELECT /* marked three */ 7').fetchone()[0])
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
MARKED = 41
SHORT_RUNS = 12
AT_ONCE = 4  # a run waits more than it works

def name_places(places):
    """The function of each, and where it is inlined: for people."""
    done = subprocess.run(["addr2line", "-s", "-p", "-f", "-e", LIBRARY],
                          input="".join("%x\n" % (int(place, 16) - 1) for place in places),
                          capture_output=True, text=True, check=True)
    return dict(zip(places, done.stdout.splitlines()))


class Inject(Recording):
    def run_injected(self, what):
        """What `record` said and did, and the marked queries in the file. Names are the command's work, not
        the library's."""
        trace = os.path.join(self.folder, what.replace(":", "-").replace("/", "-"))
        done = subprocess.run([QUERYPROF, "record", "-o", trace, "--no-symbols", "--cpu", "1ms", "--real", "2ms",
                               "--setting", "log_queries_min_query_duration_ns=0", "--", PYTHON, "-c", PROGRAM],
                              capture_output=True, text=True, timeout=300, check=False,
                              env=dict(os.environ, LD_PRELOAD=INJECT, INJECT=what))
        stored = 0
        if os.path.exists(trace):
            with contextlib.closing(sqlite3.connect(trace)) as db:
                stored, = db.execute("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* marked%'").fetchone()
        return done, stored

    def places(self):
        path = os.path.join(self.folder, "places")
        done, stored = self.run_injected("list:" + path)
        self.assertEqual((done.returncode, stored), (0, MARKED), done.stderr)
        with open(path, encoding="ascii") as file:
            # A place of two processes is one.
            places = sorted(set(tuple(line.split()) for line in file))
        self.names = name_places([place for _, place in places])
        # The hooks' calls are the program's own.
        return [place for place in places if not self.names[place[1]].startswith("queryprof_")], done.stdout

    def test_each_place(self):
        places, wanted = self.places()
        functions = {function for function, _ in places}
        for function in ("malloc", "calloc", "realloc", "mmap", "open64", "pwrite64", "pthread_create", "sigaction", "timer_create",
                         "close_range", "memfd_create"):
            self.assertIn(function, functions)
        seed = int(os.environ.get("QUERYPROF_TEST_SEED", "1"))
        rounds = [(how, *place) for place in places for how in ("once", "always")]
        if ONLY:
            rounds = [entry for entry in rounds if self.names[entry[2]].split()[0] == ONLY]
            self.assertTrue(rounds, ONLY)
        elif not LONG:
            # In turns, each of another function.
            random.Random(seed).shuffle(rounds)
            turns = collections.Counter()
            ordered = []
            for entry in rounds:
                ordered.append((turns[entry[1]], entry))
                turns[entry[1]] += 1
            rounds = [entry for _, entry in sorted(ordered)[:SHORT_RUNS]]
        print("%d places of %s; %d runs, seed %d" % (len(places), ", ".join(sorted(functions)), len(rounds), seed))
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            runs = threads.map(self.run_injected, (how + ":" + place for how, _, place in rounds))
            for (how, function, place), (done, stored) in zip(rounds, runs):
                with self.subTest(how=how, function=function, place=place, name=self.names[place]):
                    self.assertEqual((done.returncode, done.stdout), (0, wanted), done.stderr)
                    if stored < MARKED:
                        self.assertRegex(done.stderr, "lost|missing|refused|cannot|nothing was recorded",
                                         "%d of %d queries are stored, and not a word\n%s" % (stored, MARKED, done.stderr))


unittest.main()
