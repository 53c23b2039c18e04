# SPDX-License-Identifier: Apache-2.0
"""queryprof push: the server stores each row exactly once, even if requests fail and push is killed; and push's messages.

usage: test_push.py COMMAND ROOT [unittest arguments]"""
import json
import math
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import case  # noqa: E402
import fake  # noqa: E402
import maker  # noqa: E402
from case import COMMAND, ROOT, environment, push  # noqa: E402

SCHEDULES = int(os.environ.get("QUERYPROF_TEST_SCHEDULES", "3"))
SECRET = "s3cret-value"
HURRIED = os.environ.get("QUERYPROF_TEST_HURRIED")

# Its first process ends, and the other one queries when the file appears.
DAEMON = """
import os, sqlite3, sys, time
ready, begun = os.pipe()
if os.fork():
    os.close(begun)
    os.read(ready, 1)
    os._exit(0)
os.setsid()
db = sqlite3.connect(':memory:')
db.execute('SELECT 1 /* at first */').fetchall()
for fd in range(3):
    os.dup2(os.open('/dev/null', os.O_RDWR), fd)
os.close(begun)
while os.path.exists(os.path.dirname(sys.argv[1])) and not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
db.execute('SELECT 2 /* at last */').fetchall()
"""


class Sent(case.Case):
    def fake(self, **how):
        server = fake.Fake(ROOT, **how)
        self.addCleanup(server.close)
        return server

    def check_all(self, server, file):
        """The server has the same rows as the file."""
        got = {row["timestamp_ns"]: row for row in server.rows["trace_log_rows"].values()
               if row["file"] == file.identity}
        wanted = file.rows("SELECT timestamp_ns, value, query_id, weight, trace, labels, symbols, lines, hostname,"
                           " stack_id FROM trace_log")
        self.assertEqual(len(got), len(wanted))
        for time_ns, value, query_id, weight, trace, labels, symbols, lines, host, stack in wanted:
            row = got[time_ns]
            self.assertEqual((row["value"], row["query_id"], row["weight"], row["hostname"], row["stack_id"]),
                             (value, query_id, weight, host, stack))
            self.assertEqual(row["trace"], json.loads(trace))
            self.assertEqual(row["labels"], json.loads(labels))
            self.assertEqual(row["symbols"], json.loads(symbols))
            self.assertEqual(row["lines"], json.loads(lines))
        queries = {row["run"]: row for row in server.rows["query_log_rows"].values() if row["file"] == file.identity}
        wanted = file.rows("SELECT id, query_duration_ns, query_id, batch FROM queries WHERE id > 0")
        self.assertEqual(
            {run: (row["query_duration_ns"], row["query_id"], row["version"]) for run, row in queries.items()},
            {run: (duration, name, batch) for run, duration, name, batch in wanted})


