#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of SQLite's memory, compared with the bytes that statements are known to allocate, and with SQLite's own
counter. By a SQLite library, and by a SQLite inside the program.

usage: test_memory.py QUERYPROF HOST HOST_INSIDE [unittest arguments]"""

import math
import os
import sys

sys.path[:0] = (os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder) for folder in ("lib", "export"))
HOSTS = {"library": os.path.abspath(sys.argv.pop(2)), "inside": os.path.abspath(sys.argv.pop(2))}
from pprof_profile import Profile
from recording import *

STEP = 65536
MEMORY = ("--setting", "query_profiler_memory_sample_bytes=%d" % STEP, "--cpu", "0", "--setting", "trace_log_ring_bytes=64MiB")
MIB = 1 << 20
ALLOCATED = "trace_type = 'MemorySample' AND size > 0"


class Memory(Recording):
    def run_host(self, host, *statements, options=MEMORY):
        """The bytes that SQLite has at the beginning and after each statement."""
        if os.path.exists(self.trace):
            os.unlink(self.trace)
        done = self.record(HOSTS[host], *statements, options=options)
        self.assertEqual(done.returncode, 0, self.seen)
        self.assertEqual(self.rows("SELECT * FROM losses"), [], self.seen)
        return [int(line) for line in done.stdout.split()]

    def sums(self, where, table="trace_log"):
        """Bytes and blocks, and the standard errors of both: each sample represents its weight by chance."""
        value, blocks, square, spread = self.rows(
            "SELECT coalesce(sum(value), 0), coalesce(sum(weight), 0), total(1.0 * value * (value - size)),"
            " total(1.0 * weight * (weight - 1)) FROM %s WHERE %s" % (table, where))[0]
        return value, blocks, math.sqrt(square), math.sqrt(spread)

    def of_statement(self, text):
        return "query_id IN (SELECT query_id FROM query_log WHERE query = '%s')" % text

    def expect(self, found, size, count, message):
        """Within five standard errors. The statement allocates some blocks of its own."""
        value, blocks, value_error, blocks_error = found
        self.assertLess(abs(value - size * count), 5 * value_error + 2 * STEP, (message, found, self.seen))
        self.assertLess(abs(blocks - count), 5 * blocks_error + 2 * STEP // 32, (message, found, self.seen))

    def test_sizes(self):
        """Small blocks, blocks of about the distance between samples, and large ones: no size has a bias."""
        classes = [(16, 10**7), (1024, 200000), (16384, 10000), (65536, 4000), (262144, 1000), (8 * MIB, 25)]
        statements = ["SELECT allocate(%d, %d)" % one for one in classes]
        for host in HOSTS:
            self.run_host(host, *statements)
            for statement, (size, count) in zip(statements, classes):
                where = ALLOCATED + " AND " + self.of_statement(statement)
                self.expect(self.sums(where), size, count, (host, statement))
                # All blocks were freed, with the same numbers.
                pointers = self.rows("SELECT count(*) FROM trace_log WHERE %s AND ptr = 0" % where)
                self.assertEqual(pointers, [(0,)])
            self.assertEqual(self.rows(
                "SELECT sum(value), sum(size), min(weight) > 0 FROM trace_log WHERE trace_type = 'MemorySample'"
                " AND abs(size) = 8388608"), [(0, 0, 1)])
            self.assertEqual(self.rows("SELECT count(*) FROM trace_log WHERE trace_type = 'MemorySample' AND size < 0 AND trace <> '[]'"), [(0,)])

    def test_spans(self):
        """The samples of a span are those of its time."""
        self.run_host("library", "SELECT allocate(65536, 1000) /*traceparent='00-%032x-%016x-01'*/" % (1, 1))
        self.assertEqual(self.rows("SELECT count(*) FROM span_log WHERE query_id <> ''"), [(1,)])
        self.assertEqual(self.rows("SELECT s.samples - count(t.timestamp_ns) FILTER (WHERE t.trace_type <> 'MemorySample'),"
                                   " count(*) FILTER (WHERE t.trace_type = 'MemorySample') > 100"
                                   " FROM span_log AS s LEFT JOIN trace_log AS t USING (query_id) WHERE query_id <> ''"), [(0, 1)])

    def test_realloc(self):
        """A block that is moved counts as freed and allocated."""
        self.run_host("library", "SELECT grow(131072, 2000)")
        where = self.of_statement("SELECT grow(131072, 2000)")
        for size in 65536, 131072:
            found = self.sums("%s AND size = %d AND %s" % (ALLOCATED, size, where))
            self.expect(found, size, 2000, size)
        self.assertEqual(self.rows("SELECT count(*) FROM live_memory WHERE size IN (65536, 131072)"), [(0,)])

    def test_live(self):
        """Blocks so large that each has a sample: live bytes are exact, and SQLite's counter agrees."""
        for host in HOSTS:
            used = self.run_host(host, "SELECT keep(1048576, 40)", "SELECT keep(2097152, 10)", "SELECT drop_kept(15)")
            self.assertEqual(self.rows("SELECT size, count(*), sum(value) FROM live_memory WHERE size >= 1048576 GROUP BY 1"),
                             [(MIB, 35, 35 * MIB)], self.seen)
            value, _, error, _ = self.sums("1", "live_memory")
            self.assertLess(abs(value - (used[3] - used[0])), 5 * error + 2 * STEP + value / 100, (value, used))
            # The statement that has allocated them.
            self.assertEqual(self.rows("SELECT DISTINCT query FROM live_memory JOIN query_log USING (query_id) WHERE size = 1048576"),
                             [("SELECT keep(1048576, 40)",)])

    def test_stacks(self):
        """The leaf is SQLite's function that called the allocator, and the function of the statement is on the stack."""
        self.names = ()
        self.run_host("inside", "SELECT keep(1048576, 20)")
        stacks = self.rows("SELECT symbols FROM trace_log WHERE size = 1048576")
        self.assertEqual(len(stacks), 20)
        for stack, in stacks:
            functions = json.loads(stack)
            self.assertEqual(functions[0], "sqlite3Malloc", stack)
            self.assertIn("keep", functions)

    def tool(self, command, *arguments, text=True):
        return subprocess.run([QUERYPROF, command, self.trace, *arguments], capture_output=True, text=text, timeout=300, check=True,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, COLUMNS="200")).stdout

    def test_reading(self):
        """What report, export and pprof say of blocks that all have a sample: 40 and 10 allocated, of the first 35 live."""
        first, second = "SELECT keep(1048576, 40)", "SELECT keep(2097152, 10) AS large"
        self.run_host("library", first, second, "SELECT drop_kept(15)")
        for types in (), ("--type", "memory"), ("--type", "live"):
            out = self.tool("report", *types)
            self.assertEqual(out.count("Memory that SQLite allocated, by statement"), 1, out)
            found = [re.split(r"  +", line.strip()) for line in out.splitlines() if re.search(r" MB .*SELECT keep", line)]
            # share, allocated, error, live, statement, text
            by_text = {line[-1]: line for line in found}
            # A block of another size may have a sample, too.
            for text, allocated, live in (first, "42 MB", "37 MB"), (second, "21 MB", "0 bytes"):
                self.assertEqual(by_text[text][1::2][:2], [allocated, live], out)
                self.assertRegex(by_text[text][2], r"^±0\.\d %$", out)
            self.assertEqual(found[0][-1], first, out)
        for types, sums in ("memory", {first: 40 * MIB, second: 20 * MIB}), ("live", {first: 35 * MIB}):
            told = json.loads(self.tool("export", "--type", types, "--format", "json", "-o", "-"))
            values = {}
            for sample in told["samples"]:
                number = told["labels"][sample["labels"]].get("statement")
                if number is not None:
                    statement = told["statements"][number]
                    values[statement] = values.get(statement, 0) + sample["value"]
            for statement in first, second:
                self.assertLessEqual(0, values.get(statement, 0) - sums.get(statement, 0), types)
                self.assertLess(values.get(statement, 0) - sums.get(statement, 0), 3 * STEP, types)
        # A block that lives, or was freed, has one sample.
        samples = self.rows("SELECT count(*) FROM trace_log WHERE trace_type <> 'MemorySample' OR size > 0")[0][0]
        self.assertIn(": %d samples, " % samples, self.seen)
        by_label = json.loads(self.tool("queries", "--by", "label:route", "--format", "json"))
        self.assertEqual([line["samples"] for line in by_label], [samples])
        profile = Profile(self.tool("export", "--type", "memory", "--format", "pprof", "-o", "-", text=False))
        self.assertEqual(profile.types, [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")])
        large = [(labels["statement"], values) for _, values, labels in profile.samples if "statement" in labels and max(values) >= MIB]
        for statement, expected in (first, [40, 40 * MIB, 35, 35 * MIB]), (second, [10, 20 * MIB, 0, 0]):
            self.assertEqual([sum(column) for column in zip(*(values for text, values in large if text == statement))], expected)
        self.assertEqual(Profile(self.tool("export", "--type", "live", "--format", "pprof", "-o", "-", text=False)).types,
                         [("inuse_objects", "count"), ("inuse_space", "bytes")])

    def test_freed_elsewhere(self):
        """A thread that runs no query frees blocks."""
        self.run_host("library", "SELECT keep(1048576, 20)", "free:")
        self.assertEqual(self.rows("SELECT count(*), sum(size) FROM trace_log WHERE trace_type = 'MemorySample' AND abs(size) = 1048576"),
                         [(40, 0)])
        self.assertEqual(self.rows("SELECT count(*) FROM live_memory WHERE size = 1048576"), [(0,)])

    def test_child(self):
        """A forked child knows its own blocks only."""
        self.run_host("library", "SELECT keep(1048576, 20)", "child:SELECT drop_kept(5), keep(2097152, 3)")
        self.assertEqual(self.rows("SELECT size, count(*), count(DISTINCT process_id) FROM live_memory WHERE size >= 1048576 GROUP BY 1"),
                         [(MIB, 20, 1), (2 * MIB, 3, 1)], self.seen)
        self.assertEqual(self.rows("SELECT count(DISTINCT process_id) FROM live_memory WHERE size >= 1048576"), [(2,)])

    def test_threads(self):
        statement = "SELECT allocate(4096, 20000)"
        self.run_host("library", "threads:" + statement)
        threads = self.rows("SELECT DISTINCT thread_id FROM query_log WHERE query = ?", statement)
        self.assertEqual(len(threads), 8)
        for thread, in threads:
            self.expect(self.sums("%s AND thread_id = %d AND %s" % (ALLOCATED, thread, self.of_statement(statement))), 4096, 20000, thread)

    @unittest.skipUnless(os.uname().machine == "x86_64" and not os.environ.get("LD_PRELOAD"), "attach")
    def test_attached(self):
        """While the command is attached, blocks have samples. Afterwards SQLite has its own methods again."""
        with subprocess.Popen([HOSTS["library"], "lines:", "owner:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
            self.addCleanup(host.kill)
            def run(statement):
                host.stdin.write(statement + "\n")
                host.stdin.flush()
                return read_line(host.stdout, statement)
            read_line(host.stdout, "the first statement")
            run("SELECT keep(1048576, 5)")
            for _ in range(2):
                with subprocess.Popen([QUERYPROF, "attach", "--new", "--no-symbols", "-o", self.trace, *MEMORY, str(host.pid)],
                                      stderr=subprocess.PIPE, text=True) as command:
                    self.addCleanup(command.kill)
                    self.assertIn("attached", read_line(command.stderr, "that it is attached"))
                    run("SELECT 1")
                    run("SELECT keep(2097152, 7)")
                    run("SELECT drop_kept(3)")
                    command.send_signal(signal.SIGINT)
                    self.seen = command.stderr.read()
                self.assertEqual(self.rows("SELECT size, count(*) FROM live_memory WHERE size > 1000000 GROUP BY 1"), [(2 * MIB, 4)], self.seen)
            run("SELECT drop_kept(13)")
            host.stdin.close()
            self.assertRegex(host.stdout.read(), r"/libsqlite3[^/]*\n")
        self.assertEqual(host.returncode, 0)

    @unittest.skipIf(os.environ.get("LD_PRELOAD"), "a sanitizer needs more address space")
    def test_out_of_memory(self):
        """The run's row has what was refused, and what SQLite had."""
        statement = "SELECT length(hex(zeroblob(300000000)))"
        for option, expected in ("--memory", r"^out of memory: 600000008 bytes were refused while SQLite had about 30\d\.\d MB$"), ("--quiet", "^out of memory$"):
            done = self.record("sh", "-c", 'ulimit -v 900000; exec "$0" "$1"', HOSTS["library"], statement, options=(option, "--cpu", "0", "--new"))
            self.assertEqual(done.returncode, 0, self.seen)
            found = self.rows("SELECT exception_code, exception FROM query_log WHERE query = ?", statement)
            self.assertEqual([code for code, _ in found], [7], self.seen)
            self.assertRegex(found[0][1], expected)

    def test_off(self):
        self.run_host("library", "SELECT allocate(1048576, 100)", options=("--cpu", "0"))
        self.assertEqual(self.rows("SELECT count(*) FROM series WHERE unit = 'bytes'"), [(0,)])

    def test_option(self):
        """--memory: once in 512 KiB."""
        self.run_host("library", "SELECT allocate(16384, 20000)", options=("--memory", "--cpu", "0"))
        value, _, error, _ = self.sums(ALLOCATED + " AND size = 16384")
        self.assertLess(abs(value - 16384 * 20000), 5 * error, self.seen)
        weight = 1 / (1 - math.exp(-16384 / (512 * 1024)))
        self.assertEqual(self.rows("SELECT min(weight), max(weight) FROM trace_log WHERE %s AND size = 16384" % ALLOCATED),
                         [(math.floor(weight), math.ceil(weight))])


if __name__ == "__main__":
    unittest.main(verbosity=2)
