# SPDX-License-Identifier: Apache-2.0
"""push to two shards of Debian's ClickHouse under a Distributed table, one of which is killed and comes back in
the middle; QUERYPROF_TEST_SAMPLES (default 500000) of 50 hosts."""
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import maker  # noqa: E402
import server  # noqa: E402

COMMAND, ROOT = sys.argv[1], sys.argv[2]
SAMPLES = int(os.environ.get("QUERYPROF_TEST_SAMPLES", "500000"))
HOSTS = 50
SQL = os.path.join(ROOT, "sql", "clickhouse")


def text(name, *edits):
    """A file of sql/clickhouse; without Keeper each server makes its own tables."""
    with open(os.path.join(SQL, name)) as file:
        made = file.read()
    for edit in edits:
        made = subprocess.run(["sed", "-f", os.path.join(SQL, edit)], input=made, capture_output=True, text=True,
                              check=True).stdout
    return made.replace(" ON CLUSTER '{cluster}'", "").replace("{cluster}", "shards")


@unittest.skipUnless(server.PROGRAM, "there is no clickhouse-server")
class Shards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.nodes = server.start(cls.folder.name, 2)
        for node in cls.nodes:
            cls.addClassCleanup(node.stop)
            node.run(text("tables.sql", "old_server.sed", "cluster.sed"))
            node.run(text("cluster.sql"))
            node.run(text("views.sql", "old_server.sed"))

    def push(self, *arguments, **more):
        kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        return subprocess.run([COMMAND, "push", *arguments], capture_output=True, text=True, env={**kept, **more})

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
        done = self.push("--retry-for", "600", *paths, self.nodes[0].url)
        thread.join()
        print(done.stdout, done.stderr)
        self.assertEqual(done.returncode, 0)
        for node in self.nodes:  # whichever is asked
            rows = node.ask("SELECT hostname, normalized_query_hash, count(), sum(value) FROM trace_log"
                            " WHERE hostname != 'other' GROUP BY hostname, normalized_query_hash")
            self.assertEqual({(row[0], int(row[1])): (int(row[2]), int(row[3])) for row in rows}, wanted)
            self.assertGreater(node.number("SELECT count() FROM trace_log_local"), 0)
        # Everything once more.
        for path in paths[:5]:
            again = self.push("--state", path + ".again", path, self.nodes[1].url)
            self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.nodes[0].number("SELECT count() FROM trace_log WHERE hostname != 'other'"),
                         sum(count for count, _ in wanted.values()))
        for node in self.nodes:
            node.ask("OPTIMIZE TABLE trace_log_local FINAL")
            print(node.ask("SELECT sum(rows), sum(bytes) / sum(rows) FROM system.parts"
                           " WHERE active AND table = 'trace_log_local'"))

    def test_recipes(self):
        for statement in text("recipes.sql", "old_server.sed").split(";\n"):
            lines = [line for line in statement.splitlines() if not line.startswith("--")]
            if "".join(lines).strip():
                self.nodes[0].ask("\n".join(lines))

    def test_messages_of_the_real_one(self):
        path = os.path.join(self.folder.name, "few.trace")
        file = maker.Maker(ROOT, path, host="other", seed=1000)
        file.add(10)
        self.addCleanup(file.db.close)
        url = self.nodes[0].url
        for target, user, said in ((f"{url}?database=nowhere", "default", "nowhere"), (url, "nobody", "nobody"),
                                   (url, "shipper", "shipper")):
            done = self.push(path, target, "--retry-for", "5", QUERYPROF_PUSH_USER=user, QUERYPROF_PUSH_PASSWORD="wr0ng"
                             if user != "default" else "")
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
            self.assertNotIn("wr0ng", done.stderr)
        done = self.push(path, url, QUERYPROF_PUSH_USER="shipper", QUERYPROF_PUSH_PASSWORD="a secret")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
