#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Under `record` the program contains only hooks, a handler and a ring, and the command alone writes.

usage: test_alone.py QUERYPROF HELD_READER NO_FORK
HELD_READER: a library whose processes cannot read one environment; NO_FORK: one whose processes cannot fork any more"""

import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

HELD_READER, NO_FORK = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))

# The process before and after its queries, and in a child: threads, descriptors, maps of files.
SELF = """
import os, sqlite3, sys
def seen(where):
    print(where, len(os.listdir('/proc/self/task')), sorted(os.readlink('/proc/self/fd/' + fd)
          for fd in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + fd)),
          sorted({line.split(None, 5)[5].strip() for line in open('/proc/self/maps') if line.count(' ') > 5 and (
          'queryprof' in line)}), sep='|', flush=True)
seen('before')
db = sqlite3.connect(':memory:')
def work():
    db.execute(%r).fetchall()
work()
seen('behind')
if os.fork() == 0:
    work()
    seen('child')
    os._exit(0)
os.wait()
if len(sys.argv) < 2:
    os.execv(sys.executable, [sys.executable, '-c', sys.orig_argv[2], 'again'])
""" % SLOW

DAEMON = """
import os, sqlite3, sys, time
if os.fork():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    os._exit(0)
os.setsid()
db = sqlite3.connect(':memory:')
db.execute('SELECT 1 /* at first */').fetchall()
open(sys.argv[1], 'w').close()
while os.path.exists(sys.argv[1]) and not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
db.execute('SELECT 2 /* at last */').fetchall()
"""

MANY = """
import sqlite3, sys
db = sqlite3.connect(':memory:')
for i in range(int(sys.argv[1])):
    db.execute('SELECT /* %d */ 1' % i).fetchall()
print('ended', flush=True)
"""

FROM_INSIDE = """
import os, sqlite3, sys
db = sqlite3.connect(':memory:')
db.execute(%r).fetchall()
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
print(*db.execute('PRAGMA trace_log_path').fetchone())
db.execute("PRAGMA trace_log_path = '%%s'" %% sys.argv[2])
print(*db.execute('SELECT count(*) > 0 FROM trace_log').fetchone())
print(os.path.exists(sys.argv[2]))
""" % SLOW

# Starts, flushes and stops the library, with or without a query before that.
STARTS = """
import ctypes, os, sqlite3, struct, sys
library = ctypes.CDLL(sys.argv[1])
db = sqlite3.connect(':memory:')
if sys.argv[4:]:
    db.execute('SELECT 1 AS before').fetchall()
path = ctypes.create_string_buffer(sys.argv[2].encode())
config = struct.pack('NPqqq', 40, ctypes.addressof(path), 0, 0, 0)
print(library.qp_init(config), library.qp_init(None))
db.execute('SELECT 2 AS started').fetchall()
print(library.qp_flush(60000), os.path.exists(sys.argv[2]), len(os.listdir('/proc/self/task')))
print(*sqlite3.connect(sys.argv[3]).execute("SELECT count(*) FROM query_log WHERE query LIKE '%AS started'").fetchone())
print(library.qp_shutdown())
db.execute('SELECT 3 AS stopped').fetchall()
print(library.qp_init(None))
db.execute('SELECT 4 AS again').fetchall()
"""

# Writes the number of its ended runs to its own file. The ring has room for the runs of half a minute.
COUNTED = """
import os, sqlite3, sys, time
db = sqlite3.connect(':memory:')
with open(sys.argv[1], 'wb', buffering=0) as ended:
    while not os.path.exists(sys.argv[2]):
        db.execute('SELECT /* counted */ %d' % ended.tell()).fetchall()
        ended.write(b'.')
        time.sleep(0.001)
"""

# A daemon that runs a number of queries, some of them on request.
OVERFLOWING = """
import os, sqlite3, sys, time
if os.fork():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    os._exit(0)
os.setsid()
db = sqlite3.connect(':memory:')
def work(first, behind):
    for i in range(first, behind):
        db.execute('SELECT /* %d %s */ 1' % (i, 500 * '-')).fetchall()
