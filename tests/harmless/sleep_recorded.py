#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The waits of the C program and of Python, which implements its own busy timeout, keep their
length under `queryprof record --real 1ms`.

sleep_recorded.py QUERYPROF SLEEP_TIMES"""

import os
import subprocess
import sqlite3
import sys
import tempfile

QUERYPROF, SLEEP_TIMES = map(os.path.abspath, sys.argv[1:])

PYTHON = r"""
import os, select, sqlite3, sys, time
path = sys.argv[1]
holder = sqlite3.connect(path, isolation_level=None)
holder.execute("CREATE TABLE t(x)")
db = sqlite3.connect(path, timeout=1.0, isolation_level=None)
db.execute("SELECT * FROM t").fetchall()
holder.execute("BEGIN EXCLUSIVE")
db.create_function("nap", 0, lambda: time.sleep(1.0) or 1)
reading, writing = os.pipe()
db.create_function("wait", 0, lambda: len(select.select([reading], [], [], 1.0)[0]))

def busy():
    try:
        db.execute("INSERT INTO t VALUES (1)")
    except sqlite3.OperationalError as error:
        assert str(error) == "database is locked", error
        return
    raise SystemExit("not locked")

def delay():
    # How long the thread was ready while others had the processors, a hypervisor's guests, too, in seconds.
    with open("/proc/thread-self/schedstat") as file, open("/proc/stat") as stat:
        return int(file.read().split()[1]) / 1e9 + int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")

for name, wait in (("timeout=1.0", busy),
                   ("time.sleep(1.0)", lambda: db.execute("SELECT nap()").fetchall()),
                   ("select, 1.0", lambda: db.execute("SELECT wait()").fetchall())):
    for attempt in range(60):  # other guests of the machine may make one too long
        start, delayed = time.monotonic(), delay()
        wait()
        seconds = time.monotonic() - start
        delayed = delay() - delayed
        print("Python, %-20s %8.1f ms" % (name, seconds * 1e3))
        assert seconds >= 0.98, "too short"
        if seconds - delayed <= 1.02:
            break
    else:
        raise SystemExit("too long")
"""


def main():
    with tempfile.TemporaryDirectory(prefix="queryprof-sleep-") as folder:
        for number, command in enumerate((
                [SLEEP_TIMES, "recorded"],
                ["/usr/bin/python3", "-c", PYTHON, os.path.join(folder, "python.db")])):
            trace = os.path.join(folder, "%d.trace" % number)
            subprocess.run([QUERYPROF, "record", "-o", trace, "--no-symbols", "--cpu", "1ms", "--real", "1ms", "--", *command],
                           check=True)
            samples, = sqlite3.connect(trace).execute(
                "SELECT sum(weight) FROM trace_log WHERE trace_type = 'Real'").fetchone()
            print(samples, "samples")
            # sampled all the time
            assert samples > 2000, samples


main()
