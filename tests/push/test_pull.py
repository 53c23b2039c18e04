# SPDX-License-Identifier: Apache-2.0
"""queryprof pull. The commands print the same about a host's pulled file as about its own file, and about a fleet's pulled file
the same as SQL returns for all files. The queries of sql/clickhouse/recipes.sql find what the test stored.

usage: test_pull.py COMMAND ROOT
Runs on Debian's clickhouse-server and, if QUERYPROF_TEST_CHDB names npm's libchdb.so, on a newer version."""
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import case  # noqa: E402
import chdb  # noqa: E402
import fake  # noqa: E402
import maker  # noqa: E402
import server  # noqa: E402
from case import COMMAND, ROOT, environment, push, run  # noqa: E402

HOSTS = 3
DAY = 86400 * 10 ** 9
CHDB = os.environ.get("QUERYPROF_TEST_CHDB")
SLOWER, SAME = 5, 6  # ids of statements


def add_yesterday(file, now, slow):
    """Adds runs of two statements on the last day and on the day before. slow: one statement takes longer on the last day."""
    for age, factor in ((2 * DAY - 10 ** 12, 1), (10 ** 12, 5 if slow else 1)):
        file.now = now - age
        for statement, times in ((SLOWER, factor), (SAME, 1)):
            for _ in range(20):
                file.runs += 1
                file.now += 10 ** 9
                file.db.execute(
                    "INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, statement, query_start_ns,"
                    " query_duration_ns, cpu_time_ns, database, thread_id, batch, result_rows)"
                    " VALUES (?, ?, 1, ?, ?, 1, ?, ?, ?, 5, 'main.db', 101, ?, 1)",
                    (file.runs, f"{file.identity:016x}-{file.runs:016x}", file.now, file.now, statement, file.now,
                     times * 2 * 10 ** 6, file.batch + 1))


def add_lock_waits(file):
    """Adds a wait of the host's run 2 for a lock that run 1 held. Host N waits N seconds."""
    file.db.execute(
        "INSERT INTO waits_for_locks VALUES (1, 2, ?, ?, 1, 0, 101, 1, 'main.db', 1, '', 0, 100, 101, 0, 1, 5, 0, 0, '', '', '')",
        (maker.T0 + 10 ** 9, 10 ** 9 * int(file.host[4:])))


def known(report):
    """Removes what differs from a report on a pulled file: the number of all runs, because only the selected runs are pulled;
    the share of time inside SQLite, which is not known for selected runs; the reason why there is no plan; and widths of
    columns."""
    report = re.sub(r"(?s)\ASQLite took .*? outside\s+SQLite\.\n\n", "", report)
    report = re.sub(r"(?m)^(logged runs +[0-9,]+) of [0-9,]+$", r"\1", report)
    return re.sub(r"  +", "  ", re.sub(r"(?m)^no plan .*\n", "", report))


