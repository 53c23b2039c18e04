#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The SQL files that the demo runs and users paste: the queries run in any sqlite3 shell, and the reports show the profile of a
query.

    test_sql.py SOURCE_DIR LIBRARY
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from package_index import package_index

LIBRARY = sys.argv.pop(2)
SOURCE = sys.argv.pop(1)

# The first spends all its time in the interpreter's loop, the second also in LIKE.
LOOP = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000000) SELECT sum(i % 7) FROM n"
LIKE = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
        f" SELECT count(*) FROM n WHERE '{'abcdefgh ' * 60}' LIKE '%x%' || i || '%'")


def run_shell(script, database=":memory:"):
    result = subprocess.run(
        ["sqlite3", "-init", "/dev/null", "-batch", "-bail", database],
        input=script, capture_output=True, text=True, check=False)
    assert result.returncode == 0 and not result.stderr, result
    return result.stdout


def profile(query_id, query, report):
    """Runs `query` and then a faster one; returns the rows of sql/recipes/`report` for `query`."""
    output = run_shell(f"""
.load {LIBRARY}
PRAGMA query_profiler_cpu_time_period_ns = 1000000;
PRAGMA query_id = '{query_id}';
{query};
PRAGMA query_id = 'another';
{LOOP.replace('4000000', '400000')};
PRAGMA query_profiler_cpu_time_period_ns = 0;
PRAGMA log_queries = 0;
.print reports
.mode json
.read {SOURCE}/sql/recipes/{report}
.parameter set :query_id "'{query_id}'"
.read {SOURCE}/sql/recipes/{report}
""")
    results = output.split("reports\n", 1)[1]
    rows, end = json.JSONDecoder().raw_decode(results)
    again = json.loads(results[end:])
    assert rows == again, ("the slowest query is the one that was requested by its id", rows, again)
    return rows


def percent(text):
    return float(text.rstrip(" %"))


class Reports(unittest.TestCase):
    def test_top_functions(self):
        rows = profile("loop", LOOP, "top_functions.sql")
        by_name = {row["function"]: row for row in rows}
        self.assertIn("sqlite3VdbeExec", by_name, rows)
        self.assertGreater(percent(by_name["sqlite3VdbeExec"]["total"]), 90, rows)
        self.assertGreater(percent(by_name["sqlite3VdbeExec"]["self"]), 20, rows)
        self.assertLessEqual(sum(percent(row["self"]) for row in rows), 101, rows)
        for row in rows:
            self.assertLessEqual(percent(row["self"]), percent(row["total"]), rows)
            self.assertNotIn("+0x", row["function"], rows)

    def test_top_stacks(self):
        rows = profile("like", LIKE, "top_stacks.sql")
        shares = [percent(row["share"]) for row in rows]
        self.assertEqual(shares, sorted(shares, reverse=True), rows)
        self.assertEqual(len({row["stack"] for row in rows}), len(rows), rows)
        self.assertIn("sqlite3VdbeExec < sqlite3_step < ", rows[0]["stack"], rows)
        self.assertIn("__libc_start_main", rows[0]["stack"].rsplit(" < sqlite3_step < ")[1], rows)

    def test_slowest_queries(self):
        rows = profile("loop", LOOP, "slowest_queries.sql")
        self.assertEqual(rows[0]["query_id"], "loop", rows)
        self.assertTrue(LOOP.startswith(rows[0]["query"]), rows)
        self.assertGreater(rows[0]["n_cpu"], 0, rows)
        self.assertIn("another", [row["query_id"] for row in rows])
        # This tests the columns; tests/accuracy tests the values.
        self.assertLess(abs(percent(rows[0]["off"])), 50, rows)


class QueryId(unittest.TestCase):
    def test_goes_to_the_statement_it_is_meant_for(self):
        """The id does not go to a statement by which SQLite reads the schema."""
        with tempfile.TemporaryDirectory() as directory:
            database = os.path.join(directory, "app.db")
            run_shell("CREATE TABLE t(a); INSERT INTO t VALUES (1);", database)
            output = run_shell(f"""
.load {LIBRARY}
PRAGMA query_profiler_cpu_time_period_ns = 1000000;
PRAGMA log_queries_min_query_duration_ns = 0;
PRAGMA query_id = 'mine';
SELECT count(*) FROM t;
.mode list
SELECT query_id, query FROM system.query_log WHERE query_id = 'mine' OR query LIKE '%FROM t;';
""", database)
            self.assertEqual(output.splitlines()[-1], "mine|SELECT count(*) FROM t;", output)
            self.assertEqual(output.count("mine|"), 1, output)

    def test_on_a_connection_opened_later(self):
        """The connection has not read its schema when the id is set."""
        with tempfile.TemporaryDirectory() as directory:
            database = os.path.join(directory, "app.db")
            run_shell("CREATE TABLE t(a); INSERT INTO t VALUES (1);", database)
            script = f"""
import sqlite3
loaded = sqlite3.connect(':memory:')
loaded.enable_load_extension(True)
loaded.load_extension({LIBRARY!r})
db = sqlite3.connect({database!r})
for sql in ('PRAGMA query_profiler_cpu_time_period_ns = 1000000',
            'PRAGMA log_queries_min_query_duration_ns = 0',
            "PRAGMA query_id = 'mine'", 'SELECT count(*) FROM t'):
    db.execute(sql).fetchall()
print(db.execute("SELECT query FROM system.query_log WHERE query_id = 'mine'").fetchall())
"""
            output = subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True, check=False)
            self.assertEqual(output.stdout, "[('SELECT count(*) FROM t',)]\n", output)


class DemoQueries(unittest.TestCase):
    def test_run_without_the_profiler(self):
        with tempfile.TemporaryDirectory() as directory:
            database = os.path.join(directory, "packages.db")
            subprocess.run(
                ["/usr/bin/python3", f"{SOURCE}/tools/demo.d/load_packages.py",
                 f"{SOURCE}/sql/demo/schema.sql", database],
                input=package_index(10_000).encode(), stderr=subprocess.DEVNULL, check=True)
            output = run_shell(f".mode json\n.read {SOURCE}/sql/demo/queries.sql\n", database)
            # All 10,000 packages of the pattern are "a query tool".
            self.assertIn({"topic": "query", "packages": 10_000},
                          [{"topic": row["topic"], "packages": row["packages"]}
                           for row in json.JSONDecoder().raw_decode(output)[0]])
            self.assertIn("package-", output)


if __name__ == "__main__":
    unittest.main()
