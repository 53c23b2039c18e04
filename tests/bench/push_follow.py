# SPDX-License-Identifier: Apache-2.0
"""The cost of push --follow to a host, COMMAND ROOT [SECONDS [EVERY]]: its CPU time while the file grows by 100 samples a
second, as with one busy thread and the defaults, and the data sent; and the same for 1,000 such hosts."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(sys.argv[2], "tests", "push"))
import fake  # noqa: E402
import maker  # noqa: E402

COMMAND, ROOT = sys.argv[1], sys.argv[2]
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 30
EVERY = sys.argv[4] if len(sys.argv) > 4 else "1"
RATE, HOSTS = 100, 1000


def clock(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, server = os.path.join(folder, "a.trace"), fake.Fake(ROOT)
        file = maker.Maker(ROOT, path)
        file.add(RATE)
        process = subprocess.Popen([COMMAND, "push", "--follow", "--every", EVERY, path, server.url], stdout=subprocess.DEVNULL)
        while len(server.rows["trace_log_rows"]) < file.total:
            time.sleep(0.01)
        used, sent, seen, begin = clock(process.pid), file.total, len(server.seen), time.monotonic()
        for second in range(1, SECONDS + 1):
            file.add(RATE, runs=5)
            time.sleep(max(0, begin + second - time.monotonic()))
        while len(server.rows["trace_log_rows"]) < file.total:
            time.sleep(0.01)
        used, took = clock(process.pid) - used, time.monotonic() - begin
        process.kill()
        process.wait()
        requests, rows = server.seen[seen:], file.total - sent
        size = sum(len(body) for *_, body in requests)
        inserts = sum("query" in query for _, query, _, _ in requests)
        print(f"  CPU time of push: {100 * used / took:.2f} % of a core ({1e6 * used / rows:.0f} us a sample)")
        print(f"  sent: {rows / took:.0f} samples/s, {size / took:.0f} bytes/s ({size / rows:.0f} a sample), "
              f"{inserts / took:.2f} inserts/s")
        print(f"  {HOSTS} hosts: {HOSTS * RATE * 86400 / 1e9:.2f} billion samples a day, "
              f"{HOSTS * size / took / 1e6:.1f} MB/s, {HOSTS * inserts / took:.0f} inserts/s")
        server.close()


main()
