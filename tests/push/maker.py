# SPDX-License-Identifier: Apache-2.0
"""Generates trace files of one program on one host, batch by batch."""
import json
import os
import random
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trace_file  # noqa: E402

T0 = 1_700_000_000_000_000_000
PERIOD = 1_000_000


def version(root):
    return trace_file.version(os.path.join(root, "sql", "schema", "store_schema.sql"))


class Maker:
    def __init__(self, root, path, host="host", seed=1, statements=20, stacks=400, depth=20):
        self.random = random.Random(seed)
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;")
        with open(os.path.join(root, "sql", "schema", "store_schema.sql")) as file:
            self.db.executescript("BEGIN;" + file.read() + "PRAGMA application_id = 1364218438; "
                                  f"PRAGMA user_version = {version(root)}; COMMIT;")
        self.identity = self.random.getrandbits(62)
        self.batch = self.total = self.runs = 0
        self.now = T0
        self.statements, self.stacks = statements, stacks
        run = self.db.execute
        run("BEGIN")
        run("UPDATE state SET identity = ?", (self.identity,))
        run("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) "
            "VALUES (1, ?, 100, 0, '/opt/app')", (host,))
        run("INSERT INTO threads VALUES (1, 1, 101, 'worker')")
        run("INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (1, 1, 'CPU', ?, 1)", (PERIOD,))
        run("INSERT INTO modules VALUES (1, 'abcd', '/opt/app', 1, 1, 65536, 1000000, 0)")
        run("INSERT INTO label_sets VALUES (1, 1, 1, '{\"route\":\"users#show\"}', '', '', '')")
        run("INSERT INTO label_values VALUES (1, 'route', 'users#show', '', '\"route\":\"users#show\"')")
        names = {}
        for function in range(300):
            name = f"function_{function}"
            names[function] = run("INSERT INTO names (name) VALUES (?)", (name,)).lastrowid
            run("INSERT INTO frames VALUES (?, 0, 0, ?, ?, ?, ?)",
                (65536 + 16 * function, names[function], names[function], names[0], function + 1))
        for stack in range(1, stacks + 1):
            trace = [65536 + 16 * self.random.randrange(300) for _ in range(depth)]
            run("INSERT INTO stacks VALUES (?, ?, 1, ?)", (stack, stack, json.dumps(trace, separators=(",", ":"))))
        for statement in range(1, statements + 1):
            run("INSERT INTO statements VALUES (?, ?, ?, 0, ?, 0)",
                (statement, statement, statement * 1000003, f"SELECT * FROM t{statement} WHERE a = 'ä'"))
        run("COMMIT")

    def add(self, samples, runs=0, spans=(0,), stack=None):
        """Adds a batch. Its samples are divided among its runs, which end in it, and among the spans, one after the other.
        stack: of all samples; otherwise each sample gets a random one."""
        runs = runs or max(1, samples // 50)
        first_ns = self.now + 1
        rows, queries = [], []
        for run in range(runs):
            self.runs += 1
            statement = 1 + self.random.randrange(self.statements)
            start = self.now + 1
            count = samples * (run + 1) // runs - samples * run // runs
            for _ in range(count):
                self.now += self.random.randrange(500_000, 1_500_000)
                some = 1 + (statement * 7 + self.random.randrange(max(1, self.stacks // 10))) % self.stacks
                rows.append((self.now, 1, self.runs, stack or some, 1, 1 + (self.random.randrange(10) == 0), 0, 0,
                             self.runs % 2, spans[len(rows) % len(spans)]))
            queries.append((self.runs, f"{self.identity:016x}-{self.runs:016x}", 1, start, self.now, 1, statement,
                            start, self.now - start, count * PERIOD, "main.db", 101, count, self.batch + 1, count))
        self.batch += 1
        self.total += samples
        run = self.db.execute
        run("BEGIN IMMEDIATE")
        self.db.executemany("INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size,"
                            " labels, span) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self.db.executemany("INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, statement,"
                            " query_start_ns, query_duration_ns, cpu_time_ns, database, thread_id, samples_cpu, batch,"
                            " result_rows) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", queries)
        run("INSERT INTO batches VALUES (?, 1, ?, ?, ?, ?, ?, 1)",
            (self.batch, first_ns - 1, first_ns, self.now, samples, self.total))
        run("COMMIT")

    def add_spans(self, trace, first, count):
        """Adds a row of span_batches and returns its id. Its spans have the even numbers among the `count` from `first` on."""
        spans = [0 if (first + n) % 2 else [1, 0, n, 1] for n in range(count)]
        return self.db.execute(
            "INSERT INTO span_batches (trace_hi, trace_lo, parent, first_span, thread, start_ns, dropped, flags, lasted_ns,"
            " count, statements, spans) VALUES (1, ?, 0, ?, 1, ?, 0, 2, ?, ?, 0, ?)",
            (trace, first, T0, count, count, json.dumps(spans))).lastrowid

    def count(self, statement, calls, began_ns):
        """Counts runs of a statement in one transaction, as the writer does. The newest of them began at began_ns."""
        run = self.db.execute
        run("BEGIN IMMEDIATE")
        run("UPDATE state SET statement_batches = statement_batches + 1")
        run("INSERT INTO statement_counters (normalized_query_hash, database, program, statement, calls, first_seen_ns,"
            " last_seen_ns, batch) SELECT normalized_query_hash, 'main.db', '/opt/app', id, ?2, ?3, ?3,"
            " (SELECT statement_batches FROM state) FROM statements WHERE id = ?1"
            " ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, batch = excluded.batch,"
            " last_seen_ns = max(last_seen_ns, excluded.last_seen_ns)", (statement, calls, began_ns))
        run("COMMIT")

    def remove(self, count):
        """Removes the oldest samples, as the limit of the file's size does."""
        run = self.db.execute
        run("BEGIN IMMEDIATE")
        run("DELETE FROM samples WHERE timestamp_ns IN (SELECT timestamp_ns FROM samples ORDER BY timestamp_ns LIMIT ?)",
            (count,))
        run("DELETE FROM batches WHERE last_ns < (SELECT min(timestamp_ns) FROM samples)"
            " AND id < (SELECT max(id) FROM batches)")
        run("UPDATE state SET removals = removals + 1")
        run("COMMIT")

    def rows(self, sql):
        return self.db.execute(sql).fetchall()
