#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Under `record` the program carries hooks, a handler and a ring, and the command alone writes.

usage: test_alone.py QUERYPROF"""

import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

# What the process has before and behind its queries, and in a child: threads, descriptors, maps of files.
SELF = """
import os, sqlite3, sys
def seen(where):
    print(where, len(os.listdir('/proc/self/task')), sorted(os.readlink('/proc/self/fd/' + fd)
          for fd in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + fd)),
          sorted({line.split(None, 5)[5].strip() for line in open('/proc/self/maps') if line.count(' ') > 5 and (
          'queryprof' in line)}), sep='|', flush=True)
seen('before')
db = sqlite3.connect(':memory:')
def work():
    db.execute(%r).fetchall()
work()
seen('behind')
if os.fork() == 0:
    work()
    seen('child')
    os._exit(0)
os.wait()
if len(sys.argv) < 2:
    os.execv(sys.executable, [sys.executable, '-c', sys.orig_argv[2], 'again'])
""" % SLOW

DAEMON = """
import os, sqlite3, sys, time
if os.fork():
    os._exit(0)
os.setsid()
db = sqlite3.connect(':memory:')
db.execute('SELECT 1 /* at first */').fetchall()
open(sys.argv[1], 'w').close()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
db.execute('SELECT 2 /* at last */').fetchall()
"""

MANY = """
import sqlite3, sys
db = sqlite3.connect(':memory:')
for i in range(int(sys.argv[1])):
    db.execute('SELECT /* %d */ 1' % i).fetchall()
print('ended', flush=True)
"""

FROM_INSIDE = """
import os, sqlite3, sys
db = sqlite3.connect(':memory:')
db.execute(%r).fetchall()
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
print(*db.execute('PRAGMA trace_log_path').fetchone())
db.execute("PRAGMA trace_log_path = '%%s'" %% sys.argv[2])
print(*db.execute('SELECT count(*) > 0 FROM trace_log').fetchone())
print(os.path.exists(sys.argv[2]))
""" % SLOW

EVERY_RUN = ("--cpu", "0", "--real", "60s", "--off-cpu", "0", "--setting", "log_queries_min_query_duration_ns=0")


class Alone(Recording):
    def test_no_thread_no_descriptor(self):
        alone = subprocess.run([PYTHON, "-c", SELF], capture_output=True, text=True, check=True)
        done = self.record(PYTHON, "-c", SELF)
        self.assertEqual(done.returncode, 0, self.seen)
        for without, line in zip(alone.stdout.splitlines(), done.stdout.splitlines(), strict=True):
            where, threads, descriptors, maps = line.split("|")
            self.assertEqual([where, threads], without.split("|")[:2], self.seen)
            self.assertEqual(len(descriptors.split(",")), len(without.split("|")[2].split(",")), self.seen)
            self.assertNotIn("queryprof", descriptors)
            files = {re.sub(r"\.so.*", "", os.path.basename(name)) for name in re.findall(r"'([^']+)'", maps)}
            self.assertLessEqual(files, {"libqueryprof-recorder", "libqueryprof-preload", "memfd:queryprof (deleted)"}, self.seen)
        # The one that becomes another program stays the same process.
        self.assertEqual(self.rows("SELECT count(DISTINCT process_id) FROM processes"), [(3,)])

    def test_daemon(self):
        """It is recorded to its end, which is behind that of the command."""
        begun, go = os.path.join(self.folder, "begun"), os.path.join(self.folder, "go")
        subprocess.run(self.arguments(PYTHON, "-c", DAEMON, begun, go, options=EVERY_RUN), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=300, check=True)
        wait_until(lambda: os.path.exists(begun), "the daemon")
        open(go, "w").close()
        wait_until(lambda: self.rows("SELECT count(*) FROM query_log WHERE query LIKE '%at last%'") == [(1,)], "its last run")
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE '%at first%'"), [(1,)])

    def test_stopped_command(self):
        """The program waits for nothing. What its ring had room for is stored later."""
        process = subprocess.Popen(self.arguments(PYTHON, "-c", "import os; os.kill(os.getppid(), 19)\n" + MANY, "500",
                                                  options=EVERY_RUN), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ended\n")
        self.assertEqual(state(process.pid), "T")
        os.kill(process.pid, signal.SIGCONT)
        _, self.seen = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, self.seen)
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /*%'"), [(500,)], self.seen)

    def test_killed_command(self):
        """Its program ends with it, and what that has started goes on."""
        process = subprocess.Popen(self.arguments("sh", "-c", '"$@" & kill -9 $PPID; wait', "sh", PYTHON, "-c", MANY, "100000",
                                                  options=EVERY_RUN), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.read(), "ended\n")
        self.assertEqual(process.wait(300), -signal.SIGKILL)

    def test_from_inside(self):
        """The extension shows what is stored so far, and the file stays the command's."""
        own = os.path.join(self.folder, "own.db")
        done = self.record(PYTHON, "-c", FROM_INSIDE, LIBRARY, own)
        self.assertEqual(done.stdout.splitlines(), [self.trace, "1", "False"], self.seen)
        self.assertEqual(done.returncode, 0, self.seen)


if __name__ == "__main__":
    unittest.main(verbosity=2)
