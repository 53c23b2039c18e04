# SPDX-License-Identifier: Apache-2.0
"""explain_analyze() runs a statement that only reads, and shows its plan. Debian's library does not count loops and rows; tests/plan's
test_scanstatus.py has one that does.

usage: test_explain_analyze.py LIBRARY"""

from library import *

COLUMNS = ["node", "parent", "detail", "loops", "rows", "rows_per_loop", "estimated_rows", "factor", "time_ns"]


class ExplainAnalyze(Case):
    def setUp(self):
        super().setUp()
        self.db = connect(self.path("app.db"))
        self.db.executescript("CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX tb ON t(b);"
                              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) INSERT INTO t SELECT i, i % 10 FROM n;")
        self.addCleanup(self.db.close)

    def analyze(self, sql):
        return rows(self.db, "SELECT * FROM explain_analyze(?)", sql)

    def test_plan(self):
        """The nodes are those of EXPLAIN QUERY PLAN; the statement has its rows and its time. What is not known is NULL."""
        sql = "SELECT x.a FROM t AS x JOIN t AS y ON y.b = x.b WHERE x.a < 5 ORDER BY +y.a"
        cursor = self.db.execute("SELECT * FROM explain_analyze(?)", (sql,))
        self.assertEqual([column[0] for column in cursor.description], COLUMNS)
        statement, *nodes = cursor.fetchall()
        self.assertEqual(statement[:8], (0, None, "(statement)", None, 200, None, None, None))
        self.assertGreater(statement[8], 0)
        self.assertEqual([node[:3] for node in nodes], [(row[0], row[1], row[3]) for row in self.db.execute("EXPLAIN QUERY PLAN " + sql)])
        self.assertEqual({node[3:] for node in nodes}, {(None,) * 6})
        for other in " -- a comment\n SELECT 1; ", "VALUES (1)", "WITH q AS (SELECT 1) SELECT * FROM q":
            self.assertEqual(self.analyze(other)[0][4], 1)
        self.assertEqual(self.analyze(None), [])

    def test_statement_of_a_row(self):
        """The statement may come from another table."""
        self.db.execute("CREATE TABLE statements(sql)")
        self.db.executemany("INSERT INTO statements VALUES (?)", [("SELECT * FROM t WHERE b = 3",), ("SELECT * FROM t",)])
        self.assertEqual(rows(self.db, "SELECT e.rows FROM statements AS s JOIN explain_analyze(s.sql) AS e WHERE e.node = 0 ORDER BY 1"), [(50,), (500,)])

    def test_refused(self):
        """Nothing is changed."""
        before = rows(self.db, "SELECT * FROM t"), self.db.in_transaction
        for sql in ("DELETE FROM t", "INSERT INTO t VALUES (1000, 1) ON CONFLICT DO UPDATE SET b = 1", "BEGIN", "ATTACH ':memory:' AS other", "PRAGMA user_version = 7",
                    "VACUUM", "EXPLAIN SELECT 1", "CREATE TABLE x(a)", "", ";", " -- nothing"):
            self.assertRefused("explain_analyze: expected SELECT, VALUES or WITH", self.db, "SELECT * FROM explain_analyze(?)", sql)
        for sentence, sql in (("explain_analyze: the statement writes", "WITH q AS (SELECT 1) INSERT INTO t(b) SELECT * FROM q"),
                              ("explain_analyze: the statement writes", "WITH q(i) AS (SELECT 1) UPDATE t SET b = 1 WHERE a IN q RETURNING a"),
                              ("explain_analyze: expected one statement", "SELECT 1; DELETE FROM t"),
                              ("explain_analyze: the statement has parameters", "SELECT ?1"),
                              ('explain_analyze: near "t": syntax error', "SELECT 1 FRM t"),
                              ("explain_analyze: integer overflow", "SELECT sum(a + 9223372036854775000) FROM t")):
            self.assertRefused(sentence, self.db, "SELECT * FROM explain_analyze(?)", sql)
        self.assertRefused("explain_analyze: expected a statement", self.db, "SELECT * FROM explain_analyze")
        self.assertEqual((rows(self.db, "SELECT * FROM t"), self.db.in_transaction), before)

    def test_not_from_a_schema(self):
        """A view or a trigger that a database file brings along cannot run it, and no table can be made of it."""
        self.db.execute("CREATE VIEW v AS SELECT * FROM explain_analyze('SELECT * FROM t')")
        self.assertRefused('unsafe use of virtual table "explain_analyze"', self.db, "SELECT * FROM v")
        self.assertRefused("no such module", self.db, "CREATE VIRTUAL TABLE z USING explain_analyze")

    def test_authorizer(self):
        """The statement may do what the connection may do."""
        self.db.set_authorizer(lambda action, table, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_READ and table == "t" else sqlite3.SQLITE_OK)
        self.assertRefused("prohibited", self.db, "SELECT * FROM explain_analyze('SELECT b FROM t')")
        self.assertEqual(self.analyze("SELECT 1")[0][4], 1)


if __name__ == "__main__":
    unittest.main()
