#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""queryprof mcp: an exact conversation (golden/conversation.txt; QUERYPROF_TEST_GOLDEN=write writes it), and clients'
errors: messages, paths, SQL, and random bytes.

usage: as tool.py"""

import json
import os
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tool import *
from server import STATEMENT, Server, make, make_database, request

GOLDEN = os.path.join(SOURCE, "tests", "mcp", "golden", "conversation.txt")
ID = "%016x" % STATEMENT
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}
SEED, MESSAGES = 20260728, 2000
INDEX = 'CREATE INDEX "orders_total" ON "orders"("total"); -- '


class Mcp(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.realpath(tempfile.mkdtemp(prefix="queryprof-mcp-"))
        cls.served = os.path.join(cls.folder, "served")
        os.mkdir(cls.served)
        cls.trace = os.path.join(cls.served, "app.trace")
        make(cls.trace)
        cls.database = os.path.join(cls.served, "app.db")
        make_database(cls.database, cls.trace)
        shutil.copy(cls.trace, os.path.join(cls.folder, "outside.trace"))
        shutil.copy(cls.database, os.path.join(cls.folder, "outside.db"))

    def setUp(self):
        self.server = Server(self.served)
        self.addCleanup(self.server.close)

    # --- the usual work

    def test_conversation(self):
        """An agent finds the missing index in at most six calls, and proves it on a copy of the database."""
        lines, calls, index = [], 0, None
        for message in (
                request(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "agent", "version": "1"}),
                request(2, "tools/list"),
                request(3, "tools/call", name="files", arguments={}),
                request(4, "tools/call", name="findings", arguments={}),
                request("five", "tools/call", name="plan", arguments={"statement": ID[:8]}),
                request(6, "tools/call", name="top_statements", arguments={"limit": 2}),
                request(7, "tools/call", name="sql", arguments={"sql": "SELECT query FROM statements WHERE normalized_query_hash = %d" % STATEMENT}),
                request(8, "server/discover", _meta=META),
                request(9, "tools/call", name="locks", arguments={"file": "app.trace"}, _meta=META),
                request(10, "tools/call", name="wal", arguments={"file": "app.trace"}, _meta=META),
                request(11, "tools/call", name="advise", arguments={"database": "app.db"})):
            for _ in range(5):
                answer = self.server.ask(message)
                self.assertEqual(answer["id"], message["id"])
                # Other processes may use most of the time of the measurements.
                if message["id"] != 11 or INDEX in answer["result"]["content"][0]["text"]:
                    break
            lines.append("> " + json.dumps(message))
            calls += message["method"] == "tools/call"
            content = answer["result"].get("content")
            if content:
                text = content[0].pop("text")
                self.assertLess(len(text), 2000)
                if message["id"] == 11:  # its answer contains measured times
                    text = re.sub(" {2,}", "  ", re.sub(r"[0-9.]+ (us|ms|MB)|± [0-9.]+( %)?|\b[0-9]+\.[0-9]+\b", "N", text))
                index = index or ("CREATE INDEX" in text and calls)
            lines.append("< " + json.dumps(answer))
            lines += ["  " + line for line in text.rstrip("\n").split("\n")] if content else []
        out = re.sub(r"\(\d+ kB, changed [^)]*\)", "(SIZE, changed TIME)", "\n".join(lines).replace(self.folder, "/FOLDER")) + "\n"
        out = re.sub(r'("name": "queryprof", "version": ")[^"]*', r"\1VERSION", out)
        if os.environ.get("QUERYPROF_TEST_GOLDEN") == "write":
            with open(GOLDEN, "w", encoding="utf-8") as file:
                file.write(out)
        with open(GOLDEN, encoding="utf-8") as file:
            self.assertEqual(out, file.read())
        self.assertTrue(index and index <= 6, index)

    def test_revisions(self):
        for wanted, got in (("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")):
            result = self.server.ask(request(1, "initialize", protocolVersion=wanted, capabilities={}, clientInfo={}))["result"]
            self.assertEqual(result["protocolVersion"], got)
        error = self.server.ask(request(1, "tools/list", _meta=dict(META, **{"io.modelcontextprotocol/protocolVersion": "1900-01-01"})))["error"]
        self.assertEqual((error["code"], error["data"]["supported"][0]), (-32022, "2026-07-28"))
        without = {name: META[name] for name in META if "Capabilities" not in name}
        self.assertEqual(self.server.ask(request(1, "tools/list", _meta=without))["error"]["code"], -32602)
        self.assertEqual(self.server.ask(request(1, "tools/list", _meta=META))["result"]["resultType"], "complete")

    def test_answers_are_short(self):
        """Every answer has a limit, and contains a note if it was cut."""
        text, is_error = self.server.call("sql", sql="SELECT printf('%.900c', 'ä') AS a, value FROM json_each('[1, 2, 3, 4, 5, 6]')")
        self.assertFalse(is_error, text)
        self.assertLess(len(text), 2000)
        self.assertIn("[cut:", text)
        text, _ = self.server.call("sql", sql="SELECT replace(printf('%.50000c', 'x'), 'x', 'ä') AS a")
        self.assertLess(len(text), 2000)
        self.assertIn("[cut:", text)
        text, _ = self.server.call("sql", sql="SELECT a.normalized_query_hash FROM statements AS a, trace_log, trace_log, trace_log")
        self.assertLess(len(text), 2000)

    # --- messages

    def refuse(self, code, line, number=None):
        answer = self.server.ask(line)
        self.assertEqual((answer["error"]["code"], answer["id"]), (code, number), answer)

    def test_messages(self):
        deep = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 50000 + b"1" + b"}" * 50000 + b"}"
        for line in (b"{", b"nonsense", b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', b'{"a":"\xff"}', b'{"a":"\x00"}',
                     b"{'jsonrpc':'2.0','id':1,'method':'ping'}", deep, b"[" * 100000, b'"' + b"x" * (2 << 20) + b'"'):
            self.refuse(-32700, line)
        for line in (b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"1", b"null", b'{"jsonrpc":"1.0","method":"ping"}',
                     b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
                     b'{"jsonrpc":"2.0","id":{},"method":"ping"}', b'{"jsonrpc":"2.0","id":"' + b"x" * 300 + b'","method":"ping"}',
                     b'{"jsonrpc":"2.0"}'):
            self.refuse(-32600, line)
        self.refuse(-32600, b'{"jsonrpc":"2.0","id":3,"method":7}', 3)
        self.refuse(-32601, request(4, "resources/list"), 4)
        self.refuse(-32601, request("a\"b", "no/such\u0000method"), "a\"b")
        self.refuse(-32602, {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": [1]}, 5)
        self.refuse(-32602, request(6, "tools/call", name="rm", arguments={}), 6)
        self.refuse(-32602, request(7, "tools/call", arguments={}), 7)
        self.refuse(-32602, request(8, "tools/call", name="findings", arguments=[1]), 8)
        # Neither a notification nor a response is answered.
        self.server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.server.send({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "findings"}})
        self.server.send({"jsonrpc": "2.0", "id": 1, "result": {}})
        self.server.send(b"")
        self.assertEqual(self.server.ask(b'{"jsonrpc":"2.0","id":9223372036854775807,"method":"ping"}\r')["id"], (1 << 63) - 1)

    def test_arguments(self):
        for tool, arguments, said in (
                ("findings", {"fil": "app.trace"}, "no argument fil; it has file, statement, limit"),
                ("findings", {"limit": 0}, "limit is 0; expected a whole number"),
                ("findings", {"limit": "5"}, "limit is 5; expected a whole number"),
                ("findings", {"limit": 1e300}, "expected a whole number"),
                ("findings", {"limit": 1 << 62}, "expected a whole number"),
                ("findings", {"statement": None}, "statement is null; expected a string"),
                ("findings", {"statement": ["a"]}, "expected a string"),
                ("findings", {"statement": "--help"}, "no statement has the id --help"),
                ("findings", {"statement": ""}, "statement"),
                ("plan", {}, "the argument statement is missing"),
                ("plan", {"statement": "ffff"}, "no statement has the id ffff"),
                ("top_statements", {"by": "size"}, "expected wall, cpu"),
                ("diff", {"before": "app.trace"}, "the argument after is missing"),
                ("files", {"file": "app.trace"}, "files has no argument file; it has none")):
            text, is_error = self.server.call(tool, **arguments)
            self.assertTrue(is_error, (tool, arguments, text))
            self.assertIn(said, text)

    def test_end(self):
        """The input may end without a line end. A missing folder is an error."""
        done = subprocess.run([QUERYPROF, "mcp", self.served], input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}', capture_output=True, check=False)
        self.assertEqual((done.returncode, json.loads(done.stdout)["id"], done.stderr), (0, 1, b""))
        code, out, err = run("mcp", os.path.join(self.folder, "nowhere"))
        self.assertEqual((code, out), (1, ""))
        self.assertIn("nowhere: No such file or directory: expected a folder", err)

    # --- files

    def test_paths(self):
        """The server reads only trace files of this user in the folder or below it."""
        def at(*names):
            return os.path.join(self.served, *names)

        os.makedirs(at("below", "more"), exist_ok=True)
        shutil.copy(self.trace, at("below", "more", "b.trace"))
        os.symlink(os.path.join(self.folder, "outside.trace"), at("link.trace"))
        os.symlink("app.trace", at("inside.trace"))
        os.symlink(self.folder, at("up"))
        os.link(self.trace, at("hard.trace"))
        os.mkfifo(at("fifo.trace"))
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(at("s"))
        sqlite3.connect(at("other.db")).execute("CREATE TABLE t(a)").connection.close()
        for name in ("app.trace", "./app.trace", "below/more/b.trace", "below//more/b.trace", self.trace, "hard.trace"):
            text, is_error = self.server.call("locks", file=name)
            self.assertFalse(is_error, (name, text))
        for name, why in (("../outside.trace", '".."'), ("below/../app.trace", '".."'), (at("..", "outside.trace"), '".."'),
                          (os.path.join(self.folder, "outside.trace"), "in none of the folders"), ("/etc/passwd", "in none of the folders"),
                          (self.served + "x/app.trace", "in none of the folders"), (self.served, "in none of the folders"), (self.served + "/", "not a regular file"),
                          ("link.trace", "symbolic link"), ("inside.trace", "symbolic link"), ("up/outside.trace", "symbolic link"),
                          ("fifo.trace", "not a regular file"), ("s", "not a regular file"), ("below", "not a regular file"), ("", "not a regular file"),
                          ("missing.trace", "no such file"), ("app.trace/x", "not a folder"), ("file:app.trace", "no such file"),
                          ("a" * 5000, "too long"), ("-", "no such file"), ("http://server/", "no such file")):
            text, is_error = self.server.call("locks", file=name)
            self.assertTrue(is_error, (name, text))
            self.assertIn(why, text, name)
        text, is_error = self.server.call("findings", file="other.db")
        self.assertTrue(is_error)
        self.assertIn("not a trace file", text)
        listed, _ = self.server.call("files")
        self.assertEqual({line.split(" ")[0] for line in listed.splitlines()}, {self.trace, at("hard.trace")})

    def test_other_users(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make files of other users")
        path = os.path.join(self.served, "theirs.trace")
        shutil.copy(self.trace, path)
        os.chown(path, 65534, 65534)
        self.addCleanup(os.unlink, path)
        text, is_error = self.server.call("findings", file="theirs.trace")
        self.assertTrue(is_error)
        self.assertIn("belongs to another user", text)
        self.assertNotIn("theirs", self.server.call("files")[0])

    def test_nothing(self):
        empty = os.path.join(self.folder, "empty")
        os.makedirs(empty, exist_ok=True)
        server = Server(empty)
        self.addCleanup(server.close)
        self.assertIn("queryprof record -o app.trace", server.call("files")[0])
        self.assertIn("no trace file in " + empty, server.call("findings")[0])

    # --- databases

    def call_whole(self, tool, **arguments):
        """Calls a tool that measures. Tries again, because a busy machine may need more time than the limit."""
        for _ in range(5):
            text, is_error = self.server.call(tool, **arguments)
            self.assertLess(len(text), 2000)
            if "no answer within" not in text and "had no sample" not in text:
                break
        self.assertFalse(is_error, text)
        return text

    def test_advise(self):
        temporary = os.path.join(self.folder, "temporary")
        os.makedirs(temporary, exist_ok=True)
        before = self.content(self.served)
        server = Server(self.served, variables={"TMPDIR": temporary})
        self.addCleanup(server.close)
        for _ in range(5):
            text, is_error = server.call("advise", database="app.db", limit=1)
            if INDEX in text:  # otherwise, other processes used most of the time of the measurements
                break
        self.assertFalse(is_error, text)
        self.assertIn(INDEX, text)
        self.assertIn(ID[:8], text)
        self.assertRegex(text, r"saves [0-9.]+ ms ± [0-9.]+ ms of all recorded runs")
        self.assertEqual((self.content(self.served), os.listdir(temporary)), (before, []))

    @staticmethod
    def content(folder):
        found = {}
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    found[name] = file.read()
        return found

    def test_analyze(self):
        count = "SELECT count(*) FROM orders WHERE total > 20"
        text = self.call_whole("analyze", database="app.db", sql=count)
        self.assertRegex(text, r"\A[0-9.]+ (s|ms|us) ± [0-9.]+ % of CPU time a run")
        self.assertRegex(text, "SCAN orders .* ms ±")
        text = self.call_whole("analyze", database=self.database, sql="SELECT id FROM orders WHERE id + 0 = 7", against="SELECT id FROM orders WHERE id = 7")
        self.assertRegex(text, r"(?m)-[0-9.]+ % ± [0-9.]+ +faster +same rows +SELECT id FROM orders WHERE id = 7$")
        text = self.call_whole("analyze", database=self.database, sql=count, pragma="cache_size=-65536")
        self.assertIn("PRAGMA cache_size=-65536", text)

    def test_databases(self):
        """The server accepts only databases of this user in the folder or below it, and statements that stay in the copy."""
        def at(*names):
            return os.path.join(self.served, *names)

        for name in "linked.db", "journal.db":
            shutil.copy(self.database, at(name))
        os.symlink(os.path.join(self.folder, "outside.db"), at("link.db"))
        os.symlink(os.path.join(self.folder, "outside.db"), at("linked.db-wal"))
        os.mkfifo(at("journal.db-journal"))
        with open(at("text.db"), "w", encoding="utf-8") as file:
            file.write("no database" * 100)
        made = os.path.join(self.folder, "made.db")
        for name, why in (("../outside.db", '".."'), (os.path.join(self.folder, "outside.db"), "in none of the folders"), ("/etc/passwd", "in none of the folders"),
                          ("link.db", "symbolic link"), ("linked.db", "linked.db-wal: refused: it is a symbolic link"),
                          ("journal.db", "journal.db-journal: refused: it is not a regular file"), ("missing.db", "no such file"), ("", "not a regular file"),
                          ("file:app.db", "no such file"), (":memory:", "no such file"), ("--live", "no such file"), ("text.db", "text.db"),
                          ("a" * 5000, "too long")):
            for tool, more in ("analyze", {"sql": "SELECT 1"}), ("advise", {}):
                text, is_error = self.server.call(tool, database=name, **more)
                self.assertTrue(is_error, (tool, name, text))
                self.assertIn(why, text, (tool, name))
                self.assertLess(len(text), 2000)
        other = "expected SELECT, VALUES, WITH, INSERT, REPLACE, UPDATE or DELETE"
        for arguments, why in (({"sql": "SELEC 1"}, other), ({"sql": "SELECT 1; SELECT 2"}, "expected one statement"), ({"sql": ""}, other),
                               ({"sql": "ATTACH '%s' AS a" % made}, other), ({"sql": "VACUUM INTO '%s'" % made}, other),
                               ({"sql": "SELECT load_extension('x')"}, "load_extension"), ({"sql": "PRAGMA writable_schema = 1"}, other),
                               ({"sql": "DROP TABLE orders"}, other), ({"sql": "SELECT 1", "against": "ATTACH '%s' AS a" % made}, other),
                               ({"sql": "SELECT no_such_column FROM orders"}, "no such column"), ({"sql": "--help"}, other),
                               ({"sql": "SELECT 1", "pragma": "temp_store_directory=/tmp"}, "expected NAME=VALUE"), ({"sql": 1}, "expected a string"),
                               ({"sql": "SELECT 1", "live": "1"}, "no argument live"), ({}, "the argument sql is missing")):
            text, is_error = self.server.call("analyze", database="app.db", **arguments)
            self.assertTrue(is_error, (arguments, text))
            self.assertIn(why, text, arguments)
        self.assertFalse(os.path.exists(made))
        self.assertIn("the argument database is missing", self.server.call("advise")[0])
        text, is_error = self.server.call("advise", database="app.db", file="app.trace", limit=0)
        self.assertTrue(is_error)
        self.assertIn("limit is 0", text)

    def test_endless(self):
        """The server ends a statement that never ends."""
        text, is_error = self.server.call("analyze", database="app.db",
                                          sql="WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c")
        self.assertTrue(is_error)
        self.assertIn("a run takes longer than", text)

    # --- SQL

    def test_sql(self):
        made = os.path.join(self.folder, "made")
        with open(self.trace, "rb") as file:
            before = file.read()
        for sql in ("ATTACH '%s' AS a" % os.path.join(self.folder, "outside.trace"), "ATTACH '' AS a", "VACUUM INTO '%s'" % made,
                    "DELETE FROM samples", "INSERT INTO statements SELECT * FROM statements", "DROP TABLE samples", "CREATE TABLE t(a)",
                    "CREATE VIRTUAL TABLE temp.t USING fts5(a)", "PRAGMA query_only = 0",
                    "PRAGMA temp_store_directory = '/tmp'", "PRAGMA journal_mode = WAL", "PRAGMA writable_schema = 1", "SELECT load_extension('x')",
                    "SELECT 1; ATTACH '%s' AS a" % made, "ANALYZE", "EXPLAIN ATTACH 'x' AS a"):
            text, is_error = self.server.call("sql", sql=sql)
            self.assertTrue(is_error, (sql, text))
            self.assertIn("--guarded refuses" if any(word in sql for word in ("ATTACH", "INTO '", "PRAGMA", "load", "VIRTUAL")) else "readonly", text, sql)
        for sql in ("SELEC 1", "SELECT * FROM no_such_table", "SELECT \"a"):
            self.assertTrue(self.server.call("sql", sql=sql)[1])
        self.assertFalse(os.path.exists(made))
        with open(self.trace, "rb") as file:
            self.assertEqual(file.read(), before)
        for sql in ("-- a comment\nSELECT 1", "SELECT count(*) FROM trace_log", "PRAGMA table_info(query_log)",
                    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5) SELECT max(x) FROM c",
                    "SELECT count(*) FROM bursts", "SELECT runs, query FROM top_queries", "SELECT count(*) FROM plan_times"):
            text, is_error = self.server.call("sql", sql=sql)
            self.assertFalse(is_error, (sql, text))

    # --- random messages

    def test_random(self):
        """The server answers a ping after all of them, and each line that it writes is JSON."""
        chance = random.Random(SEED)
        whole = [json.dumps(message).encode() for message in (
            request(1, "tools/list", _meta=META), request("x", "initialize", protocolVersion="2025-06-18"), request(2, "ping"),
            request(3, "tools/call", name="files", arguments={}), request(4, "tools/call", name="findings", arguments={"file": "no"}))]
        lines = []
        for _ in range(MESSAGES):
            line = bytearray(chance.choice(whole))
            for _ in range(chance.randrange(4)):
                at = chance.randrange(len(line))
                kind = chance.randrange(4)
                if kind == 0:
                    line[at] = chance.randrange(256)
                elif kind == 1:
                    del line[at:at + chance.randrange(12)]
                elif kind == 2:
                    line[at:at] = chance.choice([b'"', b"{", b"[", b"\\u0000", b"\\ud800", b"1e999", b"null", b"-", b'{"a":' * 1200, b"\xf0\x9f"])
                else:
                    line[at:at] = line[chance.randrange(len(line)):][:chance.randrange(40)]
                line = line or bytearray(b" ")
            lines.append(bytes(line).replace(b"\n", b" "))
        lines.append(b'{"jsonrpc":"2.0","id":"the last","method":"ping"}')
        done = subprocess.run([QUERYPROF, "mcp", self.served], input=b"\n".join(lines), capture_output=True, timeout=300, env=environment(),
                              check=False)
        self.assertEqual(done.returncode, 0, ("seed", SEED, done.stderr))
        answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual(answers[-1]["id"], "the last", SEED)
        self.assertGreater(len({str(answer.get("error", {}).get("code")) for answer in answers}), 3)


if __name__ == "__main__":
    main()
