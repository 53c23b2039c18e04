# SPDX-License-Identifier: Apache-2.0
"""A trace file whose statement scans a table, and a server for its folder."""

import contextlib
import json
import os
import sqlite3
import subprocess

import trace_file
from tool import QUERYPROF, SCHEMA, SOURCE, environment

STATEMENT = 0x3ee8fe74cff636ae
SCAN = """
UPDATE plan_nodes SET compared = 'total' WHERE program IN (1, 4);
UPDATE statement_counters SET fullscan_steps = 5000000 WHERE normalized_query_hash = 901;
UPDATE statements SET normalized_query_hash = %d WHERE normalized_query_hash = 901;
UPDATE statement_counters SET normalized_query_hash = %d WHERE normalized_query_hash = 901;
""" % (STATEMENT, STATEMENT)


# The database on which the statement ran. An index on total would find its rows.
DATABASE = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, total INTEGER, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)
INSERT INTO orders SELECT i, i % 1000, CASE i % 500 WHEN 0 THEN 25 ELSE i % 20 END, 'rote farbe ' || i FROM n;
"""


def make_database(path, trace):
    """Makes the database on which the statement of the trace file ran."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(DATABASE)
    with contextlib.closing(sqlite3.connect(trace)) as db:
        db.execute("UPDATE statement_counters SET database = ? WHERE normalized_query_hash = ?", (path, STATEMENT))
        db.commit()


def make(path):
    scripts = [SCHEMA] + [os.path.join(SOURCE, "tests", "command", name) for name in ("fixed.sql", "fixed_plans.sql")]
    with contextlib.closing(sqlite3.connect(path)) as db:
        for script in scripts:
            with open(script, encoding="utf-8") as file:
                db.executescript(file.read())
        db.executescript(SCAN)
        db.execute("PRAGMA application_id = %d" % 0x51505246)
        db.execute("PRAGMA user_version = %d" % trace_file.version(SCHEMA))
        db.commit()


def request(number, method, **parameters):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


class Server:
    """A process of the server. ask() returns the response to a message, or to a line of bytes."""
    def __init__(self, *folders, variables=None):
        self.process = subprocess.Popen([QUERYPROF, "mcp", *folders], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(**(variables or {})))
        self.number = 0

    def send(self, line):
        line = line if isinstance(line, bytes) else json.dumps(line).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, line):
        self.send(line)
        return self.read()

    def call(self, tool, **arguments):
        """Calls a tool. Returns the text, and whether it is an error."""
        self.number += 1
        result = self.ask(request(self.number, "tools/call", name=tool, arguments=arguments))["result"]
        return result["content"][0]["text"], result["isError"]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(300)
