# SPDX-License-Identifier: Apache-2.0
"""Programs that stay inside a query, and the output of `queryprof dump` and `top` for them."""

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import output_schema
from recording import *

# This statement never ends, has a plan, and contains a name.
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x), '%s größe' FROM c"

# A thread holds the write lock and sleeps. Another thread, or with an argument another process, waits for the lock.
HOLDER = """
import sqlite3, sys, threading
path = sys.argv[1]
held = threading.Event()
def hold():
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE IF NOT EXISTS t (x)")
    db.execute("BEGIN IMMEDIATE /* holds */")
    db.execute("INSERT INTO t VALUES (1)")
    held.set()
    threading.Event().wait()
def wait():
    db = sqlite3.connect(path, isolation_level=None, timeout=3600)
    db.execute("INSERT INTO t VALUES (2) /* waits */")
threading.Thread(target=hold, daemon=True).start()
held.wait()
if len(sys.argv) > 2:
    import subprocess
    subprocess.run([sys.executable, "-c", sys.argv[2], path])
else:
    wait()
"""
WAITER = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], isolation_level=None, timeout=3600).execute("INSERT INTO t VALUES (2) /* waits */")
"""


class Live(Recording):
    def start(self, *command, options=()):
        """Records the program, and ends it after the test."""
        process = subprocess.Popen(self.arguments(*command, options=options), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def ask(self, command, *arguments, **named):
        return subprocess.run([QUERYPROF, command, *arguments], capture_output=True, text=True, timeout=300, check=False,
                              **named)

    def dump(self, target=None):
        done = self.ask("dump", str(target or self.trace), "--format", "json")
        self.seen = done.stdout + done.stderr
        if done.returncode:
            return None
        seen = json.loads(done.stdout)
        self.assertEqual(output_schema.errors("dump_unrecorded" if seen["file"] is None else "dump", seen), [])
        return seen

    def find(self, text, condition=lambda run: True):
        """Waits until a run with this text meets the condition; returns it."""
        def found():
            seen = self.dump()
            runs = [run for run in seen["runs"] if run["query"] == text and condition(run)] if seen else []
            return runs[0] if runs else None
        return wait_until(found, "%s\n%s" % (text, self.seen))
