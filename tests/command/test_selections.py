# SPDX-License-Identifier: Apache-2.0
"""Every command with every option that selects runs, in every grouping, gives the same sums as SQL by hand.

Options that select runs and options that change the display are combined in pairs: without a selection, each command runs
with all of the latter, and with a selection with one of each kind. The next selection has the next one, and each command
begins with another one, so that each selection is combined with each type of samples.

The commands and their options come from the command's own completion, so that a new option fails here until it is
in one of the tables below.

usage: as tool.py"""

import json
import random
import re
import sqlite3

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mcp"))
from server import Server
from tool import *
from trace_file import MS, START, version

SEED = 35

# The meaning of each option that selects runs, in SQL about a row of `runs`. The values exist in the file below.
FILTERS = {
    None: [(None, "1")],
    "query": [("run 7", "query_id = 'run 7'")],
    "statement": [("000000000000a002", "hash = 0xa002")],
    "like": [("orders", "query LIKE '%orders%'")],
    "since": [("start+5s", "start_ns >= (SELECT min(start_ns) FROM runs) + 5000000000")],
    "until": [("start+9s", "start_ns < (SELECT min(start_ns) FROM runs) + 9000000000")],
    "min-duration": [("40ms", "duration_ns >= 40000000")],
    "failed": [("", "exception_code <> 0")],
    "database": [("big.db", "database = '/data/big.db'"), ("/data/small.db", "database = '/data/small.db'")],
    "process": [("200", "process_id = 200"), ("app", "executable LIKE '%/app'"), ("serve.py", "executable LIKE '%/other'"),
                ("bin/serve.py", "executable LIKE '%/other'")],
    "thread": [("101", "thread_id = 101"), ("writer", "thread_name = 'writer'")],
    "label": [("route=items", None), ("route=users", None), ("route=api", None), ("tier=web", None)],
    "last": [("6", "number > (SELECT max(number) FROM runs) - 6")],
    "host": [("far", "hostname = 'far'")],
    "caller": [("orders.py:31", "caller = '/srv/shop/orders.py:31'"), ("/srv/shop/orders.py:3", "caller = '/srv/shop/orders.py:3'"),
               ("shop/orders.py", "caller LIKE '%/orders.py:%'"), ("show", "caller LIKE '%/items.pl:7'")],
    "service": [("other", "executable LIKE '%/other'")],
}
CALLERS = (("/srv/shop/orders.py:31", "find"), ("/srv/shop/orders.py:3", "find"), ("/srv/shop/items.pl:7", "show"))
# Options that change the display or the source of runs. The sums do not change.
ORDERS = ["cpu", "wall", "off", "samples", "start"]
TYPES = (("cpu", "CPU"), ("wall", "Wall"), ("offcpu", "OffCPU"))
SHAPES = [(*TYPES[0], ()), (*TYPES[0], ("--plan",)), (*TYPES[1], ()), (*TYPES[0], ("--root", "label:route")), (*TYPES[0], ("--no-inlines",)),
          (*TYPES[2], ())]
LINES = {
    "queries": ["by", "statements", "runs", "regressed"],
    "report": ["type", "full", "html", "no-text", "no-paths", "plan"],
    "plan": ["type", "opcodes", "dot"],
    "diff": ["with", "at", "type"],
    "export": ["format", "diff", "no-inlines", "root", "plan", "native", "type"],
    "traces": ["by"],
    "trace": ["samples", "all"],
    "locks": ["idle", "chains"],
    "wal": [],
    "findings": [],
    "metrics": [],
}
ELSEWHERE = {"limit", "format", "help"}
# These commands read no runs, or a whole file.
OTHER_COMMANDS = {"record", "attach", "check", "advise", "analyze", "top", "dump", "live", "push", "pull", "embed", "sql", "mcp", "pages"}
# The tools of mcp, with arguments. Each prints the output of its command.
TOOLS = (("top_statements", {"limit": 2, "like": "orders"}, ("queries", "--limit", "2", "--like", "orders")),
         ("top_statements", {"limit": 1, "by": "cpu"}, ("queries", "--limit", "1", "--by", "cpu")),
         ("callers", {"limit": 2}, ("queries", "--by", "caller", "--limit", "2")),
         ("findings", {"limit": 2}, ("findings", "--limit", "2")), ("locks", {}, ("locks",)), ("wal", {}, ("wal",)),
         ("plan", {"statement": "000000000000a002"}, ("plan", "--limit", "1", "--statement", "000000000000a002")))
