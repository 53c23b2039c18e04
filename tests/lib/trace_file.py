# SPDX-License-Identifier: Apache-2.0
"""A trace file with known content, made from the store's own schema.

Two runs of one statement, a query that failed, and a query with samples that has not finished; stacks in the functions of
the symbol tests' fixture."""

import os
import re
import sqlite3
import subprocess

BASE = 0x7F0000000000
SLOW = "0193a5b2-77c1-7aaa-8000-000000000001"
FAST = "0193a5b2-77c1-7bbb-8000-000000000002"
FAILED = "0193a5b2-9999-7ccc-8000-000000000003"
OWN = "my own id"
RUNNING = "0193a5b2-aaaa-7ddd-8000-000000000004"
START = 1795000000 * 10**9  # 2026-11-18 11:06:40 UTC
MS = 10**6


def symbols(library):
    """Addresses of the library's functions, by name."""
    lines = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
    return {name: int(address, 16) for address, kind, name in
            (line.split() for line in lines.splitlines() if len(line.split()) == 3)}


def version(schema):
    """The schema's version. The command would read a file with an older version through temporary views."""
    header = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "store", "file", "schema.h")
    with open(header, encoding="utf-8") as file:
        return int(re.search(r"STORE_SCHEMA_VERSION (\d+)", file.read())[1])


def make(path, schema, library, build_id, base=BASE):
    at = symbols(library)
    db = sqlite3.connect(path)
    with open(schema, encoding="utf-8") as file:
        db.executescript(file.read())
    db.execute("PRAGMA application_id = %d" % 0x51505246)
    db.execute("PRAGMA user_version = %d" % version(schema))
    db.execute("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable)"
               " VALUES (1, 'host', 100, ?, '/usr/bin/app')", (START,))
    db.execute("INSERT INTO threads VALUES (1, 1, 101, 'main')")
    db.execute("INSERT INTO series (id, thread, trace_type, period_ns, epoch)"
               " VALUES (1, 1, 'CPU', ?, 1), (2, 1, 'Real', ?, 1)", (MS, MS))
    db.execute("INSERT INTO modules VALUES (1, ?, ?, ?, 0, ?, ?, 0)",
               (build_id, library, os.path.getsize(library), base, 0x100000))

    def stack(*frames):
        return "[" + ",".join(str(base + frame) for frame in frames) + "]"

    walk = at["_ZN7fixture5Thing4walkEPKci"]
    stacks = [
        stack(at["fixture_static"] + 4, at["fixture_visit"] + 4, at["fixture_calls_out"] + 4),
        stack(at["fixture_hole"], at["fixture_calls_out"] + 4),
        # Recursion: counted once.
        stack(walk, walk + 1, walk, at["fixture_calls_out"] + 4),
        "[%d]" % 0x1234,
    ]
    db.executemany("INSERT INTO stacks VALUES (?, 0, 1, ?)", enumerate(stacks, 1))
    db.executemany("INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query) VALUES (?, 0, ?, 0, ?)", [
        (1, 0xB000B, "SELECT *\n\tFROM orders WHERE id = 1"),
        (2, 0xB000B, "SELECT *\n\tFROM orders WHERE id = 2"),
        (3, 0xC000C, "SELECT nothing FROM nowhere \x1b[31m"),
        (4, 0xD000D, "SELECT 'own'"),
    ])
    # id, query_id, statement, start, duration, cpu (ms), failed, rows, samples
    queries = [
        (1, SLOW, 1, 0, 200, 100, 0, 7, 90),
        (2, FAST, 2, 300, 20, 10, 0, 1, 0),
        (3, FAILED, 3, 400, 1, 1, 1, 0, 0),
        (4, OWN, 4, 500, 5, 5, 0, 0, 0),
    ]
    for key, name, statement, start, duration, cpu, failed, rows, samples in queries:
        start = START + start * MS
        db.execute(
            "INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial,"
            " statement, query_start_ns, query_duration_ns, cpu_time_ns, thread_id,"
            " exception_code, exception, result_rows, samples_cpu)"
            " VALUES (?, ?, 1, ?, ?, 1, ?, ?, ?, ?, ?, 101, ?, ?, ?, ?)",
            (key, name, start, start + duration * MS, key, statement, start, duration * MS,
             cpu * MS, failed, "no such table: nowhere" if failed else "", rows, samples))
    db.execute("INSERT INTO queries (id, query_id, process, first_ns, last_ns)"
               " VALUES (5, ?, 1, ?, ?)", (RUNNING, START + 600 * MS, START + 700 * MS))
    time = START
    samples = []

    def sample(query, stack_id, count, weight, series=1):
        nonlocal time
        for _ in range(count):
            time += 1000
            samples.append((time, series, query, stack_id, 0, weight, 0, 0))

    sample(1, 1, 60, 1)   # 60 ms in fixture_static
    sample(1, 2, 10, 2)   # 20 ms between functions
    sample(1, 3, 20, 1)   # 20 ms in the recursion
    sample(1, 1, 150, 1, series=2)
    time = START + 600 * MS
    sample(5, 4, 3, 1)    # in no module
    db.executemany("INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?)", samples)
    db.execute("PRAGMA optimize")
    db.commit()
    db.close()