work(0, 10)
open(sys.argv[1], 'w').close()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
work(10, 3000)
open(sys.argv[3], 'w').close()
"""

EVERY_RUN = ("--cpu", "0", "--real", "60s", "--off-cpu", "0", "--setting", "log_queries_min_query_duration_ns=0")


class Alone(Recording):
    def test_no_thread_no_descriptor(self):
        alone = subprocess.run([PYTHON, "-c", SELF], capture_output=True, text=True, check=True)
        done = self.record(PYTHON, "-c", SELF)
        self.assertEqual(done.returncode, 0, self.seen)
        for without, line in zip(alone.stdout.splitlines(), done.stdout.splitlines(), strict=True):
            where, threads, descriptors, maps = line.split("|")
            self.assertEqual([where, threads], without.split("|")[:2], self.seen)
            self.assertEqual(len(descriptors.split(",")), len(without.split("|")[2].split(",")), self.seen)
            self.assertNotIn("queryprof", descriptors)
            files = {re.sub(r"\.so.*", "", os.path.basename(name)) for name in re.findall(r"'([^']+)'", maps)}
            self.assertLessEqual(files, {"libqueryprof-recorder", "libqueryprof-preload", "memfd:queryprof (deleted)"}, self.seen)
        # The process that becomes another program stays the same process.
        self.assertEqual(self.rows("SELECT count(DISTINCT process_id) FROM processes"), [(3,)])

    def test_daemon(self):
        """A daemon is recorded to its end, which comes after the command's end."""
        begun, go = os.path.join(self.folder, "begun"), os.path.join(self.folder, "go")
        subprocess.run(self.arguments(PYTHON, "-c", DAEMON, begun, go, options=EVERY_RUN), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=300, check=True)
        wait_until(lambda: os.path.exists(begun), "the daemon")
        open(go, "w").close()
        wait_until(lambda: self.rows("SELECT count(*) FROM query_log WHERE query LIKE '%at last%'") == [(1,)], "its last run")
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE '%at first%'"), [(1,)])

    def test_stopped_command(self):
        """The program does not wait. The runs in its ring are stored later."""
        stop = ("import os\nos.kill(os.getppid(), 19)\nstate = ''\nwhile state != 'T':\n"
                "    with open('/proc/%d/stat' % os.getppid()) as file: state = file.read().rpartition(')')[2].split()[0]\n")
        process = subprocess.Popen(self.arguments(PYTHON, "-c", stop + MANY, "500", options=EVERY_RUN),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(read_line(process.stdout, "the program's end"), "ended\n")
        self.assertEqual(state(process.pid), "T")
        os.kill(process.pid, signal.SIGCONT)
        _, self.seen = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, self.seen)
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /*%'"), [(500,)], self.seen)

    def test_killed_command(self):
        """The command's program ends with it, and the processes that this has started continue."""
        process = subprocess.Popen(self.arguments("sh", "-c", '"$@" & kill -9 $PPID; wait', "sh", PYTHON, "-c", MANY, "100000",
                                                  options=EVERY_RUN), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        with bounded("the end of the program's output"):
            self.assertEqual(process.stdout.read(), "ended\n")
        self.assertEqual(process.wait(300), -signal.SIGKILL)

    def numbers(self):
        return sorted(int(query.split()[-1]) for query, in self.rows("SELECT query FROM query_log WHERE query LIKE '%/* counted */%'"))

    def test_what_a_killed_command_has_stored(self):
        """The file has all runs up to some moment, each once. Later runs in the ring are lost, and the file accepts
        another recording."""
        for turn in range(4):
            self.trace = os.path.join(self.folder, "%d.trace" % turn)
            ended, enough = (os.path.join(self.folder, "%d.%s" % (turn, name)) for name in ("ended", "enough"))
            self.addCleanup(self.file, "%d.enough" % turn, "")
            process = subprocess.Popen(self.arguments("sh", "-c", '"$@" & wait', "sh", PYTHON, "-c", COUNTED, ended, enough,
                                                      options=EVERY_RUN), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # The program still runs, so neither its end nor a full ring has caused the flush.
            wait_until(lambda: self.has_views() and len(self.numbers()) > 100, "some runs in the file")
            time.sleep(turn * 0.15)
            process.kill()
            process.wait()
            at_kill, stored = os.path.getsize(ended), self.numbers()
            self.assertEqual(stored, list(range(len(stored))))
            self.assertLessEqual(len(stored), at_kill + 1)
            wait_until(lambda: os.path.getsize(ended) > at_kill, "the program's further runs")
            self.file("%d.enough" % turn, "")
            self.assertEqual(self.rows("PRAGMA integrity_check"), [("ok",)])
            self.record(PYTHON, "-c", MANY, "10", options=(*EVERY_RUN, "--append"))
            self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* _ */ 1'"), [(10,)], self.seen)
            self.assertEqual(self.numbers(), stored)

    def collector(self):
        """The process of the command that continues after the command itself has ended."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    if file.read().split(b"\0")[:4] == [name.encode() for name in self.arguments()[:4]]:
                        return int(pid)
            except OSError:
                pass
        return None

    def test_daemon_and_a_locked_file(self):
        """Nobody waits for the collector, so it waits for the file longer than the command would."""
        begun, go = os.path.join(self.folder, "begun"), os.path.join(self.folder, "go")
        subprocess.run(self.arguments(PYTHON, "-c", DAEMON, begun, go, options=EVERY_RUN), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=300, check=True)
        wait_until(lambda: os.path.exists(begun), "the daemon")
        locking = sqlite3.connect(self.trace, isolation_level=None)
        self.addCleanup(locking.close)
        locking.execute("PRAGMA busy_timeout = 100000")
        locking.execute("BEGIN IMMEDIATE")
        open(go, "w").close()
        time.sleep(8)  # the command gives up after four seconds
        self.assertIsNotNone(self.collector())
        locking.execute("COMMIT")
        wait_until(lambda: self.collector() is None, "the collector's end")
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE '%at last%'"), [(1,)])

    def test_no_process_for_a_daemon(self):
        """The command says that the recording ends, and what the daemon did by then is in the file."""
        begun, go, said = (os.path.join(self.folder, name) for name in ("begun", "go", "said"))
        self.addCleanup(self.file, "go", "")
        with open(said, "w", encoding="utf-8") as file:
            subprocess.run(self.arguments(PYTHON, "-c", DAEMON, begun, go, options=EVERY_RUN), stdout=subprocess.DEVNULL, stderr=file,
                           timeout=300, check=True, env={**os.environ, "NO_FORK_SINCE": begun, "LD_PRELOAD": NO_FORK})
        with open(said, encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines()[-1], "queryprof: %s: recording ends here, although processes still run, "
                             "because it cannot continue in the background (fork: Resource temporarily unavailable)" % self.trace)
        self.assertIsNone(self.collector())
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE '%at first%'"), [(1,)])

    def test_losses_of_a_daemon(self):
        """The losses are in the file after the daemon has ended, and the command's last line says how to see them. The
        collector was stopped, and the daemon did not wait for it."""
        begun, go, ended, said = (os.path.join(self.folder, name) for name in ("begun", "go", "ended", "said"))
        with open(said, "w", encoding="utf-8") as file:
            subprocess.run(self.arguments(PYTHON, "-c", OVERFLOWING, begun, go, ended,
                                          options=(*EVERY_RUN, "--setting", "trace_log_ring_bytes=65536")),
                           stdout=subprocess.DEVNULL, stderr=file, timeout=300, check=True)
        with open(said, encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines()[-1], "queryprof: 1 process still runs, and recording continues until it ends. "
                             "To see what was stored and lost by then: queryprof report " + self.trace)
        wait_until(lambda: os.path.exists(begun), "the daemon")
        pid = self.collector()
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: state(pid) == "T", "the stopped collector")
        open(go, "w").close()
        wait_until(lambda: os.path.exists(ended), "the daemon's end")
        self.assertEqual(state(pid), "T")
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: self.collector() is None, "the collector's end")
        stored, = self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /*%'")[0]
        lost, = self.rows("SELECT sum(samples) FROM losses WHERE reason LIKE 'the ring was full%'")[0]
        self.assertGreater(lost, 0)
        # The name of the thread and the end of the connection may be lost, too.
        self.assertIn(stored + lost, range(3000, 3005))
        report = subprocess.run([QUERYPROF, "report", self.trace], capture_output=True, text=True, check=True)
        self.assertRegex(report.stdout, r"(?m)^lost +{:,} .*the ring was full".format(lost))

    def test_an_environment_that_cannot_be_read(self):
        """The process may be inside exec(). The command skips it after a second, and finds the processes after it."""
        with subprocess.Popen(["sleep", "1000"]) as held:
            self.addCleanup(held.kill)
            environment = {**os.environ, "HELD_PROCESS": str(held.pid), "LD_PRELOAD": HELD_READER}
            done = self.record("true", env=environment)
            self.assertEqual(done.returncode, 0, self.seen)
            self.assertNotIn("still runs", done.stderr)
            done = self.record("sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $!", env=environment)
            left = int(done.stdout)
            self.assertIn("process %d still runs; recording begins with its first query" % left, done.stderr)
            os.kill(left, signal.SIGKILL)
            wait_until(lambda: self.collector() is None, "the collector's end")
            held.kill()

    def test_from_inside(self):
        """The extension shows the rows stored so far, and the file still belongs to the command."""
        own = os.path.join(self.folder, "own.db")
        done = self.record(PYTHON, "-c", FROM_INSIDE, LIBRARY, own)
        self.assertEqual(done.stdout.splitlines(), [self.trace, "1", "False"], self.seen)
        self.assertEqual(done.returncode, 0, self.seen)

    def test_started_from_inside(self):
        """qp_init() finds the existing recording, and does not open a file of its own."""
        own = os.path.join(self.folder, "own.db")
        for before in [], ["before"]:
            with self.subTest(before=before):
                self.trace = os.path.join(self.folder, "%d.trace" % len(before))
                done = self.record(PYTHON, "-c", STARTS, LIBRARY, own, self.trace, *before, options=EVERY_RUN)
                self.assertEqual((done.returncode, done.stdout), (0, "0 0\n0 False 1\n1\n0\n0\n"), self.seen)
                self.assertEqual([name.split()[-1] for name, in self.rows("SELECT query FROM query_log WHERE query LIKE 'SELECT _ AS%'")],
                                 [*before, "started", "again"], self.seen)


if __name__ == "__main__":
    unittest.main(verbosity=2)