# traces has options of its own, about traces.
TRACE_FILTERS = {"like": "orders", "since": "start+5s", "until": "start+9s", "min-duration": "40ms", "process": "200"}

RUNS = """CREATE TEMP TABLE runs AS
SELECT q.id AS id, row_number() OVER (ORDER BY query_start_ns, q.id) AS number, query_id, s.normalized_query_hash AS hash, query,
       query_start_ns AS start_ns, query_duration_ns AS duration_ns, coalesce(execution_ns, query_duration_ns) AS wall_ns,
       cpu_time_ns AS cpu_ns, exception_code, database, process_id, executable, hostname, q.thread_id AS thread_id,
       thread_name, s.labels AS comment, q.labels AS run_labels, b.caller AS caller
FROM queries AS q LEFT JOIN call_stacks AS b ON b.id = call_stack JOIN statements AS s ON s.id = q.statement JOIN processes AS p ON p.id = q.process
JOIN threads AS t ON t.process = p.id AND t.thread_id = q.thread_id WHERE q.id > 0"""
# The label in the statement's comment takes precedence.
LABEL = ("(SELECT value FROM label_values WHERE key = '{key}' AND labels = coalesce("
         "(SELECT labels FROM label_values WHERE key = '{key}' AND labels = comment), {own}))")
SAMPLES = """CREATE TEMP TABLE sampled AS
SELECT runs.*, m.labels AS own, trace_type, m.size + m.weight * period_ns AS value
FROM runs JOIN samples AS m ON m.query = runs.id JOIN series ON series.id = m.series"""


def table_of(out, title):
    """The lines of the part of a report with that title."""
    return out.split("\n%s\n" % title)[1].split("\n\n")[0].splitlines()[1:] if "\n%s\n" % title in out else []


def ms_of(text):
    """The first time in the text, or None."""
    found = re.search(r"(-?[\d.]+) (us|ms|s|min)\b", text)
    return found and float(found[1]) * {"us": 1e-3, "ms": 1, "s": 1e3, "min": 60e3}[found[2]]


