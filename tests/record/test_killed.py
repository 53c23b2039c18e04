#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Processes under `queryprof record` that are killed, or end by a bare system call. The file contains their committed data,
once.

usage: test_killed.py QUERYPROF KILLED: a program that runs queries until it is killed

QUERYPROF_TEST_ROUNDS: the number of processes that are killed (default 16)."""

import collections
import random
import shutil
import struct
import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

KILLED = os.path.abspath(sys.argv.pop(1))
ROUNDS = int(os.environ.get("QUERYPROF_TEST_ROUNDS", "16"))
SEED = int(os.environ.get("QUERYPROF_TEST_SEED", "10"))
THREADS_MAX = 8
WORKERS = min(9, 1 + ROUNDS)
SAMPLES_BITS = 24

# Each query has a row, and samples are many. A long interval leaves more in the ring. With a short one, the flusher is
# killed during its work.
EVERY_QUERY = ("--cpu", "200us", "--real", "500us", "--setting", "log_queries_min_query_duration_ns=0")
INTERVALS_MS = (1, 20, 5000)


class Killed(Recording):
    def setUp(self):
        super().setUp()
        self.ledger = os.path.join(self.folder, "ledger")
        self.random = random.Random(SEED)
        self.running_samples = 0
        print("QUERYPROF_TEST_SEED=%d" % SEED)

    def start(self, threads, *way, interval_ms, options=EVERY_QUERY):
        # Each query is a statement of its own. Above the limit, the least used ones would be counted together.
        options = (*options, "--setting", "trace_log_flush_interval_ms=%d" % interval_ms, "--setting", "log_statements_max=20000")
        return subprocess.Popen(self.arguments(KILLED, LIBRARY, self.ledger, str(threads), *way, options=options),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def accounts(self, place):
        """Two numbers for each thread of a process: its ended queries, and its running query."""
        try:
            with open(self.ledger, "rb") as file:
                file.seek(place * THREADS_MAX * 16)
                return struct.unpack("%dq" % (THREADS_MAX * 2), file.read(THREADS_MAX * 16))
        except (FileNotFoundError, struct.error):
            return (0,) * THREADS_MAX * 2

    def ended(self, place=0):
        return self.accounts(place)[::2]

    def stored(self):
        """The numbers of the queries in the file, by process and thread."""
        found = collections.defaultdict(list)
        for (text,) in self.rows("SELECT query FROM query_log WHERE query LIKE '%q\\_%' ESCAPE '\\'"
                                 " AND type = 'QueryFinish'"):
            place, thread, number = text.split(" q_")[1].split()[0].split("_")
            found[int(place), int(thread)].append(int(number))
        return found

    def counted(self):
        """The number of runs in the statements' counters, by process and thread."""
        found = collections.Counter()
        for text, calls in self.rows("SELECT query, calls FROM statement_stats WHERE query LIKE '%q\\_%' ESCAPE '\\'"
                                     " OR query = '(other)'"):
            name = tuple(map(int, text.split(" q_")[1].split()[0].split("_")[:2])) if " q_" in text else None
            found[name] += calls
        return found

    def expect_counted(self, places):
        found = self.counted()
        for place in places:
            for thread, ended in enumerate(self.ended(place)):
                # queryprof may have counted the last query before the host did.
                self.assertIn(found[place, thread], (ended, ended + 1),
                              "process %d, thread %d: %d ended%s" % (place, thread, ended, self.seen))

    def expect_all(self, places):
        found = self.stored()
        for place in places:
            for thread, ended in enumerate(self.ended(place)):
                numbers = sorted(found[place, thread])
                # queryprof may have committed the last query before the host counted it.
                self.assertIn(numbers, [list(range(ended)), list(range(ended + 1))],
                              "process %d, thread %d: %d ended%s" % (place, thread, ended, self.seen))

    def expect_samples_of_running(self, places):
        """Compares with the process's own counters of its running queries before it was killed."""
        stored = {text.split(" q_")[1].split()[0]: (kind, samples) for text, kind, samples in self.rows("""
            SELECT query, type, (SELECT count(*) FROM trace_log AS s WHERE s.query_id = q.query_id)
            FROM query_log AS q WHERE query LIKE '%q\\_%' ESCAPE '\\'""")}
        for place in places:
            for thread, seen in enumerate(self.accounts(place)[1::2]):
                number, samples = seen >> SAMPLES_BITS, seen & ((1 << SAMPLES_BITS) - 1)
                if not samples:
                    continue
                name = "%d_%d_%d" % (place, thread, number)
                kind, found = stored.get(name, ("none", 0))
                self.assertGreaterEqual(found, samples, "%s, %s%s" % (name, kind, self.seen))
                self.running_samples += samples if kind == "QueryStart" else 0

    def expect_samples(self):
        """A query's row contains the number of samples that its process has committed."""
        wrong = self.rows("""
            SELECT query_log.query_id, samples_cpu + samples_real, count(s.timestamp_ns)
            FROM query_log LEFT JOIN trace_log AS s
                ON s.query_id = query_log.query_id AND s.trace_type IN ('CPU', 'Real')
            GROUP BY query_log.query_id HAVING count(s.timestamp_ns) <> samples_cpu + samples_real""")
        self.assertEqual(wrong, [], self.seen)
        self.assertGreater(self.rows("SELECT count(*) FROM trace_log")[0][0], 0, self.seen)
        # Every address belongs to a known module.
        unknown, all_of_them = self.rows("""
            SELECT count(*) FILTER (WHERE a.value & 0x4000000000000000), count(*)
            FROM stacks, json_each(stacks.trace) AS a""")[0]
        self.assertLessEqual(unknown, all_of_them / 100, self.seen)
        names = self.rows("SELECT DISTINCT thread_name FROM threads")
        self.assertEqual(names, [("killed",)], self.seen)

    def finish(self, process):
        out, err = process.communicate(timeout=300)
        self.seen = "\nexit status %d\n%s%s" % (process.returncode, out, err)

    def test_at_a_random_moment(self):
        """This test kills the command itself."""
        turns = max(ROUNDS // 4, 1)
        for turn in range(turns * 10):
            # On a loaded machine the killed process may not have run yet.
            if turn >= turns and self.running_samples > 0:
                break
            with self.subTest(turn=turn):
                self.setUp_again()
                process = self.start(self.random.choice([1, 4]), "run", interval_ms=self.random.choice(INTERVALS_MS))
                wait_until(lambda: self.ended()[0] > 3, "a query")
                time.sleep(self.random.random() * 0.1)
                pid = self.child_of(process.pid)
                os.kill(pid, signal.SIGKILL)
                self.finish(process)
                self.assertEqual(process.returncode, -signal.SIGKILL, self.seen)
                self.expect_all([0])
                self.expect_counted([0])
                self.expect_samples_of_running([0])
                self.expect_samples()
        self.assertGreater(self.running_samples, 0)

    def test_counters(self):
        """Statements that are too short for a row."""
        for turn in range(max(ROUNDS // 2, 1)):
            with self.subTest(turn=turn):
                self.setUp_again()
                interval_ms = self.random.choice(INTERVALS_MS)
                process = self.start(self.random.choice([1, 3]), "count", interval_ms=interval_ms,
                                     options=("--cpu", "10ms"))
                wait_until(lambda: self.ended()[0] > 100, "some runs")
                time.sleep(self.random.random() * 0.1)
                os.kill(self.child_of(process.pid), signal.SIGKILL)
                self.finish(process)
                self.assertEqual(process.returncode, -signal.SIGKILL, self.seen)
                self.expect_counted([0])

    def setUp_again(self):
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))

    @staticmethod
    def child_of(pid):
        """Returns the program. The other child, the witness, has another name."""
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            for child in file.read().split():
                with open("/proc/%s/comm" % child, encoding="ascii") as name:
                    if name.read().strip() == "killed":
                        return int(child)
        raise AssertionError("no program")

    def kill_workers(self, count, threads, number, interval_ms):
        process = self.start(threads, "workers", str(count), interval_ms=interval_ms)
        workers = [int(read_line(process.stdout, "%d workers" % count)) for _ in range(count)]
        order = list(range(count))
        self.random.shuffle(order)
        for worker in order:
            wait_until(lambda: self.ended(worker + 1)[0] > 1, "a query")
            time.sleep(self.random.random() * 0.02)
            os.kill(workers[worker], number)
        self.finish(process)
        self.assertEqual(process.returncode, 0, self.seen)
        self.expect_all(range(1, count + 1))
        self.expect_counted(range(1, count + 1))
        self.expect_samples_of_running(range(1, count + 1))
        self.expect_samples()

    def test_forked_children(self):
        for turn in range(max(ROUNDS * 3 // 4 // 9, 1)):
            with self.subTest(turn=turn):
                self.setUp_again()
                self.kill_workers(WORKERS, 2, signal.SIGKILL, self.random.choice(INTERVALS_MS))

    def test_prefork_server(self):
        self.kill_workers(WORKERS, 1, signal.SIGTERM, 100)

    def test_bare_system_call(self):
        for way in "leave", "close":
            with self.subTest(way=way):
                self.setUp_again()
                process = self.start(1, way, "1", interval_ms=100)
                self.finish(process)
                self.assertEqual((process.returncode, self.stored()), (0, {(0, 0): [0]}), self.seen)
                self.expect_samples()

    def test_go(self):
        go = shutil.which("go")
        if not go:
            self.skipTest("no Go")
        program = os.path.join(self.folder, "briefly")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "briefly.go")
        environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
        subprocess.run([go, "build", "-o", program, source], check=True, env=environment)
        done = self.record(program)
        self.assertEqual((done.returncode, self.stored()), (0, {(0, 0): [0]}), self.seen)
        self.assertGreater(self.rows("SELECT count(*) FROM trace_log")[0][0], 0, self.seen)


if __name__ == "__main__":
    unittest.main()
