# SPDX-License-Identifier: Apache-2.0
"""A trace file whose statement scans a table, and the server on its folder."""

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
    """One process. ask(): the response to a message, or to bytes of a line."""
    def __init__(self, *folders):
        self.process = subprocess.Popen([QUERYPROF, "mcp", *folders], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
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
        """(text, whether it is an error)"""
        self.number += 1
        result = self.ask(request(self.number, "tools/call", name=tool, arguments=arguments))["result"]
        return result["content"][0]["text"], result["isError"]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(60)