class Selections(Tool):
    counts_all = False  # runs that are not logged are counted
    turn = 0  # the selection's number

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-selections-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        cls.db = sqlite3.connect(cls.trace)
        cls.make(random.Random(SEED))
        cls.db.executescript(RUNS + ";" + SAMPLES)

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        super().tearDownClass()

    @classmethod
    def insert(cls, table, **values):
        columns = {name: "" if kind == "TEXT" else 0 for _, name, kind, not_null, default, key in
                   cls.db.execute("PRAGMA table_info(%s)" % table) if not_null and default is None and not key}
        columns.update(values)
        cls.db.execute("INSERT INTO %s(%s) VALUES (%s)" % (table, ",".join(columns), ",".join("?" * len(columns))),
                       list(columns.values()))

    @classmethod
    def make(cls, chance):
        with open(SCHEMA, encoding="utf-8") as file:
            cls.db.executescript(file.read())
        cls.db.execute("PRAGMA application_id = %d" % 0x51505246)
        cls.db.execute("PRAGMA user_version = %d" % version(SCHEMA))
        for process, host, program in ((1, "near", "/usr/bin/app"), (2, "far", "/usr/bin/other")):
            cls.insert("processes", id=process, hostname=host, process_id=100 * process, executable=program,
                       script="bin/serve.py" if program == "/usr/bin/other" else "")
            for thread, name in ((1, "main"), (2, "writer")):
                number = 2 * process + thread - 2
                cls.insert("threads", id=number, process=process, thread_id=100 * process + thread, thread_name=name)
                for series, trace_type in enumerate(("CPU", "OffCPU")):
                    cls.insert("series", id=2 * number + series, thread=number, trace_type=trace_type, period_ns=MS)
        cls.insert("stacks", id=1, trace="[4660]")
        cls.insert("stacks", id=2, trace="[4661,4662]")
        for number, labels in enumerate(({"route": "items"}, {"route": "users", "tier": "web"}, {"route": "api"},
                                         {"tier": "web"}), 1):
            cls.insert("label_sets", id=number, labels=json.dumps(labels), units="{}")
            for key, value in labels.items():
                cls.insert("label_values", labels=number, key=key, value=value, member='"%s":"%s"' % (key, value))
        cls.insert("plans", plan_hash=5, plan="SCAN t\n")
        texts = ((1, "SELECT x FROM orders WHERE y = 1", 0), (2, "/*route='items'*/ SELECT z FROM orders", 1),
                 (3, "/*route='users',tier='web'*/ UPDATE t SET a = 1", 2), (4, "DELETE FROM t", 0))
        for number, text, labels in texts:
            cls.insert("statements", id=number, normalized_query_hash=0xa000 + number, query=text, labels=labels)
            cls.insert("programs", id=number, statement=number, plan_hash=5)
            cls.insert("plan_nodes", program=number, node=4, detail="SCAN t")
            cls.insert("program_opcodes", program=number, address=7, node=4, opcode="Next")
        for number, (caller, function) in enumerate(CALLERS, 1):
            cls.insert("call_stacks", id=number, caller=caller, caller_function=function, frames="[]")
        for run in range(1, 41):
            cls.make_run(chance, run)
        # The flusher makes a span from a run whose comment contains another program's trace.
        cls.insert("span_sites", id=1, statement=0xa001)
        cls.db.execute("INSERT INTO span_batches (trace_hi, trace_lo, parent, first_span, thread, start_ns, dropped, flags,"
                       " lasted_ns, count, statements, duration_ns, spans)"
                       " SELECT 0, q.id, 1, 1000 + q.id, t.id, query_start_ns, 0, 3, query_duration_ns, 1, 1, query_duration_ns,"
                       " printf('[[1,0,0,%d,%d,0,%d]]', query_duration_ns, query_duration_ns, q.id)"
                       " FROM queries AS q JOIN threads AS t ON t.process = q.process AND t.thread_id = q.thread_id"
                       " WHERE q.id % 3 = 1")
        cls.make_waits(chance)
        if cls.counts_all:
            cls.count_all(chance)
        cls.db.commit()

    @classmethod
    def make_waits(cls, chance):
        for begin in range(40):
            cls.insert("waits_for_locks", start_ns=START + begin * MS, process=chance.choice((1, 2)), thread_id=101, query=chance.randrange(41),
                       wait_ns=chance.randrange(1, 500 * MS), refused=chance.choice((0, 0, 1, 2)), lock=chance.choice((1, 2)),
                       database=chance.choice(("/data/big.db", "/data/small.db")), holder_query=chance.choice(("", "DELETE FROM t")))
            statement = chance.choice((0xa001, 0xa002))
            cls.insert("wal_events", start_ns=START + begin * MS, process=1, event=chance.choice((0, 0, 1, 2)), frames=chance.randrange(1, 900),
                       last_frame=900, transactions=chance.randrange(1, 5), page_size=4096, statement=statement,
                       text="statement %x" % statement, database="/data/big.db")
            cls.insert("wal_checkpoints", start_ns=START + begin * MS, duration_ns=chance.randrange(100, 50 * MS), process=1, frames=900,
                       copied_before=0, copied_after=chance.randrange(901), origin=1, statement=statement, text="statement %x" % statement,
                       database="/data/big.db", page_size=4096)

    @classmethod
    def make_run(cls, chance, run):
        process, thread = chance.choice((1, 2)), chance.choice((1, 2))
        number = 2 * process + thread - 2
        statement = chance.choice((1, 2, 3, 4))
        begin = START + run * 400 * MS
        cpu, wait = chance.randrange(1, 30), chance.randrange(0, 30)
        cls.insert("queries", id=run, query_id="run %d" % run, process=process, thread_id=100 * process + thread,
                   first_ns=begin, last_ns=begin + 390 * MS, finished=1, statement=statement, query_start_ns=begin,
                   query_duration_ns=(cpu + wait + 5) * MS, execution_ns=(cpu + wait) * MS, cpu_time_ns=cpu * MS,
                   database=chance.choice(("/data/big.db", "/data/small.db")), program=statement, result_rows=run,
                   exception_code=chance.choice((0, 0, 0, 1)), labels=chance.choice((0, 0, 3, 4)),
                   samples_cpu=cpu, samples_real=0, call_stack=chance.choice((0, 1, 1, 2, 3)))
        for series, count in ((2 * number, cpu + chance.choice((-1, 0, 1))), (2 * number + 1, wait)):
            for _ in range(count):
                begin += 1
                cls.insert("samples", timestamp_ns=begin, series=series, query=run, stack=chance.choice((1, 2)), weight=1,
                           labels=chance.choice((0, 3, 4)), opcode=chance.choice((7, 0)), wait=2 if series % 2 else 0)

    # --- by hand ---------------------------------------------------------------------------

    def number(self, sql):
        return self.db.execute(sql).fetchone()[0]

    def predicates(self, option, value, predicate):
        """The conditions for runs, and for samples."""
        if option != "label":
            return predicate, predicate
        key, text = value.split("=")
        of_run, of_sample = (LABEL.format(key=key, own=own) + " = '%s'" % text for own in ("run_labels", "own"))
        return "(%s OR id IN (SELECT id FROM sampled WHERE %s))" % (of_run, of_sample), of_sample

    def expect(self, option, value, predicate):
        runs, samples = self.predicates(option, value, predicate)
        sums = {name: self.number("SELECT total(%s) FROM runs WHERE %s" % (what, runs)) for name, what in
                (("runs", "1"), ("wall", "wall_ns / 1e6"), ("cpu", "cpu_ns / 1e6"))}
        for name, types in (("CPU", "'CPU'"), ("OffCPU", "'OffCPU'"), ("Wall", "'CPU', 'OffCPU'")):
            sums[name] = self.number("SELECT total(value) / 1e6 FROM sampled WHERE trace_type IN (%s) AND %s" %
                                     (types, samples))
        self.assertGreater(sums["runs"], 0)
        # Options that select single runs, for example by time or process, select logged runs only.
        is_counted = self.counts_all and option in (None, "statement", "like", "database")
        for name, what in ("runs", "calls"), ("wall", "execution_time_ns / 1e6"), ("cpu", "cpu_time_ns / 1e6"):
            sums["all " + name] = self.number(
                "SELECT total(%s) FROM (SELECT *, normalized_query_hash AS hash FROM statement_stats) WHERE %s" %
                (what, predicate)) if is_counted else sums[name]
        if self.counts_all and option == "label":
            self.expect_all_of_label(value, runs, sums)
        return sums

    def expect_all_of_label(self, value, runs, sums):
        """If a statement's comment has the label, all of its runs are known. Of other statements, only the logged runs
        are known."""
        key, text = value.split("=")
        of_comment = "IN (SELECT labels FROM label_values WHERE key = '%s' AND value = '%s')" % (key, text)
        for name, counted, logged in (("runs", "calls", "1"), ("wall", "execution_time_ns / 1e6", "wall_ns / 1e6"),
                                      ("cpu", "cpu_time_ns / 1e6", "cpu_ns / 1e6")):
            sums["all " + name] = sum(map(self.number, (
                "SELECT total(%s) FROM statement_counters AS c JOIN statements AS s ON s.id = c.statement WHERE s.labels %s" %
                (counted, of_comment), "SELECT total(%s) FROM runs WHERE %s AND comment NOT %s" % (logged, runs, of_comment))))

    # --- by the commands ---------------------------------------------------------------------

    def some(self, values, chosen, offset=0):
        """All values if no runs are selected, otherwise the selection's one."""
        return [values[(self.turn + offset) % len(values)]] if chosen else values

    def rows(self, *arguments):
        return json.loads(self.output(*arguments, "--limit", "1000", "--format", "json"))

    def of_queries(self, chosen, sums):
        def total(name):
            return sum(row[name] or 0 for row in rows)

        for offset, lines in enumerate((("--runs",), ())):
            if not lines and chosen == ("--failed",):  # a line for each statement and error
                rows = self.rows("queries", self.trace, *chosen)
                self.assertEqual(total("logged"), sums["runs"])
                continue
            for order in self.some(ORDERS[:2], chosen, offset) if chosen else ORDERS:
                rows = self.rows("queries", self.trace, *chosen, *lines, "--by", order)
                which = "" if lines else "all "
                self.assertEqual(sum(row["runs"] or row["logged"] for row in rows) if not lines else len(rows), sums[which + "runs"])
                self.assertAlmostEqual(total("wall_ms"), sums[which + "wall"], places=3)
                self.assertAlmostEqual(total("cpu_ms"), sums[which + "cpu"], places=3)
                self.assertAlmostEqual(total("sampled_ms"), sums["CPU" if order == "cpu" else "Wall"], places=3)
            if len(rows) > 1 and offset in self.some((0, 1), chosen):
                out = self.output("queries", self.trace, *chosen, *lines, "--limit", "1000")
                self.assertRegex(out.splitlines()[-1], r"sum of %d" % len(rows))
                self.assertAlmostEqual(ms_of(out.splitlines()[-1]), sums[which + "wall"], delta=0.06)
        # The runs of a label that the program has set are known only for runs with samples.
        for key in self.some(("none", "route"), chosen and not self.counts_all):
            rows = self.rows("queries", self.trace, *chosen, "--by", "label:" + key)
            self.assertAlmostEqual(total("sampled_cpu_ms"), sums["CPU"], places=3)
            self.assertAlmostEqual(total("sampled_wall_ms"), sums["Wall"], places=3)
            self.assertEqual({(row["runs"] is None) + (row["wall_ms"] is None) + (row["cpu_ms"] is None) for row in rows} - {0, 3}, set())
            if key == "none" and any(row["runs"] for row in rows):
                self.assertEqual(total("runs"), sums["all runs"])
                self.assertAlmostEqual(total("wall_ms"), sums["all wall"], places=3)
                self.assertAlmostEqual(total("cpu_ms"), sums["all cpu"], places=3)
        rows = self.rows("queries", self.trace, *chosen, "--by", "caller")
        self.assertAlmostEqual(total("sampled_cpu_ms"), sums["CPU"], places=3)
        self.assertAlmostEqual(total("sampled_wall_ms"), sums["Wall"], places=3)
        self.assertAlmostEqual(total("runs"), sums["all runs"], delta=len(rows))
        self.assertEqual(total("logged"), sums["runs"])
        self.output("queries", self.trace, *chosen, "--regressed")

    def of_report(self, chosen, sums):
        for type_name, of_type in self.some(TYPES, chosen):
            for full in ((), ("--full",)) if not chosen else ((),):
                out = self.output("report", self.trace, *chosen, "--type", type_name, "--limit", "1000", *full)
                times = {line[:8].strip(): line for line in table_of(out, "Time, as measured and as sampled")}
                for clock, exact, sampled in (("wall", sums["all wall"], "Wall"), ("on CPU", sums["all cpu"], "CPU")):
                    self.assertAlmostEqual(ms_of(times[clock]), exact, delta=0.06)
                    self.assertIn("%.1f ms" % sums[sampled] if sums[sampled] else clock, times[clock])
                title, = re.findall(r"^Top functions.*$", out, re.MULTILINE)
                functions = table_of(out, title)
                self.assertAlmostEqual(sum(ms_of(line) or 0 for line in functions), sums[of_type], delta=0.2)

    def of_findings(self, chosen, sums):
        for row in self.rows("findings", self.trace, *chosen):
            self.assertLessEqual(row["saved_ms"] or 0, sums["all wall"])

    def of_locks(self, _chosen, _sums):
        rows = json.loads(self.output("locks", self.trace, "--format", "json"))
        for name, sql in ("waits", "count(*)"), ("waited_ms", "sum(wait_ns) / 1e6"), ("busy", "sum(refused = 1)"):
            self.assertAlmostEqual(sum(row[name] for row in rows), self.number("SELECT %s FROM waits_for_locks" % sql), places=1)

    def of_wal(self, _chosen, _sums):
        out = self.output("wal", self.trace, "--limit", "1000")
        frames = [line.split() for line in table_of(out, "Frames, by the statements that appended them")]
        for column, name in (0, "frames"), (2, "transactions"):
            self.assertEqual(sum(int(cells[column]) for cells in frames), self.number("SELECT sum(%s) FROM wal_events WHERE event = 0" % name))
        checkpoints = table_of(out, "Checkpoints, by the statements that ran them")
        self.assertAlmostEqual(sum(map(ms_of, checkpoints)), self.number("SELECT sum(duration_ns) / 1e6 FROM wal_checkpoints"), delta=0.2)

    def of_metrics(self, _chosen, _sums):
        for limit in "1000", "1":
            out = self.output("metrics", self.trace, "--limit", limit)
            for name, column, unit in ("runs", "calls", 1), ("time_seconds", "execution_time_ns", 1e9), ("cpu_seconds", "cpu_time_ns", 1e9):
                values = map(float, re.findall(r"(?m)^queryprof_statement_%s_total\{.*\} (\S+)$" % name, out))
                self.assertAlmostEqual(sum(values), self.number("SELECT total(%s) FROM statement_stats" % column) / unit, places=6)

    def of_plan(self, chosen, sums):
        for type_name, of_type in self.some(TYPES[:2], chosen):
            for opcodes in ((), ("--opcodes",)) if not chosen else ((),):
                out = self.output("plan", self.trace, *chosen, "--type", type_name, "--limit", "1000", *opcodes)
                nodes = re.findall(r"^[├└]─ .* (\d+) ms", out, re.MULTILINE)
                self.assertEqual(sum(map(int, nodes)), sums[of_type])

    def of_export(self, chosen, sums):
        path = os.path.join(self.folder, "out")
        for type_name, of_type, shape in self.some(SHAPES, chosen):
            self.output("export", self.trace, *chosen, "--type", type_name, "--format", "collapsed", "-o", path, *shape)
            with open(path, encoding="utf-8") as file:
                total = sum(int(line.rpartition(" ")[2]) for line in file)
            self.assertEqual(total / (1 if type_name == "cpu" else MS), sums[of_type])
        for type_name, of_type in self.some(TYPES, chosen, 1):
            self.output("export", self.trace, *chosen, "--type", type_name, "--format", "json", "-o", path)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(sum(sample["value"] for sample in json.load(file)["samples"]) / MS, sums[of_type])

    def of_diff(self, chosen, sums):
        for type_name, of_type in self.some(TYPES, chosen, 2):
            out = self.output("diff", self.trace, self.trace, *chosen, "--type", type_name)
            totals = dict(re.findall(r"^(runs|samples|wall|cpu) +(\S+)", out, re.MULTILINE))
            self.assertEqual([float(totals[name]) for name in ("runs", "samples")], [sums["all runs"], sums[of_type]])
            for name in ("wall", "cpu"):
                self.assertAlmostEqual(float(totals[name]), sums["all " + name], delta=0.06)

    def of_traces(self, option, value):
        predicate = FILTERS[option][[text for text, _ in FILTERS[option]].index(value)][1] if option else "1"
        by_hand = dict(self.db.execute("SELECT printf('%016x%016x', 0, id), sum(iif(trace_type = 'CPU', value, 0)) / 1e6 FROM"
                                       " sampled WHERE id % 3 = 1 AND " + predicate.replace("FROM runs", "FROM runs WHERE id % 3 = 1")
                                       + " GROUP BY id"))
        for order in ("duration", "cpu", "wait", "spans", "start") if not option else ("cpu",):
            rows = self.rows("traces", self.trace, "--by", order, *(("--" + option, value) if option else ()))
            self.assertEqual({row["trace_id"]: row["cpu_ms"] for row in rows}, by_hand)
            if order == "cpu":
                self.assertEqual([row["cpu_ms"] for row in rows], sorted(by_hand.values(), reverse=True))
        for trace, ms in by_hand.items() if not option else ():
            out = self.output("trace", self.trace, trace, "--samples")
            self.assertIn("CPU of the outermost %.1f ms" % ms, out)
            self.assertIn(" of CPU ", out)
            self.assertEqual("between rows 5.0 ms" in out, bool(self.number(
                "SELECT query_duration_ns - execution_ns > execution_ns / 10 FROM queries WHERE id = %d" % int(trace, 16))))

    def options_of(self, command):
        return {line[2:] for line in self.output("--complete", "3", command, self.trace, "--").splitlines() if line[:2] == "--"}

    def test_every_command(self):
        commands = {word for word in self.output("--complete", "1", "").split() if word[0] != "-"}
        self.assertEqual(commands - OTHER_COMMANDS, set(LINES))
        for command in sorted(commands - OTHER_COMMANDS):
            options = self.options_of(command) - ELSEWHERE - set(LINES[command])
            if command == "traces":
                self.assertEqual(options, set(TRACE_FILTERS))
                for option, value in ((None, None), *TRACE_FILTERS.items()):
                    with self.subTest(command=command, option=option):
                        self.of_traces(option, value)
                continue
            self.assertEqual(options, set(FILTERS) - {None} if "query" in options else set(), command)
            if command != "trace":  # see of_traces()
                self.check(command, [None, *sorted(options)])

    def check(self, command, options):
        selections = [(option, value, predicate) for option in options for value, predicate in FILTERS[option]]
        for self.turn, (option, value, predicate) in enumerate(selections):
            with self.subTest(command=command, option=option, value=value):
                chosen = () if option is None else ("--" + option,) + ((value,) if value else ())
                getattr(self, "of_" + command)(chosen, self.expect(option, value, predicate))

    def test_tools(self):
        server = Server(self.folder)
        self.addCleanup(server.close)
        for tool, arguments, (command, *options) in TOOLS:
            with self.subTest(tool=tool):
                text, is_error = server.call(tool, **arguments)
                whole = self.trace + ":\n" + self.output(command, self.trace, *options, columns=150)
                shown, cut, _ = text.partition("[cut: ")
                self.assertEqual((shown, is_error), (whole[:len(shown)] if cut else whole, False))


