#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each place in the library that requests something from the system (memory, a mapping, a file, a thread, a timer) fails
once, and in another run each time. A program under `record`, and a program that has loaded the extension, must continue
as without queryprof, and the loss must be reported. The command's own places fail, too, when it reads a file: it prints
an error, or continues without names of functions.

usage: test_inject.py QUERYPROF INJECT [--own] [--long | --only NAME]

--own: QUERYPROF's library has its own memory functions, as a user's library has, and these fail.

A short run tests some of the places, selected by a seed that it prints (QUERYPROF_TEST_SEED). --long tests all places,
--only the places in functions of that name."""

import collections
import concurrent.futures
import contextlib
import os
import random
import sys

OWN = "--own" in sys.argv
if OWN:
    sys.argv.remove("--own")
INJECT, LONG = os.path.abspath(sys.argv[2]), "--long" in sys.argv[3:]
ONLY = sys.argv[4] if "--only" in sys.argv[3:4] else None
del sys.argv[2:]

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
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
    except (sqlite3.Error, MemoryError) as error:
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
RECORDER = os.path.join(os.path.dirname(LIBRARY), "libqueryprof-recorder.so")

# The extension stores a file, a label and a wait for a lock, and reads queryprof's tables. Their errors go to standard
# error, because an error belongs to SQLite.
EXTENDED = """
import contextlib, sqlite3, sys, threading
def tell(sql):
    try:
        return db.execute(sql).fetchall()
    except (sqlite3.Error, MemoryError) as error: # this one is SQLITE_NOMEM
        print('refused:', error, file=sys.stderr)
        return [(0,)]
db = sqlite3.connect(sys.argv[2], isolation_level=None, timeout=60, check_same_thread=False)
print(db.execute('CREATE TABLE t(x)').fetchall())
db.enable_load_extension(True)
try:
    db.load_extension(sys.argv[1])
except sqlite3.Error as error:
    print('refused:', error, file=sys.stderr)
for setting in 'cpu_time_period_ns = 1000000', 'real_time_period_ns = 2000000', 'max_overhead_percent = 0':
    tell('PRAGMA query_profiler_' + setting)
tell('PRAGMA log_queries_min_query_duration_ns = 0')
tell("SELECT set_label('tenant', 'acme')")
for i in range(20):
    print(db.execute('SELECT /* marked */ ?', (i,)).fetchall())
print(db.execute('WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60000) SELECT sum(x) FROM c').fetchall())
with contextlib.closing(sqlite3.connect(sys.argv[2], isolation_level=None, check_same_thread=False)) as other:
    other.execute('BEGIN IMMEDIATE')
    timer = threading.Timer(0.02, other.execute, ('COMMIT',))
    timer.start()
    print(db.execute('INSERT INTO t VALUES (1) /* marked */').fetchall())
    timer.join()
print(db.execute('SELECT /* marked */ * FROM t').fetchall())
# This statement itself has no mark, although it may have a row.
for sql in ("FROM query_log WHERE query LIKE '%/* mark' || 'ed */%'", "FROM trace_log WHERE trace_type IN ('CPU', 'Real')"):
    print('stored', tell('SELECT count(*) ' + sql)[0][0], file=sys.stderr)
tell("SELECT count(*) FROM lock_waits")
tell("SELECT count(*) FROM query_log WHERE labels->>'tenant' = 'acme'")
for loss in tell("SELECT metric, value FROM system.metrics WHERE value AND metric LIKE '%_failed' OR metric IN"
                 " ('samples_dropped', 'ring_dropped', 'store_errors', 'store_lost', 'queries_lost', 'sessions_refused')"
                 " OR value <> '' AND metric LIKE '%_error'"):
    print('missing:', *loss, file=sys.stderr)
db.close()
"""
EXTENDED_MARKED = 22
MEMORY = ("malloc", "calloc", "realloc")
OTHERS = ("mmap", "open64", "pwrite64", "pthread_create", "sigaction", "timer_create", "timer_settime", "close_range",
          "memfd_create", "socket", "sendmsg", "fdatasync")
SHORT_RUNS, SHORT_COMMANDS = 12, 8
AT_ONCE = 4  # a run mostly waits
HANGS_AFTER = 280  # seconds; a run takes some 2. SQLite tries for 10 at each transaction if the log's index cannot be written

def name_places(places, of=LIBRARY):
    """Names each place's function, including inlined ones, for people."""
    done = subprocess.run(["addr2line", "-s", "-p", "-f", "-e", of],
                          input="".join("%x\n" % (int(place, 16) - 1) for place in places),
                          capture_output=True, text=True, check=True)
    return dict(zip(places, done.stdout.splitlines()))


