# SPDX-License-Identifier: Apache-2.0
"""Sums over data that must not be mixed: programs of a plan, databases, types, processes, labels.

usage: as tool.py"""

import json
import re
import sqlite3

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tool import *
from trace_file import MS, START, version


class Sums(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-sums-")

    def setUp(self):
        self.trace = os.path.join(self.folder, self.id().rpartition(".")[2])
        self.db = sqlite3.connect(self.trace)
        with open(SCHEMA, encoding="utf-8") as file:
            self.db.executescript(file.read())
        self.db.execute("PRAGMA application_id = %d" % 0x51505246)
        self.db.execute("PRAGMA user_version = %d" % version(SCHEMA))
        for process in (1, 2):
            self.insert("processes", id=process, hostname="host", process_id=100 * process, executable="/usr/bin/app")
            self.insert("threads", id=process, process=process, thread_id=100 * process, thread_name="main")
        for series, trace_type in enumerate(("CPU", "Real", "OffCPU"), 1):
            self.insert("series", id=series, thread=1, trace_type=trace_type, period_ns=MS)
        self.insert("stacks", id=1, trace="[4660]")
        self.begin, self.time = START, START

    def tearDown(self):
        self.db.close()

    def insert(self, table, **values):
        columns = {name: "" if kind == "TEXT" else 0 for _, name, kind, not_null, default, key in
                   self.db.execute("PRAGMA table_info(%s)" % table) if not_null and default is None and not key}
        columns.update(values)
        self.db.execute("INSERT INTO %s(%s) VALUES (%s)" % (table, ",".join(columns), ",".join("?" * len(columns))),
                        list(columns.values()))

    def insert_statement(self, number, text, **values):
        self.insert("statements", id=number, normalized_query_hash=0xA000 + number, query=text, **values)

    def insert_run(self, statement, ms, **values):
        """Returns the run's number. Its samples may follow within the next 1000 ms."""
        run = self.db.execute("SELECT coalesce(max(id), 0) + 1 FROM queries").fetchone()[0]
        self.begin = self.time = self.begin + 1000 * MS
        columns = {"id": run, "query_id": "run %d" % run, "process": 1, "thread_id": 100, "first_ns": self.begin,
                   "last_ns": self.begin + 999 * MS, "finished": 1, "statement": statement, "query_start_ns": self.begin,
                   "query_duration_ns": ms * MS, "execution_ns": ms * MS, **values}
        self.insert("queries", **columns)
        return run

    def insert_samples(self, run, count, series=1, **values):
        for _ in range(count):
            self.time += 1
            self.insert("samples", timestamp_ns=self.time, series=series, query=run, stack=1, weight=1, **values)

    def rows(self, *arguments):
        self.db.commit()
        return json.loads(self.output(*arguments, "--format", "json"))

    def test_runs_of_more_than_a_page(self):
        """The command reads runs from the file's pages, or by SQL while the file has a log. Both find the same."""
        self.insert_statement(1, "SELECT count(*) FROM orders")
        for ms, size in ((10, 5), (20, 4050), (30, 4096), (40, 100000), (50, 5)):
            run = self.insert_run(1, ms, query_id="x" * size + str(ms), expanded_query="y" * size, result_rows=ms)
            self.insert_samples(run, ms)
        self.db.commit()
        commands = ("queries",), ("queries", "--min-duration", "15ms"), ("queries", "--runs"), ("report",)
        alone = [self.output(*command, self.trace) for command in commands]
        statement, = self.rows("queries", self.trace)
        self.assertEqual((statement["logged"], statement["rows"]), (5, 150), statement)
        self.db.execute("PRAGMA journal_mode = wal").fetchall()
        self.db.execute("PRAGMA wal_autocheckpoint = 0")
        self.insert_run(1, 0, finished=0)  # the last run exists only in the log, and has not ended
        self.db.execute("DELETE FROM queries WHERE finished = 0")
        self.db.commit()
        self.assertEqual([self.output(*command, self.trace) for command in commands], alone)

    def test_real_numbers(self):
        """Real numbers count as SQLite converts them to integers, whether the command reads the rows from the file's
        pages or, while it has a log, by SQL."""
        self.insert_statement(1, "SELECT count(*) FROM orders")
        for rows, steps in ((2.5, 1), (-2.5, 2), (1e300, 3), (-1e300, 4), (7, 1.5)):
            self.insert_samples(self.insert_run(1, 10, result_rows=rows, vm_steps=steps), 10, size=0.5)
        self.db.commit()
        commands = ("queries",), ("queries", "--runs"), ("report",), ("export", "--format", "collapsed", "-o", "-")
        alone = [self.output(*command, self.trace) for command in commands]
        self.assertEqual(self.rows("queries", self.trace)[0]["logged"], 5)
        self.db.execute("PRAGMA journal_mode = wal").fetchall()
        self.db.execute("PRAGMA wal_autocheckpoint = 0")
        self.insert_run(1, 0, finished=0)
        self.db.execute("DELETE FROM queries WHERE finished = 0")
        self.db.commit()
        self.assertEqual([self.output(*command, self.trace) for command in commands], alone)

    def test_programs_of_a_plan(self):
        """A node's number is an address, which differs between programs."""
        self.insert("plans", plan_hash=5, plan="SCAN orders\n")
        for program, statement, node in ((1, 1, 4), (2, 2, 2), (3, 1, 9)):
            self.insert("programs", id=program, statement=statement, plan_hash=5)
            self.insert("plan_nodes", program=program, node=node, detail="SCAN orders")
            self.insert("program_opcodes", program=program, address=7, node=node, opcode="Next")
        self.insert_statement(1, "SELECT count(*) FROM orders")
        self.insert_statement(2, "SELECT id FROM orders")
        for program, statement, count in ((1, 1, 90), (2, 2, 10), (3, 1, 20)):
            self.insert_samples(self.insert_run(statement, count, program=program), count, opcode=7)
        self.db.commit()
        out = self.output("plan", self.trace, "--like", "FROM orders")
        first, second = out.index("SELECT count(*)"), out.index("SELECT id")
        self.assertLess(first, second)
        self.assertRegex(out[:second], r"2 runs, [^\n]*SELECT count\(\*\)")
        self.assertRegex(out[first:second], r"SCAN orders [^\n]* 110 ms")
        self.assertRegex(out[second:], r"SCAN orders [^\n]* 10 ms")

    def test_plan_without_samples(self):
        """A plan without samples is listed separately from a sampled plan, with all its runs."""
        self.insert_statement(1, "SELECT x FROM t WHERE y LIKE ?")
        for program, detail in ((1, "SCAN t"), (2, "SEARCH t USING INDEX i (y>? AND y<?)")):
            self.insert("plans", plan_hash=program, plan=detail + "\n")
            self.insert("programs", id=program, statement=1, plan_hash=program, layout=10 + program)
            self.insert("plan_nodes", program=program, node=4, detail=detail)
            self.insert("program_opcodes", program=program, address=7, node=4, opcode="Next")
        self.insert_samples(self.insert_run(1, 30, program=1), 30, opcode=7)
        self.count(1, 500, {})
        for layout, calls, ns in (11, 1, 30 * MS), (12, 499, 499 * MS // 100):
            self.insert("statement_parts", normalized_query_hash=0xA001, database="/a.db", program="/usr/bin/app", layout=layout,
                        period=0, labels=0, calls=calls, execution_time_ns=ns, first_seen_ns=START, last_seen_ns=START)
        self.db.commit()
        row, = self.rows("queries", self.trace)
        self.assertEqual(row["notes"], "another plan is 3000 times faster")
        for command in "plan", "report":
            out = self.output(command, self.trace, "--like", "LIKE")
            first, second = out.index("1 run, "), out.index("499 runs, 10.0 us each")
            self.assertRegex(out[first:second], r"SCAN t .* 100.0 %")
            self.assertRegex(out[second:], r"\n└─ SEARCH t USING INDEX i \(y>\? AND y<\?\)\n")
        self.db.execute("DELETE FROM samples")
        self.db.execute("DELETE FROM queries")
        self.db.commit()
        self.assertIn("SEARCH t USING INDEX i", self.output("plan", self.trace))

    def test_plans_of_other_texts(self):
        """Only some runs of a statement have this text, so it does not show which plans the other runs had. A line
        reports that."""
        self.insert_statement(1, "SELECT x FROM t WHERE y LIKE 'a%'")
        self.insert_statement(2, "SELECT x FROM t WHERE y LIKE ?")
        self.db.execute("UPDATE statements SET normalized_query_hash = ?", (0xA001,))
        for program, detail in ((1, "SEARCH t USING INDEX i (y>? AND y<?)"), (2, "SCAN t")):
            self.insert("plans", plan_hash=program, plan=detail + "\n")
            self.insert("programs", id=program, statement=program, plan_hash=program, layout=10 + program)
            self.insert("plan_nodes", program=program, node=4, detail=detail)
            self.insert("program_opcodes", program=program, address=7, node=4, opcode="Next")
        self.insert_samples(self.insert_run(2, 30, program=2), 30, opcode=7)
        self.count(1, 500, {})
        for layout, calls in (11, 480), (12, 20):
            self.insert("statement_parts", normalized_query_hash=0xA001, database="/a.db", program="/usr/bin/app", layout=layout,
                        period=0, labels=0, calls=calls, execution_time_ns=calls * MS, first_seen_ns=START, last_seen_ns=START)
        self.db.commit()
        out = self.output("plan", self.trace, "LIKE ?")
        self.assertIn("SCAN t", out)
        self.assertNotIn("SEARCH", out)
        self.assertIn("\n1 more plan, of runs with other literals or values: --statement 000000000000a001\n", out)
        self.assertIn("\n1 more plan, ", self.output("report", self.trace, "--like", "LIKE ?"))
        out = self.output("plan", self.trace, "--statement", "a001".zfill(16))
        self.assertIn("SEARCH", out)
        self.assertNotIn("more plan", out)
        self.assertNotIn("more plan", self.output("plan", self.trace))

    def test_databases_of_a_statement(self):
        """In one database the statement now has another, slower plan. In the other one it is always slowest."""
        self.insert_statement(1, "SELECT x FROM t WHERE y = 1")
        for program, plan in ((1, "SEARCH t USING INDEX i (y=?)\n"), (2, "SCAN t\n")):
            self.insert("programs", id=program, statement=1, plan_hash=program)
            self.insert("plans", plan_hash=program, plan=plan)
        for database, program, ms in (("/small.db", 1, 2), ("/big.db", 1, 90), ("/small.db", 2, 20), ("/big.db", 1, 90)):
            self.insert_samples(self.insert_run(1, ms, database=database, program=program), 1)
        row, = self.rows("queries", self.trace, "--regressed")
        self.assertEqual((row["before_ms"], row["after_ms"], row["since"], row["until"]), (2, 20, None, None))

    def test_plans_before_and_after_a_time(self):
        """Each side has one plan, whose runs count together. The opcodes are from the newest run's program, not from an
        equal one."""
        self.insert_statement(1, "SELECT x FROM t WHERE y = 1")
        self.insert_statement(2, "SELECT x FROM t WHERE y = 2")
        self.db.execute("UPDATE statements SET normalized_query_hash = ?", (0xA001,))
        for program, statement, plan in ((1, 1, 1), (2, 1, 2), (3, 2, 2)):
            self.insert("programs", id=program, statement=statement, plan_hash=plan, layout=10 + plan)
            self.insert("program_opcodes", program=program, address=7, node=0, opcode="Next")
        self.insert("plans", plan_hash=1, plan="SEARCH t USING INDEX i (y=?)\n")
        self.insert("plans", plan_hash=2, plan="SCAN t\n")
        for program, ms in ((1, 2), (1, 3), (1, 4), (3, 30), (2, 20), (2, 40)):
            self.insert_samples(self.insert_run(1 if program < 3 else 2, ms, database="/a.db", program=program), ms, opcode=7)
        self.db.commit()
        out = self.output("diff", self.trace, "--at", "start+2500ms")
        self.assertRegex(out, r"Plans that changed.*\n.*\n.* 3\.0 ms +30\.0 ms +10\.0 +3 +3 ")
        self.assertRegex(self.output("plan", self.trace, "--opcodes"), r"\n *7 +Next .* 60\.0 ms +100\.0\n")

    def test_rows_and_estimates(self):
        """10 times as many rows as expected are marked, and as few, but not in a program with a limit of rows. A graph has the same words."""
        self.insert_statement(1, 'SELECT x FROM t JOIN u WHERE y = "a\\"')
        self.insert("plans", plan_hash=1, plan="SCAN t\n  SEARCH u USING INDEX i (y=?)\n  SEARCH v (y=?)\n")
        self.insert("programs", id=1, statement=1, plan_hash=1)
        for node, parent, detail in (3, 0, "SCAN t"), (5, 3, "SEARCH u USING INDEX i (y=?)"), (8, 5, "SEARCH v (y=?)"):
            self.insert("plan_nodes", program=1, node=node, parent=parent, detail=detail)
            self.insert("program_opcodes", program=1, address=node, node=node, opcode="Next")
        run = self.insert_run(1, 30, program=1)
        self.insert_samples(run, 30, opcode=5)
        for node, loops, rows, estimate in (3, 1, 40, 1000), (5, 40, 800, 2), (8, 800, 0, None):
            self.insert("plan_loops", query=run, node=node, loops=loops, rows=rows, estimate=estimate)
        self.db.commit()
        out = self.output("plan", self.trace)
        self.assertRegex(out, r"SCAN t .*  1 loop, 40 rows, 1000 estimated: 25 times fewer \(BAD ESTIMATE\); the whole table")
        self.assertRegex(out, r"SEARCH u USING .*  40 loops, 800 rows, 20 a loop, 2 estimated: 10 times as many \(BAD ESTIMATE\)\n")
        self.assertRegex(out, r"SEARCH v .*  800 loops, 0 rows, 0 a loop\n")
        dot = self.output("plan", self.trace, "--dot")
        self.assertRegex(dot, r"^digraph plans \{\n(.*\n)*\}\n$")
        self.assertIn('y = \\"a\\\\\\""];\n', dot)
        self.assertIn('\t\tp1_1 [label="SEARCH u USING INDEX i (y=?)\\nself 100.0 %, total 100.0 %, 30 ms ±5\\n'
                      '40 loops, 800 rows, 20 a loop, 2 estimated: 10 times as many (BAD ESTIMATE)", fillcolor="0.05 1.00 1"];\n\t\tp1_0 -> p1_1;\n', dot)
        self.assertEqual(re.findall(r"p1\S* -> \S+", dot), ["p1 -> p1_0;", "p1_0 -> p1_1;", "p1_1 -> p1_2;"])
        self.insert("program_opcodes", program=1, address=9, node=0, opcode="DecrJumpZero")
        self.db.commit()
        out = self.output("plan", self.trace)
        self.assertRegex(out, r"SCAN t .*  1 loop, 40 rows, 1000 estimated: 25 times fewer; the whole table")
        self.assertRegex(out, r"SEARCH u USING .* 10 times as many \(BAD ESTIMATE\)\n")

    def test_plans_side_by_side(self):
        """The plan of each side that took most of the time, with the lines in common next to each other."""
        self.insert_statement(1, "SELECT x\nFROM t WHERE y = 1")
        self.insert_statement(2, "SELECT y FROM t")
        plans = ("SEARCH t USING INDEX i (y=?)\nSCAN u\nUSE TEMP B-TREE FOR ORDER BY\n", "SCAN t\nSCAN u\nSEARCH v USING AUTOMATIC COVERING INDEX (z=?)\n",
                 "SCAN a\nSCAN b\n", "SCAN b\nSCAN a\n", "SCAN t\n")
        self.insert("libraries", id=8, path="/lib/old.so", version="3.40.1")
        self.insert("libraries", id=9, path="/lib/new.so", version="3.46.0")
        for program, plan in enumerate(plans, 1):
            self.insert("programs", id=program, statement=2 if program in (3, 4) else 1, plan_hash=program, library=9 if program == 2 else 8)
            self.insert("plans", plan_hash=program, plan=plan)
        runs = (1, 1, 3), (2, 3, 2), (1, 5, 1), (1, 2, 50), (2, 4, 2), (1, 2, 50)
        for statement, program, ms in runs:
            self.insert_samples(self.insert_run(statement, ms, database="/a.db", program=program), ms)
        self.db.commit()
        out = self.output("diff", self.trace, "--at", "start+2500ms")
        side_by_side = out[out.index("Plans that differ, side by side"):]
        first, second = side_by_side.split("\n\n")[1:]
        self.assertRegex(first, r"^\[\w{8}\] SELECT x FROM t WHERE y = 1\n"
                         r"changed: SQLite 3\.40\.1, then 3\.46\.0; index i is no longer used; automatic indexes: 0, then 1; sorts: 1, then 0\n"
                         r"A: 3\.0 ms a run +B: 50 ms a run\n"
                         r"SEARCH t USING INDEX i \(y=\?\) +\| SCAN t\nSCAN u {25}SCAN u\n"
                         r"USE TEMP B-TREE FOR ORDER BY +\| SEARCH v USING AUTOMATIC COVERING INDEX \(z=\?\)$")
        self.assertRegex(second, r"^\[\w{8}\] SELECT y FROM t\nchanged: the order of the loops\nA: 2\.0 ms a run +B: 2\.0 ms a run\n"
                         r"SCAN a +<\nSCAN b {12}SCAN b\n +> SCAN a\n$")

    def test_what_changed_a_plan(self):
        """The statement between the last run with the old plan and the first with the new one, on the same database."""
        for number, text in enumerate(("SELECT x FROM t WHERE y = 1", "CREATE INDEX a ON t(z);", "\n CREATE INDEX\tb ON t(z)", "CREATE INDEX c\nON t(z);",
                                       "ANALYZE;", "CREATE INDEX d ON t(z)"), 1):
            self.insert_statement(number, text)
        for program, plan in ((1, "SEARCH t USING INDEX i (y=?)\n"), (2, "SCAN t\n")):
            self.insert("programs", id=program, statement=1, plan_hash=program)
            self.insert("plans", plan_hash=program, plan=plan)
        for statement, program, ms, database in ((2, 0, 1, "/a.db"), (1, 1, 2, "/a.db"), (4, 0, 1, "/a.db"), (2, 0, 1, "/b.db"), (1, 2, 200, "/a.db"),
                                                 (6, 0, 1, "/a.db"), (1, 2, 200, "/a.db"), (5, 0, 1, "/a.db"), (1, 1, 2, "/a.db")):
            self.insert_run(statement, ms, database=database, program=program)
        row, = self.rows("queries", self.trace, "--regressed")
        self.assertEqual((row["before_ms"], row["after_ms"], row["since"], row["until"]), (2, 200, "CREATE INDEX c ON t(z)", "11:06:49 ANALYZE"))
        notes = [row["notes"] for row in self.rows("queries", self.trace) if row["query"].startswith("SELECT")]
        self.assertEqual(notes, ["another plan is 100 times faster, before CREATE INDEX c ON t(z) and since ANALYZE"])
        whole = self.output("diff", self.trace, "--query", "run 2", "--with", "run 5")
        self.assertIn("CREATE INDEX c ON t(z)", whole)
        self.db.execute("UPDATE queries SET exception_code = 1 WHERE statement = 4")
        row, = self.rows("queries", self.trace, "--regressed")
        self.assertIsNone(row["since"])
        notes = [row["notes"] for row in self.rows("queries", self.trace) if row["query"].startswith("SELECT")]
        self.assertEqual(notes, ["another plan is 100 times faster, since ANALYZE"])

    def test_wall_time_without_cpu_time(self):
        """If wall time was sampled on its own, waits do not count as wall time."""
        self.insert_statement(1, "SELECT 1")
        run = self.insert_run(1, 1000)
        self.insert_samples(run, 1000, series=2)
        self.insert_samples(run, 10, series=3)
        self.db.execute("DELETE FROM series WHERE trace_type = 'CPU'")
        for arguments in ((), ("--runs",)):
            row, = self.rows("queries", self.trace, "--by", "wall", *arguments)
            self.assertEqual(row["sampled_ms"], 1000)

    def test_samples_of_a_label(self):
        self.insert("label_sets", id=1, labels='{"route":"users"}')
        self.insert("label_values", labels=1, key="route", value="users", member='"route":"users"')
        self.insert_statement(1, "SELECT 1")
        run = self.insert_run(1, 100, labels=1)
        self.insert_samples(run, 30, labels=1)
        self.insert_samples(run, 70)
        for arguments in ((), ("--runs",)):
            row, = self.rows("queries", self.trace, "--by", "cpu", "--label", "route=users", *arguments)
            self.assertEqual(row["sampled_ms"], 30)

    def label(self, number, route):
        self.insert("label_sets", id=number, labels='{"route":"%s"}' % route)
        self.insert("label_values", labels=number, key="route", value=route, member='"route":"%s"' % route)

    def count(self, statement, calls, parts, **values):
        """Counts runs of a statement. `parts`: the number of runs by label set. A run takes 2 ms, including 1 ms of CPU
        time."""
        columns = {"normalized_query_hash": 0xA000 + statement, "database": "/a.db", "program": "/usr/bin/app"}
        def times(n):
            return {"calls": n, "rows": 3 * n, "execution_time_ns": 2 * n * MS, "cpu_time_ns": n * MS, "duration_ns": 2 * n * MS}
        self.insert("statement_counters", **columns, statement=statement, max_ns=2 * MS,
                    execution_time_square=4.0 * calls * MS * MS, cpu_time_square=1.0 * calls * MS * MS, **times(calls), **values)
        for labels, n in parts.items():
            self.insert("statement_parts", **columns, layout=0, period=0, labels=labels, max_ns=2 * MS, **times(n))

    def test_all_runs_of_a_label(self):
        """All runs with the label in a comment count, not only the logged ones."""
        self.label(1, "users")
        self.label(2, "posts")
        self.insert_statement(1, "SELECT a FROM t /* route='users' */", labels=1)
        self.insert_statement(2, "SELECT b FROM t /* route='users' */", labels=1)
        self.insert_samples(self.insert_run(1, 12), 3)
        self.count(1, 1000, {1: 600, 2: 400}, fullscan_steps=500000)
        self.count(2, 70, {1: 70}, fullscan_steps=140000)
        of_label = self.rows("queries", self.trace, "--label", "route=users")
        self.assertEqual([(row["runs"], row["logged"], row["wall_ms"], row["cpu_ms"], row["rows"], row["notes"]) for row in of_label],
                         [(600, 1, 1200, 600, 1800, ""), (70, 0, 140, 70, 210, "scan 140k rows")])
        by_label, = (row for row in self.rows("queries", self.trace, "--by", "label:route") if row["label"] == "users")
        for column in "runs", "wall_ms", "cpu_ms":
            self.assertEqual(by_label[column], sum(row[column] for row in of_label))
        report = self.output("report", self.trace, "--label", "route=users")
        self.assertRegex(report, r"(?m)^runs +670$")
        self.assertRegex(report, r"(?m)^wall +1340\.0 ms ")
        self.assertIn("140,000 rows of whole tables for 210 rows", report)
        self.assertNotIn("logged runs", report)
        self.assertNotIn("logged runs", self.output("diff", self.trace, self.trace, "--label", "route=users"))
        # Some of its logged runs have the label from the program. Other runs that were not logged may have it, too.
        self.insert_statement(3, "SELECT a FROM t")
        self.db.execute("UPDATE statements SET normalized_query_hash = ? WHERE id = 3", (0xA001,))
        self.insert_samples(self.insert_run(3, 12, labels=1), 3, labels=1)
        rows = self.rows("queries", self.trace, "--label", "route=users")
        self.assertEqual({row["runs"]: row["logged"] for row in rows}, {None: 2, 70: 0})

    def test_runs_without_parts(self):
        """Not all runs were counted by label. Then only the logged runs are known."""
        self.label(1, "users")
        self.insert_statement(1, "SELECT a FROM t /* route='users' */", labels=1)
        self.insert_samples(self.insert_run(1, 12), 3)
        self.count(1, 1000, {1: 600})
        row, = self.rows("queries", self.trace, "--label", "route=users")
        self.assertEqual((row["runs"], row["logged"], row["wall_ms"]), (None, 1, 12))

    def test_causes(self):
        """Long causes are shown with their share of the time; causes below 5 % are not shown."""
        for statement, text in enumerate(("SELECT a FROM t", "SELECT b FROM t", "SELECT c FROM t", "COMMIT", "INSERT"), 1):
            self.insert_statement(statement, text)
        self.insert_run(1, 100, cpu_time_ns=10 * MS, lock_wait_ns=60 * MS, io_sync_ns=20 * MS, io_read_ns=10 * MS, mutex_wait_ns=MS)
        self.insert_run(2, 60, query_duration_ns=240 * MS, run_delay_ns=12 * MS, prepare_time_ns=15 * MS)
        self.insert_run(3, 50, fullscan_steps=50000, sorts=1, autoindexes=7)
        self.insert("programs", id=9, statement=3, plan_hash=1)
        for node, detail in enumerate(("SCAN TABLE t", "SCAN t", "MATERIALIZE made", "SCAN made", "SCAN (subquery-2)", "SCAN json_each VIRTUAL TABLE INDEX 1:",
                                       "USE TEMP B-TREE FOR ORDER BY"), 1):
            self.insert("plan_nodes", program=9, node=node, detail=detail)
        self.insert_samples(self.insert_run(4, 40, io_sync_ns=30 * MS), 20, series=3, wait=6 | 34 << 8)
        self.insert_run(5, 1, exception_code=19, exception="UNIQUE constraint failed:\nt.id")
        wanted = [("lock 60 %, sync 20 %", ""), ("run queue 20 %", "prepare 25 %, between rows 180 ms (75 %)"),
                  ("", "scan 50k rows of t, sort for ORDER BY, automatic index"), ("sync 75 %", "checkpoint 50 %"),
                  ("", "failed%s: UNIQUE constraint failed: t.id")]
        for lines, failed in ((), " 1"), (("--runs",), ""):
            self.assertEqual([(row["waits"], row["notes"]) for row in self.rows("queries", self.trace, *lines)],
                             [(waits, notes % failed if "%s" in notes else notes) for waits, notes in wanted])

    def test_holders_and_prepares(self):
        """The longest holder of the lock, and the number of the statement's preparations."""
        self.insert_statement(1, "INSERT INTO t VALUES (?)")
        run = self.insert_run(1, 100, lock_wait_ns=90 * MS)
        for holder, ns in ("", 70 * MS), ("BEGIN\nIMMEDIATE", 10 * MS), ("UPDATE t SET a = 1 WHERE b = 2 AND c = 3 AND d", 20 * MS):
            self.insert("waits_for_locks", query=run, holder_query=holder, wait_ns=ns)
        row, = self.rows("queries", self.trace)
        self.assertEqual(row["notes"], "lock held by UPDATE t SET a = 1 WHERE b = 2 AND c ...")
        self.db.execute("DELETE FROM waits_for_locks WHERE wait_ns = ?", (20 * MS,))
        row, = self.rows("queries", self.trace, "--runs")
        self.assertEqual(row["notes"], "lock held by BEGIN IMMEDIATE")
        self.insert("waits_for_locks", query=run, process=1, lock=34, database="app.db", holder_process_id=999, wait_ns=80 * MS, start_ns=START)
        row, = self.rows("queries", self.trace)
        self.assertEqual(row["notes"], "lock held by process 999 (not recorded)")
        self.db.execute("UPDATE waits_for_locks SET holder_process_id = 200 WHERE holder_process_id = 999")
        row, = self.rows("queries", self.trace)
        self.assertEqual(row["notes"], "lock held by process 200")
        self.insert("transactions", process=2, number=1, database="app.db", start_ns=START, duration_ns=90 * MS, first_query="PRAGMA wal_checkpoint(RESTART)")
        row, = self.rows("queries", self.trace)
        self.assertEqual(row["notes"], "lock held by PRAGMA wal_checkpoint(RESTART), open 90 ms")
        self.db.execute("UPDATE transactions SET number = 7, process = 1, duration_ns = 8300 * 1000000, idle_ns = 8200 * 1000000")
        self.db.execute("UPDATE waits_for_locks SET process = 1, holder_process_id = 100, holder_transaction = 7, holder = ? WHERE wait_ns = ?",
                        (self.insert_run(1, 1, call_stack=3), 10 * MS))
        self.db.execute("DELETE FROM waits_for_locks WHERE wait_ns > ?", (10 * MS,))
        self.insert("call_stacks", id=3, frames="[]", caller="/srv/app.py:20", caller_function="hold")
        row, = self.rows("queries", self.trace, "--runs", "--query", "run 1")
        self.assertEqual(row["notes"], "lock held by BEGIN IMMEDIATE of app.py:20, open 8.3 s, 8.2 s of that outside SQLite")
        row, = self.rows("locks", self.trace)
        self.assertEqual((row["holder_query"], row["open_ms"], row["outside_ms"], row["caller"], row["holder"]),
                         ("BEGIN\nIMMEDIATE", 8300, 8200, "app.py:20", "app"))
        for statement, prepares, said in (2, 90, ": keep the statement"), (3, 40, ""):
            self.insert_statement(statement, "SELECT %d" % statement)
            self.count(statement, 100, {}, prepares=prepares, prepare_time_ns=50 * MS)
            self.assertIn("prepare 25 %% (%d times%s)" % (prepares, said), [row["notes"] for row in self.rows("queries", self.trace)])

    def test_an_index_that_may_help(self):
        """Plans of all versions name the index's table."""
        for statement, detail in enumerate(("SCAN t", "SCAN TABLE t", "SCAN TABLE t AS u", "SCAN u"), 1):
            self.insert_statement(statement, "SELECT %d" % statement)
            self.insert("programs", id=statement, statement=statement)
            self.insert("plan_nodes", program=statement, node=4, detail=detail, compared="b")
            self.insert_run(statement, 10, program=statement, fullscan_steps=5000, result_rows=1)
        self.db.commit()
        for statement, name in enumerate("tttu", 1):
            self.assertIn("; an index on %s (b) may save most of that\n" % name,
                          self.output("report", self.trace, "--like", "SELECT %d" % statement))

    def test_input_and_output(self):
        """The bytes read and written, and the number of calls."""
        self.insert_statement(1, "SELECT 1")
        for ms in 10, 20:
            self.insert_run(1, ms, reads=30000, read_bytes=31 * 10**6, writes=3, write_bytes=10**6 - 1, syncs=9)
        self.db.commit()
        self.assertRegex(self.output("report", self.trace), r"\nread +60,000 calls, 62.0 MB\nwritten +6 calls, 2.0 MB, 18 syncs\n")
        self.count(1, 100, {})
        self.db.commit()
        self.assertRegex(self.output("report", self.trace), r"\nread +60,000 calls, 62.0 MB, of logged runs\n")
        self.db.execute("UPDATE queries SET read_bytes = 400, write_bytes = 10, syncs = 0")
        self.db.commit()
        self.assertNotRegex(self.output("report", self.trace), r"\n(read|written) ")

    def test_versions(self):
        """diff reports another version of SQLite."""
        self.insert_statement(1, "SELECT 1")
        for library, version in (1, "3.40.1"), (2, "3.51.0"):
            self.insert("libraries", id=library, path="/lib/sqlite%d.so" % library, version=version)
            self.insert_run(1, 10, library=library)
        self.db.commit()
        first = self.output("diff", self.trace, "--query", "run 1", "--with", "run 2").splitlines()[4]
        self.assertRegex(first, r"^SQLite +3\.40\.1 +3\.51\.0 +another version$")
        first = self.output("diff", self.trace, "--query", "run 1", "--with", "run 1").splitlines()[4]
        self.assertRegex(first, r"^SQLite +3\.40\.1 +3\.40\.1$")
        # No run in the second file was long enough to be logged.
        self.db.execute("DELETE FROM queries WHERE query_id = 'run 2'")
        self.count(1, 100, {})
        self.insert("programs", id=1, statement=1, library=2)
        self.db.commit()
        fast = self.trace + ".fast"
        self.db.execute("VACUUM INTO ?", (fast,))
        db = sqlite3.connect(fast)
        db.execute("DELETE FROM queries WHERE id > 0")
        db.commit()
        db.close()
        first = self.output("diff", self.trace, fast).splitlines()[4]
        self.assertRegex(first, r"^SQLite +3\.40\.1 +3\.51\.0 +another version$")

    def test_report_begins_with_the_statements(self):
        """The statements with 90 % of the time come first, one line each; then waits and plans; functions come last."""
        for statement, ms in (1, 20), (2, 500), (3, 450), (4, 30):
            self.insert_statement(statement, "\n  SELECT %d" % statement)
            self.insert("plans", plan_hash=statement, plan="SCAN t%d\n" % statement)
            self.insert("programs", id=statement, statement=statement, plan_hash=statement)
            self.insert("plan_nodes", program=statement, node=4, detail="SCAN t%d" % statement)
            self.insert_samples(self.insert_run(statement, ms, program=statement, fullscan_steps=30000, lock_wait_ns=ms // 2 * MS), ms)
        self.db.commit()
        lines = self.output("report", self.trace).splitlines()
        self.assertEqual(lines[0], "Statements with most of the time: 2 of 4")
        self.assertRegex(lines[2], r"^ +50\.0 +500\.0 ms .* lock 50 %, scan 30k rows of t2 +SELECT 2$")
        self.assertRegex(lines[3], r"^ +45\.0 +450\.0 ms .* lock 50 %, scan 30k rows of t3 +SELECT 3$")
        self.assertEqual(lines[4], "")
        titles = [line for line in lines if re.match("(Time|Plans|Top)", line)]
        self.assertEqual(titles[:4], ["Time, as measured and as sampled", "Time by cause", "Plans, by time of their nodes",
                                      "Top functions, by CPU time"])
        plans = [line.rpartition(": ")[2] for line in lines if re.match(r"1 run, ", line)]
        self.assertEqual(plans, ["SELECT 2", "SELECT 3", "SELECT 4"])
        one = self.output("report", self.trace, "--like", "SELECT 2")
        self.assertNotIn("Statements", one)
        self.assertIn("\nPlan, by time of its nodes\nQUERY PLAN", one)

    def insert_stack(self, number, *frames):
        """Frames, leaf first: function, module, file and line. Each gets an address of its own."""
        addresses = []
        for i, (function, module, file, line) in enumerate(frames):
            base = 0x100000 * (100 * number + i + 1)
            self.insert("modules", id=100 * number + i, path="/opt/" + module, base=base, extent=0x1000)
            for name in function, file:
                self.db.execute("INSERT INTO names(name) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM names WHERE name = ?)", (name, name))
            self.db.execute("INSERT INTO frames(address, level, inlined, function, symbol, file, line) SELECT ?, 0, 0, f.id, f.id, p.id, ?"
                            " FROM names AS f JOIN names AS p ON f.name = ? AND p.name = ?", (base + 16, line, function, file))
            addresses.append(base + 16)
        self.insert("stacks", id=number, trace=json.dumps(addresses))

    def test_frames_of_the_program(self):
        """Frames of the program, not of SQLite, a driver or an interpreter, are shown with their lines, and the nearest
        comes first."""
        self.insert_statement(1, "SELECT 1")
        sqlite = ("sqlite3VdbeExec", "libsqlite3.so.0", "sqlite3.c", 100), ("sqlite3_step", "libsqlite3.so.0", "sqlite3.c", 200)
        driver = ("stmt_step", "_sqlite3.cpython-312.so", "", 0)
        interpreter = [("_PyEval_EvalFrameDefault", "python3.12", "ceval.c", 7)] * 3
        self.insert_stack(2, *sqlite, driver, *interpreter, ("py::search:/srv/app.py", "app", "", 0), *interpreter,
                          ("py::get:/srv/lib/python3.12/site-packages/web.py", "app", "", 0), *interpreter, ("main", "python3.12", "", 0))
        sqlite = ("unixRead", "shop", "/src/os_unix.c", 9), ("sqlite3_step", "shop", "/src/vdbe.c", 9)  # linked
        self.insert_stack(3, *sqlite, ("rusqlite::Statement::step", "shop", "/root/.cargo/registry/rusqlite/lib.rs", 3),
                          ("_sqlite3_step_internal", "shop", "/src/github.com/mattn/go-sqlite3/sqlite3.go", 109),
                          ("shop::find", "shop", "/srv/shop/src/find.rs", 55), ("core::ops::function", "shop", "/rustc/library/core/ops.rs", 9),
                          ("std::rt::lang_start", "shop", "/rustc/library/std/rt.rs", 9), ("main", "shop", "/srv/shop/src/main.rs", 7))
        run = self.insert_run(1, 100)
        for stack, count in (2, 60), (3, 40):
            for _ in range(count):
                self.time += 1
                self.insert("samples", timestamp_ns=self.time, series=1, query=run, stack=stack, weight=1)
        self.db.commit()
        report = self.output("report", self.trace)
        self.assertRegex(report, r"\nCallers in the program, by CPU time\n.*\n *60\.0 % +60\.0 ms +py::search:/srv/app\.py\n"
                                 r" *40\.0 % +40\.0 ms  find\.rs:55  shop::find\n\nTop functions")
        stacks = [line[17:] for line in report[report.index("Top stacks"):].splitlines()[2:]]
        self.assertEqual(stacks, ["sqlite3VdbeExec", "sqlite3_step", "stmt_step", "… 3 frames", "py::search:/srv/app.py", "… 7 frames", "main",
                                  "unixRead (os_unix.c:9)", "sqlite3_step", "rusqlite::Statement::step", "_sqlite3_step_internal", "shop::find (find.rs:55)", "… 2 frames",
                                  "main (main.rs:7)"])

    def test_outside_of_nodes(self):
        """Before the first step, and if the stack shows it, the report names SQLite's action."""
        self.insert_statement(1, "SELECT 1")
        self.insert("plans", plan_hash=1, plan="SCAN t\n")
        self.insert("programs", id=1, statement=1, plan_hash=1)
        self.insert("plan_nodes", program=1, node=4, detail="SCAN t")
        self.insert("program_opcodes", program=1, address=7, node=4, opcode="Next")
        self.insert_stack(2, ("malloc", "libc.so.6", "", 0), ("sqlite3_prepare_v2", "libsqlite3.so.0", "", 0))
        self.insert_stack(3, ("free", "libc.so.6", "", 0), ("sqlite3_finalize", "libsqlite3.so.0", "", 0))
        self.insert_stack(4, ("free", "libc.so.6", "", 0), ("sqlite3_step", "libsqlite3.so.0", "", 0))
        run = self.insert_run(1, 100, program=1, prepare_time_ns=5)
        for stack, opcode, count in (1, 0, 4), (1, 7, 40), (2, 0, 5), (3, 0, 20), (4, 0, 30):
            for _ in range(count):
                self.insert("samples", timestamp_ns=self.time, series=1, query=run, stack=stack, weight=1, opcode=opcode)
                self.time += 1
        self.db.commit()
        plan = self.output("plan", self.trace)
        self.assertEqual([(node, float(share)) for node, share in re.findall(r"─ (\S+(?: \w+\)?)?) .* ([0-9.]+) %  ", plan)],
                         [("SCAN t", 40.4), ("(not known)", 30.3), ("(preparing)", 9.1), ("(closing)", 20.2)], plan)

    def test_cpu_time_of_spills(self):
        """Writes before a transaction's end, because the cache is full, are recognized by their frames."""
        self.insert_statement(1, "INSERT INTO t VALUES (?)")
        self.insert_stack(2, ("pwrite64", "libc.so.6", "", 0), ("pagerStress", "libsqlite3.so.0", "", 0))
        self.insert_stack(3, ("pwrite64", "libc.so.6", "", 0), ("pagerWalFrames", "libsqlite3.so.0", "", 0))
        run = self.insert_run(1, 100, cpu_time_ns=50 * MS)
        self.insert_samples(run, 10)
        self.insert_samples(run, 40, series=3)
        for stack, ids in (2, "LIMIT 5"), (3, "LIMIT 5 OFFSET 5"), (2, "LIMIT 20 OFFSET 20"):
            self.db.execute("UPDATE samples SET stack = ? WHERE timestamp_ns IN (SELECT timestamp_ns FROM samples ORDER BY 1 %s)" % ids, (stack,))
        for rewritten, cause in (0, ""), (20, ""), (21, " (cache_size is too small)"):
            self.db.execute("DELETE FROM page_sums")
            self.insert("page_sums", process=1, statement=0xA001, writes=100, rewritten=rewritten)
            self.db.commit()
            for lines in (), ("--runs",):
                row, = self.rows("queries", self.trace, *lines)
                self.assertEqual(row["notes"], "cache spill 10 % of CPU time" + cause)
        self.db.execute("UPDATE queries SET cpu_time_ns = ?", (101 * MS,))
        row, = self.rows("queries", self.trace)
        self.assertEqual(row["notes"], "")

    def test_cpu_time_of_checkpoints(self):
        """The stacks of checkpoints contain the function if names are known."""
        self.insert_statement(1, "COMMIT")
        self.insert_stack(2, ("pwrite64", "libc.so.6", "", 0), ("sqlite3WalCheckpoint", "libsqlite3.so.0", "", 0))
        run = self.insert_run(1, 100, cpu_time_ns=100 * MS)
        self.insert_samples(run, 60)
        for _ in range(40):
            self.time += 1
            self.insert("samples", timestamp_ns=self.time, series=1, query=run, stack=2, weight=1)
        for lines in (), ("--runs",):
            row, = self.rows("queries", self.trace, *lines)
            self.assertEqual(row["notes"], "checkpoint 40 %")

    def test_waits_of_short_runs(self):
        """The cause of these waits is unknown."""
        self.insert_statement(1, "SELECT 1")
        self.insert_run(1, 20, cpu_time_ns=20 * MS)
        self.count(1, 100, {})
        row, = self.rows("queries", self.trace)
        self.assertEqual((row["waits"], row["each_ms"]), ("unknown 50 %", 2))

    def test_p99(self):
        """For all runs, p99 is a bound: the histogram's, or the longest run."""
        self.insert_statement(1, "SELECT 1")
        self.count(1, 1000, {}, runs_5=985, runs_10=10, runs_11=5)
        row, = self.rows("queries", self.trace)
        self.assertEqual(row["p99_ms"], 1.0486)  # 2^20 ns
        self.db.execute("UPDATE statement_counters SET runs_10 = 0, runs_11 = 15")
        row, = self.rows("queries", self.trace)
        self.assertEqual(row["p99_ms"], 2)
        for ms in range(1, 201):
            self.insert_run(1, ms)
        row, = self.rows("queries", self.trace, "--since", "start")
        self.assertEqual((row["runs"], row["logged"], row["p99_ms"]), (None, 200, 198))

    def test_p99_of_few(self):
        """For few runs, p99 is the longest run, so a table does not mark it as a bound."""
        self.insert_statement(1, "SELECT 1")
        for runs, shown in (99, "  2.0 ms"), (100, "  ≤ 2.0 ms"):
            self.db.execute("DELETE FROM statement_counters")
            self.count(1, runs, {}, runs_11=runs)
            self.db.commit()
            self.assertRegex(self.output("queries", self.trace), r" %d +2\.0 ms%s " % (runs, shown))

    def test_little_time_inside(self):
        """The first line reports it if no option selects runs, and one process was recorded."""
        self.insert_statement(1, "SELECT 1")
        self.insert_run(1, 2)
        self.count(1, 100, {}, first_seen_ns=START, last_seen_ns=START + 10000 * MS)
        self.db.commit()
        self.assertNotIn("SQLite took", self.output("findings", self.trace))
        self.db.execute("DELETE FROM processes WHERE id > 1")
        self.db.commit()
        sentence = "SQLite took 200 ms of the 10 s from the first query to the last, 2 %. The rest is time of the program outside SQLite."
        for command in "report", "findings":
            self.assertEqual(" ".join(self.output(command, self.trace).split("\n\n")[0].split()), sentence)
            self.assertNotIn("SQLite took", self.output(command, self.trace, "--since", "start"))
        self.db.execute("UPDATE statement_counters SET last_seen_ns = ?", (START + 500 * MS,))
        self.db.commit()
        self.assertNotIn("SQLite took", self.output("findings", self.trace))

    def test_garbage_between_rows(self):
        """The finding names the garbage collector of the program's language, if it takes 5 % of the time or more."""
        self.insert_statement(1, "SELECT a FROM t")
        self.insert("series", id=4, thread=1, trace_type="ProgramCPU", period_ns=MS)
        self.insert_stack(2, ("gc_collect_main", "python3.11", "", 0), ("main", "python3.11", "", 0))
        self.insert_stack(3, ("main", "python3.11", "", 0))
        run = self.insert_run(1, 10, query_duration_ns=1000 * MS, result_rows=100)
        for stack, count in (2, 30), (3, 70):
            for _ in range(count):
                self.time += 1
                self.insert("samples", timestamp_ns=self.time, series=4, query=run, stack=stack, weight=1)
        finding, = self.rows("findings", self.trace)
        self.assertEqual((finding["finding"], finding["evidence"]), ("slow_consumer", "990 ms between 100 rows, 9.9 ms for each, 30 % of it collects garbage; 10 ms inside SQLite"))
        self.db.execute("UPDATE samples SET stack = 3 WHERE rowid > (SELECT min(rowid) + 3 FROM samples)")
        finding, = self.rows("findings", self.trace)
        self.assertNotIn("garbage", finding["evidence"])

    def test_connections_by_number(self):
        """If few runs are logged, the numbers of their connections show how many the process has opened. Each connection has to
        prepare its statements."""
        for statement, text in (1, "PRAGMA journal_mode = WAL"), (2, "SELECT a FROM t"):
            self.insert_statement(statement, text)
            self.count(statement, 1500, {}, prepares=1500, prepare_time_ns=2700 * MS)
        for connection in range(30):
            self.insert_run(1, 2, session=4000 + 50 * connection)
        finding, = self.rows("findings", self.trace)
        self.assertEqual((finding["finding"], finding["title"]), ("reconnecting", "1,451 connections or more were opened for 3,000 runs of statements"))
        # Numbers so far apart are not those of one process.
        self.db.execute("UPDATE queries SET session = 2000000000 WHERE session = 4000")
        self.assertEqual([row["finding"] for row in self.rows("findings", self.trace)], ["preparing", "preparing"])

    def test_checkpoints_at_the_same_time(self):
        """A checkpoint that finds another one running has not met a reader."""
        for obstacle, result, copied in (0, 0, 90), (1, 5, 0), (1, 5, 0), (2, 5, 0):
            self.insert("wal_checkpoints", process=1, database="/a.db", frames=90, copied_after=copied, obstacle=obstacle, result=result, page_size=4096)
        self.db.commit()
        self.assertIn("3 of 4 checkpoints stopped early, 2 of them because another checkpoint was running.", " ".join(self.output("wal", self.trace).split()))
        self.db.execute("DELETE FROM wal_checkpoints WHERE obstacle = 1")
        self.db.commit()
        self.assertIn("1 of 2 checkpoints stopped early.", " ".join(self.output("wal", self.trace).split()))

    def test_share(self):
        """The share refers to all statements, including hidden ones, and to the clock that orders them."""
        for statement, calls in (1, 300), (2, 100):
            self.insert_statement(statement, "SELECT %d" % statement)
            self.count(statement, calls, {})
        self.db.execute("UPDATE statement_counters SET cpu_time_ns = 9 * cpu_time_ns WHERE statement = 2")
        self.assertEqual([row["share_%"] for row in self.rows("queries", self.trace, "--limit", "1")], [75])
        self.assertEqual([row["share_%"] for row in self.rows("queries", self.trace, "--by", "cpu")], [75, 25])

    def failures(self, counted, **logged):
        """Logs these runs of a statement by code, and returns (failed, all_failed) for each code from --failed."""
        self.insert_statement(1, "INSERT INTO t VALUES (1)")
        self.count(1, 1000, {}, errors=counted)
        for code, count in logged.items():
            for _ in range(count):
                self.insert_run(1, 1, exception_code=int(code[1:]), database="/a.db")
        return {"e%d" % row["code"]: (row["failed"], row["all_failed"]) for row in self.rows("queries", self.trace, "--failed")}

    def test_sum_of_shares(self):
        """The sum adds up the exact shares, not the rounded ones: three equal shares give 100.0, not 99.9."""
        for number in 1, 2, 3:
            labels = '{"route":"r%d"}' % number
            self.insert_statement(number, "SELECT %d" % number)
            self.insert("label_sets", id=number, labels=labels, units="{}")
            self.insert("label_values", labels=number, key="route", value="r%d" % number, member=labels[1:-1])
            self.insert("call_stacks", id=number, caller="app.py:%d" % number, caller_function="f", frames="[]")
            self.insert_samples(self.insert_run(number, 30, labels=number, call_stack=number), 30, labels=number)
        self.db.commit()
        for by in (), ("--by", "label:route"), ("--by", "caller"):
            out = self.output("queries", self.trace, *by)
            self.assertEqual((out.count("33.3"), "100.0" in out.splitlines()[-1]), (3, True), out)

    def test_failures_that_are_all_logged(self):
        self.assertEqual(self.failures(5, e5=2, e19=3), {"e5": (2, 5), "e19": (3, 5)})
        self.assertEqual(self.rows("queries", self.trace, "--failed", "--like", "INSERT")[0]["failed"], 3)
        for option in ("--process", "100"), ("--last", "5"), ("--database", "/a.db"):
            self.assertEqual({row["failed"] for row in self.rows("queries", self.trace, "--failed", *option)}, {None}, option)
        self.db.commit()
        out = self.output("queries", self.trace, "--failed")
        self.assertRegex(out, r"logged +failed +all_failed +")
        self.assertRegex(out, r"(?m)^ +5 +5 .* sum of 2$")

    def test_failures_of_one_code(self):
        """Ten failures are logged for each code of each process, so only one code can have more."""
        self.assertEqual(self.failures(500, e5=2, e19=10), {"e5": (2, 500), "e19": (498, 500)})

    def test_failures_of_a_single_code(self):
        self.assertEqual(self.failures(500, e19=10), {"e19": (500, 500)})
        self.db.commit()
        self.assertNotIn("all_failed", self.output("queries", self.trace, "--failed"))
        self.db.execute("UPDATE state SET removals = 1")  # there may have been other codes
        self.assertEqual([(row["failed"], row["all_failed"]) for row in self.rows("queries", self.trace, "--failed")], [(None, 500)])

    def test_failures_that_are_not_known(self):
        self.assertEqual(self.failures(500, e5=10, e19=10), {"e5": (None, 500), "e19": (None, 500)})

    def test_only_prepared(self):
        self.insert_statement(1, "SELECT set_setting('a', 'b')")
        self.insert_statement(2, "SELECT 1")
        self.count(1, 0, {}, prepares=1)
        self.count(2, 5, {0: 5})
        self.assertEqual([row["runs"] for row in self.rows("queries", self.trace)], [5])

    def test_unfinished(self):
        """The time of an unfinished run is included in the statements' sum, and in report's."""
        self.insert_statement(1, "SELECT 1")
        self.insert_statement(2, "SELECT 2")
        self.count(1, 500, {0: 500})
        for run in (self.insert_run(1, 3000, finished=0), self.insert_run(2, 4000, finished=0)):
            self.insert_samples(run, 2)
        statements = self.rows("queries", self.trace)
        self.assertEqual(sorted(row["wall_ms"] for row in statements), [4000, 4000])
        report = self.output("report", self.trace)
        self.assertRegex(report, r"(?m)^wall +1000\.0 ms")
        self.assertRegex(report, r"(?m)^wall, unfinished +7000\.0 ms")
        self.assertRegex(self.output("report", self.trace, "--like", "SELECT 2"), r"(?m)^wall +4000\.0 ms")

    def test_sessions_of_two_processes(self):
        self.insert_statement(1, "UPDATE t SET x = 1")
        for process in (1, 2):
            for _ in range(2):
                run = self.insert_run(1, 5, process=process, session=1)
                self.insert("waits_for_locks", start_ns=self.begin, process=process, thread_id=100 * process, query=run,
                            wait_ns=MS, database="/a.db")
        row, = self.rows("locks", self.trace)
        self.assertEqual((row["waits"], row["victims"]), (4, 2))

    def test_virtual_table(self):
        """The virtual table has the same sums as the view that it replaces."""
        for number, tenant in enumerate(("acme", "other"), 1):
            self.insert("label_sets", id=number, labels='{"tenant":"%s"}' % tenant)
            self.insert("label_values", labels=number, key="tenant", value=tenant, member='"tenant":"%s"' % tenant)
        self.insert("threads", id=3, process=1, thread_id=103, thread_name="sorter")
        self.insert("series", id=4, thread=3, trace_type="CPU", period_ns=MS)
        self.insert("series", id=5, thread=1, trace_type="CPU", period_ns=2 * MS)
        self.insert("stacks", id=2, trace="[4660,17]")
        self.insert_statement(1, "SELECT 1")
        self.insert_statement(2, "SELECT 2 /* tenant='acme' */", labels=1)
        self.insert("program_opcodes", program=1, address=7, node=0, opcode="Next")
        for number in range(6):
            run = self.insert_run(1 + number % 2, 30, program=number % 3, finished=number != 5,
                                  worker_cpu_time_ns=number % 2, prepare_time_ns=5 * (number % 2))
            for series in 1, 2, 4, 5, 1, 3:
                self.insert_samples(run, 3, series, opcode=7 * (number % 2), labels=series % 3,
                                    wait=series == 3 and 4 | 3 << 8, wait_ns=series == 3 and number)
        self.insert_samples(0, 4)
        self.insert_samples(1, 2)  # not in its time
        # Records of every length, in a tree with inner pages. The first records lack the last column.
        for view, in self.db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
            self.db.execute(f"DROP VIEW {view}")
        for column in "transaction_number", "span", "wait":
            self.db.execute(f"ALTER TABLE samples DROP COLUMN {column}")
        self.insert_samples(2, 3)
        for column in "wait", "span", "transaction_number":
            self.db.execute(f"ALTER TABLE samples ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
        for bits in range(0, 51):
            for size in 1 << bits, -1 << bits, (1 << bits) - 1:
                self.insert_samples(2, 20, 1 + bits % 3, size=size, labels=bits % 5)
        self.db.commit()
        self.db.execute("PRAGMA page_size = 512")
        self.db.execute("VACUUM")
        self.compare_sums()
        self.db.execute("PRAGMA journal_mode = WAL")  # then the command reads rows with SQL
        self.insert_samples(1, 1)
        self.db.commit()
        self.compare_sums()

    def compare_sums(self):
        for label in (), ("tenant=acme",), ("tenant=other",):
            done = subprocess.run([os.environ["SELECTED_SUMS"], self.trace, *label], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertGreater(int(done.stdout), 5)


if __name__ == "__main__":
    main()
