#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof analyze: times of nodes, verdicts, and whether rows are equal. It leaves the database unchanged, and no files.

usage: test_analyze.py QUERYPROF PLANNER

PLANNER: planner.c."""

import glob
import json
import os
import signal
import sqlite3
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]
import output_schema
from recording import *

PLANNER = os.path.realpath(sys.argv.pop(1))

SETUP = ("CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, v REAL, note TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)"
         " INSERT INTO t SELECT i, i * 7919 % 1000, i % 97, 'note ' || i FROM n; CREATE INDEX by_k ON t(k);")


class Analyze(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="queryprof-analyze-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.databases, self.temporary = (os.path.join(self.folder, name) for name in ("databases", "temporary"))
        os.mkdir(self.databases)
        os.mkdir(self.temporary)
        self.database = os.path.join(self.databases, "app.db")
        db = sqlite3.connect(self.database)
        db.executescript(SETUP)
        db.close()

    def analyze(self, *words, seconds="4s", status=0):
        before = content(self.databases)
        done = subprocess.run([QUERYPROF, "analyze", self.database, *words, "--for", seconds], capture_output=True, text=True, timeout=600, check=False,
                              env={**os.environ, "TMPDIR": self.temporary})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(os.listdir(self.temporary), [])
        if "--live" not in words:
            self.assertEqual(content(self.databases), before)
        return done

    def rows_of(self, *words, **named):
        rows = json.loads(self.analyze(*words, "--format", "json", **named).stdout)
        is_compared = "--against" in words or "--pragma" in words
        self.assertEqual(output_schema.errors("compared" if is_compared else "analyze", rows), [])
        return rows

    def refused(self, part, *words, status=1, **named):
        done = self.analyze(*words, status=status, **named)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        self.assertIn(part, done.stderr)

    def test_plan(self):
        """One node takes nearly all the time. Its error is about 5 % at most, or the output explains it. Parameters have their
        values."""
        done = self.analyze("SELECT sum(v) FROM t WHERE v = :v AND note <> ?2", "--param", "v=7", "--param", "?2=note 7", seconds="10s")
        self.assertRegex(done.stdout, r"^[0-9.]+ (s|ms|us) ± [0-9.]+ % of CPU time a run \(\d+ runs, SQLite 3\.")
        plan = re.search(r"(?:└─|├─) SCAN t +\S+ +([0-9.]+) %  +[0-9.]+ % +([0-9]+) ms ±([0-9]+)  1 loop, 20000 rows, \d+ estimated[^;]*; the whole table, compares v, 20000 rows visited and 1 "
                         r"returned a run", done.stdout)
        self.assertTrue(plan, done.stdout)
        self.assertGreater(float(plan[1]), 80)
        self.assertTrue(float(plan[3]) <= 0.055 * float(plan[2]) + 1 or "the error of a node" in done.stdout, done.stdout)

    def test_nodes(self):
        """Each node has a row with its time per run. The search returns 20 rows; the scan visits 20,000 rows for each and
        takes longer."""
        rows = self.rows_of("SELECT count(*) FROM t AS a CROSS JOIN t AS b WHERE a.k = 5 AND b.v < 0")
        nodes = {row["detail"]: row for row in rows}
        small, large = nodes["SEARCH a USING COVERING INDEX by_k (k=?)"], nodes["SCAN b"]
        self.assertGreater(large["self_ns"], 10 * small["self_ns"], rows)
        self.assertGreater(large["self_error_ns"], 0)
        self.assertEqual(len({row["runs"] for row in rows}), 1)
        self.assertEqual([(node["loops"], node["rows"], node["rows_per_loop"]) for node in (small, large)], [(1, 20, 20), (20, 400000, 20000)])
        self.assertEqual({(node["loops"], node["estimated_rows"], node["factor"]) for node in rows if node["node"] <= 0}, {(None, None, None)})

    def test_estimates(self):
        """Half of the rows have one value, and SQLite expects ten. ANALYZE mends that, and here another plan is better; in the database
        with statistics, nothing is marked. Fewer rows because of a LIMIT are no error of the planner."""
        db = sqlite3.connect(self.database)
        db.executescript("CREATE TABLE u(x, y); INSERT INTO u SELECT id % 2, id FROM t; CREATE INDEX ux ON u(x); CREATE INDEX uy ON u(y)")
        db.close()
        one = "SELECT sum(y) FROM u WHERE x = 1"
        done = self.analyze(one).stdout
        self.assertRegex(done, r"SEARCH u USING INDEX ux \(x=\?\) .*  1 loop, 10000 rows, 10 estimated: 1000 times as many \(BAD ESTIMATE\)\n")
        self.assertRegex(done, r"\nbad estimates: the database has no statistics. After ANALYZE, on the copy, the plan is the same:\n"
                         r"  SEARCH u USING INDEX ux \(x=\?\): 10000 rows a loop, 10 estimated; after ANALYZE (9\d|10[0-4])\d\d estimated\n")
        search, = (row for row in self.rows_of(one) if row["loops"])
        self.assertEqual([search[name] for name in ("loops", "rows", "rows_per_loop", "estimated_rows", "factor")], [1, 10000, 10000, 10, 1000])
        done = self.analyze("SELECT count(*) FROM u JOIN t ON t.k = u.y WHERE u.x = 1 AND u.y BETWEEN 5 AND 9").stdout
        self.assertRegex(done, r"\(BAD ESTIMATE\)(.|\n)*\nbad estimates: the database has no statistics. After ANALYZE, on the copy, SQLite plans "
                         r"otherwise:\n  SEARCH u USING INDEX uy \(y>\? AND y<\?\)\n  SEARCH t .*\n[0-9.]+ (ms|us)( ± [0-9.]+ %)? of CPU time a run")
        done = self.analyze("SELECT id FROM t WHERE k > 3 LIMIT 2").stdout
        self.assertRegex(done, r"1 loop, 2 rows, \d+ estimated: \d+ times fewer\n")
        self.assertNotIn("bad estimate", done.lower())
        self.assertNotIn("bad estimate", self.analyze("SELECT max(k) FROM t").stdout.lower())
        db = sqlite3.connect(self.database)
        db.execute("ANALYZE")
        db.close()
        self.assertNotIn("bad estimate", self.analyze(one).stdout.lower())
        db = sqlite3.connect(self.database)
        db.execute("INSERT INTO u SELECT 1, a.id FROM t AS a, t AS b WHERE b.id <= 6")
        db.commit()
        db.close()
        self.assertRegex(self.analyze(one).stdout, r"\nbad estimates: the database has statistics, which may be old. After ANALYZE, on the copy, the plan is the "
                         r"same:\n  SEARCH u USING INDEX ux \(x=\?\): 130000 rows a loop, \d+ estimated; after ANALYZE \d+ estimated\n")

    def test_host(self):
        """The system's library is of the same version. Another one has no automatic indexes, by a function of tests/advise/planner.c. A
        recording has the plan of the program's connection, which has none either."""
        join = "SELECT count(*) FROM (SELECT v FROM t LIMIT 300) AS a JOIN (SELECT v FROM t LIMIT 300) AS b USING (v)"
        self.assertRegex(self.analyze(join).stdout, r"\nSQLite 3\.\S+ \(/.*/libsqlite3\.so\.0\) plans the same; give --host if")
        done = self.analyze(join, "--host", PLANNER).stdout
        self.assertRegex(done, r"\nSQLite 3\.\S+ \(%s\) plans otherwise:\n(  .*\n)*  SCAN [ab]\n  SCAN [ab]\n$" % re.escape(PLANNER))
        self.assertIn(" AUTOMATIC ", done)
        self.assertRegex(self.analyze("SELECT sum(v) FROM t", "--host", PLANNER).stdout, r"\) plans the same\n")
        trace = os.path.join(self.folder, "app.trace")
        subprocess.run([QUERYPROF, "record", "--quiet", "--cpu", "1ms", "-o", trace, "--", sys.executable, "-c",
                        "import sqlite3, time\ndb = sqlite3.connect(%r)\ndb.execute('PRAGMA automatic_index = 0')\nend = time.thread_time() + 1\n"
                        "while time.thread_time() < end: db.execute(%r).fetchall()" % (self.database, join)], check=True)
        self.assertRegex(self.analyze(join, "--host", trace).stdout,
                         r"\nIn the recording, SQLite 3\.\S+ \(/.*\) had another plan, perhaps by other settings, values or statistics:\n(  .*\n)*  SCAN [ab]\n  SCAN [ab]\n")
        for host, why in (trace, trace + " has no plan of this statement"), ("/nowhere", "/nowhere cannot be asked"):
            self.assertIn("\nWhether the program's SQLite plans the same is not known: " + why, self.analyze("SELECT sum(v) FROM t", "--host", host).stdout)

    def test_write(self):
        """analyze undoes each run; otherwise the second one would find no row."""
        done = self.analyze("DELETE FROM t WHERE v = 5")
        self.assertIn("SCAN t", done.stdout)
        self.assertRegex(done.stdout, r"\(([2-9]|\d\d+) runs, ")

    def test_against(self):
        slow, other, same = self.rows_of("SELECT id FROM t WHERE k = ?", "--param", "5", "--against", "SELECT id FROM t WHERE +k = ?", "--against",
                                         "SELECT id + 0 FROM t WHERE k = ? AND id > 0 ORDER BY id DESC", "--against", "SELECT id FROM t WHERE k = ? + 1",
                                         seconds="6s")
        self.assertEqual((slow["verdict"], slow["same_rows"], slow["rows"]), ("slower", 1, 20))
        self.assertGreater(slow["difference"], 3)
        self.assertEqual((other["same_rows"], same["same_rows"]), (2, 0))
        done = self.analyze("SELECT id FROM t WHERE +k = ?", "--param", "5", "--against", "SELECT id FROM t WHERE k = ?", "--against",
                            "SELECT id FROM t WHERE k > ? LIMIT 3")
        self.assertRegex(done.stdout, r"-9\d\.\d % ± [0-9.]+  faster +same rows +SELECT id FROM t WHERE k = ?")
        self.assertIn("OTHER ROWS", done.stdout)
        self.assertEqual(done.stdout.count("\nQUERY PLAN"), 3)

    def test_pragma(self):
        """Without an automatic index, the join is slower."""
        row, = self.rows_of("SELECT count(*) FROM (SELECT v FROM t LIMIT 300) AS a JOIN (SELECT v FROM t LIMIT 300) AS b USING (v)", "--pragma", "automatic_index=0")
        self.assertEqual((row["verdict"], row["pragma"], row["same_rows"]), ("slower", "automatic_index=0", 1), row)

    def test_no_difference(self):
        """Equal statements: one verdict in 20 may be wrong. A disturbance of the first statement affects all its differences,
        so the test tries again."""
        words = [word for _ in range(8) for word in ("--against", "SELECT sum(v) FROM t WHERE k < 500")]
        for _ in range(4):
            rows = [row for _ in range(2) for row in self.rows_of("SELECT sum(v) FROM t WHERE k < 500", *words, seconds="12s")]
            if [row["verdict"] for row in rows].count("no difference") >= len(rows) - 2:
                return
        self.fail(rows)

    def test_difference(self):
        """analyze finds a difference of 20 %. If other processes disturb it, the stated error is larger, and the test tries
        again."""
        for _ in range(4):
            rows = self.rows_of("SELECT sum(v) FROM t WHERE id < 10000", "--against", "SELECT sum(v) FROM t WHERE id < 12000", "--against",
                                "SELECT sum(v) FROM t WHERE id < 8000", seconds="12s")
            for row in rows:
                is_certain = abs(row["difference"]) >= max(3 * row["difference_error"], 0.01)
                self.assertEqual(row["verdict"], "no difference" if not is_certain else "slower" if row["difference"] > 0 else "faster", rows)
            if max(row["difference_error"] for row in rows) < 0.03:
                break
        self.assertEqual([row["verdict"] for row in rows], ["slower", "faster"], rows)

    def test_refused(self):
        self.refused("expected one statement", "SELECT 1; SELECT 2")
        self.refused("expected SELECT", " -- nothing")
        self.refused("expected SELECT", "SELEC 1")
        self.refused("syntax error", "SELECT FROM")
        self.refused("parameter 2 (:b) has no value: --param NAME=VALUE", "SELECT :a, :b", "--param", "1")
        self.refused("--param 2: the statement has 1 parameter", "SELECT ?", "--param", "1", "--param", "2")
        self.refused("no such function: f", "SELECT f(1)")
        for sql in "ATTACH 'x' AS y", "PRAGMA user_version = 7", "VACUUM INTO 'x'", "CREATE TABLE x(a)", "BEGIN", "INSERT INTO t(note) SELECT name FROM pragma_database_list":
            self.refused("not authorized" if sql.startswith("INSERT") else "expected SELECT, VALUES, WITH,", sql)
        for pragma in "journal_mode=wal", "cache_size", "cache_size=1; DELETE FROM t", "=1", "or=1":
            self.refused("expected NAME=VALUE", "SELECT 1", "--pragma", pragma, status=2)
        self.refused("expected a time of at least 1s", "SELECT 1", seconds="1ms", status=2)
        os.rename(self.database, self.database + "2")
        self.refused("No such file", "SELECT 1")

    def test_endless(self):
        self.refused("a run takes longer than", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", seconds="1s")

    def test_live(self):
        """A database in use is refused without --live. With --live, analyze reads the content of the last commit."""
        for mode in "delete", "wal":
            db = sqlite3.connect(self.database, isolation_level=None)
            db.execute("PRAGMA journal_mode = " + mode).fetchall()
            db.execute("INSERT INTO t(k) VALUES (100000)")
            db.execute("BEGIN")
            db.execute("INSERT INTO t(k) VALUES (100000)")
            count = "SELECT count(*) FROM t WHERE k = 100000"
            self.refused("process %d (" % os.getpid(), count)
            done = self.analyze(count + " OR k + 1 = 100001", "--live", "--against", count + " AND 1 = 0", "--format", "json")
            self.assertRegex(done.stderr, r"--live: .*app\.db was locked for reading for \d+\.\d+ s; no %s meanwhile\n$"
                             % ("checkpoint could reset its WAL" if mode == "wal" else "process could write to it"))
            db.execute("COMMIT")  # analyze holds no lock any more
            self.assertEqual(db.execute(count).fetchone(), (2,))
            db.execute("DELETE FROM t WHERE k = 100000")
            db.close()
        done = self.analyze("SELECT 1", "--live")
        self.assertIn("was locked for reading", done.stderr)

    def test_killed(self):
        """analyze leaves no file and no process, whatever signal ends it. Each of nine plans is recorded for at least a second,
        so analyze still runs when the signal is sent."""
        count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT count(*) FROM n"
        others = [word for _ in range(8) for word in ("--against", count)]
        for number in signal.SIGTERM, signal.SIGKILL:
            process = subprocess.Popen([QUERYPROF, "analyze", self.database, count, *others, "--for", "1min"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": self.temporary})
            wait_until(lambda: glob.glob(os.path.join(self.temporary, "queryprof-copy-*", "0.trace")),
                       "a trace file")
            process.send_signal(number)
            process.communicate(timeout=300)
            wait_until(lambda: not os.listdir(self.temporary), "an empty folder")
            self.assertEqual(process.returncode, -number)
        wait_until(lambda: not subprocess.run(["pgrep", "-f", "--", "--run-statement " + self.temporary], capture_output=True, check=False).stdout,
                   "the end of all processes")


if __name__ == "__main__":
    unittest.main()