class Inject(Recording):
    def run_injected(self, command, what, library):
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=HANGS_AFTER, check=False,
                                  env=dict(os.environ, LD_PRELOAD=INJECT, INJECT=what,
                                           INJECT_LIBRARY=os.path.basename(library)))
        except subprocess.TimeoutExpired:
            raise AssertionError("%s: no end after %d s" % (what, HANGS_AFTER)) from None

    def run_recorded(self, what):
        """Returns the output and status of `record`, and the numbers of marked queries and timer samples in the file.
        The command finds the names, not the library."""
        trace = os.path.join(self.folder, what.replace(":", "-").replace("/", "-"))
        done = self.run_injected([QUERYPROF, "record", "-o", trace, "--no-symbols", "--cpu", "1ms", "--real", "2ms",
                                  "--setting", "log_queries_min_query_duration_ns=0",
                                  "--setting", "query_profiler_max_overhead_percent=0", "--", PYTHON, "-c", PROGRAM],
                                 what, RECORDER)
        stored = (0, 0)
        if os.path.exists(trace):
            with contextlib.closing(sqlite3.connect(trace)) as db:
                stored, = db.execute("SELECT (SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* marked%'),"
                                     " (SELECT count(*) FROM trace_log WHERE trace_type IN ('CPU', 'Real'))")
        return done, stored

    def run_extended(self, what):
        """Does the same for a program with the extension."""
        done = self.run_injected([PYTHON, "-c", EXTENDED, LIBRARY, tempfile.mktemp(dir=self.folder)], what, LIBRARY)
        return done, tuple(int(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("stored"))

    def places(self, run, library, marked):
        path = os.path.join(self.folder, run.__name__)
        done, stored = run("list:" + path)
        self.assertEqual((done.returncode, stored[0]), (0, marked), done.stderr)
        self.assertGreater(stored[1], 0, done.stderr)
        with open(path, encoding="ascii") as file:
            # A place that two processes share counts once.
            places = sorted(set(tuple(line.split()) for line in file))
        self.named.update(((run, place), name) for place, name in
                          name_places([place for _, place in places], library).items())
        # The hooks' calls belong to the program.
        return [place for place in places if not self.named[run, place[1]].startswith("queryprof_") and
                (not OWN or place[0] in MEMORY)], done.stdout

    def choose(self, rounds, functions, short):
        """Selects the places of this run. A round ends with function and place."""
        seed, count = int(os.environ.get("QUERYPROF_TEST_SEED", "1")), len(rounds)
        if ONLY:
            rounds = [entry for entry in rounds if self.named[entry[0], entry[-1]].split()[0] == ONLY]
        elif not LONG:
            # Alternates between functions.
            random.Random(seed).shuffle(rounds)
            turns = collections.Counter()
            ordered = []
            for entry in rounds:
                ordered.append((turns[entry[-2]], entry))
                turns[entry[-2]] += 1
            rounds = [entry for _, entry in sorted(ordered, key=lambda turn: turn[0])[:short]]
        print("%d places of %s; %d runs, seed %d" % (count / 2, ", ".join(sorted(functions)), len(rounds), seed), flush=True)
        return rounds

    def test_each_place(self):
        self.named = {}
        hosts = ((self.run_recorded, RECORDER, MARKED), (self.run_extended, LIBRARY, EXTENDED_MARKED))
        rounds, wanted, functions = [], {}, set()
        for run, library, marked in hosts:
            places, wanted[run] = self.places(run, library, marked)
            functions.update(function for function, _ in places)
            rounds += [(run, marked, how, *place) for place in places for how in ("once", "always")]
        for function in MEMORY + (() if OWN else OTHERS):
            self.assertIn(function, functions)
        rounds = self.choose(rounds, functions, SHORT_RUNS)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            runs = threads.map(lambda entry: entry[0](entry[2] + ":" + entry[4]), rounds)
            for (run, marked, how, function, place), (done, stored) in zip(rounds, runs):
                with self.subTest(run=run.__name__, how=how, function=function, place=place,
                                  name=self.named[run, place]):
                    self.assertEqual((done.returncode, done.stdout), (0, wanted[run]), done.stderr)
                    if stored[0] < marked or not stored[1]:
                        self.assertRegex(done.stderr, "lost|missing|refused|cannot|nothing was recorded",
                                         "%d of %d queries and %d samples are stored, and not a word\n%s"
                                         % (stored[0], marked, stored[1], done.stderr))

    def run_command(self, command, what):
        return subprocess.run([QUERYPROF, command, self.trace], capture_output=True, text=True, timeout=300, check=False,
                              env=dict(os.environ, LD_PRELOAD=INJECT, INJECT=what, INJECT_PROGRAM="1"))

    @unittest.skipIf(OWN, "the command has libc's memory")
    def test_command(self):
        self.record(PYTHON, "-c", PROGRAM)
        rounds = []
        for command in "report", "queries":
            path = os.path.join(self.folder, command)
            self.assertEqual(self.run_command(command, "list:" + path).returncode, 0)
            with open(path, encoding="ascii") as file:
                places = sorted(set(tuple(line.split()) for line in file))
            rounds += [(command, how, *place) for place in places for how in ("once", "always")]
        names = name_places([entry[-1] for entry in rounds], QUERYPROF)
        self.named = {(entry[0], entry[-1]): names[entry[-1]] for entry in rounds}
        functions = {entry[-2] for entry in rounds}
        for function in "malloc", "calloc", "strdup", "open64", "pread":
            self.assertIn(function, functions)
        for command, how, function, place in self.choose(rounds, functions, SHORT_COMMANDS):
            with self.subTest(command=command, how=how, function=function, place=place, name=self.named[command, place]):
                done = self.run_command(command, how + ":" + place)
                if done.returncode:
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertRegex(done.stderr, "^queryprof: .+")


unittest.main()