class Schedules(Sent):
    def one_schedule(self, seed):
        chance = random.Random(seed)
        server = self.fake(seed=seed)
        path = os.path.join(self.folder, f"{seed}.trace")
        file = self.maker(path, seed=seed, stacks=30, depth=5)
        for _ in range(4):
            for _ in range(chance.randrange(3)):
                file.add(chance.randrange(1, 200))
            is_killed = chance.random() < 0.6
            if is_killed:
                server.hold(chance.randrange(1, 4), chance.random() < 0.7)
            processes = [subprocess.Popen([COMMAND, "push", "--retry-for", "1000", path, server.url],
                                          env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                         for _ in range(1 + (chance.random() < 0.2))]
            if is_killed:
                while not server.held.is_set() and any(process.poll() is None for process in processes):
                    time.sleep(0.002)
                for process in processes:
                    process.send_signal(signal.SIGKILL)
                server.go.set()
            for process in processes:
                process.communicate()
            if chance.random() < 0.2:
                for name in os.listdir(self.folder):
                    if name.startswith(f"{seed}.trace-push-"):
                        os.remove(os.path.join(self.folder, name))
        file.add(10)
        last = push("--retry-for", "1000", path, server.url)
        self.assertEqual(last.returncode, 0, last.stderr)
        self.check_all(server, file)
        self.assertFalse(server.rows["losses_rows"])
        return server

    def test_once_in_effect(self):
        repeated = 0
        begin = int(os.environ.get("QUERYPROF_TEST_SEED", "1"))
        for seed in range(begin, begin + SCHEDULES):
            print(f"seed {seed}", flush=True)
            with self.subTest(seed=seed):
                server = self.one_schedule(seed)
                rows = sum(len(rows) for rows in server.rows.values())
                repeated += server.received - rows
        self.assertGreater(repeated, 0, "no schedule repeated anything")


class Following(Sent):
    def test_follows_until_it_is_asked_to_stop(self):
        server, file = self.fake(), self.maker()
        file.add(100)
        process = subprocess.Popen([COMMAND, "push", "--follow", self.path, server.url], env=environment(),
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        for _ in range(2):
            self.wait(lambda: len(server.rows["trace_log_rows"]) == file.total)
            file.add(50)
        self.wait(lambda: len(server.rows["trace_log_rows"]) == file.total)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0)
        self.assertIn(f"{file.total} trace_log_rows", process.stdout.read())
        self.check_all(server, file)

    def test_asked_to_stop_before_it_is_ready(self):
        """`record --push` starts push with SIGTERM blocked. If SIGTERM is pending, push sends what the file contains and
        ends."""
        server, file = self.fake(), self.maker()
        file.add(100)
        process = subprocess.Popen([COMMAND, "push", "--follow", self.path, server.url], env=environment(),
                                   stdout=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]))
        self.addCleanup(process.kill)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(300), 0)
        self.check_all(server, file)

    @unittest.skipIf(os.environ.get("QUERYPROF_TEST_NO_RECORDING"), "under a sanitizer")
    def test_beside_a_recording(self):
        server = self.fake()
        done = subprocess.run(
            [COMMAND, "record", "-o", self.path, "--cpu", "1ms", "--setting", "query_profiler_max_overhead_percent=0", "--push", server.url,
             "--", "/usr/bin/python3", "-c",
             "import sqlite3; d = sqlite3.connect(':memory:'); d.execute('WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL"
             " SELECT x + 1 FROM c WHERE x < 2000000) SELECT sum(x) FROM c').fetchall()"],
            env=environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        file = sqlite3.connect(self.path)
        self.addCleanup(file.close)
        count = file.execute("SELECT count(*) FROM trace_log").fetchone()[0]
        self.assertGreater(count, 0)
        self.assertEqual(len(server.rows["trace_log_rows"]), count, done.stderr)
        self.assertTrue(any("sqlite3VdbeExec" in row["symbols"] or "sqlite3_step" in row["symbols"]
                            for row in server.rows["trace_log_rows"].values()))

    @unittest.skipIf(os.environ.get("QUERYPROF_TEST_NO_RECORDING"), "under a sanitizer")
    def test_beside_a_short_recording(self):
        """The recording ends before push is ready, and push still sends its rows."""
        server = self.fake()
        done = subprocess.run([COMMAND, "record", "-o", self.path, "--setting", "log_queries_min_query_duration_ns=0",
                               "--push", server.url, "--", "sqlite3", ":memory:", "SELECT 'short'"],
                              env=environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (0, "short\n"), done.stderr)
        self.assertTrue(server.rows["query_log_rows"], done.stderr)

    @unittest.skipIf(os.environ.get("QUERYPROF_TEST_NO_RECORDING"), "under a sanitizer")
    def test_beside_a_new_recording(self):
        """push ends with the recording, although the command blocks signals while it renames the old file."""
        server, file = self.fake(), self.maker()
        file.add(100)
        file.db.close()
        done = subprocess.run([COMMAND, "record", "-o", self.path, "--new", "--push", server.url, "--", "true"],
                              env=environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(server.rows["trace_log_rows"], {})

    @unittest.skipIf(os.environ.get("QUERYPROF_TEST_NO_RECORDING"), "under a sanitizer")
    def test_beside_a_daemon(self):
        """The command ends before the daemon that its program has started, whose rows are sent, too."""
        server, go = self.fake(), os.path.join(self.folder, "go")
        self.addCleanup(lambda: open(go, "w").close())
        done = subprocess.run([COMMAND, "record", "-o", self.path, "--setting", "log_queries_min_query_duration_ns=0",
                               "--push", server.url, "--", "/usr/bin/python3", "-c", DAEMON, go],
                              env=environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 process still runs", done.stderr)
        open(go, "w").close()
        self.wait(lambda: any("at last" in row["query"] for row in list(server.rows["query_log_rows"].values())), 300)

    def wait(self, condition, seconds=math.inf):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_a_folder(self):
        server = self.fake()
        files = [self.maker(os.path.join(self.folder, f"{i}.trace"), host=f"host{i}", seed=i) for i in range(3)]
        for i, file in enumerate(files):
            file.add(10 * (i + 1))
        with open(os.path.join(self.folder, "notes.txt"), "w") as other:
            other.write("not a trace file" * 100)
        os.mkfifo(os.path.join(self.folder, "pipe"))
        done = subprocess.run([COMMAND, "push", self.folder, server.url], env=environment(), timeout=300,
                              stdout=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(server.rows["trace_log_rows"]), 60)
        for file in files:
            self.check_all(server, file)

    def bad_file(self, name):
        file = self.maker(os.path.join(self.folder, name), seed=9)
        file.add(20)
        return file

    def damaged_file(self, name, table="samples"):
        """Makes a file in which a table cannot be read."""
        file = self.bad_file(name)
        page, = file.rows(f"SELECT rootpage FROM sqlite_schema WHERE name = '{table}'")[0]
        size, = file.rows("PRAGMA page_size")[0]
        file.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        file.db.close()
        with open(os.path.join(self.folder, name), "r+b") as data:
            data.seek((page - 1) * size)
            data.write(b"\xff" * size)

    def newer_file(self, name):
        file = self.bad_file(name)
        file.db.execute("PRAGMA user_version = 999")
        return file

    def test_bad_files_among_others(self):
        server = self.fake()
        self.newer_file("0.trace")
        self.damaged_file("2.trace")
        files = [self.maker(os.path.join(self.folder, f"{i}.trace"), host=f"host{i}", seed=i + 1, stacks=30, depth=5)
                 for i in (1, 3)]
        for file in files:
            file.add(20)
            file.db.execute("BEGIN")
            for number in range(2500):  # more than one piece
                file.add_spans(number + 1, 2 * number + 2, 1)
            file.db.execute("COMMIT")
        for arguments in ([self.folder], sorted(os.path.join(self.folder, f"{i}.trace") for i in range(4))):
            done = push(*arguments, server.url)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
            self.assertRegex(done.stderr, "0.trace: written by a newer queryprof")
            self.assertRegex(done.stderr, "2.trace: .*malformed")
            self.assertEqual(len(server.rows["span_log_rows"]), 5000)
            for file in files:
                self.check_all(server, file)
        done = push("--dry-run", self.folder, server.url)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (1, 3))

    def test_stacks_that_cannot_be_read(self):
        """push does not send samples with empty stacks instead."""
        server = self.fake()
        self.damaged_file("a.trace", "stacks")
        done = push(self.path, server.url)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "a.trace: .*malformed")
        self.assertFalse(server.rows["trace_log_rows"])

    def test_labels_that_are_none(self):
        server, file = self.fake(), self.maker()
        file.db.execute("UPDATE label_sets SET labels = 'x'")
        file.add(10)
        done = push(self.path, server.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["labels"] for row in server.rows["trace_log_rows"].values()], [{}] * 10)

    def follow(self, *arguments):
        process = subprocess.Popen([COMMAND, "push", "--follow", *arguments], env=environment(), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def has_sent(self, process, server, samples):
        """Waits until push has sent this many samples. Fails if push ends before."""
        self.wait(lambda: len(server.rows["trace_log_rows"]) == samples or process.poll() is not None)
        self.assertEqual(len(server.rows["trace_log_rows"]), samples)

    def test_bad_files_are_left_out_until_they_change(self):
        server = self.fake()
        bad, _ = self.newer_file("bad.trace"), self.newer_file("worse.trace")
        good = self.maker(os.path.join(self.folder, "good.trace"))
        good.add(10)
        process = self.follow(self.folder, server.url)
        for _ in range(2):
            self.has_sent(process, server, good.total)
            bad.add(10)  # the file is still too new
            good.add(10)
        self.has_sent(process, server, good.total)
        version, = good.rows("PRAGMA user_version")[0]
        bad.db.execute(f"PRAGMA user_version = {version}")
        self.has_sent(process, server, good.total + bad.total)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 1)
        self.check_all(server, bad)
        lines = sorted(process.stderr.read().splitlines())
        self.assertEqual(len(lines), 2, lines)
        for line, name in zip(lines, ("bad.trace", "worse.trace")):
            self.assertRegex(line, f"{name}: written by a newer queryprof.*skipped until it changes")

    def test_a_file_that_cannot_be_read_for_a_time(self):
        """When the file can be read again, push continues and does not send everything again."""
        server, file = self.fake(), self.maker()
        file.add(100)
        process = self.follow(self.folder, server.url)
        self.has_sent(process, server, file.total)
        file.db.execute("ALTER TABLE state RENAME TO away")
        self.assertIn("skipped until it changes", process.stderr.readline())
        file.db.execute("ALTER TABLE away RENAME TO state")
        before = server.received
        file.add(10, runs=1)
        self.has_sent(process, server, file.total)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0, process.stderr.read())
        self.assertLess(server.received - before, 50)

    def test_without_a_file_that_can_be_read(self):
        self.newer_file("a.trace")
        process = self.follow(self.path, self.fake().url)
        self.assertEqual(process.wait(), 1)

    @staticmethod
    def opened(process):
        folder, found = f"/proc/{process.pid}/fd", []
        for number in os.listdir(folder):
            try:
                found.append(os.readlink(os.path.join(folder, number)))
            except FileNotFoundError:
                pass
        return [path for path in found if ".trace" in path]

    def test_removed_files_are_closed(self):
        """push sends the rest of a removed file, then closes it. It keeps following the path."""
        server, second = self.fake(), os.path.join(self.folder, "traces", "b.trace")
        os.mkdir(os.path.dirname(second))
        files = [self.maker(), self.maker(second, seed=2)]
        for file in files:
            file.add(10)
        process = self.follow(self.path, os.path.dirname(second), server.url)
        self.has_sent(process, server, 20)
        for file, path in zip(files, (self.path, second)):
            file.add(5)
            os.remove(path)
        self.has_sent(process, server, 30)
        self.wait(lambda: not self.opened(process))
        for path in (self.path, second):
            for name in (path + "-wal", path + "-shm"):
                os.remove(name)
            self.maker(path, seed=3 + len(path)).add(7)
        self.has_sent(process, server, 44)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0, process.stderr.read())

    def test_each_file_has_its_modules(self):
        """After rows were removed, push looks names up again, with the modules of this file, not of the file opened last."""
        server, second = self.fake(), os.path.join(self.folder, "b.trace")
        files = [self.maker(stacks=1, depth=1), self.maker(second, seed=2, stacks=1, depth=1)]
        files[1].db.execute("UPDATE modules SET path = '/opt/other'")
        for file in files:
            file.db.execute("UPDATE stacks SET trace = '[%d]'" % (65536 + 16 * 1000))  # an address without a name
            file.add(5)
        process = self.follow(self.path, second, server.url)
        self.has_sent(process, server, 10)
        files[0].remove(1)
        files[0].add(5)
        self.has_sent(process, server, 15)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0, process.stderr.read())
        for file, name in zip(files, ("app", "other")):
            symbols = {row["symbols"][0].partition("+")[0] for row in server.rows["trace_log_rows"].values()
                       if row["file"] == file.identity}
            self.assertEqual(symbols, {name})

    def test_modules_and_names_that_come_later(self):
        """A recording stores a module with its first stack, and the name of a function later."""
        server, file, address = self.fake(), self.maker(stacks=1, depth=1), 1 << 32

        def add(count, stack):
            before = file.now
            file.add(count, stack=stack)
            self.has_sent(process, server, file.total)
            return {row["symbols"][0] for row in server.rows["trace_log_rows"].values() if row["timestamp_ns"] > before}

        process = self.follow(self.path, server.url)
        add(5, 1)
        file.db.execute("INSERT INTO modules VALUES (2, 'ef', '/opt/later', 1, 1, ?, 1000000, 0)", (address,))
        file.db.execute("INSERT INTO stacks VALUES (2, 2, 1, ?)", (f"[{address + 16}]",))
        self.assertEqual(add(5, 2), {"later+0x10"})
        name = file.db.execute("INSERT INTO names (name) VALUES ('named_later')").lastrowid
        file.db.execute("INSERT INTO frames VALUES (?, 0, 0, ?, ?, 0, 0)", (address + 16, name, name))
        add(1, 1)  # push may have begun this piece before the name was stored
        self.assertEqual(add(5, 2), {"named_later"})
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0, process.stderr.read())

    def test_many_files(self):
        """There are more files than push may have open; the test lowers the limit."""
        server = self.fake()
        for i in range(20):
            self.maker(os.path.join(self.folder, f"{i}.trace"), seed=i + 1, stacks=1).add(1)
        low = (50, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        done = subprocess.run([COMMAND, "push", self.folder, server.url], env=environment(), capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, low))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(server.rows["trace_log_rows"]), 20)

    @unittest.skipUnless(HURRIED, "QUERYPROF_TEST_HURRIED names no library")
    def test_an_hour_without_the_target(self):
        """push tries again every 30 to 60 seconds. A later push sends everything, also what was added meanwhile."""
        server, file = self.fake(), self.maker()
        file.add(100)
        server.take = lambda *what, take=server.take: (
            ("Code: 279. DB::Exception: All connection tries failed", 503) if what[1].get("query") else take(*what))
        server.hold(20, True)
        process = subprocess.Popen([COMMAND, "push", "--retry-for", "3600", self.path, server.url],
                                   env=environment(LD_PRELOAD=HURRIED), stderr=subprocess.PIPE, text=True)
        server.held.wait()
        file.add(200)
        server.go.set()
        said = process.communicate()[1].splitlines()
        self.assertEqual(process.returncode, 1)
        self.assertIn("nothing is lost", said[-1])
        self.assertGreater(server.inserts, 50)
        self.assertLess(server.inserts, 135)  # about ten of them in the first minute
        self.assertLessEqual(len(said), 62, "more than a line a minute")
        del server.take
        self.assertEqual(push(self.path, server.url).returncode, 0)
        self.check_all(server, file)
        self.assertFalse(server.rows["losses_rows"])

    def test_what_was_removed_is_counted(self):
        server, file = self.fake(), self.maker()
        file.add(100)
        self.assertEqual(push(self.path, server.url).returncode, 0)
        file.add(100)
        file.add(100)
        file.remove(250)  # 150 of them were not sent
        done = push(self.path, server.url)
        self.assertIn("150 samples were removed before they could be sent", done.stdout)
        self.assertEqual(sum(row["samples"] for row in server.rows["losses_rows"].values()), 150)
        self.assertEqual(len(server.rows["trace_log_rows"]), 150)

    def counted(self, server):
        """Returns the newest number of calls of each statement."""
        newest = {}
        for row in sorted(server.rows["statement_stats_rows"].values(), key=lambda row: (row["hour_ns"], row["version"])):
            newest[row["normalized_query_hash"]] = row["calls"]
        return newest

    def test_statements_are_counted_when_they_end(self):
        """push sends new counts even if the runs began long ago."""
        server, file = self.fake(), self.maker()
        for turn, (statement, began_s) in enumerate([(1, 1000), (2, 700), (1, 1001), (2, 400), (3, 1), (1, 1002)]):
            file.count(statement, 1, maker.T0 + began_s * 10 ** 9)
            if turn % 2:  # every second time with samples, too
                file.add(10)
            self.assertEqual(push(self.path, server.url).returncode, 0)
            self.assertEqual(self.counted(server), dict(file.rows("SELECT normalized_query_hash, calls FROM statement_counters")))
        sent = server.received
        self.assertEqual(push(self.path, server.url).returncode, 0)
        self.assertEqual(server.received, sent, "what did not change was sent again")

    def test_counters_of_an_older_version(self):
        server, file = self.fake(), self.maker()
        file.count(1, 5, maker.T0)
        file.db.executescript("UPDATE statement_counters SET batch = 0; UPDATE state SET statement_batches = 0;")
        self.assertEqual(push(self.path, server.url).returncode, 0)
        self.assertEqual(self.counted(server), {1000003: 5})

    def test_position_of_an_older_version(self):
        """The old state has a time as the position of the counters, so push sends the counters again, but not the samples."""
        server, file, state = self.fake(), self.maker(), os.path.join(self.folder, "state")
        file.add(10)
        file.count(1, 5, maker.T0)
        position = f"{file.identity} 1 10 1 0 0 {maker.T0}"
        with open(state, "w") as record:
            record.write(f"queryprof push 1 {position} {position} 4e7c072d3b17f680".ljust(383) + "\n")
        self.assertEqual(push("--state", state, self.path, server.url).returncode, 0)
        self.assertFalse(server.rows["trace_log_rows"])
        self.assertEqual(self.counted(server), {1000003: 5})
        with open(state) as record:
            self.assertTrue(record.read().startswith("queryprof push 2 "))

    def test_spans(self):
        server = self.fake()
        wanted = self.fixed_traces().execute(
            "SELECT trace_id, span_id, parent_span_id, operation_name, kind, status, start_time_ns, finish_time_ns, query_id,"
            " attribute, line, thread_name FROM span_log").fetchall()
        self.assertEqual(push(self.path, server.url).returncode, 0)
        found = [(*(row[name] for name in ("trace_id", "span_id", "parent_span_id", "operation_name", "kind", "status",
                                           "start_time_ns", "finish_time_ns", "query_id")),
                  {key: str(value) for key, value in row["attribute"].items()}, row["source_line"], row["thread_name"])
                 for row in server.rows["span_log_rows"].values()]
        self.assertTrue(wanted)
        self.assertCountEqual(found, [
            (*row[:9], {key: str(value) for key, value in json.loads(row[9]).items()}, *row[10:]) for row in wanted])

    def test_words(self):
        """The output is the same on terminals of any width and without a terminal."""
        for columns in (None, 80, 120, 200):
            with self.subTest(columns=columns):
                server = self.fake()
                if os.path.exists(self.path):
                    os.unlink(self.path)
                file = self.maker()
                file.add(100)
                width = {"COLUMNS": str(columns)} if columns else {}
                for counts in ("100 trace_log_rows, 2 query_log_rows, 1 modules_rows", "0 trace_log_rows"):
                    server.seen.clear()
                    done = push(self.path, server.url, **width)
                    sent = sum(len(body) for *_, body in server.seen)
                    self.assertEqual((done.returncode, done.stdout, done.stderr),
                                     (0, "queryprof: %s; %d bytes in %d requests, 0 of them retries\n" % (counts, sent, len(server.seen)), ""))
                done = push("--dry-run", self.path, server.url, **width)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (0, "%s: 0 samples and 0 queries would be sent to %s\n" % (self.path, server.url), ""))

    def test_dry_run(self):
        server, file = self.fake(), self.maker()
        file.add(100)
        said = push("--dry-run", self.path, server.url).stdout
        self.assertIn("100 samples and 2 queries would be sent", said)
        self.assertFalse(server.seen)
        push(self.path, server.url)
        self.assertIn("0 samples and 0 queries", push("--dry-run", self.path, server.url).stdout)

    def test_no_faster_than_set(self):
        server, file = self.fake(), self.maker()
        file.add(20000)
        begin = time.monotonic()
        done = push("--max-bytes-per-second", "1000000", self.path, server.url)
        took = time.monotonic() - begin
        sent = sum(len(body) for _, _, _, body in server.seen)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(sent, 200000)
        # A request that fits into the sockets' buffers is sent without delay.
        self.assertGreater(took, 0.3 * sent / 1000000)

    def test_slow_by_request(self):
        """The time limit of a request is not for what --max-bytes-per-second makes it wait."""
        server, file = self.fake(), self.maker()
        file.add(5000)
        done = push("--max-bytes-per-second", "50000", "--timeout", "5", "--retry-for", "0", self.path, server.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(max(len(body) for _, _, _, body in server.seen), 8 * 50000)


class Ways(Sent):
    """Encrypted connections, and proxies."""

    def make_certificate(self, name, address):
        path = os.path.join(self.folder, name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName=IP:{address}", "-keyout", path,
                        "-out", path + ".pem"], check=True, capture_output=True)
        with open(path, "a") as both, open(path + ".pem") as certificate:
            both.write(certificate.read())
        return path, path + ".pem"

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl")
    def test_tls(self):
        file = self.maker()
        file.add(10)
        both, own = self.make_certificate("one", "127.0.0.1")
        server = self.fake(certificate=both)
        for authorities in ([], ["--ca", self.make_certificate("two", "127.0.0.1")[1]]):
            done = push("--retry-for", "0", *authorities, self.path, server.url, QUERYPROF_PUSH_USER="me",
                        QUERYPROF_PUSH_PASSWORD=SECRET)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "(?i)certificate")
            self.assertFalse(server.seen, "a password went to a server without a valid certificate")
        done = push("--ca", own, self.path, server.url, QUERYPROF_PUSH_USER="me", QUERYPROF_PUSH_PASSWORD=SECRET)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_all(server, file)
        # This authority signed the certificate, but for another address.
        both, own = self.make_certificate("other", "127.0.0.2")
        done = push("--retry-for", "0", "--ca", own, self.path, self.fake(certificate=both).url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1", done.stderr)

    def test_proxy(self):
        """The fake server is the proxy, so it gets the whole URL."""
        server, file = self.fake(), self.maker()
        file.add(10)
        target = "http://clickhouse.invalid:8123/"
        self.assertEqual(push(self.path, target, http_proxy=server.url).returncode, 0)
        self.check_all(server, file)
        done = push("--retry-for", "0", self.path, target, http_proxy=server.url, no_proxy="clickhouse.invalid")
        self.assertIn("clickhouse.invalid", done.stderr)
        self.assertEqual(done.returncode, 1)


class Messages(Sent):
    """An error is at most two lines and an exit status. It loses nothing and shows no secret."""

    def setUp(self):
        super().setUp()
        self.file = self.maker()
        self.file.add(10)

    def refused(self, server, *arguments, **more):
        done = push(self.path, getattr(server, "url", server), *arguments, QUERYPROF_PUSH_USER="me",
                    QUERYPROF_PUSH_PASSWORD=SECRET, **more)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn(SECRET, done.stdout + done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 2, done.stderr)
        return done.stderr

    def test_password(self):
        server = self.fake()
        server.reply = ("Code: 193, e.displayText() = DB::Exception: Wrong password for user me", 401)
        self.assertIn("Wrong password", self.refused(server))
        name = server.seen[0][2]["Authorization"]
        self.assertTrue(name.startswith("Basic "))

    def test_no_database(self):
        server = self.fake()
        server.reply = ("Code: 81. DB::Exception: Database nowhere doesn't exist", 404)
        self.assertIn("doesn't exist", self.refused(server))

    def test_no_tables(self):
        server = self.fake()
        del server.tables["trace_log_rows"]
        self.assertIn("tables.sql", self.refused(server))

    def test_other_columns(self):
        server = self.fake()
        del server.tables["trace_log_rows"]["weight"]
        self.assertIn("the target's table trace_log_rows has no column weight", self.refused(server))
        server.tables["trace_log_rows"]["weight"] = "IPv6"
        self.assertIn("has the type IPv6", self.refused(server))
        server.tables["trace_log_rows"]["weight"] = "UInt16"
        self.assertEqual(push(self.path, server.url).returncode, 0)
        self.check_all(server, self.file)

    def test_no_clickhouse(self):
        server = self.fake()
        server.reply = ("hello", 200)
        self.assertIn("not a ClickHouse server", self.refused(server))

    def test_nobody_listens(self):
        with socket.socket() as bound:  # reserves a port and does not listen
            bound.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
            self.assertIn("nothing is lost", self.refused(url, "--retry-for", "1"))

    def test_full_server(self):
        server = self.fake()
        server.take = lambda *what, take=server.take: (
            ("Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space", 500)
            if what[1].get("query") else take(*what))
        self.assertIn("not enough space", self.refused(server, "--retry-for", "0"))
        del server.take
        self.assertEqual(push(self.path, server.url).returncode, 0)
        self.check_all(server, self.file)

    def test_secrets_in_the_target(self):
        for url in (f"http://me:{SECRET}@127.0.0.1:1/", f"http://127.0.0.1:1/?user=me&password={SECRET}"):
            self.assertIn("--credentials", self.refused(url))

    def test_credentials_file(self):
        server, path = self.fake(), os.path.join(self.folder, "secrets")
        with open(path, "w") as file:
            file.write(f"user me\npassword {SECRET}\nheader X-Token: {SECRET}\n")
        os.chmod(path, 0o644)
        self.assertIn("other users can read it", self.refused(server, "--credentials", path))
        os.chmod(path, 0o600)
        self.assertEqual(push("--credentials", path, self.path, server.url).returncode, 0)
        self.assertEqual(server.seen[0][2]["X-Token"], SECRET)

    def test_options_that_need_others(self):
        for arguments, words in ((["--every", "5", self.path], ("--every 5", "--follow")),
                                 (["--ca", "own.pem", self.path], ("--ca own.pem", "https://")),
                                 (["--state", "S", self.path, self.path], ("--state S", "one file", "2")),
                                 (["--state", "S", self.folder], ("--state S", "one file", self.folder + " is a folder"))):
            done = push("--retry-for", "0", *arguments, "http://127.0.0.1:1/")
            self.assertEqual(done.returncode, 2, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_two_at_once(self):
        server = self.fake()
        process = subprocess.Popen([COMMAND, "push", "--follow", self.path, server.url], env=environment(),
                                   stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        while not server.rows["trace_log_rows"]:
            time.sleep(0.02)
        self.assertIn("another push of this file", self.refused(server))


if __name__ == "__main__":
    case.main()