class AllRuns(Selections):
    """The same for reports that count short runs, by the labels of comments and by plan."""
    counts_all = True

    @classmethod
    def count_all(cls, chance):
        cls.db.execute("UPDATE programs SET layout = 90 + id")
        for statement in (1, 2, 3, 4):
            for database in ("/data/big.db", "/data/small.db"):
                runs, ns, cpu = cls.db.execute(
                    "SELECT count(*), total(execution_ns), total(cpu_time_ns) FROM queries WHERE statement = ? AND database = ?",
                    (statement, database)).fetchone()
                short = chance.randrange(1000, 2000)
                counts = {"normalized_query_hash": 0xa000 + statement, "database": database, "program": "/usr/bin/app",
                          "calls": runs + short, "execution_time_ns": int(ns) + 7000 * short, "last_seen_ns": START,
                          "cpu_time_ns": int(cpu) + 4000 * short}
                cls.insert("statement_counters", statement=statement, **counts)
                cls.insert("statement_parts", period=0, layout=90 + statement, labels={2: 1, 3: 2}.get(statement, 0), **counts)

    def test_every_command(self):
        self.of_metrics((), {})
        for command in ("queries", "report", "plan", "diff"):
            self.check(command, (None, "statement", "like", "database", "since", "label"))

    def test_runs_by_label(self):
        rows = {row["label"]: row["runs"] for row in self.rows("queries", self.trace, "--by", "label:route")}
        for label, statement in ("items", 2), ("users", 3):
            self.assertEqual(rows[label], self.number("SELECT sum(calls) FROM statement_counters WHERE"
                                                      " normalized_query_hash = 0xa000 + %d" % statement))
        # The program's own labels are known only for runs with samples.
        self.assertIsNone(rows["api"])
        self.assertIsNone(rows[""])

    def test_runs_of_a_plan(self):
        out = self.output("plan", self.trace, "--limit", "10")
        for statement in (1, 2, 3, 4):
            calls, ns = self.db.execute("SELECT sum(calls), sum(execution_time_ns) FROM statement_counters WHERE"
                                        " normalized_query_hash = 0xa000 + ?", (statement,)).fetchone()
            self.assertIn("\n%d runs, %s each" % (calls, "%.1f us" % (ns / calls / 1e3) if ns / calls < 100000 else "%.1f ms" % (ns / calls / 1e6)), "\n" + out)


if __name__ == "__main__":
    main()
