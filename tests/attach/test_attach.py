#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`queryprof attach` records running programs, which continue undisturbed.

usage: test_attach.py QUERYPROF ALLOCATES WAITS STATIC COROUTINE METHODS Attach|Random [TIMES]
ALLOCATES to METHODS are the programs of the C files of these names. Random attaches TIMES times to each host."""

import glob
import random
import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

ALLOCATES, WAITS, STATIC, COROUTINE, METHODS = (os.path.abspath(sys.argv.pop(1)) for _ in range(5))
TIMES = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 0
SEED = int(os.environ.get("QUERYPROF_TEST_SEED", "47"))

# Prints at the end whether all results were right.
QUERIES = """
import os, sqlite3, sys, threading
stop = sys.argv[1]
wrong = []
def work():
    db = sqlite3.connect(":memory:")
    while not os.path.exists(stop):
        if db.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5000) SELECT sum(x) FROM c").fetchone() != (12502500,):
            wrong.append("sum")
threads = [threading.Thread(target=work) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
print("ready", flush=True)
work()
for thread in threads:
    thread.join()
print("wrong" if wrong else "right")
"""

FORKS = """
import os, sqlite3, sys, threading
stop = sys.argv[1]
wrong = []
def allocate():
    while not os.path.exists(stop):
        if len(b"".join(bytes(i) for i in range(300))) != 44850:
            wrong.append("bytes")
def query():
    db = sqlite3.connect(":memory:")
    while not os.path.exists(stop):
        if db.execute("SELECT count(*) FROM (VALUES (1), (2), (3))").fetchone() != (3,):
            wrong.append("count")
threads = [threading.Thread(target=what) for what in (allocate, allocate, query, query)]
for thread in threads:
    thread.start()
print("ready", flush=True)
while not os.path.exists(stop):
    child = os.fork()
    if child == 0:
        os._exit(7)
    if os.waitpid(child, 0)[1] != 7 << 8:
        wrong.append("child")
for thread in threads:
    thread.join()
print("wrong" if wrong else "right")
"""

# Forks when the file STOP.fork appears, and prints the child's process id. Both processes run queries until the end.
FORKED = """
import os, sqlite3, sys
stop = sys.argv[1]
wrong = []
def query(until):
    db = sqlite3.connect(":memory:")
    while not os.path.exists(until):
        if db.execute("SELECT count(*) FROM (VALUES (1), (2), (3))").fetchone() != (3,):
            wrong.append("count")
print("ready", flush=True)
query(stop + ".fork")
child = os.fork()
if child:
    print(child, flush=True)
query(stop)
if not child:
    os._exit(7)
if os.waitpid(child, 0)[1] != 7 << 8:
    wrong.append("child")
print("wrong" if wrong else "right")
"""

# Forks a child, which starts a program. Starts another program when the file STOP.start appears. The process ids of the three
# are printed, those of the programs by themselves, because nothing can attach to a program that is being loaded. All run
# queries until the end.
TREE = """
import os, sqlite3, subprocess, sys, time
stop, starts = sys.argv[1], len(sys.argv) > 3
wrong = []
def start(*more):
    return subprocess.Popen([sys.executable, "-c", sys.argv[2], stop, sys.argv[2], *more])
def query(until):
    db = sqlite3.connect(":memory:")
    while not os.path.exists(until):
        if db.execute("SELECT count(*) FROM (VALUES (1), (2), (3))").fetchone() != (3,):
            wrong.append("count")
child = os.fork() if starts else 0
if child:
    print(child, flush=True)
    query(stop + ".start")
program = start() if starts else None
if not starts:
    print(os.getpid(), flush=True)
query(stop)
if program and program.wait() or wrong:
    os._exit(1)
if child and os.waitpid(child, 0)[1] == 0:
    print("right")
os._exit(0)
"""

# Runs each line that arrives.
LINES = """
import sqlite3, sys, time
def pause(seconds):
    print("pauses", flush=True)
    time.sleep(seconds)
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.create_function("pause", 1, pause)
print("ready", flush=True)
for line in sys.stdin:
    print(db.execute(line.strip()).fetchone()[0], flush=True)
"""

# The same, but the statements run on a thread of their own.
LINES_IN_A_THREAD = """
import queue, sqlite3, sys, threading
lines = queue.Queue()
def work():
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    for line in iter(lines.get, None):
        print((db.execute(line).fetchone() or ["done"])[0], flush=True)
threading.Thread(target=work).start()
print("ready", flush=True)
for line in sys.stdin:
    lines.put(line.strip())
lines.put(None)
"""

ENDLESS_TEXT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
ENDLESS = "import sqlite3; print('ready', flush=True); sqlite3.connect(':memory:').execute('%s').fetchall()" % ENDLESS_TEXT


class Hosts(Recording):
    def setUp(self):
        super().setUp()
        self.stop = os.path.join(self.folder, "stop")

    def start(self, *command):
        """Starts a host. If the test does not end it, the cleanup does."""
        host = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(host.stdout.close)
        self.addCleanup(host.stdin.close)
        self.addCleanup(host.wait)
        self.addCleanup(host.kill)
        return host

    def start_queries(self, program=QUERIES, threads=0):
        host = self.start(PYTHON, "-c", program, self.stop, str(threads))
        self.assertEqual(read_line(host.stdout, "the host's queries"), "ready\n")
        return host

    def start_lines(self, database=":memory:", program=LINES):
        host = self.start(PYTHON, "-c", program, database)
        self.assertEqual(read_line(host.stdout, "the host"), "ready\n")
        return host

    def run_line(self, host, sql, expected):
        print(sql, file=host.stdin, flush=True)
        self.assertEqual(read_line(host.stdout, sql), expected + "\n")

    def begin_pause(self, host):
        """The host sleeps in a statement, for at least 0.2 s when this returns."""
        print("SELECT pause(300)", file=host.stdin, flush=True)
        self.assertEqual(read_line(host.stdout, "the function"), "pauses\n")
        wait_until(lambda: state(host.pid) == "S", "its sleep")
        time.sleep(0.2)

    @staticmethod
    def cpu_seconds(process):
        with open("/proc/%d/stat" % process, encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def timers(self, process):
        with open("/proc/%d/timers" % process, encoding="ascii") as file:
            return file.read()

    def start_methods(self):
        """Returns the host, and a function that makes it write and returns the objects that own the methods of its files."""
        host = self.start(METHODS, os.path.join(self.folder, "methods.db"))
        self.assertEqual(read_line(host.stdout, "the host's queries"), "ready\n")

        def owners():
            print(file=host.stdin, flush=True)
            return read_line(host.stdout, "the owners")
        return host, owners

    def finish(self, host):
        """Ends the host, which must print and return the same as without a recording."""
        with open(self.stop, "w", encoding="ascii"):
            pass
        said = host.communicate(timeout=300)[0]
        self.assertEqual((said, host.returncode), ("right\n", 0))

    def attach(self, host, *options, **named):
        command = [QUERYPROF, "attach", "--new", "--no-symbols", "-o", self.trace, *options, str(getattr(host, "pid", host))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **named)
        self.seen = done.stderr
        return done

    def attached(self, host, *options):
        done = self.attach(host, "--for", "300ms", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def number(self, sql):
        """Returns the value of the query, or 0 if the table does not exist yet or the value is NULL."""
        db = sqlite3.connect(self.trace)
        try:
            return db.execute(sql).fetchone()[0] or 0
        except sqlite3.OperationalError:
            return 0
        finally:
            db.close()

    def begin(self, host, *options):
        command = subprocess.Popen([QUERYPROF, "attach", "--new", "--no-symbols", "-o", self.trace, *options, str(host.pid)],
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(command.stderr.close)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        said = read_line(command.stderr, "that it is attached")
        self.assertIn("attached to process %d" % host.pid, said)
        return command

    def interrupt(self, command):
        command.send_signal(signal.SIGINT)
        said = self.end_of(command)
        self.assertEqual(command.returncode, 0, said)
        return said

    @staticmethod
    def end_of(command):
        """Waits for the end of the command. Returns what it printed until then."""
        with bounded("the end of attach"):
            said = command.stderr.read()
            command.wait()
        return said

    def until(self, host, sql, *options):
        """Attaches until the query on the trace file returns a value other than 0. Returns what the command printed."""
        command = self.begin(host, *options)
        wait_until(lambda: self.number(sql), sql)
        return self.interrupt(command)

    def what_it_has(self, host):
        with open("/proc/%d/status" % host.pid, encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file)
        folder = "/proc/%d/fd" % host.pid
        links = {fd: os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)}
        return status["Threads"], status["TracerPid"], status["SigBlk"], links, self.timers(host.pid)


class Attach(Hosts):
    def test_queries(self):
        """Each of five recordings has samples and the plan, and leaves nothing in the host but memory."""
        host = self.start_queries()
        before = self.what_it_has(host)
        for _ in range(5):
            self.until(host, "SELECT count(*) > 50 FROM samples", "--cpu", "1ms")
            plan = subprocess.run([QUERYPROF, "plan", self.trace, "RECURSIVE"], capture_output=True, text=True, check=False)
            self.assertIn("SCAN c", plan.stdout, plan.stderr)
            self.assertEqual(self.what_it_has(host), before)
        self.finish(host)

    def test_interrupt(self):
        """Ctrl-C ends the recording but not the process."""
        host = self.start_queries(threads=2)
        before = self.what_it_has(host)
        said = self.until(host, "SELECT sum(calls) FROM statement_counters")
        self.assertRegex(said, r"detached from process(.|\n)* [1-9][0-9]* run")
        self.assertEqual(self.what_it_has(host), before)
        self.finish(host)

    def test_last_runs(self):
        """Runs that end just before the recording are stored, too, although records may wait for half a second."""
        host = self.start_lines()
        command = self.begin(host, "--setting", "log_queries_min_query_duration_ns=0")
        for i in range(1, 5):
            self.run_line(host, "SELECT %d" % i, str(i))
            if i == 1:
                wait_until(lambda: self.number("SELECT count(*) FROM query_log"), "the first run")
        said = self.interrupt(command)
        self.assertEqual(self.rows("SELECT query FROM query_log ORDER BY 1"), [("SELECT %d" % i,) for i in range(1, 5)], said)
        self.assertEqual(self.rows("SELECT sum(calls) FROM statement_stats WHERE query LIKE 'SELECT _'"), [(4,)], said)
        host.communicate()

    def test_again(self):
        """A second recording of the same threads has their names, the sums of the WAL, and the wait that is open when the
        process is killed."""
        path = os.path.join(self.folder, "app.db")
        database = sqlite3.connect(path, isolation_level=None)
        self.assertEqual(database.execute("PRAGMA journal_mode = WAL").fetchone(), ("wal",))
        database.execute("CREATE TABLE t(x)")
        host = self.start_lines(path)
        for _ in range(2):
            command = self.begin(host, "--cpu", "1ms", "--setting", "query_profiler_max_overhead_percent=0")
            for _ in range(5):
                self.run_line(host, SLOW, ANSWER)  # a thread sends its name with its samples
            for i in range(20):
                self.run_line(host, "INSERT INTO t VALUES (%d) RETURNING x" % i, str(i))
            said = self.interrupt(command)
            self.assertIn(("python3",), self.rows("SELECT thread_name FROM threads"), said)
            self.assertEqual(self.rows("SELECT sum(transactions) FROM wal_log WHERE event = 'append'"), [(20,)], said)
        command = self.begin(host)
        self.begin_pause(host)
        host.kill()
        said = self.end_of(command)
        self.assertEqual(self.rows("SELECT max(wait_ns) > 100000000 FROM trace_log WHERE trace_type = 'OffCPU'"), [(1,)], said)
        database.close()

    def test_transaction_between(self):
        """A recording has the pages that a transaction writes to the WAL in its time, and none that it wrote before."""
        path = os.path.join(self.folder, "app.db")
        database = sqlite3.connect(path, isolation_level=None)
        self.assertEqual(database.execute("PRAGMA journal_mode = WAL").fetchone(), ("wal",))
        database.execute("CREATE TABLE t(x)")
        host = self.start_lines(path, LINES_IN_A_THREAD)
        command = self.begin(host)
        for line in ("PRAGMA cache_size = 5", "BEGIN", "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)"
                     " SELECT hex(zeroblob(500)) FROM n"):
            self.run_line(host, line, "done")
        before = os.path.getsize(path + "-wal")
        self.assertGreater(before, 50 * 4096)
        self.interrupt(command)
        command = self.begin(host)
        self.run_line(host, "COMMIT", "done")
        said = self.interrupt(command)
        journal, writes, wal = self.rows("SELECT total(journal_bytes), total(writes), total(wal_bytes) FROM page_io")[0]
        self.assertEqual((journal, wal), (0, writes * (4096 + 24)), said)
        # A page that the transaction had written before may get its frame again.
        grown = os.path.getsize(path + "-wal") - before
        self.assertGreater(grown, 0)
        self.assertIn(wal, range(grown, before), said)
        database.close()

    def test_open_wait(self):
        """A wait that goes on when the recording ends has a sample. Another process has the file locked at that moment."""
        host = self.start_lines()
        command = self.begin(host)
        self.begin_pause(host)
        wait_until(self.has_views, "the file")
        other = sqlite3.connect(self.trace, isolation_level=None, timeout=60)
        other.execute("BEGIN IMMEDIATE")
        command.send_signal(signal.SIGINT)
        time.sleep(1)
        other.close()
        said = self.end_of(command)
        self.assertEqual(self.rows("SELECT max(wait_ns) > 100000000 FROM trace_log WHERE trace_type = 'OffCPU'"), [(1,)], said)

    def test_end_of_the_process(self):
        host = self.start_queries()
        command = self.begin(host)
        wait_until(lambda: self.number("SELECT sum(calls) FROM statement_counters"), "runs")
        self.finish(host)
        said = self.end_of(command)
        self.assertEqual((command.returncode, "detached" in said), (0, False), said)
        self.assertRegex(said, " [1-9][0-9]* run")

    def test_killed(self):
        """Only one command can attach at a time. After it is killed, the process continues, and another command can attach."""
        host = self.start_queries(threads=1)
        command = self.begin(host)
        self.trace += "2"
        refused = self.attach(host)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("process %d (queryprof) is attached to it already" % command.pid, refused.stderr)
        command.kill()
        command.wait()
        self.until(host, "SELECT sum(calls) FROM statement_counters")
        self.finish(host)

    def test_begun_before(self):
        """attach prints the statement that was already running."""
        host = self.start(PYTHON, "-c", ENDLESS)
        self.assertEqual(read_line(host.stdout, "the host's queries"), "ready\n")
        before = self.cpu_seconds(host.pid)
        wait_until(lambda: self.cpu_seconds(host.pid) > before + 0.2, "the statement")
        command = self.begin(host)
        said = self.interrupt(command)
        self.assertIn("thread %d executed this statement already; it is recorded from its next call on: %s\n" % (host.pid, ENDLESS_TEXT), said)

    def test_forked(self):
        """attach also records a child that the host forks, and detaches from it, too, however the command ends."""
        for end in self.interrupt, self.kill:
            with self.subTest(end.__name__):
                host = self.start_queries(FORKED)
                command = self.begin(host, "--cpu", "1ms")
                with open(self.stop + ".fork", "w", encoding="ascii"):
                    pass
                child = int(read_line(host.stdout, "a child"))
                wait_until(lambda: self.timers(child), "a timer of the child")
                end(command)
                self.assertEqual((self.timers(host.pid), self.timers(child)), ("", ""))
                self.finish(host)
                os.unlink(self.stop)
                os.unlink(self.stop + ".fork")

    def test_tree(self):
        """--tree also records the processes that the host forked and started before, and those that it starts later, but no
        others."""
        host = self.start(PYTHON, "-c", TREE, self.stop, TREE, "starts")
        other = self.start_queries()
        pids = [host.pid, *(int(read_line(host.stdout, "two children")) for _ in range(2))]
        command = self.begin(host, "--tree", "--cpu", "1ms")
        with open(self.stop + ".start", "w", encoding="ascii"):
            pass
        pids.append(int(read_line(host.stdout, "a child")))
        sampled = ("SELECT count(DISTINCT process) = 4 FROM samples JOIN series ON series.id = series "
                   "JOIN threads ON threads.id = thread JOIN processes ON processes.id = process WHERE process_id IN (%s)" %
                   ", ".join(map(str, pids)))
        wait_until(lambda: self.number(sampled), "samples of four processes")
        self.assertEqual(self.timers(other.pid), "")
        said = self.interrupt(command)
        for pid in pids:
            self.assertIn("detached from process %d;" % pid, said)
            self.assertEqual(self.timers(pid), "")
        command = self.begin(host, "--tree", "--cpu", "1ms")
        wait_until(lambda: self.number(sampled), "samples of four processes")
        self.finish(host)
        said = self.end_of(command)
        self.assertEqual((command.returncode, "detached" in said), (0, False), said)
        self.assertRegex(said, " 4 processes")
        other.communicate()

    def kill(self, command):
        """Kills the command. Its child, which holds the same pipe, ends after it."""
        command.kill()
        return self.end_of(command)

    def test_killed_alone(self):
        """If the command is killed and no other one attaches, its child still detaches and leaves nothing in the host."""
        host, owners = self.start_methods()
        own = owners()
        before = self.what_it_has(host)
        command = self.begin(host, "--cpu", "1ms")
        self.assertNotEqual(owners(), own)
        self.assertNotEqual(self.what_it_has(host)[3:], before[3:])
        self.assertIn("detached from process %d" % host.pid, self.kill(command))
        self.assertEqual(owners(), own)
        self.assertEqual(self.what_it_has(host), before)

    def test_methods_of_files(self):
        """After each of two recordings, all methods are SQLite's own again."""
        host, owners = self.start_methods()
        own = owners()
        self.assertRegex(own, "^/libsqlite3[^/]*\n$")
        for _ in range(2):
            command = self.begin(host)
            self.assertIn("queryprof-recorder", owners())
            self.interrupt(command)
            self.assertGreater(self.number("SELECT count(*) FROM checkpoints"), 0, self.seen)
            self.assertEqual(owners(), own)

    def refused(self, host, sentence, code=1):
        done = self.attach(host, "--for", "1s")
        self.assertRegex(done.stderr, sentence)
        self.assertEqual(done.returncode, code)
        self.assertFalse(os.path.exists(self.trace), "no empty file is left")

    def test_refusals(self):
        self.refused("abc", "abc; expected a process id", 2)
        self.refused(4194303, "there is no process 4194303")
        self.refused(self.start(STATIC), "it is a static program")
        coroutine = self.start(COROUTINE)
        self.assertEqual(read_line(coroutine.stdout, "the coroutine"), "ready\n")
        self.refused(coroutine, "its threads are on stacks of coroutines or signal handlers")
        stopped = self.start("sleep", "100")
        stopped.send_signal(signal.SIGSTOP)
        wait_until(lambda: state(stopped.pid) == "T", "the stop")
        self.refused(stopped, "it is stopped by a signal: let it continue first")
        done = self.record(PYTHON, "-c", "import os, sqlite3, subprocess; sqlite3.connect(':memory:').execute('SELECT 1');"
                           "print(subprocess.run([%r, 'attach', str(os.getpid())], stderr=subprocess.PIPE, env={}, cwd=%r).stderr)"
                           % (QUERYPROF, self.folder))
        self.assertIn("it was started by queryprof record", done.stdout)

    def test_no_sqlite(self):
        """The host loads SQLite later, with a module, and is recorded from then on."""
        program = QUERIES.replace("import os, sqlite3, sys, threading", """
import os, sys, threading, time
print("ready", flush=True)
while not os.path.exists(sys.argv[1] + ".begin"):
    time.sleep(0.01)
import sqlite3""").replace('print("ready", flush=True)\nwork', "work")
        host = self.start_queries(program)
        self.attached(host)
        self.assertIn("nothing was recorded: the process called no shared SQLite library", self.seen)
        command = self.begin(host)
        with open(self.stop + ".begin", "w", encoding="ascii"):
            pass
        wait_until(lambda: self.number("SELECT sum(calls) FROM statement_counters"), "runs")
        self.interrupt(command)
        self.finish(host)


class Random(Hosts):
    """Attaches repeatedly at random times."""

    def again_and_again(self, host):
        chance = random.Random(SEED)
        self.seen = "seed %d" % SEED
        for i in range(TIMES):
            time.sleep(chance.random() / 20)
            command = subprocess.Popen([QUERYPROF, "attach", "--new", "--quiet", "--no-symbols", "-o", self.trace, "--for",
                                        "%dms" % chance.randrange(1, 60), str(host.pid)], stderr=subprocess.PIPE, text=True)
            if i % 4 == 3:  # the command is killed
                time.sleep(chance.random() / 20)
                command.kill()
                command.communicate()
                wait_until(lambda: self.what_it_has(host)[1].strip() == "0", "the end of the stop")
                # The command may have been killed before it marked the file as a trace file. --new does not replace other
                # files.
                for file in glob.glob(self.trace + "*"):
                    os.unlink(file)
                continue
            said = command.communicate(timeout=300)[1]
            self.assertIn(command.returncode, (0, 1), said)
            if command.returncode:  # no thread was where attach can make it call a function
                self.assertIn("its threads are", said)
            self.assertIsNone(host.poll(), host.stdout.read() if host.poll() is not None else "")

    def test_queries(self):
        host = self.start_queries(threads=2)
        self.again_and_again(host)
        self.finish(host)

    def test_shell(self):
        host = self.start("sqlite3", ":memory:", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000000000)"
                          " SELECT sum(x) FROM c")
        self.again_and_again(host)
        self.assertIsNone(host.poll())

    def test_forks(self):
        host = self.start_queries(FORKS)
        self.again_and_again(host)
        self.finish(host)

    def ends_by_itself(self, program):
        host = self.start(program, str(TIMES))
        self.again_and_again_until_it_ends(host)

    def again_and_again_until_it_ends(self, host):
        chance = random.Random(SEED)
        while host.poll() is None:
            time.sleep(chance.random() / 20)
            self.attach(host, "--quiet", "--for", "%dms" % chance.randrange(1, 60))
        said = host.communicate(timeout=300)[0]
        self.assertEqual((said, host.returncode), ("right\n", 0), "seed %d" % SEED)

    def test_waits(self):
        self.ends_by_itself(WAITS)

    def test_allocates(self):
        self.ends_by_itself(ALLOCATES)


if __name__ == "__main__":
    unittest.main()
