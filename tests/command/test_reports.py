#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof queries and report, to the letter, on a trace file with known content (trace_file.py).

usage: test_reports.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import time

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file
from tool import FIXTURE, Tool, main, run
from trace_file import FAILED, FAST, OWN, RUNNING, SLOW


class Reports(Tool):
    # --- queries ------------------------------------------------------------

    def test_queries(self):
        self.assertEqual(self.output("queries", self.trace), """\
share_%      wall       cpu      each       p99  rows  logged  statement  notes                             query
   97.3  220.0 ms  110.0 ms  110.0 ms  200.0 ms     8       2   00000000                                    SELECT *  FROM orders WHERE id = 1
    2.2    5.0 ms    5.0 ms    5.0 ms    5.0 ms     0       1   00000000                                    SELECT 'own'
    0.4    1.0 ms    1.0 ms    1.0 ms    1.0 ms     0       1   00000000  failed 1: no such table: nowhere  SELECT nothing FROM nowhere  [31m
  100.0  226.0 ms  116.0 ms                         8       4                                               sum of 3
""")

    def test_time_between_rows(self):
        """The time between rows does not belong to SQLite. It changes neither a query's time nor the order of the
        queries."""
        path = os.path.join(self.folder, "between.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE queries SET execution_ns = 2000000, cpu_time_ns = 50000 WHERE query_id = ?", (SLOW,))
            db.commit()
        self.assertEqual(self.ids("--by", "wall", trace=path), [FAST, OWN, SLOW, FAILED])
        self.assertRegex(self.output("queries", path, "--runs"), r"\n\S+ \S+ +2\.0 ms +50\.0 us .* between rows 198 ms \(99 %\) +SELECT")
        self.assertRegex(self.output("queries", path), r"\n +78\.6 +22\.0 ms .* between rows 198 ms \(90 %\) +SELECT")
        report = self.output("report", path, "--query", SLOW, columns=60)
        self.assertRegex(report, r"\nwall +2\.0 ms ")
        self.assertRegex(report, r"\nbetween rows +198\.0 ms\n")

    def test_notes(self):
        """The time of triggers, foreign keys, mutexes and checkpoints, and the program's lines that called SQLite."""
        path = os.path.join(self.folder, "notes.trace")
        shutil.copy(self.trace, path)

        def notes():
            return json.loads(self.output("queries", path, "--statement", "0000000000000001", "--format", "json"))[0]["notes"]

        with contextlib.closing(sqlite3.connect(path)) as db:
            statement, = db.execute("SELECT statement FROM queries WHERE query_id = ?", (SLOW,)).fetchone()
            db.execute("UPDATE statements SET normalized_query_hash = 1 << 32 WHERE id <> ?", (statement,))
            db.execute("UPDATE statements SET normalized_query_hash = 1 WHERE id = ?", (statement,))
            db.execute("UPDATE queries SET statement = ? WHERE query_id = ?", (statement, FAST))
            db.execute("DELETE FROM samples")
            runs = [id for id, in db.execute("SELECT id FROM queries WHERE statement = ? ORDER BY id", (statement,))]
            db.execute("UPDATE queries SET query_duration_ns = 100000000, cpu_time_ns = 20000000, program = 7, mutex_wait_ns = 15000000,"
                       " other_wait_ns = 5000000, run_delay_ns = 60000000, last_ns = query_start_ns + 100000000 WHERE statement = ?", (statement,))
            db.execute("INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns) VALUES (7, ?, 0, 0, 0)", (statement,))
            db.executemany("INSERT INTO plan_nodes (program, node, parent, detail) VALUES (7, ?, ?, ?)",
                           ((3, 0, "SEARCH orders"), (9, 0, "TRIGGER log_it"), (12, 9, "SCAN log"), (20, 0, "FOREIGN KEY ACTION")))
            db.executemany("INSERT INTO program_opcodes VALUES (7, ?, ?, 'Next', 0, 0, 0, 0)", ((3, 3), (9, 9), (12, 12), (20, 20)))
            db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (9, 1, 'OffCPU', 1000000, 1)")
            # Series, opcode, wait and ms of a run's samples. 16 of 20 ms on the CPU belong to the trigger.
            samples = (1, 3, 0, 2), (1, 9, 0, 6), (1, 12, 0, 10), (1, 20, 0, 2), (9, 0, 7 | 11 << 8, 15), (9, 0, 6 | 1 << 8, 5)
            for run_id in runs:
                start, = db.execute("SELECT query_start_ns FROM queries WHERE id = ?", (run_id,)).fetchone()
                db.executemany("INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size, opcode, wait, wait_ns)"
                               " VALUES (?, ?, ?, 1, 0, ?, 0, 0, ?, ?, ?)",
                               [(start + 1000 * i, series, run_id, ms, opcode, wait, ms * 10**6 if wait else 0)
                                for i, (series, opcode, wait, ms) in enumerate(samples)])
            db.commit()
        self.assertEqual(notes(), "trigger log_it 80 % of CPU time, foreign key action 10 % of CPU time, mutex of the allocator"
                                  " (SQLITE_CONFIG_MEMSTATUS 0 avoids it), checkpoint 13 % without run queue")
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE plan_nodes SET detail = 'SCAN words VIRTUAL TABLE INDEX 32:M1' WHERE node = 9")
            db.execute("UPDATE plan_nodes SET detail = 'MODIFY VIRTUAL TABLE (rtree)' WHERE node = 20")
            db.execute("UPDATE plan_nodes SET detail = 'SCAN json_each VIRTUAL TABLE INDEX 1:' WHERE node = 3")
            db.commit()
        both = "words (full text: MATCH, scores each match to give them by rank) 30 %% of CPU time, %s 10 %% of CPU time"
        self.assertIn(both % "changes of virtual tables (rtree)", notes())
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE plan_nodes SET detail = 'SEARCH log' WHERE node = 20")
            db.commit()
        self.assertIn(both % "virtual table json_each", notes())
        self.assertRegex(self.output("queries", path, "--runs"), "virtual table json_each 10 % of CPU time")
        for lines, said in (((6, 8), "from app.py:6-8 (load)"), ((6, 6), "from app.py:6 (load)"), ((6, 60), "most from app.py:6 (load)")):
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.execute("DELETE FROM call_stacks")
                for run_id, line in zip(runs, lines):
                    db.execute("INSERT OR REPLACE INTO call_stacks VALUES (?, ?, '[]', ?, 'load', 'load')", (line, line, "/srv/app.py:%d" % line))
                    db.execute("UPDATE queries SET call_stack = ? WHERE id = ?", (line, run_id))
                db.execute("UPDATE processes SET script = '/srv/app.py'")
                db.commit()
            self.assertTrue(notes().endswith(", " + said), notes())
        report = self.output("report", path)
        self.assertRegex(report, r"(?m)^program +app app\.py$")
        self.assertRegex(report, r"(?m)^called +from app\.py:6 \(load\) 50 %, app\.py:60 \(load\) 50 %$")

    def test_queries_selected(self):
        ids = self.ids
        self.assertEqual(ids("--like", "orders"), [SLOW, FAST])
        self.assertEqual(ids("--limit", "1"), [SLOW])
        self.assertEqual(ids("--by", "start", "--limit", "1"), [OWN])
        self.assertEqual(ids("--by", "start", "--like", "orders"), [FAST, SLOW])
        self.assertEqual(ids("--by", "off", "--limit", "2"), [SLOW, FAST])
        self.assertEqual(ids("--query", FAST[:17]), [FAST])
        self.assertEqual(ids("--query", OWN), [OWN])
        self.assertEqual(ids("--query", OWN, "--like", "orders"), [])
        self.assertEqual(ids("--last", "1"), [OWN])
        self.assertEqual(ids("--last", "2", "--by", "cpu"), [OWN, FAILED])
        self.assertEqual(ids("--last", "1", "--like", "orders"), [FAST])
        self.assertEqual(ids("--like", "no such text"), [])
        self.assertEqual(ids("--failed"), [FAILED])
        self.assertEqual(ids("--min-duration", "20ms"), [SLOW, FAST])
        self.assertEqual(ids("--min-duration", "20.1ms"), [SLOW])
        path = os.path.join(self.folder, "database.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE queries SET database = '/srv/app.db'")
            db.commit()
        for name, value, none in (("--database", "app.db", "pp.db"), ("--database", "/srv/app.db", "/app.db"),
                                  ("--process", "100", "10"), ("--process", "app", "ap"),
                                  ("--process", "/usr/bin/app", "/bin/app"), ("--thread", "101", "1"),
                                  ("--thread", "main", "mai")):
            self.assertEqual(ids(name, value, "--limit", "2", trace=path), [SLOW, FAST], value)
            self.assertEqual(ids(name, none, trace=path), [], none)

    def test_nothing_left_is_a_failure_that_names_why(self):
        for command in (["queries"], ["queries", "--runs"], ["report"], ["export", "--format", "json", "-o", "-"]):
            self.assertEqual(self.refused(1, command[0], self.trace, *command[1:], "--like", "no such text", "--failed"),
                             "queryprof: %s: no run matches --like no such text --failed; queryprof queries %s lists all statements\n" %
                             (self.trace, self.trace))

    def test_statements_have_a_handle(self):
        rows = json.loads(self.output("queries", self.trace, "--format", "json"))
        handle = rows[0]["statement"]
        self.assertEqual(handle, "00000000000b000b")
        self.assertEqual(self.ids("--statement", handle), [SLOW, FAST])
        self.assertEqual(self.ids("--statement", "00000000000c"), [FAILED])
        self.assertIn("runs  2 of 4\n", self.output("report", self.trace, "--statement", "00000000000b"))
        self.assertIn("the id of more than one statement begins with 0000000",
                      self.refused(1, "report", self.trace, "--statement", "0000000"))
        self.assertIn("no statement has the id x", self.refused(1, "report", self.trace, "--statement", "x"))

    def test_types_by_any_of_their_names(self):
        for command in (["report"], ["diff", "--at", "start+1ms"], ["export", "--format", "json", "-o", "-"]):
            for names in (("CPU", "cpu", "Cpu"), ("Real", "real", "wall", "WALL")):
                outs = {self.output(command[0], self.trace, *command[1:], "--type", name) for name in names}
                self.assertEqual(len(outs), 1, names)

    def ids(self, *arguments, trace=None):
        """The ids of the runs that the options select. If they select none, the command must fail."""
        code, out, err = run("queries", trace or self.trace, "--runs", "--format", "csv", *arguments)
        found = self.column(out, "query_id")
        if code or err:
            self.assertEqual((code, out), (1, ""))
            self.assertIn("no run matches --", err)
        return found

    def test_times(self):
        """The runs began at 11:06:40 and 0, 300, 400 and 500 ms, the unfinished one at 600 ms."""
        def count(*arguments):
            return len(self.ids(*arguments))

        for since, left in (("2026-11-18", 4), ("2026-11-19", 0), ("2026-11-18 11:06:40", 4),
                            ("2026-11-18 11:06", 4), ("2026-11-18T11:06:40.3Z", 3), ("2026-11-18 11:06:40.300001", 2),
                            ("2026-11-18 12:06:40.3+01:00", 3), ("2026-11-18T10:06:40.45-0100", 1), ("start", 4),
                            ("start+300ms", 3), ("start+0.31s", 2), ("end", 0), ("end-200ms", 2), ("end-1min", 4),
                            ("now", 0), ("36500d", 4), ("now-36500d", 4), ("2026-11-18 11:06:40+350ms", 2),
                            ("2026-11-17+1d", 4), ("1970-01-01", 4)):
            self.assertEqual(count("--since", since), left, since)
            self.assertEqual(count("--until", since), 4 - left, since)
        self.assertEqual(count("--since=2026-11-18 11:06:40.3", "--until", "start+400ms"), 1)
        for wrong in ("", "soon", "2026", "2026-13-01", "2026-02-30", "2026-11-18 25:00", "2026-11-18 11", "10",
                      "10 min", "-10min", "10minutes", "now-", "now-x", "start10s", "end-10min-10min", "tomorrow",
                      "2026-11-18T", "999999999999w", "9999-01-01"):
            self.assertIn("expected a time", self.refused(2, "queries", self.trace, "--since", wrong), wrong)

    def test_times_from_now(self):
        path = os.path.join(self.folder, "now.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE queries SET query_start_ns = ? WHERE id = 1", (time.time_ns() - 1800 * 10**9,))
            db.commit()
        for since, left in (("10min", 0), ("1h", 1), ("yesterday", 1), ("now-1h", 1)):
            self.assertEqual(len(self.ids("--since", since, trace=path)), left, since)
        os.unlink(path)

    def test_statements(self):
        rows = json.loads(self.output("queries", self.trace, "--format", "json"))
        # This file has counted none.
        self.assertEqual([(row["runs"], row["logged"]) for row in rows], [(None, 2), (None, 1), (None, 1)])
        self.assertEqual(rows[0]["wall_ms"], 220.0)
        self.assertEqual(rows[2]["failed"], 1)

    # --- report -------------------------------------------------------------

    def test_report_of_one_query(self):
        report = self.output("report", self.trace, "--query", SLOW[:16])
        self.assertRegex(report, r"Callers in the program, by CPU time\n.*\n60\.0 % +60\.0 ms +fixture\.c:\d+ +fixture_static\n")
        without_lines = re.sub(r" \(\w+\.c(pp)?:\d+\)", "", re.sub(r"Callers in(.|\n)*?\n\n", "", report))
        self.assertEqual(without_lines, """\
query    0193a5b2-77c1-7aaa-8000-000000000001
program  app
from     2026-11-18 11:06:40.000000 UTC
rows     7
text     SELECT *
          FROM orders WHERE id = 1

Time, as measured and as sampled
clock                    exact    share   sampled    error  differs  samples
wall                  200.0 ms  100.0 %  150.0 ms  50.0 ms  -25.0 %      150
on CPU                100.0 ms   50.0 %  100.0 ms   0.6 ms   +0.0 %       90
off CPU               100.0 ms   50.0 %   50.0 ms  50.0 ms  -50.0 %
off CPU, not sampled   50.0 ms   25.0 %

Top functions, by CPU time
self_%  error_%  total_%     self    total  function
  60.0      5.4     60.0  60.0 ms  60.0 ms  fixture_static
  20.0      4.4     20.0  20.0 ms  20.0 ms  (full.so)
  20.0      4.4     20.0  20.0 ms  20.0 ms  fixture::Thing::walk(char const*, int)

Top stacks, leaf first, by CPU time
 share     time  stack
60.0 %  60.0 ms  fixture_static
                 fixture_visit
                 fixture_calls_out
20.0 %  20.0 ms  fixture::Thing::walk(char const*, int)
                 fixture::Thing::walk(char const*, int)
                 fixture::Thing::walk(char const*, int)
                 fixture_calls_out
20.0 %  20.0 ms  full.so+0x%x
                 fixture_calls_out
""".replace("0x%x", hex(trace_file.symbols(FIXTURE)["fixture_hole"])))

    def test_report_of_some_and_of_all(self):
        some = self.output("report", self.trace, "--like", "orders")
        self.assertIn("logged runs  2 of 4\n", some)
        self.assertRegex(some, r"on CPU +110.0 ms +50.0 % +100.0 ms ")
        everything = self.output("report", self.trace)
        self.assertIn("logged runs  4 of 4\nunfinished   1: no end was recorded\n", everything)
        self.assertIn("(no module)", everything)
        self.assertRegex(everything, r"on CPU +116.0 ms +51.3 % +100.0 ms ")
        self.assertRegex(everything, r"on CPU, unfinished +3.0 ms ")
        real = self.output("report", self.trace, "--type", "Real")
        self.assertIn("100.0 %", real)
        self.assertNotIn("walk", real)

    def test_report_of_a_query_that_has_not_finished(self):
        out = self.output("report", self.trace, "--query", RUNNING)
        self.assertRegex(out, "unfinished +1: no end was recorded")
        self.assertIn("0x1234", out)

    def test_that_the_programs_samples_end_no_run_and_leave_none_open(self):
        """The program is sampled right after it returned from a run that is not logged."""
        path = os.path.join(self.folder, "returned.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (9, 1, 'ProgramCPU', 1000000, 1)")
            db.execute("UPDATE samples SET series = 9 WHERE query = 5")
            db.commit()
        self.assertIn("unfinished", self.output("report", self.trace))
        self.assertNotIn("unfinished", self.output("report", path))

    def test_that_the_program_outside_is_never_queryprof(self):
        """Neither frame belongs to the program. The report shows the interpreter's frame, and never the wrapper that it
        called."""
        path = os.path.join(self.folder, "outside.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (9, 1, 'ProgramCPU', 1000000, 1)")
            for number, module, name in ((7, "libqueryprof-recorder.so", "queryprof_step_0"), (8, "libpython3.11.so.1.0", "PyEval_Eval")):
                base = number << 40
                db.execute("INSERT INTO modules VALUES (?, ?, '/usr/lib/' || ?, 4096, 0, ?, 4096, 0)", (number, "%040x" % number, module, base))
                db.execute("INSERT INTO names (id, name) VALUES (?, ?)", (number, name))
                db.execute("INSERT INTO frames VALUES (?, 0, 0, ?2, ?2, 0, 0)", (base + 100, number))
            db.executemany("INSERT INTO stacks VALUES (?, 0, 1, ?)", (
                (11, f"[{(7 << 40) + 100},{(8 << 40) + 100}]"), (12, f"[{(7 << 40) + 100}]")))
            db.execute("UPDATE samples SET series = 9, stack = iif(stack = 1, 11, 12) WHERE query = 1")
            db.commit()
        out = self.output("report", path)
        self.assertRegex(out, r"\nbetween rows .* on CPU +PyEval_Eval *\n")
        self.assertRegex(out, r"\nbetween rows .* on CPU +\(not known\) *\n")
        self.assertNotIn("queryprof_step_0", out[out.index("outside SQLite"):])

    def test_that_a_holder_without_a_connection_has_no_program(self):
        """The kernel named the holder, which was forked from a recorded process and then executed another program."""
        path = os.path.join(self.folder, "became.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) VALUES (2, 'host', 200, 0, '/usr/bin/app')")
            db.execute("INSERT INTO waits_for_locks (query, start_ns, wait_ns, lock, refused, thread_id, process, database, holder, holder_query,"
                       " holder_session, holder_process_id, holder_thread_id, holder_transaction)"
                       " SELECT 1, query_start_ns, 30000000, 24, 0, 101, 1, '/app.db', 0, '', 0, 200, 0, 0 FROM queries WHERE id = 1")
            db.commit()
        held, = json.loads(self.output("locks", path, "--format", "json"))
        self.assertEqual((held["holder_process_id"], held["holder"]), (200, None))

    def test_the_time_in_a_run_queue_has_a_row_in_plans(self):
        path = os.path.join(self.folder, "queued.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns) VALUES (7, 1, 0, 1, 0)")
            db.execute("INSERT INTO plan_nodes (program, node, parent, detail) VALUES (7, 3, 0, 'SEARCH orders')")
            db.execute("UPDATE queries SET program = 7 WHERE id = 1")
            db.execute("DELETE FROM samples")
            db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (9, 1, 'OffCPU', 1000000, 1)")
            db.executemany("INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size, wait, wait_ns)"
                           " SELECT query_start_ns + ?, 9, 1, 1, 0, ?, 0, 0, ?, ? FROM queries WHERE id = 1",
                           ((1000, 30, 17, 30000000), (2000, 10, 3, 10000000)))
            db.commit()
        plan = self.output("plan", path, "--type", "wall")
        self.assertRegex(plan, r"─ \(run queue\) .* 75\.0 % .* 30 ms")
        self.assertRegex(plan, r"─ \(not known\) .* 25\.0 % .* 10 ms")

    def test_report_of_wall_time_alone(self):
        path = os.path.join(self.folder, "wall.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("DELETE FROM samples WHERE series = 1")
            db.commit()
        self.assertIn("\nTop functions, by wall time\n", self.output("report", path))
        self.assertIn("\nno samples on the CPU clock\n", self.output("report", path, "--type", "cpu"))

    def test_report_of_wall_time_of_two_types(self):
        """A stack of both types is shown once."""
        path = os.path.join(self.folder, "both.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE series SET trace_type = 'OffCPU' WHERE id = 2")
            db.commit()
        out = self.output("report", path, "--query", SLOW, "--type", "wall")
        self.assertRegex(out, r"\n +84\.0 +\S+ +84\.0 +210\.0 ms +210\.0 ms  fixture_static\n")
        self.assertRegex(out, r"\n84\.0 % +210\.0 ms  fixture_static \(.*\)\n +fixture_visit \(.*\)\n +fixture_calls_out \(.*\)\n *8\.0 %")

    def test_plan_without_such_samples(self):
        path = os.path.join(self.folder, "plan.trace")
        shutil.copy(self.trace, path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript("""
                INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns) VALUES (1, 1, 0, 11, 0);
                INSERT INTO plan_nodes VALUES (1, 1, 0, 'SCAN orders', '');
                UPDATE queries SET program = 1 WHERE id = 1;
                DELETE FROM samples WHERE series = 2;""")
        self.assertIn("SCAN orders", self.output("plan", path))
        self.assertEqual(self.refused(1, "plan", path, "--type", "wall"),
                         f"queryprof: {path}: no samples on the wall clock of these runs\n")

    def test_report_says_the_interval_in_force(self):
        path = os.path.join(self.folder, "stretched.trace")
        shutil.copy(self.trace, path)
        self.assertNotIn("interval", self.output("report", path))
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch, stretch)"
                       " VALUES (21, 1, 'CPU', 1000000, 1, 2), (22, 1, 'Real', 1000000, 1, 4)")
            db.execute("UPDATE samples SET series = 21, weight = 2 WHERE series = 1 AND stack = 2")
            db.execute("UPDATE samples SET series = 22, weight = 4 WHERE series = 2")
            db.commit()
        self.assertRegex(self.output("report", path, "--query", SLOW, columns=160),
                         r"\ninterval +on CPU 1 to 2 ms for a period of 1 ms; wall 4 ms for a period of 1 ms, "
                         "to keep the limits of what sampling costs\n")
        # The report names no interval for a run without such samples.
        self.assertNotIn("interval", self.output("report", path, "--query", OWN))

    def test_an_interval_that_changes_widens_the_error(self):
        path = os.path.join(self.folder, "changes.trace")
        shutil.copy(self.trace, path)

        def error():
            out = self.output("report", path, "--query", SLOW, columns=160)
            return float(re.search(r"\non CPU +\S+ ms +\S+ % +100\.0 ms +(\S+) ms ", out)[1])

        def stretch(times):
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.executemany("UPDATE samples SET series = 21 WHERE timestamp_ns = ?", times)
                db.commit()

        # Samples are worth 1.2 ms on average; some have 2.
        self.assertEqual(error(), 0.6)  # on one grid
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch, stretch)"
                       " SELECT 21, thread, trace_type, period_ns, epoch, 2 FROM series WHERE id = 1")
            times = db.execute("SELECT timestamp_ns FROM samples JOIN queries ON queries.id = query"
                               " WHERE query_id = ? AND series = 1 ORDER BY 1", (SLOW,)).fetchall()
            db.commit()
        stretch(times[10:20])
        self.assertEqual(error(), 1.8)  # there and back: the root of 1/4 + 2
        stretch(times[::2])
        self.assertEqual(error(), 10.7)  # 79 changes

    def test_report_without_samples(self):
        out = self.output("report", self.trace, "--query", OWN)
        self.assertEqual(out.count("no samples on the CPU clock"), 2)

    def test_ids(self):
        self.assertIn("the id of more than one query begins with 0193",
                      self.refused(1, "report", self.trace, "--query", "0193"))
        self.assertIn("no query has the id nothing", self.refused(1, "report", self.trace, "--query", "nothing"))
        self.refused(1, "report", self.trace, "--query", "")


if __name__ == "__main__":
    main()
