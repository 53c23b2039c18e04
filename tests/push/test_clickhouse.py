# SPDX-License-Identifier: Apache-2.0
"""push to two shards of Debian's ClickHouse with a Distributed table. One shard is killed and restarted during the push.
QUERYPROF_TEST_SAMPLES is the number of samples of all 50 hosts (default 500000).

usage: test_clickhouse.py COMMAND ROOT"""
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import case  # noqa: E402
import maker  # noqa: E402
import server  # noqa: E402
from case import COMMAND, ROOT, environment, push  # noqa: E402

SAMPLES = int(os.environ.get("QUERYPROF_TEST_SAMPLES", "500000"))
HOSTS = 50


@unittest.skipUnless(server.PROGRAM, "there is no clickhouse-server")
class Shards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.nodes = server.start(cls.folder.name, 2)
        for node in cls.nodes:
            cls.addClassCleanup(node.stop)
            node.run(server.text_of_one("tables.sql", "old_server.sed", "cluster.sed"))
            node.run(server.text_of_one("tables.sql", "distributed.sed"))
            node.run(server.text_of_one("views.sql", "old_server.sed"))

    def test_sums_with_a_node_away(self):
        wanted, paths = {}, []
        for host in range(HOSTS):
            path = os.path.join(self.folder.name, f"{host}.trace")
            file = maker.Maker(ROOT, path, host=f"host{host}", seed=host + 1, stacks=300)
            for _ in range(5):
                file.add(SAMPLES // HOSTS // 5)
            for name, statement, count, value in file.rows(
                    "SELECT hostname, normalized_query_hash, count(*), sum(value) FROM trace_log"
                    " JOIN query_log USING (query_id) GROUP BY 1, 2"):
                wanted[name, statement] = (count, value)
            file.db.close()
            paths.append(path)

        def away():
            while self.nodes[0].number("SELECT count() FROM trace_log_rows") < SAMPLES // 5:
                time.sleep(0.05)
            self.nodes[1].stop()
            time.sleep(1)
            self.nodes[1].start()

        thread = threading.Thread(target=away)
        thread.start()
        process = subprocess.Popen([COMMAND, "push", "--retry-for", "600", *paths, self.nodes[0].url], env=environment())
        _, status, used = os.wait4(process.pid, 0)
        thread.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        print(f"{SAMPLES / (used.ru_utime + used.ru_stime):.0f} samples a second of CPU time of push")
        for node in self.nodes:  # either can answer the query
            rows = node.ask("SELECT hostname, normalized_query_hash, count(), sum(value) FROM trace_log"
                            " WHERE hostname != 'other' GROUP BY hostname, normalized_query_hash")
            self.assertEqual({(row[0], int(row[1])): (int(row[2]), int(row[3])) for row in rows}, wanted)
            self.assertGreater(node.number("SELECT count() FROM trace_log_local"), 0)
        # Sends five files again.
        for path in paths[:5]:
            again = push("--state", path + ".again", path, self.nodes[1].url)
            self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.nodes[0].number("SELECT count() FROM trace_log WHERE hostname != 'other'"),
                         sum(count for count, _ in wanted.values()))
        for node in self.nodes:
            node.ask("OPTIMIZE TABLE trace_log_local FINAL")
            print(node.ask("SELECT sum(rows), sum(bytes) / sum(rows) FROM system.parts"
                           " WHERE active AND table = 'trace_log_local'"))

    def test_messages_of_the_real_one(self):
        path = os.path.join(self.folder.name, "few.trace")
        file = maker.Maker(ROOT, path, host="other", seed=1000)
        file.add(10)
        self.addCleanup(file.db.close)
        url = self.nodes[0].url
        for target, user, said in ((f"{url}?database=nowhere", "default", "nowhere"), (url, "nobody", "nobody"),
                                   (url, "shipper", "shipper")):
            done = push(path, target, "--retry-for", "5", QUERYPROF_PUSH_USER=user, QUERYPROF_PUSH_PASSWORD="wr0ng"
                             if user != "default" else "")
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
            self.assertNotIn("wr0ng", done.stderr)
        done = push(path, url, QUERYPROF_PUSH_USER="shipper", QUERYPROF_PUSH_PASSWORD="a secret")
        self.assertEqual(done.returncode, 0, done.stderr)


@unittest.skipUnless(server.PROGRAM and server.JAVA, "there is no clickhouse-server, or no zookeeper")
class OnCluster(unittest.TestCase):
    """The files of sql/clickhouse, run on one of two servers, create the tables and views on both."""

    def test_tables_of_both(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        keeper = server.Keeper(folder.name)
        self.addCleanup(keeper.stop)
        nodes = server.start(folder.name, 2, keeper.port)
        for node in nodes:
            self.addCleanup(node.stop)
        nodes[0].run(server.text("tables.sql", "old_server.sed", "cluster.sed"))
        nodes[0].run(server.text("tables.sql", "distributed.sed"))
        nodes[0].run(server.text("views.sql", "old_server.sed", "on_cluster.sed"))
        tables = [node.ask("SELECT name, engine FROM system.tables WHERE database = 'default' ORDER BY name")
                  for node in nodes]
        self.assertEqual(tables[0], tables[1])
        self.assertEqual(len(tables[0]), 9 + 9 + 10)
        path, files = os.path.join(folder.name, "{}.trace"), range(8)
        for number in files:
            file = maker.Maker(ROOT, path.format(number), seed=number + 1)
            file.add(100)
            file.db.close()
        done = push(*(path.format(number) for number in files), nodes[1].url)
        self.assertEqual(done.returncode, 0, done.stderr)
        for node in nodes:
            self.assertEqual(node.number("SELECT count() FROM trace_log"), 800)
            self.assertLess(node.number("SELECT count() FROM trace_log_local"), 800)


if __name__ == "__main__":
    case.main()
