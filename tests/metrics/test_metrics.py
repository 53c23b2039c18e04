#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof metrics: the rules of OpenMetrics 1.0, its numbers, and the names in the alerts.

usage: as tool.py"""

import os
import re
import sqlite3
import time

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mcp"))
from tool import *
from server import make

RULES = os.path.join(SOURCE, "packaging", "prometheus", "queryprof.rules.yml")
SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
SUFFIX = {"counter": "_total", "info": "_info", "gauge": ""}

WAL = """
import os, sqlite3, sys
def connect():
    return sqlite3.connect(sys.argv[1], isolation_level=None)
writer = connect()
writer.execute("PRAGMA journal_mode = WAL").fetchall()
writer.execute("CREATE TABLE t(a)")
writer.execute("PRAGMA wal_checkpoint").fetchall()
reader = connect()
reader.execute("BEGIN")
reader.execute("SELECT count(*) FROM t").fetchall()
for i in range(5):
    writer.execute("INSERT INTO t VALUES (?)", (i,))
writer.execute("PRAGMA wal_checkpoint").fetchall()
os._exit(0)
"""


def parse(text):
    """Checks the format's rules, and returns {(name, labels): value}."""
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1, text[-100:]
    found, families, family = {}, {}, None
    for line in text.splitlines()[:-1]:
        words = line.split(" ", 3)
        if line.startswith("# TYPE "):
            family = words[2]
            assert family not in families, line
            families[family] = {"type": words[3], "samples": 0}
        elif line.startswith(("# UNIT ", "# HELP ")):
            assert words[2] == family and words[1] not in families[family] and not families[family]["samples"], line
            families[family][words[1]] = words[3]
            assert words[1] != "UNIT" or family.endswith("_" + words[3]), line
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name == family + SUFFIX[families[family]["type"]], line
            pairs = LABEL.findall(labels)
            assert "".join('%s="%s",' % pair for pair in pairs) == labels + ",", line
            assert len({name for name, _ in pairs}) == len(pairs), line
            key = name, tuple(sorted(pairs))
            assert key not in found and float(value) >= 0, line
            found[key] = float(value)
            families[family]["samples"] += 1
    assert all("HELP" in family for family in families.values()), families
    return found


class Metrics(Tool):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "scan.trace")
        make(cls.trace)

    def test_numbers(self):
        found = parse(self.output("metrics", self.trace))
        rows = sqlite3.connect(self.trace).execute("SELECT printf('%016x', normalized_query_hash), program, calls, rows, execution_time_ns, cpu_time_ns"
                                                   " FROM statement_stats").fetchall()
        self.assertGreater(len(rows), 1)
        for statement, program, calls, count, time, cpu in rows:
            labels = tuple(sorted((("statement", statement), ("program", program))))
            for name, value in (("runs", calls), ("rows", count), ("time_seconds", time / 1e9), ("cpu_seconds", cpu / 1e9)):
                self.assertAlmostEqual(found["queryprof_statement_%s_total" % name, labels], value, 6)
        limited = parse(self.output("metrics", self.trace, "--limit", "1"))
        self.assertEqual({value for (_, labels), _ in limited.items() for name, value in labels if name == "statement"} - {rows[0][0]} - {row[0] for row in rows},
                         {"(other)"})
        for name in ("queryprof_statement_runs_total", "queryprof_statement_rows_total"):
            self.assertEqual(sum(value for (key, _), value in limited.items() if key == name), sum(value for (key, _), value in found.items() if key == name))

    def test_wal(self):
        """A reader keeps a checkpoint from copying all frames. It stays open, so the WAL is not truncated at the end."""
        path, trace = os.path.join(self.folder, 'a "b.db'), os.path.join(self.folder, "wal.trace")
        subprocess.run([QUERYPROF, "record", "--quiet", "--new", "--setting", "log_queries_min_query_duration_ns=0", "-o", trace, "--", "/usr/bin/python3", "-c",
                        WAL, path], check=True, timeout=300)
        found = parse(self.output("metrics", trace))
        label = ("database", path.replace('"', '\\"'))
        self.assertEqual(found["queryprof_wal_bytes", (label,)], os.stat(path + "-wal").st_size)
        frames = (os.stat(path + "-wal").st_size - 32) / (4096 + 24)
        # The two frames of CREATE TABLE were overwritten after their checkpoint.
        self.assertEqual(found["queryprof_logged_wal_frames", (label,)], 2 + frames)
        passes = dict(sqlite3.connect(trace).execute("SELECT stopped_by <> '', count(*) FROM checkpoints GROUP BY 1"))
        self.assertEqual(passes[1], 1)
        for outcome, number in ("stopped", 1), ("complete", passes[0]):
            labels = (label, ("outcome", outcome))
            self.assertEqual(found["queryprof_logged_checkpoints", labels], number)
            self.assertGreater(found["queryprof_logged_checkpoint_seconds", labels], 0)

    def test_process(self):
        """`metrics PID` prints the counters of a recorded process while it runs. They may be a second old."""
        trace = os.path.join(self.folder, "process.trace")
        program = ("import os, sqlite3, sys\ndb = sqlite3.connect(':memory:')\nfor i in range(7):\n    db.execute('SELECT 77 + ?', (i,)).fetchall()\n"
                   "print(os.getpid(), flush=True)\nsys.stdin.read()\n")
        with subprocess.Popen([QUERYPROF, "record", "--quiet", "-o", trace, "--", "/usr/bin/python3", "-c", program], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            pid, runs = process.stdout.readline().strip(), 0
            for _ in range(3000):
                found = parse(self.output("metrics", pid))
                ids = {dict(labels)["statement"] for (name, labels), _ in found.items() if name == "queryprof_statement_info" and dict(labels)["query"] == "SELECT 77 + ?"}
                runs = sum(value for (name, labels), value in found.items() if name == "queryprof_statement_runs_total" and dict(labels)["statement"] in ids)
                if runs == 7:
                    break
                time.sleep(0.1)
            process.stdin.close()
            process.wait(timeout=300)
        self.assertEqual(runs, 7)
        done = subprocess.run([QUERYPROF, "metrics", str(os.getpid())], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)

    def test_texts(self):
        """Quotes, backslashes, line feeds and invalid UTF-8 are escaped."""
        path = os.path.join(self.folder, "texts.trace")
        shutil.copy(self.trace, path)
        with sqlite3.connect(path) as db:
            db.execute("UPDATE statements SET query = CAST(x'226120' || '\\ \"' || char(10) || x'ff' AS TEXT)")
        db.close()
        infos = [labels for (name, labels), _ in parse(self.output("metrics", path)).items() if name == "queryprof_statement_info"]
        self.assertTrue(infos)
        self.assertTrue(all(dict(labels)["query"] == '\\"a \\\\ \\"\\n\ufffd' for labels in infos), infos)

    def test_rules(self):
        names = {name for name, _ in parse(self.output("metrics", self.trace))} | {"queryprof_lost_samples_total", "queryprof_wal_bytes"}
        with open(RULES, encoding="utf-8") as file:
            used = set(re.findall(r"\bqueryprof_\w+", file.read()))
        self.assertGreater(len(used), 4)
        self.assertEqual(used - names, set())
        promtool = shutil.which("promtool")
        if promtool:
            subprocess.run([promtool, "check", "rules", RULES], check=True)


if __name__ == "__main__":
    main()