class Fleet:
    number = itertools.count()

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.node = cls.start()
        cls.addClassCleanup(cls.node.stop)
        for name in ("tables.sql", "views.sql"):
            cls.node.run(cls.text(name))
        cls.files, now = [], time.time_ns()
        for host in range(1, HOSTS + 1):
            file = maker.Maker(ROOT, os.path.join(cls.directory.name, f"host{host}.trace"), host=f"host{host}", seed=host)
            cls.addClassCleanup(file.db.close)
            file.host, file.path = f"host{host}", os.path.join(cls.directory.name, f"host{host}.trace")
            file.db.execute(  # a function without a name, and one in no module
                "UPDATE stacks SET trace = '[' || (65536 + 999952) || ',' || (4611686018427387904 + 4096) || substr(trace, 7)"
                " WHERE id % 10 = 3")
            file.db.execute(  # stacks that are the callers of the next ones
                "UPDATE stacks SET trace = (SELECT json_group_array(value) FROM stacks AS next, json_each(next.trace)"
                " WHERE next.id = stacks.id + 1 AND key >= 10) WHERE id % 10 = 4")
            file.add(1000 * host)
            file.db.execute("UPDATE samples SET query = 0 WHERE timestamp_ns % 20 = 7")  # samples without a run
            file.db.execute(
                "INSERT INTO statement_counters (normalized_query_hash, database, program, statement, calls, execution_time_ns,"
                " cpu_time_ns, duration_ns, min_ns, max_ns, execution_time_square, cpu_time_square, first_seen_ns, last_seen_ns)"
                " SELECT normalized_query_hash, 'main.db', '/opt/app', id, 7, 7000, 6000, 7000, 1000, 1000, 7e6, 6e6, 1, ?"
                " FROM statements", (file.now,))
            add_lock_waits(file)
            add_yesterday(file, now, slow=host == 2)
            file.add(100)
            cls.files.append(file)
        done = push("--service", "shop", *(file.path for file in cls.files), cls.node.url)
        assert done.returncode == 0, done.stderr

    def pull(self, *options):
        """Pulls; returns the path of the file."""
        path = os.path.join(self.directory.name, f"pulled{next(self.number)}.trace")
        done = run("pull", self.node.url, *options, "-o", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with sqlite3.connect(path) as db:
            counts = db.execute("SELECT (SELECT count(*) FROM queries WHERE id > 0), (SELECT count(*) FROM samples)").fetchone()
        self.assertEqual(done.stdout, "%s: %d runs and %d samples\n" % (path, *counts))
        return path

    def read(self, path, command, *arguments):
        done = run(command, path, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout)
        return done.stdout

    def test_what_is_not_pulled(self):
        """Waits for locks and spans are not pulled. The commands print that, not that there were none."""
        path = self.pull("--host", "host1")
        self.assertEqual(self.read(path, "locks"),
                         "a file from queryprof pull has no lock waits: ClickHouse has them in the view lock_waits\n")
        spans = "a file from queryprof pull has no traces: ClickHouse has their spans in the view span_log"
        self.assertEqual(self.read(path, "traces"), spans + "\n")
        done = run("trace", path, "0abc")
        self.assertEqual((done.returncode, done.stderr), (1, f"queryprof: {path}: no trace has the id 0abc; queryprof traces {path} lists them\nqueryprof: {path}: {spans}\n"))

    def test_a_host_is_its_file(self):
        file = self.files[1]
        hour = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime((maker.T0 + 10 ** 9) // 10 ** 9))
        statement = json.loads(run("queries", file.path, "--format", "json", "--limit", "1").stdout)[0]
        for selected, read in (  # options of pull, and commands that read the file
                ([], ["queries --format json", "report --full --limit 1000"]),
                (["--until", hour], ["queries --by wall --format csv --like FROM", "queries"]),
                (["--since", "start+1s", "--until", "end-1min"],
                 ["report --label route=users#show --thread worker --min-duration 45ms", "report",
                  "export --format collapsed -o -"]),
                (["--query", f"{file.identity:016x}-0000000000000002"], ["report", "queries"]),
                (["--statement", statement["statement"][:15]], ["export --format collapsed -o -", "report"])):
            pulled = self.pull("--host", file.host, *selected)
            for words in read:
                with self.subTest(selected=selected, read=words):
                    self.assertEqual(known(self.read(pulled, *words.split())), known(self.read(file.path, *words.split(), *selected)))
        self.assertIn("plans are not in ClickHouse", run("plan", pulled).stderr + run("plan", pulled).stdout)
        self.assertIn("no plan is known", self.read(pulled, "queries", "--regressed"))

    def test_the_page(self):
        """The page of a pulled file has the statements, the stacks and the times of the samples of the host's file."""
        shown = []
        for path in self.pull("--host", "host2"), self.files[1].path:
            page = self.read(path, "report", "--html", "-o", "-")
            data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
            sums = Counter()
            for stack in data["stacks"]:
                sums[stack["statement"], stack["trace_type"]] += round(stack["ms"])
            shown.append(([[one[name] for name in ("statement", "query", "runs", "rows", "wall_ms")] for one in data["statements"]],
                          sums, data["times"]["from_ms"], data["times"]["thinned"], len(data["runs"])))
        self.assertTrue(shown[0][0] and shown[0][1])
        self.assertEqual(shown[0], shown[1])

    def test_all_of_them(self):
        wanted = Counter()
        for file in self.files:
            for statement, value in file.rows(
                    "SELECT printf('%016x', normalized_query_hash), sum(value) FROM trace_log JOIN query_log USING (query_id)"
                    " GROUP BY 1"):
                wanted[statement] += value
        pulled = self.pull("--service", "shop")
        found = json.loads(self.read(pulled, "queries", "--by", "cpu", "--format", "json", "--limit", "1000"))
        self.assertEqual({row["statement"]: round(row["sampled_ms"] * 1e6) for row in found if row["sampled_ms"]}, wanted)
        self.assertEqual({row["runs"] for row in found}, {7 * HOSTS})
        stacks = Counter()
        for file in self.files:
            for line in run("export", "--format", "collapsed", "-o", "-", file.path).stdout.splitlines():
                stack, count = line.rsplit(" ", 1)
                stacks[stack] += int(count)
        self.assertEqual(self.read(pulled, "export", "--format", "collapsed", "-o", "-"),
                         "".join(f"{stack} {count}\n" for stack, count in sorted(stacks.items(), key=lambda one: one[0])))

    def test_comparisons(self):
        """diff prints the same, except for the first two lines, which name the files."""
        pulled = self.pull("--host", "host2")
        wanted, found = (self.read(path, "diff", "--at", "end-1d") for path in (self.files[1].path, pulled))
        self.assertEqual(found.splitlines()[2:], wanted.splitlines()[2:])
        self.assertRegex(self.read(pulled, "diff", self.files[1].path), f"A +{pulled}\nB +{self.files[1].path}\n")

    def test_recipes(self):
        rows = {}
        for part in self.text("recipes.sql").split(";\n"):
            comment = "".join(line[2:] for line in part.splitlines() if line.startswith("--"))
            sql = "\n".join(line for line in part.splitlines() if not line.startswith("--"))
            if sql.strip():
                rows[comment] = self.node.ask(sql)

        def of(words):
            found, = [rows[comment] for comment in rows if words in comment]
            return found

        slower = of("slower since yesterday")
        self.assertEqual([(row[0], row[1].replace("\\'", "'"), row[4:6]) for row in slower],
                         [("host2", f"SELECT * FROM t{SLOWER} WHERE a = 'ä'", ["20", "20"])])
        self.assertEqual([float(row) for row in slower[0][2:4]], [10, 2])
        holders = of("holders of locks")
        waited = sum(range(1, HOSTS + 1))
        self.assertEqual(sum(float(row[4]) for row in holders), waited)
        self.assertEqual([float(row[4]) for row in holders], sorted((float(row[4]) for row in holders), reverse=True))
        self.assertEqual(sum(int(row[3]) for row in holders), HOSTS)
        graph = sum(file.rows("SELECT sum(value) / 1000 FROM trace_log JOIN query_log USING (query_id)"
                              " WHERE normalized_query_hash = 1000003")[0][0] or 0 for file in self.files)
        self.assertGreater(graph, 0)
        self.assertEqual(sum(int(row[1]) for row in of("A flame graph")), graph)
        self.check_flame_graph(of)

    def check_flame_graph(self, of):
        """Checks ClickHouse's own function, which old servers do not have."""

    def test_messages(self):
        out = os.path.join(self.directory.name, "not pulled.trace")
        for arguments, said in (([self.node.url, "--host", "nowhere"], "no runs of the host nowhere"),
                                ([self.node.url, "--query", "nowhere"], "no run matches"),
                                ([self.node.url + "?database=nowhere"], "nowhere")):
            done = run("pull", *arguments, "-o", out)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual([name for name in os.listdir(self.directory.name) if name.startswith("not pulled")], [])


@unittest.skipUnless(server.PROGRAM, "there is no clickhouse-server")
class Debian(Fleet, unittest.TestCase):
    @classmethod
    def start(cls):
        return server.start(cls.directory.name, 1)[0]

    @staticmethod
    def text(name):
        return server.text(name, "old_server.sed")


@unittest.skipUnless(CHDB, "QUERYPROF_TEST_CHDB names no libchdb.so")
class Modern(Fleet, case.Case):
    @classmethod
    def start(cls):
        return chdb.Server(CHDB, os.path.join(cls.directory.name, "chdb"))

    @staticmethod
    def text(name):
        """Removes the TTL, because the samples are older than it."""
        return re.sub(r"(?m)^TTL .*$", "", server.text(name))

    def check_flame_graph(self, of):
        lines = dict(row[0].rsplit(" ", 1) for row in of("flameGraph()"))
        self.assertEqual({stack: int(ns) for stack, ns in lines.items()},
                         {stack: 1000 * int(us) for stack, us in of("A flame graph")})
        self.assertTrue([stack for stack in lines if any(other.startswith(stack + ";") for other in lines)])

    def test_bytes_a_sample(self):
        file = self.maker(host="large", seed=HOSTS + 1)
        for _ in range(10):
            file.add(50000)
        for table in ("trace_log_rows", "query_log_rows"):  # other tests do not expect this host
            self.addCleanup(self.node.ask, f"ALTER TABLE {table} DELETE WHERE hostname = 'large' SETTINGS mutations_sync = 1")
        self.assertEqual(push(self.path, self.node.url).returncode, 0)
        self.node.ask("OPTIMIZE TABLE trace_log_rows FINAL")
        (rows, size), = self.node.ask("SELECT sum(rows), sum(bytes_on_disk) / sum(rows) FROM system.parts"
                                      " WHERE active AND table = 'trace_log_rows'")
        print(f"{rows} samples, {size} bytes each")
        for row in self.node.ask("SELECT name, data_compressed_bytes FROM system.columns WHERE table = 'trace_log_rows'"
                                 " ORDER BY 2 DESC LIMIT 8"):
            print(*row)
        self.assertLessEqual(float(size), 12)


class Errors(case.Case):
    def server(self, answer):
        """Responds with valid numbers to version() and count(), and with answer() to other queries."""
        server = fake.Fake(ROOT)
        self.addCleanup(server.close)
        server.take = lambda path, query, body, headers: (
            "23\t8\n" if b"version()" in body else "1\t2\t3\n" if b"count()" in body else answer(), 200)
        return server

    def test_error_of_the_reader(self):
        """SQLite refuses the table that the server describes. Any error of SQLite, such as a full disk, is handled like
        this."""
        server = self.server(lambda: "a\ta\nString\tString\n1\t2\n")
        done = run("pull", server.url, "-o", self.path)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Aqueryprof: http://\S+: duplicate column name: a\n\Z")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_that_exists_stays(self):
        for path, make in (("file", lambda path: open(path, "x").close()), ("folder", os.mkdir),
                           ("link", lambda path: os.symlink("nowhere", path))):
            path = os.path.join(self.folder, path)
            make(path)
            done = run("pull", "http://127.0.0.1:1/", "-o", path)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\Aqueryprof: %s: already exists.* -o\n\Z" % re.escape(path))
        self.assertEqual(sorted(os.listdir(self.folder)), ["file", "folder", "link"])

    def test_interrupted(self):
        """An interrupted pull leaves no file."""
        asked, go_on = threading.Event(), threading.Event()

        def answer():
            asked.set()
            go_on.wait()
            return ""

        server = self.server(answer)
        with subprocess.Popen([COMMAND, "pull", server.url, "-o", self.path], env=environment()) as process:
            asked.wait()
            self.assertEqual(len(os.listdir(self.folder)), 1)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(), -signal.SIGINT)
        go_on.set()
        self.assertEqual(os.listdir(self.folder), [])

    def test_messages(self):
        for arguments, said in ((["ftp://x"], "ftp://x: expected a URL that begins with http://"),
                                (["http://me:secret@127.0.0.1:1/"], "--credentials"),
                                (["http://127.0.0.1:1/", "--ca", "x"], "--ca x needs an https:// URL"),
                                (["http://127.0.0.1:1/", "--statement", "xyz"], "--statement xyz; expected"),
                                (["http://127.0.0.1:1/", "--statement", "0" * 17], "expected 1 to 16"),
                                (["http://127.0.0.1:1/", "--since", "soon"], "--since soon; expected a time")):
            done = run("pull", *arguments, "-o", self.path)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)
            self.assertNotIn("secret", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    done = unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2, exit=False)
    sys.stdout.flush()
    os._exit(not done.result.wasSuccessful())  # chdb's threads never end
