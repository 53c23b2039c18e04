# SPDX-License-Identifier: Apache-2.0
"""1,000 hosts on this machine, COMMAND ROOT [HOSTS [ROUNDS]]. In each round every host's trace file grows by 10 s of 100
samples a second, and a push for each host sends this to Debian's clickhouse-server. Then one push sends all files, like a
collecting host. Prints rows, bytes, inserts, and the CPU time of push per host and of the server."""
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(sys.argv[2], "tests", "push"))
import maker  # noqa: E402
import server  # noqa: E402

COMMAND, ROOT = sys.argv[1], sys.argv[2]
HOSTS = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 1
RATE, SECONDS = 100, 10


def push(*arguments):
    """Returns the CPU time of the push, and the bytes that it sent."""
    process = subprocess.Popen([COMMAND, "push", *arguments], stdout=subprocess.PIPE, text=True)
    with process.stdout:
        size = int(re.search(r"(\d+) bytes", process.stdout.read())[1])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"push has ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, size


def inserts(node):
    return node.number("SELECT value FROM system.events WHERE event = 'InsertQuery'")


def clock(process):
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check(node, samples):
    rows, hosts, least, most = (int(value) for value in node.ask(
        "SELECT sum(n), count(), min(n), max(n) FROM (SELECT hostname, count() AS n FROM trace_log GROUP BY hostname)")[0])
    if (rows, hosts, least, most) != (HOSTS * samples, HOSTS, samples, samples):
        raise SystemExit(f"expected {samples} samples of each host; the server has {rows} of {hosts}: {least} to {most}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        node = server.start(folder, 1)[0]
        try:
            measure(node, os.path.join(folder, "hosts"))
        finally:
            node.stop()


def measure(node, folder):
    os.mkdir(folder)
    for name in ("tables.sql", "views.sql"):
        node.run(server.text(name, "old_server.sed"))
    files = []
    for host in range(HOSTS):
        path = os.path.join(folder, f"{host}.trace")
        files.append((path, maker.Maker(ROOT, path, host=f"host{host}", seed=host + 1)))
    used = sent = 0
    begin = clock(node.process)
    for _ in range(ROUNDS):
        for path, file in files:
            file.add(RATE * SECONDS)
            one, size = push(path, node.url)
            used, sent = used + one, sent + size
    seconds = ROUNDS * SECONDS
    server_used = clock(node.process) - begin
    check(node, seconds * RATE)
    rows = node.ask("SELECT table, sum(rows) FROM system.parts WHERE active GROUP BY table ORDER BY table")
    print(f"  {HOSTS} hosts, {seconds} s of {RATE} samples a second, a push each {SECONDS} s: "
          + ", ".join(f"{count} {table}" for table, count in rows))
    print(f"  CPU time of push: {100 * used / HOSTS / seconds:.2f} % of a core of each host; "
          f"of the server: {100 * server_used / seconds:.0f} % of a core")
    print(f"  sent: {sent / seconds / 1e6:.1f} MB/s, {inserts(node) / seconds:.0f} inserts/s", flush=True)

    for _, file in files:
        file.add(RATE * SECONDS)
        file.db.close()
    begin = time.monotonic()
    used, _ = push(folder, node.url)
    check(node, (ROUNDS + 1) * RATE * SECONDS)
    print(f"  one push of {HOSTS} files: {used:.1f} s of CPU time, {time.monotonic() - begin:.1f} s, for {SECONDS} s of samples")


if __name__ == "__main__":
    main()
